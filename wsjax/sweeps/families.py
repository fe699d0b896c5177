"""The configurations that are tried on each problem, as families that one bound covers.

They are the same for all problems of the same dtypes and alignment on machines of the same limits:
the inner part of a sweep's product. So they are laid out once (`Candidates.deciding`): which
rows are legal, which families they form (rows that differ only in what a bound relaxes, see
`model.bounds`), and which rows of a family never differ in time: twins, as with one or two DMA
warps that take no time to start.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.engine import (
    Axes,
    Base,
    Columns,
    Shape,
    assemble,
    axes_of,
    columns_at,
    digits,
    floats,
    reason_of,
    shape_of,
)
from wsjax.model import (
    RELAXED,
    SERIAL,
    ctas_per_sm,
)
from wsjax.schema import Product

LEAST = ("stages", "write_back")
"""Of these a family's bound takes the least value, of its other relaxed columns the greatest."""


SLACK = 1e-9
"""Relative: more than rounding may do to a bound."""


def below(times_us: Any) -> Any:
    """A little less, so that rounding is no matter; of arrays of any kind."""
    return times_us - SLACK * abs(times_us)


def above(times_us: Any) -> Any:
    """A little more."""
    return times_us + SLACK * abs(times_us)


class Families(NamedTuple):
    """Rows `start` and on of what is tried on each problem; positions count from there.

    start: the number of the first row in the inner product.
    table: the columns of all rows, on the device.
    passes: (rows,) whether the filter lets each pass, as far as it reads nothing of the problem.
    reason: (rows,) codes into REASONS, 0 for legal rows.
    columns: (families,) the columns that `model.family_bound_us` takes of each family.
    family_at: (families + 1,) family f has the representatives family_at[f] to family_at[f + 1].
    reps: (representatives,) the row of each.
    rep_at: (representatives + 1,) representative r stands for rows[rep_at[r] : rep_at[r + 1]].
    rows: (legal rows,) their positions, family by family; those of a representative are twins:
        they never differ in time.
    """

    start: int
    table: dict[str, Any]
    passes: np.ndarray
    reason: np.ndarray
    columns: dict[str, np.ndarray]
    family_at: np.ndarray
    reps: np.ndarray
    rep_at: np.ndarray
    rows: np.ndarray


@partial(jax.jit, static_argnames=("shape", "count", "rows"))
def _table(base: Base, shape: Shape, axes: Axes, start, count: int, rows: int):
    """Columns, reasons and CTAs an SM of `rows` rows of a product of `count`."""
    numbers = jnp.minimum(start + jnp.arange(rows), count - 1)

    def row_of(row: Columns):
        c, machine = assemble(base, row)
        ctas = jnp.where(c.schedule == SERIAL, ctas_per_sm(floats(c), machine), 1.0)
        derived = {"stages": c.stages, "math_warps": c.math_warps}
        return {**row, **derived}, reason_of(c, machine), ctas

    return jax.vmap(row_of, axis_size=rows)(columns_at(shape.names, shape.lengths, axes, numbers))


def lay_out(
    base: Base,
    product: Product,
    start: int,
    rows: int,
    silent: frozenset[str],
    lets_pass: Callable[[dict[str, np.ndarray], int], np.ndarray],
) -> Families:
    """Lay out `rows` rows (fewer at the end) of the inner product.

    base: with the problem's dtypes, and sizes as aligned as its own. silent: columns on which no
    time depends. lets_pass(columns, rows): which rows the filter lets pass.
    """
    shape, stop = shape_of(product), min(start + rows, len(product))
    with jax.enable_x64(True):
        laid = _table(base, shape, axes_of(product), start, len(product), rows)
    table = laid[0]
    columns, reason, ctas = jax.tree.map(lambda x: np.asarray(x)[: stop - start], laid)
    passes = lets_pass(columns, stop - start)
    legal = np.flatnonzero((reason == 0) & passes)
    family, twin = _keys(shape, start + legal, silent)
    order = np.lexsort((legal, twin, ctas[legal], family))
    rows_in_order = legal[order]
    new_family = _changes(family[order], ctas[rows_in_order])
    new_rep = new_family | _changes(twin[order])
    at, rep_at = np.flatnonzero(new_family), np.flatnonzero(new_rep)
    members = {name: column[rows_in_order] for name, column in columns.items()}
    return Families(
        start,
        table,
        passes,
        reason,
        _families(members, at) | {"ctas": ctas[rows_in_order[at]]},
        np.append(np.cumsum(new_rep)[at] - 1, len(rep_at)),
        rows_in_order[rep_at],
        np.append(rep_at, len(rows_in_order)),
        rows_in_order,
    )


def _keys(
    shape: Shape, numbers: np.ndarray, silent: frozenset[str]
) -> tuple[np.ndarray, np.ndarray]:
    """What tells families apart, and, within a family, rows that are no twins."""
    family, twin = np.zeros((2, len(numbers)), np.int64)
    for names, length, digit in zip(
        shape.names, shape.lengths, digits(shape.lengths, numbers), strict=True
    ):
        if not set(names) <= set(RELAXED):
            family = family * length + digit
        elif not set(names) <= silent:
            twin = twin * length + digit
    return family, twin


def _changes(*columns: np.ndarray) -> np.ndarray:
    """Where a row differs from the one before; True for the first."""
    new = np.ones(len(columns[0]), bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _families(members: dict[str, np.ndarray], at: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of families that begin `at` these of the rows, which are in order."""
    families = {name: column[at] for name, column in members.items()}
    families["deepest"] = families["stages"]
    if not len(at):
        return families
    for name in set(RELAXED) & set(members):
        pick = np.minimum if name in LEAST else np.maximum
        families[name] = pick.reduceat(members[name], at)
    return families | {"deepest": np.maximum.reduceat(members["stages"], at)}
