"""When a search has to end: at a time limit, or at the user's first Ctrl-C."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.01
GRACE_S = 0.1
"""How long what is being done at the deadline may take to end."""


@dataclass
class Deadline:
    """Ends at `end_s` of the monotonic clock, or once `interrupted`."""

    end_s: float = inf
    interrupted: bool = field(default=False)

    @property
    def passed(self) -> bool:
        """Whether it is time to end."""
        return self.interrupted or time.monotonic() >= self.end_s

    @property
    def left_s(self) -> float | None:
        """Seconds that are left, None where there is no limit."""
        return None if self.end_s == inf else max(0.0, self.end_s - time.monotonic())


@contextmanager
def deadline(timeout_s: float | None) -> Iterator[Deadline]:
    """A deadline from now on. In it the first Ctrl-C ends the search, a second one raises
    KeyboardInterrupt as ever."""
    limit = Deadline(inf if timeout_s is None else time.monotonic() + timeout_s)
    if threading.current_thread() is not threading.main_thread():
        yield limit
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(_number: int, _frame: FrameType | None) -> None:
        limit.interrupted = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield limit
    finally:
        signal.signal(signal.SIGINT, before)


_abandoned: list[threading.Thread] = []


def until(limit: Deadline, work: Callable[[], T]) -> T | None:
    """What `work` returns, or None if the deadline comes before.

    It runs in a thread of its own, since compiling can't be interrupted: nobody waits for what is
    left of it, but a process that ends on its own (`abandoned` tells whether it has to wait).
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # raised where the result is taken
            result.set_exception(error)

    thread = threading.Thread(target=run, name="wsjax until a deadline")
    thread.start()
    while thread.is_alive() and not limit.passed:
        thread.join(POLL_S)
    thread.join(GRACE_S)
    if result.done():
        return result.result()
    _abandoned.append(thread)
    return None


def abandoned() -> bool:
    """Whether work that a deadline ended still runs."""
    _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
    return bool(_abandoned)
