"""Which few kernels to ship: at most k of them, so that a workload takes the least time.

A problem runs on the best of the chosen kernels, so that a set S takes

    sum over problems p of weight_p * min over j in S of time[p, j].

`choose_sets` finds the best set for every number of kernels up to k, with a bound that no set can
be better than: where they meet, the set is proved to be optimal (the p-median problem, see
`set_search`). What counts is the *excess* over the best of all available kernels. Every weighted
time is rounded once, to a whole number of units so fine that all sums stay exact in 64 bits:
whatever is proved is proved for these numbers, and two sets' true totals differ from theirs by less
than one unit a problem. Kernels that another one dominates are left out first.

Where no set will do, `conflict` names a smallest part of the conditions that can't be met.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wsjax.deadlines import Deadline, deadline
from wsjax.errors import InfeasibleError, UnfinishedError
from wsjax.portfolio.set_search import Optimum, Table, greedy, improve, search, serving

SHARE = 0.7
"""The part of the time limit that the greatest k may take; the smaller ones share the rest."""
BUILD_DIGITS = 6
"""Digits behind the point of build costs that count."""
SUM_BITS = 61
"""Sums over all problems stay below 2**61, so that a difference of two of them is exact too."""
FIRST, SOME = 256, 16
"""A column that another dominates mostly has one among so many first; of the others, about so many
problems tell most that they don't dominate it."""
HINT_S = 10.0
"""How long to look for the conflict, and for the nearest condition that can be met."""


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
    optima: dict[int, Optimum] = {}
    with deadline(timeout_s) as limit:
        table, columns, unit = demand.table()
        end = limit.end_s
        limit.end_s = started + SHARE * (end - started)
        first, certain = _solve(table, k, limit)
        if first is None and certain:
            return None
        limit.end_s = end
        while first is not None:
            optima[k] = first
            k -= 1
            first = _solve(table, k, limit, optima[k + 1])[0] if k >= least else None
        interrupted = limit.interrupted
    seconds = time.monotonic() - started
    all_us = float(demand.weights @ demand.best_us)
    rounding_us = unit * len(demand.weights)
    sets = tuple(_sets(demand, optima, columns, unit))
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
    starts, multipliers = [], None
    if larger is not None:
        starts, multipliers = _without_one(table, larger.chosen), larger.multipliers
    start, certain = _start(table, k, limit, starts)
    if start is None:
        return None, certain
    return search(table, k, start, limit, multipliers), True


def _start(
    table: Table, k: int, limit: Deadline, starts: list[tuple[int, ...]]
) -> tuple[tuple[int, ...] | None, bool]:
    """A first set that serves every problem, if there is one, and whether that is certain."""
    if len(table.required) > k or table.build(table.required) > table.budget:
        return None, True
    tried = [improve(table, k, candidate, limit) for candidate in (greedy(table, k), *starts)]
    best = min(tried, key=table.cost)
    if table.cost(best) < table.useless:
        return best, True
    return serving(table, k, best, limit)


def _without_one(table: Table, chosen: tuple[int, ...]) -> list[tuple[int, ...]]:
    """`chosen` without the kernel that is missed the least."""
    fewer = [
        tuple(other for other in chosen if other != dropped)
        for dropped in chosen
        if dropped not in table.required
    ]
    return [min(fewer, key=table.cost)] if fewer else []


def _sets(
    demand: Demand, optima: dict[int, Optimum], columns: np.ndarray, unit: float
) -> list[KernelSet]:
    """In µs and kernels. More kernels are never worse than fewer, whatever was proved."""
    all_us = float(demand.weights @ demand.best_us)
    sets: list[KernelSet] = []
    for k in sorted(optima):
        kernels = tuple(int(columns[at]) for at in optima[k].chosen)
        time_us = demand.total_us(kernels)
        if sets and sets[-1].time_us < time_us:
            kernels, time_us = sets[-1].kernels, sets[-1].time_us
        sets.append(KernelSet(k, kernels, time_us, time_us, optima[k].cost == optima[k].bound))
    bound_us = all_us
    for at, kernel_set in reversed(list(enumerate(sets))):
        if not kernel_set.proved:
            own_us = all_us + (optima[kernel_set.k].bound - len(demand.weights)) * unit
            sets[at] = kernel_set._replace(bound_us=min(max(bound_us, own_us), kernel_set.time_us))
        bound_us = sets[at].bound_us
    return sets


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


class Asked(NamedTuple):
    """A demand, and the most kernels."""

    demand: Demand
    k: int

    def met(self, limit: Deadline) -> bool | None:
        """Whether any set meets it; None if that is not known in time."""
        return feasible(self.demand, self.k, limit)

    def keeping(self, **others: object) -> "Asked":
        """The same but for these parts of the demand."""
        return self._replace(demand=replace(self.demand, **others))  # type: ignore[arg-type]


class Condition(NamedTuple):
    """In words; what is asked without it; and, in words, its nearest form that can be met."""

    text: str
    without: Callable[[Asked], Asked]
    nearest: Callable[[Asked, Deadline], str]


def conflict(
    demand: Demand, k: int, names: Sequence[str], *, measured: bool = False
) -> InfeasibleError:
    """The error for a demand that no set of k kernels meets. measured: a pair of problem and kernel
    that was not measured is none."""
    limit = Deadline(time.monotonic() + HINT_S)
    asked, core = Asked(demand, k), []
    conditions = _conditions(asked, names)
    for condition in conditions:
        relaxed = condition.without(asked)
        if relaxed.met(limit) is False:
            asked = relaxed
        else:
            core.append(condition)
    texts = [condition.text + condition.nearest(asked, limit) for condition in core]
    if measured and not np.isfinite(demand.times_us).all():
        texts.append("problems only on kernels measured on them (leave measured out to predict)")
    return InfeasibleError("infeasible: no set of kernels meets all of", texts)


def not_found(demand: Demand, k: int, names: Sequence[str], seconds: float) -> UnfinishedError:
    """The error for a demand for which time was too short."""
    texts = [condition.text for condition in _conditions(Asked(demand, k), names)]
    head = f"no set of kernels was found in {seconds:.0f} s (nor shown to be impossible) for all of"
    return UnfinishedError("\n".join([head, *(f"  {text}" for text in texts)]))


def _conditions(asked: Asked, names: Sequence[str]) -> list[Condition]:
    demand, k = asked.demand, asked.k
    conditions = []

    def listed(kernels: Sequence[int]) -> str:
        return ", ".join(names[kernel] for kernel in kernels)

    if demand.excluded:
        text = f"without {listed(demand.excluded)}"
        conditions.append(Condition(text, lambda a: a.keeping(excluded=()), _no_hint))
    if demand.required:
        text = f"with {listed(demand.required)}"
        conditions.append(Condition(text, lambda a: a.keeping(required=()), _no_hint))
    if demand.budget is not None:
        text = f"build costs of at most {demand.budget:g}"
        conditions.append(Condition(text, lambda a: a.keeping(budget=None), _no_hint))
    if demand.within is not None:
        text = f"every problem at most {100 * demand.within:g} % slower than its best"
        conditions.append(Condition(text, lambda a: a.keeping(within=None), _nearest_within))
    text = f"at most {k} kernel{'s' * (k != 1)}"
    conditions.append(
        Condition(text, lambda a: a._replace(k=a.demand.times_us.shape[1]), _nearest_k)
    )
    return conditions


def _no_hint(_asked: Asked, _limit: Deadline) -> str:
    return ""


def _nearest_k(asked: Asked, limit: Deadline) -> str:
    """The least number of kernels with which the others are met."""
    counts = range(asked.k + 1, asked.demand.times_us.shape[1] + 1)
    least = _least(counts, lambda k: asked._replace(k=k).met(limit))
    return "" if least is None else f" (the others can be met with {least})"


def _nearest_within(asked: Asked, limit: Deadline) -> str:
    """The least slowdown with which the others are met, in hundredths of a per cent."""
    ratios = asked.demand.available_us / asked.demand.best_us[:, None] - 1
    steps = np.unique(np.ceil(ratios[np.isfinite(ratios)] * 1e4 - 1e-6)).tolist()
    least = _least(steps, lambda step: asked.keeping(within=step / 1e4).met(limit))
    return "" if least is None else f" (the others can be met with {least / 100:g} %)"


def _least(values: Sequence, met: Callable[[Any], bool | None]) -> Any:
    """The least of the values, in order, for which a condition is met, if it is for the last one;
    None where that is not known in time."""
    low, high = -1, len(values) - 1
    if high < 0 or not met(values[high]):
        return None
    while high - low > 1:
        middle = min((low + high) // 2, 2 * low + 2)
        known = met(values[middle])
        if known is None:
            return None
        low, high = (low, middle) if known else (middle, high)
    return values[high]
