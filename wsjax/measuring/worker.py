"""A process that measures: an engine behind pipes, so that a kernel that hangs or crashes costs one
process.

`serve` runs in the child: it reads a row a line (JSON) and answers with a line. The child ends with
its parent, whatever happens to that, because its standard input ends. `Worker` is the parent's
side: it starts children when they are needed and ends those that do not answer in time.
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from queue import Queue
from typing import IO, Any, Protocol

from wsjax.errors import InputError

STARTING_S = 120.0
"""Until an engine has its device."""


class UnavailableError(Exception):
    """The engine finds no device."""


class UnsupportedError(Exception):
    """The engine has no such kernel."""


class Engine(Protocol):
    """Runs kernels. A class of this kind in a module of yours is `--engine module:Class`."""

    name: str

    def facts(self) -> dict[str, Any]:
        """`device` (its name), and what else a hardware file says of it."""
        ...

    def prepare(self, row: Mapping[str, Any]) -> Any:
        """Compile the kernel of a row of configuration columns, words as words."""
        ...

    def measure(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """`status` and, where that is ok, `time_us_measured`, `time_us_measured_p10`, `_p90` and
        `reps`; and `rel_err` and `sm_ghz_measured` if it knows them."""
        ...


def serve(engine: str, *arguments: str) -> None:
    """Answer requests until the input ends. What the engine prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests: Queue[str] = Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()

    def answer(record: Mapping[str, Any]) -> None:
        print(json.dumps(record), file=answers, flush=True)

    module, _, name = engine.partition(":")
    try:
        found: Engine = getattr(importlib.import_module(module), name)(*arguments)
        answer(found.facts())
    except (UnavailableError, ImportError) as error:
        answer({"unavailable": str(error)})
        return
    while True:
        request = json.loads(requests.get())
        if request["only_compile"]:
            answer(_prepared(found, request["row"]))
            continue
        record = _prepared(found, request["row"])
        if record["status"] != "ok":
            answer(record)
            continue
        answer(found.measure(request["row"]))


def _prepared(engine: Engine, row: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a row's kernel compiles: compilers raise errors of any kind."""
    try:
        engine.prepare(row)
    except Exception as error:
        return {"status": "not_compiled", "error": _brief(error)}
    return {"status": "ok"}


def _listen(requests: "Queue[str]") -> None:
    for line in sys.stdin:
        requests.put(line)
    os.killpg(0, signal.SIGKILL)


def _brief(error: BaseException) -> str:
    """The last line of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:200]


class Worker:
    """One child at a time, started at the first request and again after one that failed.

    engine: `module:Class`, and what the class is made with.
    """

    def __init__(self, engine: Sequence[str], timeout_s: float) -> None:
        self.engine, self.timeout_s = tuple(engine), timeout_s
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._unread = b""

    def facts(self) -> dict[str, Any]:
        """What the engine says of its device; InputError if it has none."""
        self.close()
        code = f"from wsjax.measuring import serve; serve(*{self.engine!r})"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._child = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        record = self._read(max(STARTING_S, self.timeout_s))
        if record["status"] != "ok" or "unavailable" in record:
            why = record.get("unavailable", record.get("error", record["status"]))
            name = self.engine[0].partition(":")[0].rpartition(".")[2]
            raise InputError(
                f"engine {name} cannot measure here: {why}; it needs an NVIDIA GPU, and gluon and "
                "triton need `pip install 'wsjax[measure]'`"
            )
        return record

    def run(self, row: Mapping[str, Any], *, only_compile: bool = False) -> dict[str, Any]:
        """The measurement of a row, or its status: not_compiled, incorrect, timeout, failed."""
        if self._child is None:
            self.facts()
        assert self._child is not None
        assert self._child.stdin is not None
        request = {"row": dict(row), "only_compile": only_compile}
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            self.close()
            return self.run(row, only_compile=only_compile)
        record = self._read(self.timeout_s)
        if record["status"] in ("timeout", "failed"):
            self.close()
        return record

    def close(self) -> None:
        """End the child, and what it has started."""
        if self._child is not None:
            if self._child.poll() is None:
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    stream.close()
        if self._errors is not None:
            self._errors.close()
        self._child, self._errors, self._unread = None, None, b""

    def _read(self, timeout_s: float) -> dict[str, Any]:
        """The child's next line."""
        assert self._child is not None
        assert self._child.stdout is not None
        descriptor, end = self._child.stdout.fileno(), time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return {"status": "timeout", "error": f"no answer in {timeout_s:g} s"}
            if not (found := os.read(descriptor, 65536)):
                return {"status": "failed", "error": self._last_words()}
            self._unread += found
        line, _, self._unread = self._unread.partition(b"\n")
        return {"status": "ok", **json.loads(line)}

    def _last_words(self) -> str:
        assert self._child is not None
        assert self._errors is not None
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return (lines[-1] if lines else f"ended with code {self._child.wait()}")[:200]
