"""One problem's answer: the sweep names candidates, Z3 decides, and says what stood in the way."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from wsjax.deadlines import Deadline
from wsjax.errors import InfeasibleError, InputError, UnfinishedError
from wsjax.schema import COLUMNS, Configuration
from wsjax.search.candidates import Candidate, Index, Search, Task, best_of_classes, index
from wsjax.search.constraints import Constraint, Terms, members, number_terms
from wsjax.search.decide import Row, contradiction, first_that_meets, smallest_conflict
from wsjax.search.objectives import MILLION
from wsjax.search.pareto import front_of


class Chosen(NamedTuple):
    """A kernel on the problem, with words for codes, and its figures (µs, bytes)."""

    configuration: dict[str, Any]
    figures: dict[str, float]


class Better(NamedTuple):
    """A kernel that would come before the answer, and the constraints that it breaks."""

    breaks: tuple[str, ...]
    choice: Chosen


@dataclass(frozen=True)
class Answer:
    """The best kernel, or one of a Pareto front.

    proved: it is optimal under the model. bound: nothing that meets the constraints has a lower
    figure to minimise (the first, in its unit). binding: the constraints without which a better
    kernel could be had, the easiest to give up. better: the best kernels that break constraints.
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
        """What the first of `better` breaks; empty if nothing binds."""
        return self.better[0].breaks if self.better else ()


def solve(task: Task, limit: Deadline, *, events: bool = False) -> list[Answer]:
    """The answer to one task: one, or a whole front. events: by the paper's encoding.

    Raises InfeasibleError with a smallest set of constraints that no kernel of the space meets,
    InputError where the user's conditions contradict each other or the space is empty,
    UnfinishedError where the time was too short to find anything.
    """
    start_s = time.perf_counter()
    answers = _events(task, limit) if events else _sweep(task, limit)
    if not answers:
        raise UnfinishedError(
            "the time was too short to find a kernel that meets all constraints; give more"
        )
    solver_s = time.perf_counter() - start_s
    return [replace(answer, solver_s=solver_s) for answer in answers]


def _sweep(task: Task, limit: Deadline) -> list[Answer]:
    """Answers by the sweep over the space and Z3's decision among its candidates."""
    found = index(task, limit)
    base = number_terms(task.problem, task.hardware)
    _check(task, found, base)
    if task.objective.pareto:
        front, proved = front_of(task, found, limit)
        return [Answer(_chosen(task, candidate), proved, None) for candidate in front]
    return _decide(task, best_of_classes(task, found, limit), base, limit)


def _events(task: Task, limit: Deadline) -> list[Answer]:
    """The answer of the paper's encoding, as the only one; none if the time was too short."""
    from wsjax.search.z3_events import PS_PER_US, encode, goals, minimise

    encoded = encode(task)
    aims = goals(task, encoded)
    first = minimise(encoded, aims, limit)
    if first is None:
        found = index(task, Deadline())
        _check(task, found, number_terms(task.problem, task.hardware))
        return []
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
            None if first.proved else 0.0,
            runner_up=None if second is None else choice(second.number, second.figures),
        )
    ]


def _check(task: Task, found: Index, base: Terms) -> None:
    """Raise what is to be said of a space of which no kernel will do."""
    if not len(found.numbers) and found.complete:
        raise InputError(
            f"space '{task.space.name}': no kernel passes its filter on {task.hardware.name}"
        )
    if found.complete and found.broken.all():
        raise _conflict(task, base, found.broken.tolist())


def _decide(task: Task, search: Search, base: Terms, limit: Deadline) -> list[Answer]:
    """Z3's choice among the candidates, as the only answer; none if none meets the constraints."""
    candidates = search.candidates
    rows = [Row(_columns(task, one.number), one.broken) for one in candidates]
    at, proved = first_that_meets(rows, task.constraints, base, limit.left_s)
    if at is None:
        at = next((i for i, candidate in enumerate(candidates) if not candidate.broken), None)
        proved = False
    if at is None:
        return []
    rest = rows[at + 1 :]
    after = first_that_meets(rest, task.constraints, base, limit.left_s)[0] if rest else None
    runner_up = None if after is None else _chosen(task, candidates[at + 1 + after])
    return [
        Answer(
            _chosen(task, candidates[at]),
            proved and search.complete,
            search.bound / MILLION,
            _better(task, candidates[:at], candidates[at]),
            runner_up,
        )
    ]


def _better(task: Task, before: Sequence[Candidate], answer: Candidate) -> tuple[Better, ...]:
    """Kernels of better scores, which break constraints: those first that break the fewest of the
    machine's limits, then the fewest of the user's conditions."""
    parts = len(task.objective.parts)
    candidates = [one for one in before if one.key[:parts] < answer.key[:parts]]

    def cost(candidate: Candidate) -> tuple[int, int, Candidate]:
        broken = members(candidate.broken, task.constraints)
        machine = sum(constraint.machine for constraint in broken)
        return machine, len(broken), candidate

    return tuple(
        Better(_texts(members(one.broken, task.constraints)), _chosen(task, one))
        for one in sorted(candidates, key=cost)
    )


def _conflict(task: Task, base: Terms, broken: Sequence[int]) -> InputError | InfeasibleError:
    """Why no kernel will do."""
    own = [constraint for constraint in task.constraints if not constraint.machine]
    if wrong := contradiction(own, base):
        what = "can be met by no kernel" if len(wrong) == 1 else "contradict each other"
        return InputError(f"{', '.join(_texts(wrong))}: {what} on any machine; change or leave out")
    core = [task.constraints[at] for at in smallest_conflict(broken, task.constraints)]
    return InfeasibleError(
        f"infeasible: no kernel of the space '{task.space.name}' meets all of", _texts(core)
    )


def _texts(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    return tuple(constraint.text for constraint in constraints)


def _columns(task: Task, number: int) -> tuple[int, ...]:
    c = task.configurations([number])
    return tuple(int(values.flat[0]) for values in c)


def _chosen(task: Task, candidate: Candidate) -> Chosen:
    return _choice(task, candidate.number, candidate.figures)


def _choice(task: Task, number: int, figures: dict[str, float]) -> Chosen:
    numbers = dict(zip(Configuration._fields, _columns(task, number), strict=True))
    words = {
        name: COLUMNS[name].choices[value] if COLUMNS[name].choices else value
        for name, value in numbers.items()
    }
    return Chosen(words, figures)
