"""What is asked of a kernel: what it minimises, and what it must meet.

    time                        the fastest kernel
    time,math_wait              of the fastest those whose MATH warps wait least
    0.7*time+0.3*math_wait      a weighted sum: µs and bytes as they are
    pareto:time,smem_bytes      all kernels that no other beats in one figure and equals in the rest

Scores are whole numbers: millionths of a figure's unit, which are picoseconds for times. Figures
that differ by less are equal, so that ties break alike on every machine.

A constraint is a condition of the user, in the user's words, or a limit of the machine. Each judges
NumPy columns and Z3 terms with the same arithmetic (`spec.parse`, `schema.checks`). What a row
violates is one whole number, a bit a constraint.
"""

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.hardware import Hardware
from wsjax.schema import (
    COLUMNS,
    DTYPE_BYTES,
    SCHEDULES,
    Configuration,
    Facts,
    checks,
    shown,
    smem_bytes,
)
from wsjax.spec import FACTS, Predicate, Space, parse

MINIMISABLE = {
    "time": "time_us",
    "math_wait": "math_wait_us",
    "dma_wait": "dma_wait_us",
    "smem_bytes": "smem_bytes",
}
"""What can be minimised, and the prediction's column of it."""
MILLION = 1e6
PARETO = "pareto:"
TERM = re.compile(r"(?:(?P<weight>[^*]*)\*)?(?P<name>[^*]*)")

CONDITIONS_MAX = 48
"""How many conditions can be told apart: bits of a whole number."""
LIMITS = {
    "not_modelled": "what is modelled",
    "block_multiple": "the matrix instruction's shape",
    "threads": "threads a CTA",
    "registers": "registers",
    "shared_memory": "shared memory",
    "row_pitch": "the alignment of rows",
}
"""The machine's limits, by the reasons of `schema.REASONS`, in words."""
NOT_MODELLED = "not_modelled"
ROW_PITCH = "row_pitch"
WHERE = COLUMNS | FACTS
"""What a user's condition may read: a configuration's columns and the machine's facts."""

MINIMISED = "it can be minimised (objective), not limited"
FIGURES = {
    "smem_bytes": "limit it with max_smem_bytes",
    **dict.fromkeys(("time_us", "math_wait_us", "dma_wait_us"), MINIMISED),
}
"""What a kernel's prediction says, which conditions can't read."""
FIGURE = re.compile(rf"\b({'|'.join(FIGURES)})\b")


@dataclass(frozen=True)
class Objective:
    """`parts` in order of importance, each a weighted sum of columns; `pareto`: none is first."""

    text: str
    parts: tuple[dict[str, float], ...]
    pareto: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The prediction's columns that are read."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part))

    def scores(self, figures: Mapping[str, Any]) -> np.ndarray:
        """(parts, rows): whole numbers in float64, from the prediction's columns."""
        return np.stack([np.rint(_sum(part, figures) * MILLION) for part in self.parts])


def _sum(part: Mapping[str, float], figures: Mapping[str, Any]) -> np.ndarray:
    terms = [weight * np.asarray(figures[name], float) for name, weight in part.items()]
    return np.asarray(sum(terms[1:], terms[0]))


def parse_objective(text: str) -> Objective:
    """Read an objective. Raises InputError with all its mistakes."""
    if not isinstance(text, str):
        raise InputError(f"objective: expected text such as 'time', not {text!r}")
    stripped = text.strip()
    pareto = stripped.startswith(PARETO)
    body = stripped.removeprefix(PARETO)
    problems: list[str] = []
    parts = tuple(_part(piece, problems) for piece in body.split(","))
    names = [tuple(part) for part in parts]
    if not problems and len(set(names)) < len(names):
        problems.append("a figure is there twice; leave one out")
    if not problems and pareto and len(parts) < 2:
        problems.append("a front needs two figures or more, such as pareto:time,smem_bytes")
    if problems:
        raise InputError(f"objective '{text}': {problem}" for problem in problems)
    return Objective(stripped, parts, pareto)


def _part(text: str, problems: list[str]) -> dict[str, float]:
    """One part: figures with weights, `+` between them."""
    part: dict[str, float] = {}
    for term in re.split(r"(?<![0-9.][eE])\+", text):
        match = TERM.fullmatch(term.strip())
        if match is None:
            problems.append(f"'{term.strip()}' is no weight * figure, such as 0.7*time")
            continue
        name = match["name"].strip().removesuffix("_us")
        if name not in MINIMISABLE:
            problems.append(
                f"'{match['name'].strip()}' can't be minimised{nearest(name, MINIMISABLE)}"
            )
            continue
        weight = 1.0 if match["weight"] is None else _weight(match["weight"].strip(), problems)
        if MINIMISABLE[name] in part:
            problems.append(f"'{name}' is in one sum twice; add its weights")
        part[MINIMISABLE[name]] = weight
    return part


def _weight(text: str, problems: list[str]) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        problems.append(f"'{text}' is no weight: it must be a finite number above 0")
        return 1.0
    return weight


@dataclass(frozen=True, eq=False)
class Terms:
    """What a constraint judges: a configuration's columns as numbers, arrays or Z3 terms, on a
    machine, and the arithmetic that Python's operators don't give all of them alike."""

    c: Configuration
    facts: Facts
    in_bytes: Any
    out_bytes: Any
    rate: Any
    choose: Callable[[Any, Any, Any], Any]
    judge: Callable[[Predicate, dict[str, Any]], Any]

    @property
    def columns(self) -> dict[str, Any]:
        """Columns and facts by name."""
        return {**self.c._asdict(), **self.facts._asdict()}

    @cached_property
    def checks(self) -> Sequence[tuple[str, Any]]:
        """What the machine demands: `schema.checks`."""
        schedule = self.c.schedule
        pingpong, cooperative = SCHEDULES.index("pingpong"), SCHEDULES.index("cooperative")
        return checks(
            self.c,
            self.facts,
            in_bytes=self.in_bytes,
            out_bytes=self.out_bytes,
            math_groups=self.choose(schedule == pingpong, 2, 1),
            groups_per_tile=self.choose(schedule == cooperative, 2, 1),
            rate=self.rate,
        )


@dataclass(frozen=True)
class Constraint:
    """`text` says it to a person; `machine`: a limit of the machine, else a user's condition.

    `conditions(terms)` are all to hold. `exact`: whole numbers alone decide, so that Z3 can.
    `reason`: of a limit, as `schema.REASONS` names it.
    """

    text: str
    conditions: Callable[[Terms], Sequence[Any]]
    machine: bool = False
    exact: bool = True
    reason: str = ""


def user_constraints(
    where: str | Sequence[str] | None, max_smem_bytes: int | None
) -> list[Constraint]:
    """The user's conditions, each conjunct of a `where` on its own.

    Raises InputError with all mistakes.
    """
    texts = [where] if isinstance(where, str) else list(where or ())
    constraints, problems = [], []
    for text in texts:
        if not isinstance(text, str):
            problems.append(f"where: expected a condition in quotes, not {shown(text)}")
            continue
        if figure := FIGURE.search(text):
            problems.append(f"where: '{figure[0]}' is no column; {FIGURES[figure[0]]}")
            continue
        try:
            parse(text, WHERE)
            constraints += [_condition(parse(part, WHERE)) for part in _conjuncts(text)]
        except InputError as error:
            problems += [f"where: {problem}" for problem in error.problems]
    if max_smem_bytes is not None:
        is_whole = isinstance(max_smem_bytes, Integral) and not isinstance(max_smem_bytes, bool)
        if not is_whole or max_smem_bytes < 1:
            problems.append(
                f"max_smem_bytes: expected a whole number above 0, not {shown(max_smem_bytes)}"
            )
        else:
            constraints.append(_memory(int(max_smem_bytes)))
    if len(constraints) > CONDITIONS_MAX:
        problems.append(
            f"where: {len(constraints)} conditions; at most {CONDITIONS_MAX} can be told apart"
        )
    if problems:
        raise InputError(problems)
    return constraints


def machine_limits(hardware: Hardware) -> list[Constraint]:
    """What the machine can run, one constraint a reason of `LIMITS`."""

    def limit(reason: str, words: str) -> Constraint:
        def conditions(terms: Terms) -> list[Any]:
            return [holds for name, holds in terms.checks if name == reason]

        text = f"{words} of {hardware.name}"
        return Constraint(text, conditions, machine=True, reason=reason)

    return [limit(reason, words) for reason, words in LIMITS.items()]


def array_terms(c: Configuration, hardware: Hardware) -> Terms:
    """Terms over NumPy columns."""
    rows = max(map(np.size, c))
    sizes = np.asarray(DTYPE_BYTES)
    rates = np.asarray(hardware.rates)
    return Terms(
        c,
        hardware.facts,
        sizes[c.dtype_in],
        sizes[c.dtype_out],
        rates[c.dtype_in],
        np.where,
        lambda predicate, columns: predicate.mask(columns, rows),
    )


def number_terms(problem: Mapping[str, Any], hardware: Hardware) -> Terms:
    """Terms of one problem, with plain numbers; its kernel columns are 0."""
    filled = {name: column.default_number or 0 for name, column in COLUMNS.items()}
    c = Configuration(**{name: int(value) for name, value in {**filled, **problem}.items()})
    terms = array_terms(c, hardware)
    return replace(
        terms, in_bytes=int(terms.in_bytes), out_bytes=int(terms.out_bytes), rate=float(terms.rate)
    )


@dataclass(frozen=True)
class Task:
    """One problem on one machine: which kernels there are, and what is asked of them."""

    space: Space
    problem: Mapping[str, Any]
    hardware: Hardware
    objective: Objective
    constraints: Sequence[Constraint]

    def configurations(self, numbers: Sequence[int] | np.ndarray) -> Configuration:
        """The kernels of these numbers on the problem."""
        at = np.asarray(numbers, dtype=np.int64)
        return self.space.configurations(at, self.problem, self.hardware.facts)


def violations(terms: Terms, constraints: Sequence[Constraint], rows: int) -> np.ndarray:
    """For each row the constraints that do not hold, as bits."""
    bits = np.zeros(rows, dtype=np.int64)
    for position, constraint in enumerate(constraints):
        holds = np.ones(rows, dtype=bool)
        for condition in constraint.conditions(terms):
            holds &= condition
        bits |= np.where(holds, 0, np.int64(1) << position)
    return bits


def members(bits: int, constraints: Sequence[Constraint]) -> list[Constraint]:
    """The constraints that a row's bits name."""
    return [constraint for position, constraint in enumerate(constraints) if bits >> position & 1]


def _condition(predicate: Predicate) -> Constraint:
    def conditions(terms: Terms) -> list[Any]:
        return [terms.judge(predicate, terms.columns)]

    return Constraint(predicate.text, conditions, exact=predicate.whole)


def _memory(most: int) -> Constraint:
    def conditions(terms: Terms) -> list[Any]:
        needed = smem_bytes(terms.c, terms.facts, terms.in_bytes, terms.out_bytes)
        return [needed <= most]

    return Constraint(f"shared memory of at most {most:,} bytes a CTA", conditions)


def _conjuncts(text: str) -> list[str]:
    """The conditions that a checked filter joins by `and`, as they are written."""
    enclosed = f"({text}\n)"
    body = ast.parse(enclosed, mode="eval").body
    if not (isinstance(body, ast.BoolOp) and isinstance(body.op, ast.And)):
        return [text.strip()]
    return [ast.get_source_segment(enclosed, value) or ast.unparse(value) for value in body.values]
