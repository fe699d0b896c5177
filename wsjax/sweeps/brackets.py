"""The compiled programs of a contest: bounds and brackets of many rows on many problems."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from wsjax.engine import WIDE, Axes, Base, Columns, assemble, bracket, columns_at, floats, without
from wsjax.model import SERIAL, Family, family_bound_us
from wsjax.schema import COLUMNS
from wsjax.sweeps.board import above, below

Names = tuple[tuple[str, ...], ...]
WORD = 64
"""Rows a word of `reaching` tells of."""
FIRST = 16
"""Families of each problem that are looked at before the others."""


@partial(jax.jit, static_argnames=("names", "neutral"), compiler_options=WIDE)
def bounds_of_families(base: Base, names: Names, axes: Axes, problems, reach_us, families, neutral):
    """The bounds of families on problems (by their numbers), in µs."""

    each = jax.vmap(partial(_bound, base, neutral=neutral), in_axes=(None, None, 0))
    given = columns_at(names, axes.lengths, axes, problems)
    return jax.vmap(each, in_axes=(0, 0, None))(given, reach_us, families)


@partial(jax.jit, static_argnames=("names", "neutral", "alone"), compiler_options=WIDE)
def brackets_of_rows(
    base: Base, names: Names, axes: Axes, problems, table, problem, row, neutral, alone
):
    """The brackets of rows: `problem` is a position in `problems`, `row` one in the table of inner
    rows. `alone`: all are `serial`."""
    given = columns_at(names, axes.lengths, axes, problems)
    rows = {name: column[problem] for name, column in given.items()}
    rows |= {name: column[row] for name, column in table.items()}
    return jax.vmap(lambda columns: _bracket(base, columns, neutral, alone))(rows)


class Layout(NamedTuple):
    """Of an `Inner`: the rows of its representatives, its families, how many rows and
    representatives each family has, and at which representative it begins."""

    reps: Any
    families: dict[str, Any]
    rows: Any
    sizes: Any
    starts: Any


@partial(
    jax.jit, static_argnames=("names", "need", "lanes", "neutral", "alone"), compiler_options=WIDE
)
def reaching(
    base: Base,
    names: Names,
    axes: Axes,
    problems,
    table,
    layout: Layout,
    need,
    lanes,
    neutral,
    alone,
):
    """Who may be among the best, found without a word to the host -> (problems, words): bits of the
    representatives whose brackets do not lie above what `need` of them reach; and how many rows of
    each problem were bracketed.

    The steps 1 to 3 of `winners`, `lanes` bounds or brackets at a time. The most promising family
    of each of `FIRST` parts goes first; of each of some groups of representatives the least upper
    end stands for the group.
    """
    count, kinds, reps = len(problems), len(layout.sizes), layout.reps
    groups, whole = max(2 * WORD, 8 * need), -(-len(reps) // WORD) * WORD
    given = columns_at(names, axes.lengths, axes, problems)
    bound = partial(_bound, base, neutral=neutral)

    def pieces(weights, state, step):
        """`step` on each entry of `weights` as often as it says, `lanes` at a time."""
        ends = jnp.cumsum(weights.reshape(-1))

        def some(at):
            start, state = at
            rank = start + jnp.arange(lanes)
            entry = jnp.minimum(jnp.searchsorted(ends, rank, side="right"), ends.size - 1)
            problem, family = entry // kinds, entry % kinds
            nth = rank - ends[entry] + weights[problem, family]
            return start + lanes, step(state, problem, family, nth, rank < ends[-1])

        return jax.lax.while_loop(lambda at: at[0] < ends[-1], some, (0, state))[1]

    def look(known, problem, family, nth, real):
        rep = layout.starts[family] + nth
        rows = {name: column[problem] for name, column in given.items()}
        rows |= {name: column[reps[rep]] for name, column in table.items()}
        found = jax.vmap(lambda columns: _bracket(base, columns, neutral, alone))(rows)
        least_us, most_us = known
        least_us = least_us.at[problem, jnp.where(real, rep, whole)].set(
            below(found.least_us), mode="drop"
        )
        return least_us, most_us.at[problem, rep % groups].min(
            jnp.where(real, found.most_us, jnp.inf)
        )

    def tighten(near, problem, family, nth, real):
        rows = {name: column[problem] for name, column in given.items()}
        kind = {name: column[family] for name, column in layout.families.items()}
        least_us = below(jax.vmap(bound)(rows, reach_us[problem], kind))
        family = jnp.where(real & (least_us > reach_us[problem]), family, kinds)
        return near.at[problem, family].set(False, mode="drop")

    def reach(known):
        return above(jnp.sort(known[1], axis=1)[:, need - 1])

    bounds = jax.vmap(jax.vmap(bound, (None, None, 0)), (0, None, None))
    bounds_us = below(bounds(given, jnp.inf, layout.families))
    parts = jnp.pad(bounds_us, ((0, 0), (0, -kinds % FIRST)), constant_values=jnp.inf)
    parts = parts.reshape(count, -1, FIRST)
    best = jnp.argmin(parts, axis=1) * FIRST + jnp.arange(FIRST)
    first = (
        jnp.zeros((count, kinds), bool).at[jnp.arange(count)[:, None], best].set(True, mode="drop")
    )
    known = jnp.full((count, whole), jnp.inf), jnp.full((count, groups), jnp.inf)
    known = pieces(first * layout.sizes, known, look)
    reach_us = reach(known)
    near = (bounds_us <= reach_us[:, None]) & ~first
    near = pieces(near * 1, near, tighten)
    known = pieces(near * layout.sizes, known, look)
    reaches = (known[0] <= reach(known)[:, None]).reshape(count, -1, WORD)
    bits = jnp.uint64(1) << jnp.arange(WORD, dtype=jnp.uint64)
    return jnp.sum(reaches * bits, axis=2, dtype=jnp.uint64), (first | near) @ layout.rows


def _bound(base: Base, problem: Columns, reach_us, family: Columns, neutral):
    """The bound of a family on a problem."""
    row = {name: value for name, value in family.items() if name in COLUMNS}
    c, machine = assemble(base, {**problem, **row})
    more = Family(family["deepest"] * 1.0, family["ctas"])
    return family_bound_us(floats(c), without(machine, neutral), more, reach_us)


def _bracket(base: Base, columns: Columns, neutral, alone: bool):
    """The bracket of one row."""
    c, machine = assemble(base, columns)
    return bracket(c._replace(schedule=SERIAL) if alone else c, without(machine, neutral))
