"""The command line: runs a verb, and says what went wrong in words and exit codes."""

import errno
import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import CycloptsError, UnusedCliTokensError

from wsjax.cli import (  # noqa: F401 (they register their verbs)
    verbs_measured,
    verbs_model,
    verbs_search,
    verbs_views,
)
from wsjax.cli.compiled import keep_compiled
from wsjax.cli.options import app
from wsjax.cli.terminal import INTERRUPTED
from wsjax.errors import WsjaxError

PLACES = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}
"""Errors of the system that another file or directory mends, as those of `InputError`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; its exit code: 0, 1 (could not go on), 2 (wrong input), 130 (Ctrl-C)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    keep_compiled()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", message=".*persistent compilation cache")
        warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
        try:
            code = app(
                list(sys.argv[1:] if arguments is None else arguments),
                exit_on_error=False,
                print_error=False,
                result_action="return_value",
            )
            sys.stdout.flush()
            return code or 0
        except WsjaxError as error:
            _say(str(error))
            return error.exit_code
        except UnusedCliTokensError as error:
            verb = " ".join(["wsjax", *(error.command_chain or ())])
            words = ", ".join(f"'{word}'" for word in error.unused_tokens or ())
            _say(f"{words}: not expected here; see {verb} --help")
            return 2
        except CycloptsError as error:
            _say(str(error))
            return 2
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        except KeyboardInterrupt:
            _say("interrupted")
            return INTERRUPTED
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            more = "; make room, and repeat the command" if error.errno == errno.ENOSPC else ""
            _say(f"{where}{error.strerror or error}{more}")
            return 2 if error.errno in PLACES else 1


def _say(text: str) -> None:
    for line in text.splitlines():
        print(f"wsjax: {line}", file=sys.stderr)
