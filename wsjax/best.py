"""The running best of a sweep: of problems spread over all of it, and of all rows.

A sweep's rows come problem by problem, so that what competes is one run of rows, which may go on
in the next piece.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]
PROBLEMS_SHOWN = 8
PROBLEMS_KEPT = 3 * PROBLEMS_SHOWN


class Leader(NamedTuple):
    """The first row of a time, and how many of its problem's rows have that very time."""

    row: Row
    alike: int


@dataclass
class Best:
    """What is kept while rows stream by.

    `keys`: the columns that tell apart what competes: problems, machines. `each`: how many
    distinct times are kept of a problem. `fastest`: the row of most TFLOP/s. Of every `_stride`-th
    problem its leaders are kept, by its number. The stride triples when they are too many: a power
    of 3, so that axes of 2, 4 or 8 values do not always show their first.
    """

    keys: tuple[str, ...]
    each: int
    fastest: Row | None = None
    _kept: dict[int, list[Leader]] = field(default_factory=dict)
    _stride: int = 1
    _current: tuple[Any, ...] | None = None
    _number: int = -1

    def update(self, columns: Mapping[str, np.ndarray], row: Callable[[int], Row]) -> None:
        """Take in rows: `columns` holds the keys, `time_us` and `tflops`; `row(i)` all of row i."""
        times, tflops = columns["time_us"], columns["tflops"]
        if not len(times):
            return
        top = int(tflops.argmax())
        if self.fastest is None or tflops[top] > self.fastest["tflops"]:
            self.fastest = row(top)
        changes = np.zeros(len(times) - 1, dtype=bool)
        for name in self.keys:
            changes |= columns[name][1:] != columns[name][:-1]
        bounds = [0, *(np.flatnonzero(changes) + 1), len(times)]
        goes_on = self._key(columns, 0) == self._current
        first = self._number + (not goes_on)
        run = 0
        while run < len(bounds) - 1:
            wait = -(first + run) % self._stride
            if wait == 0:
                self._compete(first + run, times, int(bounds[run]), int(bounds[run + 1]), row)
            run += max(wait, 1)
        self._number = first + len(bounds) - 2
        self._current = self._key(columns, len(times) - 1)

    def leaders(self) -> list[Leader]:
        """Of at most `PROBLEMS_SHOWN` problems, spread over all, the fastest rows, in order."""
        kept = list(self._kept.values())
        count = min(len(kept), PROBLEMS_SHOWN)
        positions = [i * (len(kept) - 1) // max(count - 1, 1) for i in range(count)]
        return [leader for position in positions for leader in kept[position]]

    def _key(self, columns: Mapping[str, np.ndarray], position: int) -> tuple[Any, ...]:
        return tuple(columns[name][position].item() for name in self.keys)

    def _compete(
        self, number: int, times: np.ndarray, start: int, stop: int, row: Callable[[int], Row]
    ) -> None:
        """Let rows `start` to `stop`, of problem `number`, compete."""
        if number not in self._kept and len(self._kept) == PROBLEMS_KEPT:
            self._stride *= 3
            self._kept = {n: kept for n, kept in self._kept.items() if n % self._stride == 0}
            if number % self._stride:
                return
        own = times[start:stop]
        leaders = self._kept.get(number, [])
        if len(leaders) == self.each:
            own = own[own <= leaders[-1].row["time_us"]]
        known = {leader.row["time_us"]: leader for leader in leaders}
        for time, count in zip(*_least(own, self.each), strict=True):
            if time in known:
                known[time] = known[time]._replace(alike=known[time].alike + int(count))
            else:
                position = start + int((times[start:stop] == time).argmax())
                known[time] = Leader(row(position), int(count))
        self._kept[number] = [known[time] for time in sorted(known)[: self.each]]


def _least(times: np.ndarray, count: int) -> tuple[list[float], list[int]]:
    """The least few distinct times, and how often each is there."""
    least, counts = [], []
    while len(least) < count and len(times):
        time = times.min()
        others = times[times > time]
        least.append(float(time))
        counts.append(len(times) - len(others))
        times = others
    return least, counts
