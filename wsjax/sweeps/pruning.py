"""Which rows may be among the k best of each problem: one compiled program, for `topk`.

For a chunk of problems, without host synchronisation, it

1. computes every family's lower bound on each problem (`model.family_bound_us`);
2. brackets the representatives of each problem's most promising families one by one
   (`engine.bracket`): the k-th least upper end is a time that k rows reach;
3. brackets those of all other families whose bound does not lie above it;
4. returns, as a bit mask, the representatives whose lower end does not lie above what k rows reach.

Where times have a learned correction, bounds and brackets are as wide as it may be, and it narrows
those brackets that reach far enough.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from wsjax.engine import (
    SINGLE,
    WIDE,
    Axes,
    Base,
    Columns,
    assemble,
    bracket,
    columns_at,
    floats,
    learned,
    without,
)
from wsjax.hardware import LESS, MORE, Head
from wsjax.model import SERIAL, Family, family_bound_us
from wsjax.schema import COLUMNS
from wsjax.sweeps.families import above, below

WORD = 64
"""Representatives a word of the bit mask tells of."""


class Layout(NamedTuple):
    """What the program takes of `Families`: the row of each representative in the table of inner
    rows; the families' columns, how many representatives each has, and which is its first."""

    reps: Any
    columns: dict[str, Any]
    sizes: Any
    starts: Any


class _Known(NamedTuple):
    """What is known of representatives: lower ends (problems, representatives); the least upper
    end of each group of them; how many rows of each problem were bracketed; and, where times have a
    learned correction, whose brackets it would narrow to a point."""

    least_us: Any
    most_us: Any
    looked: Any
    wide: Any


@partial(
    jax.jit,
    static_argnames=("names", "need", "lanes", "first", "neutral", "serial", "head"),
    compiler_options=WIDE,
)
def reaching(
    base: Base,
    names: tuple[tuple[str, ...], ...],
    axes: Axes,
    problems,
    real,
    table,
    layout: Layout,
    rows,
    *,
    need: int,
    lanes: int,
    first: int,
    neutral: tuple[str, ...],
    serial: bool,
    head: Head | None,
):
    """Bits of the representatives that may be among the best, (problems, words); and how many rows
    of each problem were bracketed.

    problems: their numbers, of which the first `real` count. rows: (problems or 1, representatives)
    how many rows each stands for; 0: it is not looked at. need: how many representatives stand for
    k rows. serial: all rows have that schedule.
    """
    count, kinds = len(problems), len(layout.sizes)
    words = -(-len(layout.reps) // WORD)
    groups = max(2 * WORD, 8 * need)
    given = columns_at(names, axes.lengths, axes, problems)
    bound = partial(_bound, base, neutral=neutral, head=head)
    less, more = (math.exp(-LESS), math.exp(MORE)) if head else (1.0, 1.0)

    def in_chunks(weights, state, step):
        """`step` on each (problem, family), or representative, as often as `weights` says, `lanes`
        at a time."""
        ends = jnp.cumsum(weights.reshape(-1))
        width = weights.shape[1]

        def some(at):
            start, state = at
            rank = start + jnp.arange(lanes)
            entry = jnp.minimum(jnp.searchsorted(ends, rank, side="right"), ends.size - 1)
            problem, which = entry // width, entry % width
            nth = rank - ends[entry] + weights[problem, which]
            return start + lanes, step(state, problem, which, nth, rank < ends[-1])

        return jax.lax.while_loop(lambda at: at[0] < ends[-1], some, (0, state))[1]

    def rows_of(problem, rep):
        row = {name: column[problem] for name, column in given.items()}
        row |= {name: column[layout.reps[rep]] for name, column in table.items()}
        return row

    def bracketed(known, problem, family, nth, wanted):
        rep = layout.starts[family] + nth
        stands_for = rows[jnp.minimum(problem, len(rows) - 1), rep]
        wanted &= stands_for > 0
        brackets = jax.vmap(timed)(rows_of(problem, rep))
        least_us, most_us = brackets.least_us * less, brackets.most_us * more
        looked = known.looked.at[problem].add(jnp.where(wanted, stands_for, 0))
        wide = known.wide
        if head:
            at = jnp.where(wanted & brackets.exact, rep, words * WORD)
            wide = wide.at[problem, at].set(True, mode="drop")
        known = noted(known, problem, rep, wanted, least_us, most_us)
        return known._replace(looked=looked, wide=wide)

    def noted(known, problem, rep, wanted, least_us, most_us):
        at = jnp.where(wanted, rep, words * WORD)
        # Of each group of representatives the least upper end stands for the group.
        most_us = jnp.where(wanted, most_us, jnp.inf)
        return known._replace(
            least_us=known.least_us.at[problem, at].set(below(least_us), mode="drop"),
            most_us=known.most_us.at[problem, rep % groups].min(most_us),
        )

    def narrowed(known, problem, rep, nth, wanted):
        time_us = known.least_us[problem, rep] / less
        factor = jax.vmap(partial(_factor, base, head))(rows_of(problem, rep), time_us)
        ends = time_us * factor * (1.0 - SINGLE), time_us * factor * (1.0 + SINGLE)
        return noted(known, problem, rep, wanted, *ends)

    def reach(known):
        return above(jnp.sort(known.most_us, axis=1)[:, need - 1])

    def one_round(number, state):
        """Bracket the most promising families, then those of the others that may reach as far as
        k rows of these do."""
        known, bounds_us, todo = state
        reach_us = reach(known)

        def bounded(bounds_us, problem, family, nth, wanted):
            row = {name: column[problem] for name, column in given.items()}
            kind = {name: column[family] for name, column in layout.columns.items()}
            least_us = below(jax.vmap(bound)(row, reach_us[problem], kind))
            return bounds_us.at[problem, jnp.where(wanted, family, kinds)].set(
                least_us, mode="drop"
            )

        near = todo & (bounds_us <= reach_us[:, None]) & (jnp.arange(count) < real)[:, None]
        bounds_us = in_chunks(near * 1, bounds_us, bounded)
        chosen = jnp.where(number, near & (bounds_us <= reach_us[:, None]), promising(bounds_us))
        known = in_chunks(chosen * (near * layout.sizes), known, bracketed)
        if head:
            some = known.wide & (known.least_us <= reach(known)[:, None])
            known = in_chunks(some * 1, known._replace(wide=known.wide & ~some), narrowed)
        return known, bounds_us, ~chosen

    def promising(bounds_us):
        """The family of the least bound of each of `first` parts, for each problem."""
        spread = jnp.pad(bounds_us, ((0, 0), (0, -kinds % first)), constant_values=jnp.inf)
        best = jnp.argmin(spread.reshape(count, -1, first), axis=1) * first + jnp.arange(first)
        at = jnp.arange(count)[:, None], best
        return jnp.zeros((count, kinds), bool).at[at].set(True, mode="drop")

    timed = partial(_bracket, base, neutral=neutral, serial=serial)
    every = count, words * WORD
    known = _Known(
        jnp.full(every, jnp.inf),
        jnp.full((count, groups), jnp.inf),
        jnp.zeros(count, int),
        jnp.zeros(every, bool) if head else None,
    )
    state = known, jnp.full((count, kinds), -jnp.inf), jnp.ones((count, kinds), bool)
    known, *_ = jax.lax.fori_loop(0, 2, one_round, state)
    # What was not bracketed stays at infinity, which nothing reaches.
    reaches = jnp.isfinite(known.least_us) & (known.least_us <= reach(known)[:, None])
    bits = jnp.uint64(1) << jnp.arange(WORD, dtype=jnp.uint64)
    return jnp.sum(reaches.reshape(count, -1, WORD) * bits, axis=2, dtype=jnp.uint64), known.looked


def _bound(base: Base, problem: Columns, reach_us, family: Columns, neutral, head: Head | None):
    """The lower bound of a family on a problem, in µs."""
    row = {name: value for name, value in family.items() if name in COLUMNS}
    c, machine = assemble(base, {**problem, **row})
    more = Family(family["deepest"] * 1.0, family["ctas"])
    least = math.exp(-LESS) if head else 1.0
    return least * family_bound_us(floats(c), without(machine, neutral), more, reach_us / least)


def _bracket(base: Base, columns: Columns, neutral, serial: bool):
    """The bracket of one row's time, in µs."""
    c, machine = assemble(base, columns)
    return bracket(c._replace(schedule=SERIAL) if serial else c, without(machine, neutral))


def _factor(base: Base, head: Head | None, columns: Columns, time_us):
    """The learned correction of one row's time, as a factor."""
    return learned(head, *assemble(base, columns), time_us) if head else 1.0
