"""What no set of kernels can cost less than, by Lagrangian relaxation.

Let each problem p offer a price λ_p for being served. Kernel j, once chosen, can save at most

    s_j = sum over p of max(0, λ_p - c[p, j])

against the prices, so that for any prices a set S of at most k kernels has

    cost(S) = sum over p of min over j in S of c[p, j]
           >= sum(λ) - sum over j in S of s_j  >=  sum(λ) - (the k greatest s_j).

A limit B on build costs b_j has a price too: with a toll ν >= 0, sum over S of ν b_j / B is at
most ν, so that each s_j may be lowered by ν b_j / B if the bound is lowered by ν. Good prices are
found by subgradient steps: a problem that two of the chosen kernels would serve offers less, one
that none would serve offers more. Prices are whole numbers, and tolls are rounded down: the bound
is exact, whatever the steps were.
"""

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


class Prices(NamedTuple):
    """What each problem offers, and the toll."""

    problems: np.ndarray
    toll: int


class Question(NamedTuple):
    """Which of some kernels to add to those already chosen.

    costs: (problems, kernels). served: what each problem costs with what is chosen. slots: how
    many may be added. builds: their build costs, no one above `budget`, which their sum may not
    pass. upper: only totals below it are looked for.
    """

    costs: np.ndarray
    served: np.ndarray
    slots: int
    builds: np.ndarray
    budget: int
    upper: int


class Bound(NamedTuple):
    """`value`: no answer costs less. `savings`: of each kernel at the best prices, tolls taken off;
    `share`: how much of the last steps it was chosen in; `chosen`: the kernels of the last step."""

    value: int
    prices: Prices
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
    question: Question, start: Prices, steps: int, step: float, limit: Deadline
) -> Bound:
    """The best bound of at most `steps` subgradient steps from `start`; at least one is made.

    It ends early where the bound reaches `upper`: there is no answer.
    """
    costs, served, slots, upper = question.costs, question.served, question.slots, question.upper
    shares = question.builds / max(question.budget, 1)
    rows = np.ascontiguousarray(costs.T)
    reduced = np.empty_like(rows)
    prices = start
    best: Bound | None = None
    chosen = np.zeros(0, dtype=np.int64)
    share = np.zeros(costs.shape[1])
    stale = 0
    for _ in range(steps):
        offers = np.minimum(prices.problems, served)
        prices = Prices(offers, prices.toll)
        np.subtract(rows, offers, out=reduced)
        np.minimum(reduced, 0, out=reduced)
        tolls = np.floor(prices.toll * shares * SAFE).astype(np.int64)
        savings = -reduced.sum(axis=1) - tolls
        chosen = _greatest(savings, slots)
        value = int(offers.sum()) - int(savings[chosen].sum()) - prices.toll
        share *= MEMORY
        share[chosen] += 1 - MEMORY
        stale += 1
        if best is None or value > best.value:
            if best is None or value - best.value > NOTICEABLE * (upper - value):
                stale = 0
            best = Bound(value, prices, savings, share, chosen)
        if best.value >= upper or step < STEP_MIN or limit.passed:
            break
        if stale >= PATIENCE:
            step, stale, prices = step / 2, 0, best.prices
            continue
        slope = 1 - (reduced[chosen] < 0).sum(axis=0)
        slope[(slope > 0) & (offers >= served)] = 0
        excess_build = float(shares[chosen].sum()) - 1.0
        if prices.toll == 0:
            excess_build = max(excess_build, 0.0)
        norm = float((slope * slope).sum()) + excess_build**2
        if norm == 0:
            break
        length = step * (upper - value) / norm
        prices = Prices(
            offers + np.rint(length * slope).astype(np.int64),
            max(0, prices.toll + round(length * excess_build)),
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
