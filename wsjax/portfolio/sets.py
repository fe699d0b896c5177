"""Which few kernels to ship: at most k of them, so that a workload takes the least time.

A problem runs on the best of the chosen kernels, so that a set S takes

    sum over problems p of weight_p * min over j in S of time[p, j].

`choose_sets` finds the best set for every number of kernels up to k, with a bound that no set can
be better than: where they meet, the set is proved to be optimal. First the kernels are dropped that
others can stand for (`set_tables`); a greedy choice and exchanges give a first set
(`set_heuristics`); Lagrangian bounds decide most kernels (`set_bounds`), branching the others
(`set_search`), down to the last few, which Z3 decides (`set_decide`).
"""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from wsjax.deadlines import Deadline, deadline
from wsjax.portfolio.set_heuristics import greedy, improve
from wsjax.portfolio.set_search import Optimum, search, serving
from wsjax.portfolio.set_tables import Table, undominated, whole_numbers

SHARE = 0.7
"""The part of the time limit that the greatest k may take; the smaller ones share the rest."""
BUILD_DIGITS = 6
"""Digits behind the point of build costs that count."""


@dataclass(frozen=True, eq=False)
class Demand:
    """A workload on a choice of kernels, and what a set has to meet.

    times_us: (problems, kernels), inf where a kernel can't run; each problem has a kernel that can.
    weights: how often a problem comes. required, excluded: positions of kernels. within: a problem
    may take 1 + `within` times what it takes on the best available (not excluded) kernel, or any
    time where None. builds: what building a kernel costs; `budget`: the most for the set.
    """

    times_us: np.ndarray
    weights: np.ndarray
    required: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    within: float | None = None
    builds: np.ndarray | None = None
    budget: float | None = None

    @cached_property
    def available_us(self) -> np.ndarray:
        """The times without those of excluded kernels."""
        return np.where(self._mask(self.excluded), np.inf, self.times_us)

    @cached_property
    def best_us(self) -> np.ndarray:
        """What each problem takes on its best available kernel."""
        return self.available_us.min(axis=1)

    def total_us(self, kernels: tuple[int, ...]) -> float:
        """The weighted time with these kernels."""
        return float(self.weights @ self.times_us[:, list(kernels)].min(axis=1))

    def table(self) -> tuple[Table, np.ndarray, float]:
        """What is searched, the kernels that its columns are, and its unit in µs."""
        times = self.available_us
        if self.within is not None:
            times = np.where(times <= self.best_us[:, None] * (1 + self.within), times, np.inf)
        runs = np.isfinite(times)
        weighted = np.where(runs, times, 0.0) * self.weights[:, None]
        excess, useless, unit = whole_numbers(np.where(runs, weighted, np.inf))
        builds, budget = np.zeros(times.shape[1], dtype=np.int64), 0
        if self.builds is not None and self.budget is not None:
            builds = np.rint(self.builds * 10.0**BUILD_DIGITS).astype(np.int64)
            budget = round(self.budget * 10**BUILD_DIGITS)
        table = Table(excess, useless, self.required, builds, budget)
        columns = np.flatnonzero((excess < useless).any(axis=0) | self._mask(self.required))
        columns = columns[undominated(table.take(columns))]
        return table.take(columns), columns, unit

    def _mask(self, kernels: tuple[int, ...]) -> np.ndarray:
        mask = np.zeros(self.times_us.shape[1], dtype=bool)
        mask[list(kernels)] = True
        return mask


class KernelSet(NamedTuple):
    """The best set found of at most `k` kernels. `bound_us`: no such set takes less; `proved`: this
    one takes no more."""

    k: int
    kernels: tuple[int, ...]
    time_us: float
    bound_us: float
    proved: bool


class Chosen(NamedTuple):
    """`sets`: for each number of kernels up to k for which there is one, in order. `all_us`: with
    every available kernel. `candidates`: kernels that no other could stand for. `rounding_us`: by
    how much less time a set may take and still not count as better. `interrupted`: by Ctrl-C."""

    sets: tuple[KernelSet, ...]
    all_us: float
    candidates: int
    rounding_us: float
    seconds: float
    interrupted: bool


def choose_sets(
    demand: Demand, k: int, timeout_s: float | None = None, *, least: int = 1
) -> Chosen | None:
    """The best sets of at most k, k - 1, … `least` kernels; None if there is certainly none of k.

    After `timeout_s`, or at Ctrl-C, they are the best found so far. Where none of k was found by
    then, `sets` is empty.
    """
    started = time.monotonic()
    found: dict[int, Optimum] = {}
    with deadline(timeout_s) as limit:
        table, columns, unit = demand.table()
        end = limit.end_s
        limit.end_s = started + SHARE * (end - started)
        first, certain = _solve(table, k, limit)
        if first is None and certain:
            return None
        limit.end_s = end
        while first is not None:
            found[k] = first
            k -= 1
            first = _solve(table, k, limit, found[k + 1])[0] if k >= least else None
        interrupted = limit.interrupted
    seconds = time.monotonic() - started
    all_us = float(demand.weights @ demand.best_us)
    rounding_us = unit * len(demand.weights)
    sets = tuple(_sets(demand, found, columns, unit))
    return Chosen(sets, all_us, len(columns), rounding_us, seconds, interrupted)


def feasible(demand: Demand, k: int, limit: Deadline) -> bool | None:
    """Whether any set of at most k kernels meets the demand; None if that is not known in time."""
    table, _, _ = demand.table()
    start, certain = _start(table, k, limit, [])
    return True if start is not None else False if certain else None


def _solve(
    table: Table, k: int, limit: Deadline, larger: Optimum | None = None
) -> tuple[Optimum | None, bool]:
    """The optimum for k, if there is a set, and whether that is certain. larger: that for k + 1."""
    starts, prices = [], None
    if larger is not None:
        starts, prices = _without_one(table, larger.chosen), larger.prices
    start, certain = _start(table, k, limit, starts)
    if start is None:
        return None, certain
    return search(table, k, start, limit, prices), True


def _start(
    table: Table, k: int, limit: Deadline, starts: list[tuple[int, ...]]
) -> tuple[tuple[int, ...] | None, bool]:
    """A first set that serves every problem, if there is one, and whether that is certain."""
    if len(table.required) > k or table.build(table.required) > table.budget:
        return None, True
    tried = [improve(table, k, one, limit) for one in (greedy(table, k), *starts)]
    best = min(tried, key=table.cost)
    if table.cost(best) < table.useless:
        return best, True
    return serving(table, k, best, limit)


def _without_one(table: Table, chosen: tuple[int, ...]) -> list[tuple[int, ...]]:
    """`chosen` without the kernel that is missed the least."""
    fewer = [
        tuple(other for other in chosen if other != one)
        for one in chosen
        if one not in table.required
    ]
    return [min(fewer, key=table.cost)] if fewer else []


def _sets(
    demand: Demand, found: dict[int, Optimum], columns: np.ndarray, unit: float
) -> list[KernelSet]:
    """In µs and kernels. More kernels are never worse than fewer, whatever was proved."""
    all_us = float(demand.weights @ demand.best_us)
    sets: list[KernelSet] = []
    for k in sorted(found):
        kernels = tuple(int(columns[at]) for at in found[k].chosen)
        time_us = demand.total_us(kernels)
        if sets and sets[-1].time_us < time_us:
            kernels, time_us = sets[-1].kernels, sets[-1].time_us
        sets.append(KernelSet(k, kernels, time_us, time_us, found[k].cost == found[k].bound))
    bound_us = all_us
    for at, one in reversed(list(enumerate(sets))):
        if not one.proved:
            own_us = all_us + (found[one.k].bound - len(demand.weights)) * unit
            sets[at] = one._replace(bound_us=min(max(bound_us, own_us), one.time_us))
        bound_us = sets[at].bound_us
    return sets
