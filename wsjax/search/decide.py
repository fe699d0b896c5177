"""Z3's part: which of a table of kernels is the best that meets all constraints, and if none does,
a smallest set of constraints that can't all hold.

A table's rows are in order of preference, so that the best is the least position. The kernel's
columns are whole numbers that the position determines; limits and conditions are asserted over
them as they stand.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import z3

from wsjax.schema import COLUMNS, Column, Configuration, Facts
from wsjax.search.constraints import Constraint, Terms
from wsjax.spec import FACTS, Predicate

CONTRADICTION_S = 2.0
"""How long to look for a contradiction among the user's conditions alone."""
DECISION_S = 1.0
"""What a decision may take however late it is: a table is small."""


class Row(NamedTuple):
    """One kernel on a problem: its columns, and the constraints that it breaks, as bits."""

    columns: tuple[int, ...]
    broken: int


def first_that_meets(
    rows: Sequence[Row], constraints: Sequence[Constraint], base: Terms, timeout_s: float | None
) -> tuple[int | None, bool]:
    """The least position whose row meets all constraints, and whether that is proved.

    base: the problem, as numbers; its kernel columns are not read. A constraint that whole numbers
    can't express holds where the row's bits say so.
    """
    optimizer = z3.Optimize()
    if timeout_s is not None:
        optimizer.set("timeout", int(max(DECISION_S, timeout_s) * 1000))
    position = z3.Int("position")
    columns, definitions = _columns(rows, position)
    optimizer.add(position >= 0, position < len(rows), *definitions)
    terms = z3_terms(base, Configuration(*columns))
    for number, constraint in enumerate(constraints):
        if constraint.exact:
            optimizer.add(*map(as_term, constraint.conditions(terms)))
        else:
            optimizer.add(
                *(position != at for at, row in enumerate(rows) if row.broken >> number & 1)
            )
    optimizer.minimize(position)
    found = optimizer.check()
    if found == z3.sat:
        return whole(optimizer.model(), position), True
    return None, found == z3.unsat


def _columns(rows: Sequence[Row], position: z3.ArithRef) -> tuple[list[Any], list[Any]]:
    """The columns, numbers where they are constant, and what ties the others to the position."""
    columns: list[Any] = []
    definitions: list[list[Any]] = [[] for _ in rows]
    for field, name in enumerate(Configuration._fields):
        values = [row.columns[field] for row in rows]
        if len(set(values)) == 1:
            columns.append(values[0])
            continue
        columns.append(z3.Int(name))
        for definition, value in zip(definitions, values, strict=True):
            definition.append(columns[-1] == value)
    tied = [
        z3.Implies(position == at, z3.And(*definition))
        for at, definition in enumerate(definitions)
        if definition
    ]
    return columns, tied


def smallest_conflict(broken: Iterable[int], constraints: Sequence[Constraint]) -> list[int]:
    """Positions of a smallest set of constraints of which every kernel breaks one.

    broken: what each kernel breaks, as bits, never 0. Smallest in the number of the user's
    conditions, then of the machine's limits; of those that are left, the one named first.
    """
    chosen = [z3.Bool(f"chosen_{position}") for position in range(len(constraints))]
    optimizer = z3.Optimize()
    for bits in set(broken):
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


def z3_terms(base: Terms, c: Configuration) -> Terms:
    """A problem's terms with kernel columns that Z3 may choose (numbers where it may not)."""
    return replace(base, c=c, choose=either, judge=_judge)


def either(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` or `no`, whichever the condition says; a term where Z3 is to find it out."""
    return z3.If(condition, yes, no) if z3.is_expr(condition) else (yes if condition else no)


def _judge(predicate: Predicate, columns: Mapping[str, Any]) -> Any:
    return predicate(columns, _floor_divide)


def _floor_divide(a: Any, b: Any) -> Any:
    """Z3's division of whole numbers rounds down where the divisor is positive, as Python's."""
    return operator.truediv(a, b) if z3.is_expr(a) or z3.is_expr(b) else a // b


def as_term(condition: Any) -> z3.BoolRef:
    """A condition for Z3, whatever it is made of."""
    return condition if isinstance(condition, z3.BoolRef) else z3.BoolVal(bool(condition))


def whole(model: z3.ModelRef, term: Any) -> int:
    """The value of a whole number in a model."""
    if not z3.is_expr(term):
        return int(term)
    return model.eval(term, model_completion=True).as_long()  # type: ignore[union-attr]
