"""Why no set of kernels will do: a smallest part of the conditions that can't be met, in words."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wsjax.deadlines import Deadline
from wsjax.errors import InfeasibleError
from wsjax.portfolio.sets import Demand, feasible

HINT_S = 10.0
"""How long to look for the conflict, and for the nearest condition that can be met."""


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


def conflict(demand: Demand, k: int, names: Sequence[str]) -> InfeasibleError:
    """The error for a demand that no set of k kernels meets."""
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
    return InfeasibleError("infeasible: no set of kernels meets all of", texts)


def not_found(demand: Demand, k: int, names: Sequence[str], seconds: float) -> InfeasibleError:
    """The error for a demand for which time was too short."""
    texts = [condition.text for condition in _conditions(Asked(demand, k), names)]
    head = f"no set of kernels was found in {seconds:.0f} s (nor shown to be impossible) for all of"
    return InfeasibleError(head, texts)


def _conditions(asked: Asked, names: Sequence[str]) -> list[Condition]:
    demand, k = asked.demand, asked.k
    found = []

    def listed(kernels: Sequence[int]) -> str:
        return ", ".join(names[kernel] for kernel in kernels)

    if demand.excluded:
        text = f"without {listed(demand.excluded)}"
        found.append(Condition(text, lambda a: a.keeping(excluded=()), _no_hint))
    if demand.required:
        text = f"with {listed(demand.required)}"
        found.append(Condition(text, lambda a: a.keeping(required=()), _no_hint))
    if demand.budget is not None:
        text = f"build costs of at most {demand.budget:g}"
        found.append(Condition(text, lambda a: a.keeping(budget=None), _no_hint))
    if demand.within is not None:
        text = f"every problem at most {100 * demand.within:g} % slower than its best"
        found.append(Condition(text, lambda a: a.keeping(within=None), _nearest_within))
    text = f"at most {k} kernel{'s' * (k != 1)}"
    found.append(Condition(text, lambda a: a._replace(k=a.demand.times_us.shape[1]), _nearest_k))
    return found


def _no_hint(_asked: Asked, _limit: Deadline) -> str:
    return ""


def _nearest_k(asked: Asked, limit: Deadline) -> str:
    """The least number of kernels with which the others are met."""
    low, high = asked.k, asked.demand.times_us.shape[1]
    if asked._replace(k=high).met(limit) is not True:
        return ""
    while high - low > 1:
        middle = min((low + high) // 2, 2 * low)
        met = asked._replace(k=middle).met(limit)
        if met is None:
            return ""
        low, high = (low, middle) if met else (middle, high)
    return f" (the others can be met with {high})"


def _nearest_within(asked: Asked, limit: Deadline) -> str:
    """The least slowdown with which the others are met, in hundredths of a per cent."""
    demand = asked.demand
    ratios = demand.available_us / demand.best_us[:, None] - 1
    steps = np.unique(np.ceil(ratios[np.isfinite(ratios)] * 1e4 - 1e-6))
    low, high = -1, len(steps) - 1
    if asked.keeping(within=steps[high] / 1e4).met(limit) is not True:
        return ""
    while high - low > 1:
        middle = (low + high) // 2
        met = asked.keeping(within=steps[middle] / 1e4).met(limit)
        if met is None:
            return ""
        low, high = (low, middle) if met else (middle, high)
    return f" (the others can be met with {steps[high] / 100:g} %)"
