"""Z3's part: which of the last few kernels to add to a set.

A kernel is a truth value. That every problem is served is a clause a problem, how many kernels
there may be and what they may cost to build are pseudo-Boolean constraints. The cost of a set is
taught as it is needed: each set that Z3 proposes is priced exactly, and then ruled out together
with all of which its prices prove that they cost no less (`set_bounds`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import z3

from wsjax.deadlines import Deadline
from wsjax.portfolio.set_bounds import Question

SUM_BITS = 30
"""Sums in Z3's pseudo-Boolean constraints stay below 2**30; larger numbers are rounded, so that no
set is lost."""
SLICE_MS = 500
"""How long Z3 runs before the deadline is looked at."""


class Decision(NamedTuple):
    """`chosen`: the best answer, None where there is none; `proved`: nothing else is better."""

    chosen: tuple[int, ...] | None
    proved: bool


def decide(question: Question, offers: np.ndarray, limit: Deadline) -> Decision:
    """The kernels to add so that the total is least, and below `upper`.

    offers: prices whose bound is good.
    """
    costs, served, upper = question.costs, question.served, question.upper
    solver, kernels = _solver(
        costs < upper, served < upper, question.slots, question.builds, question.budget
    )

    def teach(prices: np.ndarray) -> None:
        prices = np.minimum(prices, served)
        savings = np.maximum(prices[:, None] - costs, 0).sum(axis=0)
        _at_least(solver, kernels, savings.tolist(), int(prices.sum()) - upper + 1)

    teach(offers)
    teach(served)
    best: tuple[int, ...] | None = None
    while (answer := _check(solver, limit)) == z3.sat:
        chosen = _model(solver, kernels)
        if int(question.builds[chosen].sum()) > question.budget:
            solver.add(z3.Or([z3.Not(kernels[at]) for at in chosen]))
            continue
        total = np.minimum(served, costs[:, chosen].min(axis=1)) if chosen else served
        if int(total.sum()) < upper:
            upper, best = int(total.sum()), tuple(chosen)
        solver.add(z3.Or([kernel for at, kernel in enumerate(kernels) if at not in chosen]))
        teach(total)
    return Decision(best, answer == z3.unsat)


def _solver(
    able: np.ndarray, served: np.ndarray, slots: int, builds: np.ndarray, budget: int
) -> tuple[z3.Solver, list[z3.BoolRef]]:
    """A solver that knows all but what a set costs. `able`: which kernel can serve which problem;
    `served`: problems that need none."""
    solver = z3.SolverFor("QF_FD")
    solver.set("ctrl_c", False)
    kernels = [z3.Bool(f"kernel_{at}") for at in range(able.shape[1])]
    for row in np.unique(able[~served], axis=0):
        solver.add(z3.Or([kernels[at] for at in np.flatnonzero(row)]))
    if slots < len(kernels):
        solver.add(z3.AtMost(*kernels, slots))
    if int(builds.sum()) > budget:
        shift = _shift(budget, builds.tolist())
        solver.add(
            z3.PbLe(
                [(kernel, int(b) >> shift) for kernel, b in zip(kernels, builds, strict=True)],
                budget >> shift,
            )
        )
    return solver, kernels


def _at_least(
    solver: z3.Solver, kernels: Sequence[z3.BoolRef], savings: Sequence[int], needed: int
) -> None:
    """The savings of what is chosen are to add up to `needed`; rounded, no set is lost."""
    if needed <= 0:
        return
    shift = _shift(needed, savings)
    terms = [(kernel, -(-s >> shift)) for kernel, s in zip(kernels, savings, strict=True) if s]
    solver.add(z3.PbGe(terms, -(-needed >> shift)) if terms else z3.BoolVal(False))


def _shift(total: int, parts: Sequence[int]) -> int:
    """How many bits to leave out."""
    bits = SUM_BITS - len(parts).bit_length()
    return max(0, max(total, *parts).bit_length() - bits)


def _check(solver: z3.Solver, limit: Deadline) -> z3.CheckSatResult:
    """Z3's answer; unknown once the deadline has passed, or if Z3 gives up."""
    while True:
        left = SLICE_MS if limit.left_s is None else min(SLICE_MS, 1000 * limit.left_s)
        solver.set("timeout", max(1, int(left)))
        answer = solver.check()
        if answer != z3.unknown or limit.passed or solver.reason_unknown() != "timeout":
            return answer


def _model(solver: z3.Solver, kernels: Sequence[z3.BoolRef]) -> list[int]:
    model = solver.model()
    return [at for at, kernel in enumerate(kernels) if z3.is_true(model.eval(kernel, True))]
