"""What a sweep's summary shows: the fastest rows of some problems, drawn by a hash, and of all.

A sweep's rows come problem by problem. What is kept of two runs of rows, one behind the other,
follows from what is kept of each: so it is the same whatever chunks and shards they come in, in one
pass, and takes no more memory for more rows.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import tables
from wsjax.schema import COLUMNS, GEMM
from wsjax.spec import Spec
from wsjax.sweeps.rows import Shard

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
DRAWN = 6
"""Problems that are kept beside the first and the last."""
FEW = 5
"""Leaders of the only problem."""


class Leader(NamedTuple):
    """The first row of a time, and how many of its problem's rows have that very time."""

    row: Row
    alike: int


class Problem(NamedTuple):
    """The leaders of a problem, the fastest first; of all problems those of least `rank` are kept:
    a number that its key alone decides."""

    key: tuple[Any, ...]
    rank: int
    leaders: tuple[Leader, ...]


class Highlights(NamedTuple):
    """What is kept of some rows: the first and the last problem and `DRAWN` others, in order, of
    each `each` distinct times at most; and the row of most TFLOP/s."""

    each: int = 1
    problems: tuple[Problem, ...] = ()
    fastest: Row | None = None

    def leaders(self) -> list[Leader]:
        """The leaders of all problems that are kept, in order."""
        return [leader for problem in self.problems for leader in problem.leaders]

    def followed_by(self, other: "Highlights") -> "Highlights":
        """What is kept of these rows and the next."""
        if not self.problems or not other.problems:
            return self if self.problems else other
        *before, last = self.problems
        first, *after = other.problems
        middle = [last, first]
        if last.key == first.key:
            middle = [last._replace(leaders=_joined(last.leaders, first.leaders, self.each))]
        problems = [*before, *middle, *after]
        kept = _kept(np.array([problem.rank for problem in problems], np.uint64))
        rows = [row for row in (self.fastest, other.fastest) if row is not None]
        fastest = max(rows, key=itemgetter("tflops"))
        return Highlights(self.each, tuple(problems[i] for i in kept), fastest)


def highlights_of(columns: Mapping[str, "pa.Array"], shard: Shard, run: Spec) -> Highlights:
    """What is kept of some rows of a shard, which are one table's columns."""
    varying = [name for axis in run.axes if len(axis) > 1 for name in axis.names]
    problem = [name for name in varying if name in GEMM or name not in COLUMNS]
    keys = ("hardware", *problem, *shard.swept)
    words = shard.words
    numbers = {
        name: tables.numbers(columns[name], words.get(name, ()))
        for name in (*keys, "time_us", "tflops")
    }
    return reduced(numbers, keys, 1 if len(keys) > 1 else FEW, partial(tables.rows, columns))


def reduced(
    columns: Mapping[str, np.ndarray],
    keys: Sequence[str],
    each: int,
    rows: Callable[[list[int]], list[Row]],
) -> Highlights:
    """What is kept of some rows.

    columns: `keys`, which tell problems and machines apart, `time_us`, `tflops`. rows: rows at some
    positions, whole.
    """
    times = columns["time_us"]
    if not len(times):
        return Highlights(each)
    changes = np.zeros(len(times), dtype=bool)
    changes[0] = True
    for name in keys:
        changes[1:] |= columns[name][1:] != columns[name][:-1]
    starts = np.flatnonzero(changes)
    ends = np.append(starts[1:], len(times))
    ranks = _ranks([columns[name][starts] for name in keys])
    kept = _kept(ranks)
    least = [_least(times, starts[i], ends[i], each) for i in kept]
    positions = [int(columns["tflops"].argmax()), *(at for few in least for at, _ in few)]
    fastest, *leading = rows(positions)
    leader = iter(leading)
    problems = tuple(
        Problem(
            tuple(columns[name][starts[i]].item() for name in keys),
            int(ranks[i]),
            tuple(Leader(next(leader), alike) for _, alike in few),
        )
        for i, few in zip(kept, least, strict=True)
    )
    return Highlights(each, problems, fastest)


def _kept(ranks: np.ndarray) -> list[int]:
    """Which problems to keep: the first, the last, those of least rank."""
    if len(ranks) <= DRAWN + 2:
        return [*range(len(ranks))]
    drawn = 1 + np.argpartition(ranks[1:-1], DRAWN)[:DRAWN]
    return [0, *sorted(map(int, drawn)), len(ranks) - 1]


def _ranks(key: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers that look random, of problems by their keys (SplitMix64)."""
    rank = np.zeros(len(key[0]), np.uint64)
    for column in key:
        rank ^= np.asarray(column, float).view(np.uint64)
        rank += np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            rank = (rank ^ (rank >> np.uint64(shift))) * np.uint64(factor)
        rank ^= rank >> np.uint64(31)
    return rank


def _least(times: np.ndarray, start: int, stop: int, count: int) -> list[tuple[int, int]]:
    """Where in a problem's rows its least few distinct times are first, and how often."""
    least, left = [], times[start:stop]
    while len(least) < count and len(left):
        time = left.min()
        others = left[left > time]
        least.append((int(start + (times[start:stop] == time).argmax()), len(left) - len(others)))
        left = others
    return least


def _joined(before: Sequence[Leader], after: Sequence[Leader], each: int) -> tuple[Leader, ...]:
    """The leaders of a problem whose rows are in two runs."""
    known = {leader.row["time_us"]: leader for leader in before}
    for leader in after:
        time = leader.row["time_us"]
        same = known.get(time)
        known[time] = same._replace(alike=same.alike + leader.alike) if same else leader
    return tuple(known[time] for time in sorted(known)[:each])
