"""The best set of kernels, proved: branch and bound over which kernels are in and which are out.

A set S of kernels costs, on each problem p, the excess c[p, j] of its best kernel j. Let each
problem have a Lagrange multiplier λ_p, what it offers for being served. Kernel j, once chosen, can
save at most

    s_j = sum over p of max(0, λ_p - c[p, j])

against the multipliers, so that for any multipliers a set S of at most k kernels has

    cost(S) = sum over p of min over j in S of c[p, j]
           >= sum(λ) - sum over j in S of s_j  >=  sum(λ) - (the k greatest s_j).

A limit B on build costs b_j has a multiplier ν >= 0 too: sum over S of ν b_j / B is at most ν, so
that each s_j may be lowered by ν b_j / B if the bound is lowered by ν. Good multipliers are found
by subgradient steps: a problem that two of the chosen kernels would serve offers less, one that
none would serve offers more. Multipliers are whole numbers: the bound is exact, whatever the steps
were.

Every part of the search has such a bound, and the part with the least is next. The bound also says
what it would rise to with one more kernel in, or out; where that reaches the best set found so far,
the kernel is out, or in. Mostly this decides all but a few kernels. What is still open is split on
the kernel about which the multipliers are least sure. The least bound of the parts that are left is
what no set can cost less than. Good sets to start with come from a greedy choice and exchanges.
"""

import heapq
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from wsjax.deadlines import Deadline

PATIENCE = 10
"""Steps without a better bound, after which steps are halved."""
STEP_MIN = 1e-3
NOTICEABLE = 1e-6
"""A bound that is better by this share of what is left starts the patience anew."""
MEMORY = 0.9
"""How much of the past the share of each kernel remembers at each step."""
SAFE = 1 - 1e-12
"""Times this, a rounded product of numbers of 53 bits is no more than the exact one."""
ROOT_STEPS, STEPS = 1_500, 15
ROOT_STEP, STEP = 1.5, 0.7
"""Subgradient steps of the whole search and of a part, and their first length."""
ONE = 2**20
"""What an unserved problem costs where only they count: multipliers may be parts of it."""
WORTH = 0.75
"""Where no more than this share of the kernels is left undecided, the rest is bounded anew."""


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


def greedy(table: Table, slots: int) -> tuple[int, ...]:
    """The required kernels, and one after the other the kernel that saves the most."""
    chosen = list(table.required)
    served = _served(table, chosen)
    while len(chosen) < slots:
        totals = np.minimum(table.excess, served[:, None]).sum(axis=0)
        affordable = table.builds <= table.budget - table.build(tuple(chosen))
        affordable[chosen] = False
        if not affordable.any():
            break
        best = int(np.where(affordable, totals, np.iinfo(np.int64).max).argmin())
        if totals[best] >= served.sum():
            break
        chosen.append(best)
        served = np.minimum(served, table.excess[:, best])
    return tuple(sorted(chosen))


def improve(table: Table, slots: int, chosen: tuple[int, ...], limit: Deadline) -> tuple[int, ...]:
    """`chosen` after additions and exchanges of one kernel for another, each the one that saves
    the most, until none saves anything."""
    while not limit.passed:
        better = _add(table, slots, chosen) or _exchange(table, chosen)
        if better is None:
            break
        chosen = better
    return chosen


def _add(table: Table, slots: int, chosen: tuple[int, ...]) -> tuple[int, ...] | None:
    more = greedy(replace(table, required=chosen), min(slots, len(chosen) + 1))
    return more if len(more) > len(chosen) else None


def _exchange(table: Table, chosen: tuple[int, ...]) -> tuple[int, ...] | None:
    """The exchange that saves the most, None if none does.

    A problem whose kernel leaves gets the better of its second best and the one that comes; any
    other keeps its own or gets the one that comes.
    """
    costs = table.excess[:, list(chosen)]
    if not costs.shape[1]:
        return None
    order = np.argsort(costs, axis=1, kind="stable")
    first = np.take_along_axis(costs, order[:, :1], axis=1)
    if costs.shape[1] > 1:
        second = np.take_along_axis(costs, order[:, 1:2], axis=1)
    else:
        second = np.full_like(first, table.useless)
    saved = np.minimum(table.excess - first, 0)
    gain = saved.sum(axis=0)
    room = table.budget - table.build(chosen)
    best, exchange = 0, None
    for position, leaving in enumerate(chosen):
        if leaving in table.required:
            continue
        mine = order[:, 0] == position
        stay = np.minimum(table.excess[mine], second[mine]) - first[mine] - saved[mine]
        change = gain + stay.sum(axis=0)
        change = np.where(table.builds <= room + table.builds[leaving], change, 0)
        change[list(chosen)] = 0
        coming = int(change.argmin())
        if change[coming] < best:
            best, exchange = int(change[coming]), (leaving, coming)
    if exchange is None:
        return None
    return tuple(sorted({*chosen, exchange[1]} - {exchange[0]}))


def _served(table: Table, chosen: list[int]) -> np.ndarray:
    if not chosen:
        return np.full(len(table.excess), table.useless, dtype=np.int64)
    return np.minimum(table.excess[:, chosen].min(axis=1), table.useless)


class Multipliers(NamedTuple):
    """What each problem offers for being served, and the multiplier of the limit on build costs."""

    problems: np.ndarray
    budget: int


class Bound(NamedTuple):
    """value: no answer costs less. savings: of each kernel at the best multipliers. share: how much
    of the last steps it was chosen in. chosen: the kernels of the last step."""

    value: int
    multipliers: Multipliers
    savings: np.ndarray
    share: np.ndarray
    chosen: np.ndarray

    def rests(self, slots: int) -> tuple[np.ndarray, np.ndarray]:
        """What the bound is for answers without each kernel, and with it."""
        order = np.argsort(-self.savings, kind="stable")
        top = order[:slots]
        inside = np.zeros(len(order), dtype=bool)
        inside[top] = self.savings[top] > 0
        last = max(int(self.savings[top[-1]]), 0)
        following = max(int(self.savings[order[slots]]), 0) if slots < len(order) else 0
        without = self.value + np.where(inside, self.savings - following, 0)
        with_it = self.value + np.where(inside, 0, last - self.savings)
        return without, with_it


def lower_bound(
    table: Table,
    served: np.ndarray,
    slots: int,
    start: Multipliers,
    steps: int,
    step: float,
    limit: Deadline,
) -> Bound:
    """The best bound of at most `steps` subgradient steps from `start`; at least one is made.

    table: the kernels that may be added, `slots` of them, to a set that serves each problem at
    `served`; no required ones. Only totals below `useless` are looked for: the steps end early
    where the bound reaches it.
    """
    costs, upper = table.excess, table.useless
    shares = table.builds / max(table.budget, 1)
    rows = np.ascontiguousarray(costs.T)
    reduced = np.empty_like(rows)
    multipliers = start
    best: Bound | None = None
    chosen = np.zeros(0, dtype=np.int64)
    share = np.zeros(costs.shape[1])
    stale = 0
    for _ in range(steps):
        offers = np.minimum(multipliers.problems, served)
        multipliers = Multipliers(offers, multipliers.budget)
        np.subtract(rows, offers, out=reduced)
        np.minimum(reduced, 0, out=reduced)
        charges = np.floor(multipliers.budget * shares * SAFE).astype(np.int64)
        savings = -reduced.sum(axis=1) - charges
        chosen = _greatest(savings, slots)
        value = int(offers.sum()) - int(savings[chosen].sum()) - multipliers.budget
        share *= MEMORY
        share[chosen] += 1 - MEMORY
        stale += 1
        if best is None or value > best.value:
            if best is None or value - best.value > NOTICEABLE * (upper - value):
                stale = 0
            best = Bound(value, multipliers, savings, share, chosen)
        if best.value >= upper or step < STEP_MIN or limit.passed:
            break
        if stale >= PATIENCE:
            step, stale, multipliers = step / 2, 0, best.multipliers
            continue
        slope = 1 - (reduced[chosen] < 0).sum(axis=0)
        slope[(slope > 0) & (offers >= served)] = 0
        excess_build = float(shares[chosen].sum()) - 1.0
        if multipliers.budget == 0:
            excess_build = max(excess_build, 0.0)
        norm = float((slope * slope).sum()) + excess_build**2
        if norm == 0:
            break
        length = step * (upper - value) / norm
        multipliers = Multipliers(
            offers + np.rint(length * slope).astype(np.int64),
            max(0, multipliers.budget + round(length * excess_build)),
        )
    assert best is not None
    return best._replace(share=share, chosen=chosen)


def _greatest(savings: np.ndarray, slots: int) -> np.ndarray:
    """The kernels of the greatest positive savings, at most `slots`."""
    if slots < len(savings):
        top = np.argpartition(-savings, slots - 1)[:slots]
    else:
        top = np.arange(len(savings))
    return top[savings[top] > 0]


class Part(NamedTuple):
    """The sets that have `inside`, and of `free` whatever fits. In order of their bounds."""

    bound: int
    number: int
    inside: tuple[int, ...]
    free: np.ndarray
    multipliers: Multipliers
    split: int


class Optimum(NamedTuple):
    """A set, what it costs, and what no set costs less than (`bound` = `cost`: proved)."""

    chosen: tuple[int, ...]
    cost: int
    bound: int
    multipliers: Multipliers


def search(
    table: Table,
    slots: int,
    start: tuple[int, ...],
    limit: Deadline,
    multipliers: Multipliers | None = None,
) -> Optimum:
    """The least costly set, from a first one that serves every problem.

    multipliers: to start from, such as those of another number of slots.
    """
    cost = table.cost(start)
    if multipliers is None:
        costs = np.sort(table.excess[:, list(start)], axis=1)
        multipliers = Multipliers(costs[:, min(1, costs.shape[1] - 1)], 0)
    return _Search(table.below(cost), slots, limit, start, cost).run(multipliers)


def serving(
    table: Table, slots: int, start: tuple[int, ...], limit: Deadline
) -> tuple[tuple[int, ...] | None, bool]:
    """Any set that serves every problem, None if none was found, and whether that is certain.

    start: a set that leaves some problems unserved. The search is for the fewest of them.
    """
    unable = np.unique(table.excess >= table.useless, axis=0)
    counts = replace(table, excess=unable * ONE, useless=len(unable) * ONE + 1)
    start = improve(counts, slots, start, limit)
    state = _Search(counts.below(ONE), slots, limit, start, min(counts.cost(start), ONE))
    optimum = state.run(Multipliers(np.full(len(unable), ONE // 2, dtype=np.int64), 0))
    if counts.cost(optimum.chosen) == 0:
        return optimum.chosen, True
    return None, optimum.bound >= ONE


@dataclass
class _Search:
    """The best set so far, and the parts that are left."""

    table: Table
    slots: int
    limit: Deadline
    chosen: tuple[int, ...]
    cost: int
    parts: list[Part] = field(default_factory=list)
    count: int = 0

    def run(self, multipliers: Multipliers) -> Optimum:
        free = np.delete(np.arange(self.table.excess.shape[1]), list(self.table.required))
        if self.cost:
            root = Part(0, 0, self.table.required, free, multipliers, 0)
            self._explore(root, ROOT_STEPS, ROOT_STEP)
        if self.parts:
            multipliers = self.parts[0].multipliers
        while self.parts and self.parts[0].bound < self.cost and not self.limit.passed:
            part = heapq.heappop(self.parts)
            kernel, free = int(part.free[part.split]), np.delete(part.free, part.split)
            for inside in ((*part.inside, kernel), part.inside):
                self._explore(part._replace(inside=inside, free=free), STEPS, STEP)
        bound = min([self.cost, *(part.bound for part in self.parts[:1])])
        return Optimum(tuple(sorted(self.chosen)), self.cost, bound, multipliers)

    def _explore(self, part: Part, steps: int, step: float) -> None:
        """Bound a part, decide what its bound decides, and keep what is left of it."""
        inside, floor = list(part.inside), part.bound
        free, multipliers = part.free, part.multipliers
        while True:
            self._offer(inside)
            table, served, free = self._open(inside, free)
            slots = self.slots - len(inside)
            if slots <= 0 or not len(free):
                return
            bound = lower_bound(table, served, slots, multipliers, steps, step, self.limit)
            floor, multipliers = max(floor, bound.value), bound.multipliers
            self._offer([*inside, *free[bound.chosen].tolist()])
            without, with_it = bound.rests(slots)
            entering, leaving = without >= self.cost, with_it >= self.cost
            if floor >= self.cost or (entering & leaving).any():
                return
            inside += free[entering].tolist()
            left = ~(entering | leaving)
            free, share = free[left], bound.share[left]
            steps, step = max(10, steps // 2), STEP
            if not entering.any() and len(free) > WORTH * len(left):
                break
        self.count += 1
        split = int(np.abs(share - 0.5).argmin())
        heapq.heappush(self.parts, Part(floor, self.count, tuple(inside), free, multipliers, split))

    def _open(self, inside: list[int], free: np.ndarray) -> tuple[Table, np.ndarray, np.ndarray]:
        """Those of `free` that fit beside `inside` and would help, as a table; what each problem
        costs on `inside`; and which they are."""
        table = self.table
        served = _served(table, inside)
        room = table.budget - table.build(tuple(inside))
        free = free[table.builds[free] <= room]
        costs = table.excess[:, free]
        helps = (costs < served[:, None]).any(axis=0)
        free, costs = free[helps], costs[:, helps]
        return Table(costs, self.cost, (), table.builds[free], room), served, free

    def _offer(self, chosen: list[int]) -> None:
        """Take a set if it is better than the best so far, after improving it."""
        new = tuple(chosen)
        fits = len(new) <= self.slots and self.table.build(new) <= self.table.budget
        if fits and self.table.cost(new) < self.cost:
            self.chosen = improve(self.table, self.slots, new, self.limit)
            self.cost = self.table.cost(self.chosen)
