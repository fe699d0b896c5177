"""The running best of a sweep: for each of its first problems, and of all rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Row = dict[str, Any]
PROBLEMS_KEPT = 8


@dataclass
class Best:
    """What is kept while rows stream by.

    `keys`: the columns that tell apart what competes: problems, machines. `each`: how many rows
    are kept of each of the first that came. `first`: those, fastest first; of two that are as
    fast, the earlier. `fastest`: the row of most TFLOP/s.
    """

    keys: tuple[str, ...]
    each: int
    first: dict[tuple[Any, ...], list[Row]] = field(default_factory=dict)
    fastest: Row | None = None

    def update(self, columns: Mapping[str, np.ndarray], row: Callable[[int], Row]) -> None:
        """Take in rows: `columns` holds the keys, `time_us` and `tflops`; `row(i)` all of row i."""
        tflops = columns["tflops"]
        if not len(tflops):
            return
        top = int(tflops.argmax())
        if self.fastest is None or tflops[top] > self.fastest["tflops"]:
            self.fastest = row(top)
        left = np.ones(len(tflops), dtype=bool)
        for key in self.first:
            left &= ~self._compete(key, columns, left, row)
        while len(self.first) < PROBLEMS_KEPT and left.any():
            position = int(left.argmax())
            key = tuple(columns[name][position].item() for name in self.keys)
            self.first[key] = []
            left &= ~self._compete(key, columns, left, row)

    def _compete(
        self,
        key: tuple[Any, ...],
        columns: Mapping[str, np.ndarray],
        left: np.ndarray,
        row: Callable[[int], Row],
    ) -> np.ndarray:
        """Let the rows of one problem compete; which rows they are."""
        same = left.copy()
        for name, value in zip(self.keys, key, strict=True):
            same &= columns[name] == value
            if not same.any():
                return same
        kept = self.first[key]
        bar = kept[-1]["time_us"] if len(kept) == self.each else np.inf
        times = np.where(same, columns["time_us"], np.inf)
        if len(times) > self.each:
            bar = min(bar, np.nextafter(np.partition(times, self.each - 1)[self.each - 1], np.inf))
        positions = np.flatnonzero(times < bar)
        positions = positions[np.argsort(times[positions], kind="stable")][: self.each]
        rows = [*kept, *(row(int(position)) for position in positions)]
        self.first[key] = sorted(rows, key=lambda kept: kept["time_us"])[: self.each]
        return same
