"""The entry point: runs a verb, and says what went wrong in words and exit codes."""

import errno
import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import CycloptsError, UnusedCliTokensError

from wsjax.cli import (  # noqa: F401 (they register their verbs)
    choose,
    compare,
    explain,
    fit,
    hardware,
    importing,
    measure,
    optimize,
    predict,
    report,
    sweep,
    trace,
)
from wsjax.cli.app import app
from wsjax.cli.terminal import INTERRUPTED
from wsjax.deadlines import abandoned
from wsjax.errors import WsjaxError, public
from wsjax.kept import keep_compiled

PLACES = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}
"""Errors of the system that another file or directory mends, as those of `InputError`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, the process's own by default; its exit code (see `wsjax.cli`)."""
    if arguments is not None:
        return _run(arguments)
    code = _run(sys.argv[1:])
    if abandoned():  # the interpreter would wait for it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _run(arguments: Sequence[str]) -> int:
    _open_streams()
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
                list(arguments),
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


def _open_streams() -> None:
    """Let what a closed standard stream (`2>&-`) would take go nowhere: neither a traceback, nor
    into the next file that is opened, which takes its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it takes the free number
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _say(text: str) -> None:
    for line in public(text).splitlines():
        print(f"wsjax: {line}", file=sys.stderr)
