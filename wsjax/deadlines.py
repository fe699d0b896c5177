"""When a search has to end: at a time limit, or at the user's first Ctrl-C."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from types import FrameType


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
