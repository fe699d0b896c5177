"""One problem's answer: the engine times every kernel of the space, Z3 decides which one wins.

Kernels that violate the same constraints are a *class*. Whatever is decided about the constraints,
only the first of a class can win, in the order of the objective's scores, then of the bytes of
shared memory, then of the kernels' numbers. So the first of each class, and the second of those
that violate nothing, stand for the whole space, and these few rows are Z3's table: it chooses the
row, and where there is none proves that and finds a smallest set of constraints that conflict.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import z3

from wsjax.deadlines import Deadline
from wsjax.errors import InfeasibleError, InputError, UnfinishedError
from wsjax.hardware import outside
from wsjax.schema import COLUMNS, Column, Configuration, Facts, spelled, why
from wsjax.search.criteria import (
    MILLION,
    ROW_PITCH,
    Constraint,
    Task,
    Terms,
    members,
    number_terms,
)
from wsjax.search.scanning import Candidate, Scan, scan
from wsjax.search.z3_events import (
    PS_PER_US,
    as_term,
    check_size,
    encode,
    goals,
    minimise,
    whole,
    z3_terms,
)
from wsjax.spec import FACTS

CONTRADICTION_S = 2.0
"""How long to look for a contradiction among the user's conditions alone."""


class Chosen(NamedTuple):
    """A kernel on the problem, with words for codes, its figures (µs, bytes), and whether they are
    extrapolated: beyond what the machine was fitted to."""

    configuration: dict[str, Any]
    figures: dict[str, float]
    extrapolated: bool


class Better(NamedTuple):
    """A kernel that would come before the answer, and the constraints that it violates."""

    breaks: tuple[str, ...]
    choice: Chosen


@dataclass(frozen=True)
class Answer:
    """The best kernel, or one of a Pareto front.

    proved: it is optimal under the model. bound: nothing that meets the constraints has a lower
    figure to minimise (the first, in its unit). binding: the constraints without which a better
    kernel could be had, the easiest to give up. better: the best kernels that violate constraints.
    runner_up: the next best, None if there is none. solver_s: seconds from the problem to here.
    """

    choice: Chosen
    proved: bool
    bound: float | None
    better: tuple[Better, ...] = ()
    runner_up: Chosen | None = None
    solver_s: float = 0.0

    @property
    def binding(self) -> tuple[str, ...]:
        """What the first of `better` violates; empty if nothing binds."""
        return self.better[0].breaks if self.better else ()


def solve(task: Task, limit: Deadline, *, events: bool = False) -> list[Answer]:
    """The answer to one task: one, or a whole front. events: by the paper's encoding.

    Raises InfeasibleError with a smallest set of constraints that no kernel of the space meets, or
    with those of the user's conditions that contradict each other on any machine; InputError where
    the space is empty, UnfinishedError where the time was too short to find anything.
    """
    start_s = time.perf_counter()
    answers = _by_events(task, limit) if events else _by_scan(task, limit)
    if not answers:
        raise UnfinishedError(
            "the time was too short to find a kernel that meets all constraints; give more"
        )
    solver_s = time.perf_counter() - start_s
    return [replace(answer, solver_s=solver_s) for answer in answers]


def _by_scan(task: Task, limit: Deadline) -> list[Answer]:
    """The answer, or the front, that the scan proves; none if the time was too short."""
    scanned = scan(task, limit)
    _check(task, scanned)
    if task.objective.pareto:
        return [Answer(_chosen(task, c), scanned.complete, None) for c in scanned.candidates]
    at = winner(scanned.candidates)
    if at is None:
        return []
    first, rest = scanned.candidates[at], scanned.candidates[at + 1 :]
    second = winner(rest)
    return [
        Answer(
            _chosen(task, first),
            scanned.complete,
            first.key[0] / MILLION if scanned.complete else scanned.bound,
            _better(task, scanned.candidates[:at], first),
            None if second is None else _chosen(task, rest[second]),
        )
    ]


def winner(candidates: Sequence[Candidate]) -> int | None:
    """Z3's choice: the row that violates no constraint and has the least scores, the first one
    first. None if it proves that there is no such row."""
    optimizer = z3.Optimize()
    row = z3.Int("row")
    optimizer.add(row >= 0, row < len(candidates))
    optimizer.add(*(row != at for at, candidate in enumerate(candidates) if candidate.violated))
    keys = [z3.Int(f"key_{part}") for part in range(len(candidates[0].key) if candidates else 0)]
    for at, candidate in enumerate(candidates):
        equal = [key == value for key, value in zip(keys, candidate.key, strict=True)]
        optimizer.add(z3.Implies(row == at, z3.And(*equal)))
    for key in keys:
        optimizer.minimize(key)
    return whole(optimizer.model(), row) if optimizer.check() == z3.sat else None


def _by_events(task: Task, limit: Deadline) -> list[Answer]:
    """The answer of the paper's encoding, as the only one; none if the time was too short.

    The scan, which Z3 is told nothing of, is what is known until Z3 has an answer, and bounds it.
    Times are those of the recurrences: a learned correction has no events.
    """
    task = replace(task, hardware=task.hardware.physics)
    check_size(task)
    known = _by_scan(task, limit)
    unproved = [replace(answer, proved=False) for answer in known]
    if limit.passed:
        return unproved
    try:
        encoded = encode(task, limit)
    except UnfinishedError:
        return unproved
    aims = goals(task, encoded)
    first = minimise(encoded, aims, limit)
    if first is None:
        return unproved
    encoded.solver.add(encoded.number != first.number)
    second = None if limit.passed else minimise(encoded, aims, limit)

    def choice(number: int, figures: Mapping[str, int]) -> Chosen:
        units = {name: PS_PER_US if name.endswith("_us") else 1 for name in figures}
        scaled = {name: value / units[name] for name, value in figures.items()}
        return _choice(task, number, scaled)

    return [
        Answer(
            choice(first.number, first.figures),
            first.proved,
            None if first.proved else next((answer.bound for answer in known), 0.0),
            runner_up=None if second is None else choice(second.number, second.figures),
        )
    ]


def _check(task: Task, scanned: Scan) -> None:
    """Raise what is to be said of a space of which no kernel will do."""
    if not scanned.complete or 0 in scanned.classes:
        return
    if not scanned.classes:
        raise InputError(
            f"space '{task.space.name}': no kernel passes its filter on {task.hardware.name}"
        )
    conditions = [constraint for constraint in task.constraints if not constraint.machine]
    if wrong := contradiction(conditions, number_terms(task.problem, task.hardware)):
        meets = "meets" if len(wrong) == 1 else "meets all of"
        raise InfeasibleError(f"infeasible: on any machine no kernel {meets}", _texts(wrong))
    core = [task.constraints[at] for at in smallest_conflict(scanned.classes, task.constraints)]
    raise InfeasibleError(
        f"infeasible: no kernel of the space '{task.space.name}' meets all of",
        tuple(_text_here(task, constraint) for constraint in core),
    )


def _text_here(task: Task, constraint: Constraint) -> str:
    """A constraint in words; of the row pitch also what is wrong with the problem's."""
    if constraint.reason != ROW_PITCH:
        return constraint.text
    c = number_terms(task.problem, task.hardware).c
    return f"{constraint.text} ({why(ROW_PITCH, c, task.hardware.facts)})"


def smallest_conflict(classes: Collection[int], constraints: Sequence[Constraint]) -> list[int]:
    """Positions of a smallest set of constraints of which every kernel violates one.

    classes: what kernels violate, as bits, never 0. Smallest in the number of the user's
    conditions, then of the machine's limits; of those that are left, the one named first.
    """
    chosen = [z3.Bool(f"chosen_{position}") for position in range(len(constraints))]
    optimizer = z3.Optimize()
    for bits in classes:
        optimizer.add(z3.Or(*(term for at, term in enumerate(chosen) if bits >> at & 1)))
    for machine in (False, True):
        mine = [t for t, c in zip(chosen, constraints, strict=True) if c.machine == machine]
        optimizer.minimize(z3.Sum(z3.IntVal(0), *(z3.If(term, 1, 0) for term in mine)))
    optimizer.minimize(z3.Sum(*(z3.If(term, 2**at, 0) for at, term in enumerate(chosen))))
    assert optimizer.check() == z3.sat
    model = optimizer.model()
    return [at for at, term in enumerate(chosen) if z3.is_true(model.eval(term, True))]


def contradiction(conditions: Sequence[Constraint], base: Terms) -> list[Constraint]:
    """Conditions that no kernel of any space and problem, on any machine, meets all, and of which
    none can be left out; empty if there are none, or Z3 can't tell within `CONTRADICTION_S`."""
    solver = z3.Solver()
    solver.set("timeout", int(CONTRADICTION_S * 1000))

    def free(name: str, column: Column) -> z3.ArithRef:
        variable = z3.Int(name)
        most = len(column.choices) - 1 if column.choices else column.maximum
        least = 0 if column.choices else column.minimum
        solver.add(variable >= least, variable <= most)
        return variable

    c = Configuration(*(free(name, COLUMNS[name]) for name in Configuration._fields))
    facts = base.facts._replace(**{name: free(name, FACTS[name]) for name in Facts._fields})
    terms = z3_terms(replace(base, facts=facts), c)
    tracked: dict[z3.BoolRef, Constraint] = {}
    for number, condition in enumerate(conditions):
        if condition.exact:
            tracked[z3.Bool(f"condition {number}")] = condition
            holds = map(as_term, condition.conditions(terms))
            solver.add(z3.Implies(next(reversed(tracked)), z3.And(*holds)))
    if solver.check(*tracked) != z3.unsat:
        return []
    core = [name for name in tracked if name in solver.unsat_core()]
    for name in list(core):
        others = [other for other in core if not other.eq(name)]
        if solver.check(*others) == z3.unsat:
            core = others
    return [tracked[name] for name in core]


def _better(task: Task, before: Sequence[Candidate], answer: Candidate) -> tuple[Better, ...]:
    """Kernels of better scores, which violate constraints: those first that violate the fewest of
    the machine's limits, then the fewest of the user's conditions."""
    parts = len(task.objective.parts)

    def cost(candidate: Candidate) -> tuple[int, int, tuple[int, ...]]:
        violated = members(candidate.violated, task.constraints)
        machine = sum(constraint.machine for constraint in violated)
        return machine, len(violated), candidate.key

    return tuple(
        Better(_texts(members(candidate.violated, task.constraints)), _chosen(task, candidate))
        for candidate in sorted(before, key=cost)
        if candidate.key[:parts] < answer.key[:parts]
    )


def _texts(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    return tuple(constraint.text for constraint in constraints)


def _chosen(task: Task, candidate: Candidate) -> Chosen:
    return _choice(task, candidate.key[-1], candidate.figures)


def _choice(task: Task, number: int, figures: dict[str, float]) -> Chosen:
    c = task.configurations([number])
    numbers = {name: int(values.flat[0]) for name, values in c._asdict().items()}
    return Chosen(spelled(numbers), figures, bool(outside(task.hardware, c, 1)[0]))
