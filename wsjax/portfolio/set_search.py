"""The best set of kernels, proved: branch and bound over which kernels are in and which are out.

Every part of the search has a bound (`set_bounds`), and the part with the least is next. The bound
also says what it would rise to with one more kernel in, or out; where that reaches the best set
found so far, the kernel is out, or in. Mostly this decides all but a few kernels: then Z3 decides
those (`set_decide`). What is still open is split on the kernel about which the prices are least
sure. The least bound of the parts that are left is what no set can cost less than.
"""

import heapq
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from wsjax.deadlines import Deadline
from wsjax.portfolio.set_bounds import Prices, Question, lower_bound
from wsjax.portfolio.set_decide import decide
from wsjax.portfolio.set_heuristics import improve
from wsjax.portfolio.set_tables import Table

FEW = 8
"""So many undecided kernels are Z3's to decide."""
ROOT_STEPS, STEPS = 1_500, 15
ROOT_STEP, STEP = 1.5, 0.7
"""Subgradient steps of the whole search and of a part, and their first length."""
ONE = 2**20
"""What an unserved problem costs where only they count: prices may be parts of it."""
WORTH = 0.75
"""Where no more than this share of the kernels is left undecided, the rest is bounded anew."""


class Part(NamedTuple):
    """The sets that have `inside`, and of `free` whatever fits. In order of their bounds."""

    bound: int
    number: int
    inside: tuple[int, ...]
    free: np.ndarray
    prices: Prices
    split: int


class Optimum(NamedTuple):
    """A set, what it costs, and what no set costs less than (`bound` = `cost`: proved)."""

    chosen: tuple[int, ...]
    cost: int
    bound: int
    prices: Prices


def search(
    table: Table,
    slots: int,
    start: tuple[int, ...],
    limit: Deadline,
    prices: Prices | None = None,
) -> Optimum:
    """The least costly set, from a first one that serves every problem.

    prices: to start from, such as those of another number of slots.
    """
    cost = table.cost(start)
    if prices is None:
        own = np.sort(table.excess[:, list(start)], axis=1)
        prices = Prices(own[:, min(1, own.shape[1] - 1)], 0)
    return _Search(table.below(cost), slots, limit, start, cost).run(prices)


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
    found = state.run(Prices(np.full(len(unable), ONE // 2, dtype=np.int64), 0))
    if counts.cost(found.chosen) == 0:
        return found.chosen, True
    return None, found.bound >= ONE


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

    def run(self, prices: Prices) -> Optimum:
        free = np.delete(np.arange(self.table.columns), list(self.table.required))
        if self.cost:
            whole = Part(0, 0, self.table.required, free, prices, 0)
            self._explore(whole, ROOT_STEPS, ROOT_STEP)
        if self.parts:
            prices = self.parts[0].prices
        while self.parts and self.parts[0].bound < self.cost and not self.limit.passed:
            part = heapq.heappop(self.parts)
            one, free = int(part.free[part.split]), np.delete(part.free, part.split)
            for inside in ((*part.inside, one), part.inside):
                self._explore(part._replace(inside=inside, free=free), STEPS, STEP)
        bound = min([self.cost, *(part.bound for part in self.parts[:1])])
        return Optimum(tuple(sorted(self.chosen)), self.cost, bound, prices)

    def _explore(self, part: Part, steps: int, step: float) -> None:
        """Bound a part, decide what its bound decides, and keep what is left of it."""
        inside, free, prices, floor = list(part.inside), part.free, part.prices, part.bound
        while True:
            self._offer(inside)
            question, free = self._question(inside, free)
            if question.slots <= 0 or not len(free):
                return
            found = lower_bound(question, prices, steps, step, self.limit)
            floor, prices = max(floor, found.value), found.prices
            self._offer([*inside, *free[found.chosen].tolist()])
            without, with_it = found.rests(question.slots)
            entering, leaving = without >= self.cost, with_it >= self.cost
            if floor >= self.cost or (entering & leaving).any():
                return
            inside += free[entering].tolist()
            left = ~(entering | leaving)
            free, share = free[left], found.share[left]
            steps, step = max(10, steps // 2), STEP
            if not entering.any() and len(free) > WORTH * len(left):
                break
        if len(free) > FEW or not self._decide(inside, free, prices):
            self.count += 1
            split = int(np.abs(share - 0.5).argmin())
            heapq.heappush(self.parts, Part(floor, self.count, tuple(inside), free, prices, split))

    def _question(self, inside: list[int], free: np.ndarray) -> tuple[Question, np.ndarray]:
        """What to add to `inside`, and those of `free` that can be and would help."""
        table = self.table
        served = np.full(len(table.excess), table.useless, dtype=np.int64)
        if inside:
            served = np.minimum(served, table.excess[:, inside].min(axis=1))
        room = table.budget - table.build(tuple(inside))
        free = free[table.builds[free] <= room]
        costs = table.excess[:, free]
        helps = (costs < served[:, None]).any(axis=0)
        free, costs = free[helps], costs[:, helps]
        slots = self.slots - len(inside)
        return Question(costs, served, slots, table.builds[free], room, self.cost), free

    def _offer(self, chosen: list[int]) -> None:
        """Take a set if it is better than the best so far, after improving it."""
        new = tuple(chosen)
        fits = len(new) <= self.slots and self.table.build(new) <= self.table.budget
        if fits and self.table.cost(new) < self.cost:
            self.chosen = improve(self.table, self.slots, new, self.limit)
            self.cost = self.table.cost(self.chosen)

    def _decide(self, inside: list[int], free: np.ndarray, prices: Prices) -> bool:
        """Let Z3 decide about `free`; whether it could."""
        question, free = self._question(inside, free)
        decision = decide(question, prices.problems, self.limit)
        if decision.chosen is not None:
            self._offer([*inside, *free[list(decision.chosen)].tolist()])
        return decision.proved
