"""How the times of a problem's kernels are distributed, without keeping a row for each.

Rows stream by, problem after problem (group after group). Of each there stay its number of rows,
the least and greatest time, and a log-histogram sketch: bins of a fixed relative width, `GRID` to a
factor of 2, that hold quantiles to a relative error and can be added (Masson, Rim, Lee: DDSketch,
VLDB 2019):

    bin i holds the times t with floor(GRID * log2(t / 1 µs)) = i

(t between 2**-40 and 2**40 µs). Quantile q is the middle of the bin, 2**((i + 0.5) / GRID), that
holds the ceil(q * rows)-th smallest time, not beyond the least or greatest: within 1.1 % of that
time.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import engine, tables
from wsjax.engine import UNPROVED, Candidates

if TYPE_CHECKING:
    import pyarrow as pa

GRID = 32
LEAST_US = 2.0**-40
BINS = 80 * GRID
LOWEST = -40 * GRID
"""The first bin; the last one holds what takes longer, too (2**40 µs are 13 days)."""
QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
GROUPS_MAX = 256
"""Groups that are counted at once on the device; more have few rows each."""
EDGES_US = np.exp2((LOWEST + np.arange(BINS + 1)) / GRID)
"""Lower ends of the bins, for logarithms of accelerators are not exact at powers of 2."""


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


def by_group(pieces: Iterable[Sequence[Distribution]], size: int) -> Iterator[list[Distribution]]:
    """Distributions of rows in order, those of one group joined, `size` or more at a time; at least
    one list, if empty."""
    held: list[Distribution] = []
    first = True
    for piece in pieces:
        goes_on = held and piece and held[-1].group == piece[0].group
        held += [joined(held.pop(), piece[0]), *piece[1:]] if goes_on else piece
        if len(held) > size:
            yield held[:-1]
            held, first = held[-1:], False
    if held or first:
        yield held


def distributions(groups: np.ndarray, times_us: np.ndarray) -> list[Distribution]:
    """Those of rows by ascending group."""
    if not len(groups):
        return []
    bins = np.floor(GRID * np.log2(np.maximum(times_us, LEAST_US))).astype(np.int64)
    bins = np.minimum(bins, LOWEST + BINS - 1)
    starts = [0, *(np.flatnonzero(np.diff(groups)) + 1), len(groups)]
    spreads = []
    for start, stop in pairwise(starts):
        times, held = times_us[start:stop], bins[start:stop]
        lowest = int(held.min())
        times_held = np.bincount(held - lowest)
        spreads.append(counted(int(groups[start]), times.min(), times.max(), times_held, lowest))
    return spreads


def columns(spreads: Sequence[Distribution]) -> dict[str, "pa.Array"]:
    """Distributions as columns: `rows`, `time_us_min`, `time_us_p05` …, `time_us_max`, and the
    histogram: `bin_us`, the lower ends of bins that hold any, and `bin_rows`."""
    figures = {
        "rows": np.array([each.counts.sum() for each in spreads], np.int64),
        "time_us_min": np.array([each.least for each in spreads]),
        **{
            f"time_us_{name}": np.array([each.quantile(q) for each in spreads])
            for name, q in QUANTILES.items()
        },
        "time_us_max": np.array([each.greatest for each in spreads]),
    }
    return {name: tables.number_column(values) for name, values in figures.items()} | {
        "bin_us": tables.list_column([np.exp2(each.bins / GRID) for each in spreads], float),
        "bin_rows": tables.list_column([each.counts for each in spreads], np.int64),
    }


def joined(first: Distribution, second: Distribution) -> Distribution:
    """That of one group's rows in two pieces."""
    bins, position = np.unique(np.append(first.bins, second.bins), return_inverse=True)
    counts = np.zeros(len(bins), np.int64)
    np.add.at(counts, position, np.append(first.counts, second.counts))
    least, greatest = min(first.least, second.least), max(first.greatest, second.greatest)
    return Distribution(first.group, least, greatest, bins, counts)


def counted(
    group: int, least: float, greatest: float, counts: np.ndarray, lowest: int = LOWEST
) -> Distribution:
    """That of a group whose bins from `lowest` on hold so many times."""
    held = np.flatnonzero(counts)
    return Distribution(int(group), float(least), float(greatest), lowest + held, counts[held])


def spread(candidates: Candidates, each: int, numbers: np.ndarray) -> list[Distribution]:
    """The distributions of legal rows, by ascending number, of groups of `each` candidates: counted
    where the times are made. An accelerator counts those that formulas give, and sends a histogram
    of each group in place of its times; what the host makes itself it counts itself."""
    groups = numbers // each
    if engine.widening() > 1 and len(numbers) and groups[-1] - groups[0] < GROUPS_MAX:
        return _on_device(candidates, numbers, groups)
    return distributions(groups, engine.times_of_rows(candidates, numbers))


def _on_device(
    candidates: Candidates, numbers: np.ndarray, groups: np.ndarray
) -> list[Distribution]:
    times_us, left = engine.times_on_device(candidates, numbers)
    local = np.full(len(times_us), GROUPS_MAX, np.int32)
    local[: len(groups)] = groups - groups[0]
    with jax.enable_x64(True):
        least, greatest, counts = map(np.asarray, _histograms(times_us, local))
    held = {
        int(groups[0] + i): counted(groups[0] + i, least[i], greatest[i], counts[i])
        for i in np.flatnonzero(counts.any(axis=1))
    }
    for solved in distributions(groups[left], engine.times_of_rows(candidates, numbers[left])):
        known = held.get(solved.group)
        held[solved.group] = solved if known is None else joined(known, solved)
    return [held[group] for group in sorted(held)]


@jax.jit
def _histograms(times_us, group):
    """Each group's least and greatest time, and how many of its times each bin holds."""
    at = jnp.where(times_us == UNPROVED, GROUPS_MAX, group)
    bins = jnp.floor(GRID * jnp.log2(jnp.maximum(times_us, LEAST_US))).astype(int) - LOWEST
    edges_us = jnp.asarray(EDGES_US)
    bins += (times_us >= edges_us[bins + 1]).astype(int) - (times_us < edges_us[bins])
    bins = jnp.clip(bins, 0, BINS - 1)
    least = jnp.full(GROUPS_MAX, jnp.inf).at[at].min(times_us, mode="drop")
    greatest = jnp.zeros(GROUPS_MAX).at[at].max(times_us, mode="drop")
    counts = jnp.zeros((GROUPS_MAX, BINS), jnp.int32).at[at, bins].add(1, mode="drop")
    return least, greatest, counts
