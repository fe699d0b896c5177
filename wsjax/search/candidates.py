"""The sweep over a space: which of its kernels a decision has to know.

Every kernel's figures come first (`figures`): exact for most, lower bounds for the rest. Of these
the exact model evaluates some in the order of their bounds, until no other can matter: its bound is
above what its like has reached. Kernels that break the same constraints are alike, a *class*: only
the best of a class can be an answer, whatever is decided about the constraints. So the few
candidates that are left stand for the whole space, and nothing is lost.

The fixed order of kernels: the objective's scores, then the fewest bytes of shared memory, then
the kernel's number in its space.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wsjax.deadlines import Deadline
from wsjax.hardware import Hardware
from wsjax.schema import Configuration, smem_bytes
from wsjax.search.constraints import NOT_MODELLED, POWER, Constraint, array_terms, violations
from wsjax.search.figures import CHUNKS, Figures, figures
from wsjax.search.objectives import Objective
from wsjax.search.power import power_w
from wsjax.spec import Space

FIRST_ROWS, MORE_ROWS = 512, 4_096
"""How many kernels are evaluated exactly at once: at first, and then."""


class Index(NamedTuple):
    """Every kernel of a space on one problem: its number, its scores (parts, rows), whether they
    are `exact`, else lower bounds, and the constraints that it breaks, as bits. `complete`: all of
    them, none left out for lack of time."""

    numbers: np.ndarray
    scores: np.ndarray
    exact: np.ndarray
    broken: np.ndarray
    complete: bool


class Candidate(NamedTuple):
    """A kernel whose figures are exact. `key`: its place in the fixed order."""

    key: tuple[float, ...]
    broken: int
    figures: dict[str, float]

    @property
    def number(self) -> int:
        """The kernel's number in its space."""
        return int(self.key[-1])


class Search(NamedTuple):
    """The best of each class, in the fixed order, and `bound`: no kernel that meets all
    constraints has a lower first score. `complete`: none that could be the best was left out."""

    candidates: list[Candidate]
    bound: float
    complete: bool


@dataclass(frozen=True)
class Task:
    """One problem on one machine: what is to be chosen, by which objective and constraints."""

    space: Space
    problem: Mapping[str, Any]
    hardware: Hardware
    objective: Objective
    constraints: Sequence[Constraint]
    max_power_w: float | None = None

    def configurations(self, numbers: Sequence[int] | np.ndarray) -> Configuration:
        """The kernels of these numbers on the problem."""
        at = np.asarray(numbers, dtype=np.int64)
        return self.space.configurations(at, self.problem, self.hardware.facts)

    def bit(self, reason: str) -> int:
        """The bit of the constraint of this reason."""
        return 1 << [constraint.reason for constraint in self.constraints].index(reason)

    def memory(self, c: Configuration) -> np.ndarray:
        """The shared memory of each kernel, in bytes."""
        terms = array_terms(c, self.hardware)
        return smem_bytes(c, terms.facts, terms.in_bytes, terms.out_bytes)

    def figures(self, c: Configuration, *, solve: bool = False) -> Figures:
        """The figures of kernels; all exact with `solve`."""
        size = next((size for size in CHUNKS if len(self.space) <= size), CHUNKS[-1])
        waits = "dma_wait_us" in self.objective.columns
        return figures(c, self.hardware, size, waits=waits, solve=solve)


def index(task: Task, limit: Deadline) -> Index:
    """Every kernel's scores and broken constraints; a block of kernels at least.

    Where power is limited, of which a bound of a time says nothing, all scores are exact.
    """
    parts = [(np.zeros(0, int), np.zeros((len(task.objective.parts), 0)), *np.zeros((2, 0), int))]
    complete = True
    for numbers, c in task.space.blocks(task.problem, task.hardware.facts):
        broken = violations(array_terms(c, task.hardware), task.constraints, len(numbers))
        parts.append((numbers, *_scores(task, c, broken)))
        if limit.passed and numbers[-1] + 1 < len(task.space):
            complete = False
            break
    numbers, scores, exact, broken = zip(*parts, strict=True)
    found = Index(
        np.concatenate(numbers),
        np.concatenate(scores, axis=1),
        np.concatenate(exact) > 0,
        np.concatenate(broken),
        complete,
    )
    if task.max_power_w is not None:
        left = np.flatnonzero(~found.exact & is_modelled(task, found))
        for start in range(0, len(left), MORE_ROWS):
            if limit.passed:
                return found._replace(complete=False)
            settle(task, found, left[start : start + MORE_ROWS])
    return found


def _scores(
    task: Task, c: Configuration, broken: np.ndarray, *, solve: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of kernels, whether they are exact, and the broken constraints, power among them."""
    own = task.figures(c, solve=solve)
    columns = {**own._asdict(), "smem_bytes": task.memory(c)}
    exact = task.objective.scores(columns)
    if task.max_power_w is not None:
        over = power_w(c, task.hardware, own.time_us) > task.max_power_w
        broken = broken | np.where(over & own.exact, task.bit(POWER), 0)
    return np.where(own.exact, exact, task.objective.bounds(columns)), own.exact, broken


def settle(task: Task, found: Index, rows: np.ndarray) -> None:
    """Make the scores of some rows exact."""
    c = task.configurations(found.numbers[rows])
    scores, exact, broken = _scores(task, c, found.broken[rows], solve=True)
    found.scores[:, rows], found.exact[rows], found.broken[rows] = scores, exact, broken


def is_modelled(task: Task, found: Index) -> np.ndarray:
    """Which rows the model covers, so that they can be evaluated."""
    return found.broken & task.bit(NOT_MODELLED) == 0


def keys(task: Task, found: Index, rows: np.ndarray) -> np.ndarray:
    """The places of some rows in the fixed order: (scores, bytes, number; rows)."""
    c = task.configurations(found.numbers[rows])
    return np.stack([*found.scores[:, rows], task.memory(c), found.numbers[rows]])


def candidates(task: Task, found: Index, rows: np.ndarray) -> list[Candidate]:
    """Some rows of exact scores with their figures, in the fixed order."""
    if not len(rows):
        return []
    places = keys(task, found, rows)
    order = np.lexsort(places[::-1])
    rows, places = rows[order], places[:, order]
    c = task.configurations(found.numbers[rows])
    own = task.figures(c, solve=True)
    names = ("time_us", "math_wait_us", *task.objective.columns)
    columns = {**own._asdict(), "smem_bytes": task.memory(c)}
    columns = {name: columns[name] for name in (*names, "smem_bytes")}
    if task.hardware.energy:
        columns["power_w"] = power_w(c, task.hardware, own.time_us)
    return [
        Candidate(
            tuple(places[:, at].tolist()),
            int(found.broken[row]),
            {name: values[at].item() for name, values in columns.items()},
        )
        for at, row in enumerate(rows)
    ]


def best_of_classes(task: Task, found: Index, limit: Deadline) -> Search:
    """Of each class of kernels the best, of those that meet all constraints the best two; classes
    that can't be better than that are left out.

    Those that meet all constraints come first, and some are evaluated in any case.
    """
    modelled = is_modelled(task, found)
    classes, codes = np.unique(found.broken, return_inverse=True)
    rows = FIRST_ROWS
    while True:
        open_ = modelled & (found.scores[0] <= _limits(found, classes, codes, modelled)[codes])
        left = np.flatnonzero(open_ & ~found.exact)
        reached = found.scores[0, modelled & found.exact & (found.broken == 0)].min(initial=np.inf)
        if not len(left) or (limit.passed and (reached < np.inf or rows > FIRST_ROWS)):
            break
        order = np.lexsort((found.scores[0, left], found.broken[left] != 0))
        settle(task, found, left[order[:rows]])
        rows = MORE_ROWS
    best = _firsts(task, found, np.flatnonzero(open_ & found.exact))
    least = found.scores[0, left[found.broken[left] == 0]].min(initial=np.inf)
    complete = found.complete and (bool(least > reached) or not len(left))
    return Search(
        candidates(task, found, best),
        float(min(least, reached)) if found.complete else 0.0,
        complete,
    )


def _limits(
    found: Index, classes: np.ndarray, codes: np.ndarray, modelled: np.ndarray
) -> np.ndarray:
    """For each class the first score above which no further kernel of it matters."""
    rows = found.exact & modelled
    least = np.full(len(classes), np.inf)
    np.minimum.at(least, codes[rows], found.scores[0, rows])
    meeting = found.scores[0, rows & (found.broken == 0)]
    two = np.sort(np.partition(meeting, 1)[:2]) if len(meeting) > 1 else [*meeting, np.inf, np.inf]
    return np.where(classes == 0, two[1], np.minimum(least, two[0]))


def _firsts(task: Task, found: Index, rows: np.ndarray) -> np.ndarray:
    """Of each class the first in the fixed order, of those that meet all constraints two."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort(keys(task, found, rows)[::-1])]
    firsts = np.unique(found.broken[rows], return_index=True)[1]
    two = np.flatnonzero(found.broken[rows] == 0)[:2]
    return rows[np.union1d(firsts, two)]
