"""Tables of whole numbers in which sets of kernels are searched.

A set S of kernels costs, on each problem, the weighted time of its best kernel there. What counts
is the *excess* over the best of all available kernels. Every weighted time is rounded once, to a
whole number of units so fine that all sums stay exact in 64 bits: whatever is proved is proved for
these numbers, and two sets' true totals differ from theirs by less than one unit a problem.
"""

from dataclasses import dataclass, replace

import numpy as np

SUM_BITS = 61
"""Sums over all problems stay below 2**61, so that a difference of two of them is exact too."""

FIRST, SOME = 256, 16
"""A column that another can stand for mostly has one among so many first; of the others, about so
many problems tell most that they can't stand for it."""


@dataclass(frozen=True, eq=False)
class Table:
    """What is searched: at most `slots` columns, the `required` ones among them.

    excess: (problems, columns), 0 where a kernel is a problem's best. A set that leaves a problem
    to `useless` or more is none (the kernel can't run, is too slow, or can't be part of anything
    that is looked for). builds: a whole build cost a column; at most `budget` for the set.
    """

    excess: np.ndarray
    useless: int
    required: tuple[int, ...]
    builds: np.ndarray
    budget: int

    @property
    def columns(self) -> int:
        """How many kernels there are to choose from."""
        return self.excess.shape[1]

    def cost(self, chosen: tuple[int, ...]) -> int:
        """The excess of a set, at least `useless` where it does not serve a problem."""
        if not chosen:
            return self.useless
        return int(self.excess[:, list(chosen)].min(axis=1).sum())

    def build(self, chosen: tuple[int, ...]) -> int:
        """What it costs to build a set."""
        return int(self.builds[list(chosen)].sum())

    def below(self, limit: int) -> "Table":
        """The same table for a search of sets that cost less than `limit`, and the more excess
        counts as `limit`: no such set leaves a problem to it."""
        if limit >= self.useless:
            return self
        return replace(self, excess=np.minimum(self.excess, limit), useless=limit)

    def take(self, columns: np.ndarray) -> "Table":
        """Only these columns, the required ones among them."""
        position = {int(column): at for at, column in enumerate(columns)}
        return replace(
            self,
            excess=self.excess[:, columns],
            required=tuple(position[column] for column in self.required),
            builds=self.builds[columns],
        )


def whole_numbers(weighted_us: np.ndarray) -> tuple[np.ndarray, int, float]:
    """Weighted times (inf: can't run) as excesses, the number that is useless, and the unit in µs.

    Each problem has a finite time.
    """
    problems = len(weighted_us)
    finite = np.isfinite(weighted_us)
    greatest = float(np.where(finite, weighted_us, 0.0).max(axis=1).sum())
    bits = SUM_BITS - int(np.ceil(np.log2(problems + 1))) - 1
    shift = bits - int(np.frexp(greatest)[1]) if greatest else 0
    scaled = np.rint(np.ldexp(np.where(finite, weighted_us, 0.0), shift)).astype(np.int64)
    lowest = np.where(finite, scaled, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    excess = np.where(finite, scaled - lowest, 0)
    useless = int(excess.max(axis=1).sum()) + 1
    return np.where(finite, excess, useless), useless, float(np.ldexp(1.0, -shift))


def undominated(table: Table) -> np.ndarray:
    """The columns that are left when each is dropped that another can stand for, in order.

    Column i stands for j if it is nowhere slower, and costs no more to build or is required (it is
    there anyway). In a set, i in the place of j keeps every constraint and costs no more, so that
    some best set has none of the columns dropped. Of equal columns the first stays; required ones
    all stay.
    """
    rows = np.ascontiguousarray(table.excess.T)
    order = np.lexsort((np.arange(len(rows)), table.builds, rows.sum(axis=1)))
    some = np.ascontiguousarray(rows[:, :: max(1, rows.shape[1] // SOME)].T)
    builds = table.builds.copy()
    builds[list(table.required)] = -1
    numbers = np.empty(len(rows), dtype=np.int64)
    kept = np.empty_like(some)
    count = 0
    for column in (*table.required, *order[~np.isin(order, table.required)]):
        if builds[column] >= 0:
            first, rest = numbers[: min(count, FIRST)], numbers[FIRST:count]
            able = first[builds[first] <= builds[column]]
            if (rows[able] <= rows[column]).all(axis=1).any():
                continue
            likely = builds[rest] <= builds[column]
            for mine, others in zip(some[:, column], kept, strict=True):
                likely &= others[FIRST:count] <= mine
            if (rows[rest[likely]] <= rows[column]).all(axis=1).any():
                continue
        numbers[count], kept[:, count] = column, some[:, column]
        count += 1
    return np.sort(numbers[:count])
