"""How the times of a problem's kernels are distributed, without keeping a row for each.

Rows stream by, group after group. Of each group there stay its number of rows, the least and
greatest time, and a histogram on a fixed grid, `GRID` bins to a factor of 2:

    bin i holds the times t with floor(GRID * log2(t / 1 µs)) = i

(t between 2**-40 and 2**40 µs). Quantile q is the middle of the bin, 2**((i + 0.5) / GRID), that
holds the ceil(q * rows)-th smallest time, not beyond the least or greatest: within 1.1 % of that
time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wsjax import tables

if TYPE_CHECKING:
    import pyarrow as pa

GRID = 32
LEAST_US = 2.0**-40
BINS = 80 * GRID
LOWEST = -40 * GRID
"""The first bin; the last one holds what takes longer, too (2**40 µs are 13 days)."""
QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


class Distribution(NamedTuple):
    """The times of one group: its number, the least and greatest, the bins that hold any, in order,
    and how many each holds."""

    group: int
    least: float
    greatest: float
    bins: np.ndarray
    counts: np.ndarray

    def quantile(self, q: float) -> float:
        """Quantile `q`, in µs."""
        ends = np.cumsum(self.counts)
        position = np.searchsorted(ends, max(np.ceil(q * ends[-1]), 1))
        middle = np.exp2((self.bins[position] + 0.5) / GRID)
        return float(np.clip(middle, self.least, self.greatest))


@dataclass
class Tally:
    """What is known of the group that may go on in the next rows."""

    _open: Distribution | None = None

    def add(self, some: Sequence[Distribution]) -> list[Distribution]:
        """Take in what `distributions` found of the next rows; the groups that are complete now."""
        found = [*some]
        if self._open is not None:
            goes_on = bool(found) and found[0].group == self._open.group
            found[:goes_on] = [joined(self._open, found[0]) if goes_on else self._open]
        self._open = found.pop() if found else None
        return found

    def end(self) -> list[Distribution]:
        """The last group, if there is one."""
        return [] if self._open is None else [self._open]


def distributions(groups: np.ndarray, times_us: np.ndarray) -> list[Distribution]:
    """Those of rows by ascending group."""
    if not len(groups):
        return []
    bins = np.floor(GRID * np.log2(np.maximum(times_us, LEAST_US))).astype(np.int64)
    bins = np.minimum(bins, LOWEST + BINS - 1)
    starts = [0, *(np.flatnonzero(np.diff(groups)) + 1), len(groups)]
    return [_distribution(groups, times_us, bins, *share) for share in pairwise(starts)]


def columns(found: Sequence[Distribution]) -> dict[str, "pa.Array"]:
    """Distributions as columns: `rows`, `time_us_min`, `time_us_p05` …, `time_us_max`, and the
    histogram: `bin_us`, the lower ends of bins that hold any, and `bin_rows`."""
    figures = {
        "rows": np.array([each.counts.sum() for each in found], np.int64),
        "time_us_min": np.array([each.least for each in found]),
        **{
            f"time_us_{name}": np.array([each.quantile(q) for each in found])
            for name, q in QUANTILES.items()
        },
        "time_us_max": np.array([each.greatest for each in found]),
    }
    return {name: tables.number_column(values) for name, values in figures.items()} | {
        "bin_us": tables.list_column([np.exp2(each.bins / GRID) for each in found], float),
        "bin_rows": tables.list_column([each.counts for each in found], np.int64),
    }


def joined(one: Distribution, other: Distribution) -> Distribution:
    """That of one group's rows in two pieces."""
    bins, position = np.unique(np.append(one.bins, other.bins), return_inverse=True)
    counts = np.zeros(len(bins), np.int64)
    np.add.at(counts, position, np.append(one.counts, other.counts))
    least, greatest = min(one.least, other.least), max(one.greatest, other.greatest)
    return Distribution(one.group, least, greatest, bins, counts)


def counted(
    group: int, least: float, greatest: float, counts: np.ndarray, lowest: int = LOWEST
) -> Distribution:
    """That of a group whose bins from `lowest` on hold so many times."""
    held = np.flatnonzero(counts)
    return Distribution(int(group), float(least), float(greatest), lowest + held, counts[held])


def _distribution(
    groups: np.ndarray, times_us: np.ndarray, bins: np.ndarray, start: int, stop: int
) -> Distribution:
    times_us, bins = times_us[start:stop], bins[start:stop]
    lowest = bins.min()
    return counted(
        groups[start], times_us.min(), times_us.max(), np.bincount(bins - lowest), lowest
    )
