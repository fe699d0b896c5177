"""The k best rows of each problem, without a close look at the others: exact top-k by pruning.

Rows of a product come problem by problem (and machine by machine), the same inner rows for each,
laid out once as families of representatives (`families`). For a chunk of problems one compiled
program, without host synchronisation:

1. computes every family's lower bound on each problem (`model.family_bound_us`);
2. brackets the representatives of each problem's most promising families one by one
   (`engine.bracket`): the k-th least upper end is a time that k rows reach;
3. brackets those of all other families whose bound does not lie above it;
4. returns, as a bit mask, the representatives whose lower end does not lie above what k rows reach.

Where these stand for more than k rows, the exact model ranks them: by time, then by number. The
answer is that of evaluating every row.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.engine import (
    WIDE,
    Axes,
    Base,
    Candidates,
    Columns,
    assemble,
    axes_of,
    bracket,
    columns_at,
    floats,
    lengthened,
    on_one_device,
    shape_of,
    without,
)
from wsjax.hardware import LIMIT, Head
from wsjax.model import SERIAL, Family, family_bound_us
from wsjax.schema import COLUMNS, REASONS, TMA_BYTES, Product
from wsjax.spec import Filter, Predicate, filter_of, split
from wsjax.sweeps.families import Families, above, below, lay_out
from wsjax.sweeps.rows import ANY_SIZE

WORD = 64
"""Representatives a word of the bit mask tells of."""


class Sizes(NamedTuple):
    """How much is done at once.

    problems: sizes of chunks, so that few programs are compiled. brackets: a chunk's problems times
    representatives, at most, but in the smallest chunk. lanes: bounds or brackets computed at once.
    first: families of a problem bracketed first. inner_rows: rows laid out at once.
    """

    problems: tuple[int, ...]
    brackets: int
    lanes: int
    first: int = 16
    inner_rows: int = 2**20


ON_CPU = Sizes((4, 16, 64, 256, 1024), 2**20, 2**12)
ON_ACCELERATOR = Sizes((16, 256, 1024, 4096, 16384), 2**28, 2**20)


def usual() -> Sizes:
    """The sizes for the device at hand."""
    return ON_CPU if jax.default_backend() == "cpu" else ON_ACCELERATOR


class Best(NamedTuple):
    """The best rows' numbers; how many rows were filtered away, how many were illegal, by code of
    their reason, and how many no bound of a family settled."""

    rows: np.ndarray
    filtered: int
    illegal: np.ndarray
    bracketed: int


def least_of(times: np.ndarray, groups: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Positions of each group's `count` least times, in the order of group, time and row."""
    order = np.lexsort((rows, times, groups))
    groups = groups[order]
    return order[np.arange(len(groups)) - np.searchsorted(groups, groups) < count]


class _Layout(NamedTuple):
    """What the program takes of `Families`: the row of each representative in the table of inner
    rows; the families' columns, how many representatives each has, and which is its first."""

    reps: Any
    columns: dict[str, Any]
    sizes: Any
    starts: Any


@partial(
    jax.jit,
    static_argnames=("names", "need", "lanes", "first", "neutral", "serial", "head"),
    compiler_options=WIDE,
)
def _reaching(
    base: Base,
    names: tuple[tuple[str, ...], ...],
    axes: Axes,
    problems,
    real,
    table,
    layout: _Layout,
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

    def in_chunks(weights, state, step):
        """`step` on each (problem, family) as often as `weights` says, `lanes` at a time."""
        ends = jnp.cumsum(weights.reshape(-1))

        def some(at):
            start, state = at
            rank = start + jnp.arange(lanes)
            entry = jnp.minimum(jnp.searchsorted(ends, rank, side="right"), ends.size - 1)
            problem, family = entry // kinds, entry % kinds
            nth = rank - ends[entry] + weights[problem, family]
            return start + lanes, step(state, problem, family, nth, rank < ends[-1])

        return jax.lax.while_loop(lambda at: at[0] < ends[-1], some, (0, state))[1]

    def bracketed(known, problem, family, nth, wanted):
        least_us, most_us, looked = known
        rep = layout.starts[family] + nth
        stands_for = rows[jnp.minimum(problem, len(rows) - 1), rep]
        wanted &= stands_for > 0
        row = {name: column[problem] for name, column in given.items()}
        row |= {name: column[layout.reps[rep]] for name, column in table.items()}
        brackets = jax.vmap(partial(_bracket, base, neutral=neutral, serial=serial, head=head))(row)
        at = jnp.where(wanted, rep, words * WORD)
        # Of each group of representatives the least upper end stands for the group.
        return (
            least_us.at[problem, at].set(below(brackets.least_us), mode="drop"),
            most_us.at[problem, rep % groups].min(jnp.where(wanted, brackets.most_us, jnp.inf)),
            looked.at[problem].add(jnp.where(wanted, stands_for, 0)),
        )

    def reach(known):
        return above(jnp.sort(known[1], axis=1)[:, need - 1])

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
        return known, bounds_us, ~chosen

    def promising(bounds_us):
        """The family of the least bound of each of `first` parts, for each problem."""
        spread = jnp.pad(bounds_us, ((0, 0), (0, -kinds % first)), constant_values=jnp.inf)
        best = jnp.argmin(spread.reshape(count, -1, first), axis=1) * first + jnp.arange(first)
        at = jnp.arange(count)[:, None], best
        return jnp.zeros((count, kinds), bool).at[at].set(True, mode="drop")

    least_us = jnp.full((count, words * WORD), jnp.inf)
    known = least_us, jnp.full((count, groups), jnp.inf), jnp.zeros(count, int)
    state = known, jnp.full((count, kinds), -jnp.inf), jnp.ones((count, kinds), bool)
    known, *_ = jax.lax.fori_loop(0, 2, one_round, state)
    least_us, _, looked = known
    # What was not bracketed stays at infinity, which nothing reaches.
    reaches = jnp.isfinite(least_us) & (least_us <= reach(known)[:, None])
    bits = jnp.uint64(1) << jnp.arange(WORD, dtype=jnp.uint64)
    return jnp.sum(reaches.reshape(count, -1, WORD) * bits, axis=2, dtype=jnp.uint64), looked


def _bound(base: Base, problem: Columns, reach_us, family: Columns, neutral, head: Head | None):
    """The lower bound of a family on a problem, in µs."""
    row = {name: value for name, value in family.items() if name in COLUMNS}
    c, machine = assemble(base, {**problem, **row})
    more = Family(family["deepest"] * 1.0, family["ctas"])
    least = math.exp(-LIMIT) if head else 1.0
    return least * family_bound_us(floats(c), without(machine, neutral), more, reach_us / least)


def _bracket(base: Base, columns: Columns, neutral, serial: bool, head: Head | None):
    """The bracket of one row's time, in µs."""
    c, machine = assemble(base, columns)
    return bracket(c._replace(schedule=SERIAL) if serial else c, without(machine, neutral), head)


@dataclass(frozen=True, eq=False)
class TopK:
    """A sweep on one machine of which the `best` rows of each problem are wanted.

    times_us(rows): the exact model of rows by their numbers in the product.
    """

    candidates: Candidates
    best: int
    predicate: Predicate | None
    times_us: Callable[[np.ndarray], np.ndarray]
    sizes: Sizes = field(default_factory=usual)
    _laid: dict[Any, Families] = field(default_factory=dict)

    @cached_property
    def _split(self) -> tuple[Product, Product]:
        return split(self.candidates.product)

    @property
    def outer(self) -> Product:
        """The problems, and what is swept of the machine."""
        return self._split[0]

    @property
    def inner(self) -> Product:
        """What is tried on each of them."""
        return self._split[1]

    @cached_property
    def _axes(self) -> Axes:
        return axes_of(self.outer)

    @cached_property
    def _filter(self) -> Filter:
        return filter_of(self.predicate, self.outer, self.inner)

    @cached_property
    def chunk(self) -> int:
        """How many problems are taken at a time."""
        decisive = self.candidates.deciding(self.outer.take(np.zeros(1, int)))
        key = {name: x[0].item() for name, x in decisive.items()}
        laid = self.families(key | dict.fromkeys(key.keys() & {*"mnk"}, TMA_BYTES), 0)
        each = max(len(laid.reps), self.best, 1)
        sizes = self.sizes.problems
        fits = [size for size in sizes if size * each <= self.sizes.brackets] or [sizes[0]]
        return next((size for size in fits if size >= len(self.outer)), fits[-1])

    def chunks(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """The numbers of problems `start` to `stop`, as `best_of` takes them."""
        for first in range(start, stop, self.chunk):
            yield np.arange(first, min(first + self.chunk, stop))

    def best_of(self, problems: np.ndarray) -> Best:
        """The best rows of some problems."""
        given = self.outer.take(problems)
        decisive = self.candidates.deciding(given)
        codes = np.zeros(len(problems), np.int64)
        if decisive:
            table = np.stack(list(decisive.values()))
            codes = np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)
        parts = []
        for code in np.unique(codes):
            mine = np.flatnonzero(codes == code)
            key = {name: x[mine[0]].item() for name, x in decisive.items()}
            parts.append(self._best_of(problems[mine], key))
        return Best(
            np.sort(np.concatenate([best.rows for best in parts])),
            sum(best.filtered for best in parts),
            np.sum([best.illegal for best in parts], axis=0),
            sum(best.bracketed for best in parts),
        )

    def families(self, key: Mapping[str, Any], start: int) -> Families:
        """The inner rows from `start` on, for problems of a key; kept if they are all."""
        at = (*key.values(), start)
        if at in self._laid:
            return self._laid[at]
        base = self.candidates.base._replace(
            columns={**ANY_SIZE, **self.candidates.base.columns, **key}
        )
        rows = min(self.sizes.inner_rows, len(self.inner))
        same = "load_startup_us" in self.candidates.neutral and not self.candidates.head
        silent = frozenset(["dma_warps"] * same)
        laid = lay_out(base, self.inner, start, rows, silent, self._filter.rows)
        if rows == len(self.inner):
            self._laid[at] = laid
        return laid

    def _best_of(self, problems: np.ndarray, key: Mapping[str, Any]) -> Best:
        """The best rows of some problems for which the same is legal."""
        count, inner = len(problems), len(self.inner)
        given = self.outer.take(problems)
        enter = self._filter.problems(given, count)
        filtered = int(count - enter.sum()) * inner
        problems, given = problems[enter], {name: x[enter] for name, x in given.items()}
        illegal, bracketed = np.zeros(len(REASONS), np.int64), 0
        problem, row = np.zeros((2, 0), np.int64)
        for start in range(0, inner if len(problems) else 0, self.sizes.inner_rows):
            laid = self.families(key, start)
            passes = self._filter.both(given, laid.table, len(laid.reason))
            if passes is None:
                filtered += len(problems) * int(np.sum(~laid.passes))
                illegal += len(problems) * _count(laid.reason[laid.passes])
            else:
                filtered += int(np.sum(~passes))
                illegal += np.sum([_count(laid.reason[mask]) for mask in passes], axis=0)
            if len(laid.reps):
                which, inside, looked = self._reaching(problems, laid, passes)
                bracketed += looked
                problem = np.append(problem, which)
                row = np.append(row, start + inside)
                problem, row = self._ranked(problems, problem, row)
        return Best(problems[problem] * inner + row, filtered, illegal, bracketed)

    def _ranked(
        self, problems: np.ndarray, problem: np.ndarray, row: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """At most k rows of each problem: where there are more, by exact times and by row."""
        crowd = np.bincount(problem, minlength=len(problems))[problem]
        many = np.flatnonzero(crowd > self.best)
        if not len(many):
            return problem, row
        times_us = self.times_us(problems[problem[many]] * len(self.inner) + row[many])
        kept = crowd <= self.best
        kept[many[least_of(times_us, problem[many], row[many], self.best)]] = True
        return problem[kept], row[kept]

    def _reaching(
        self, problems: np.ndarray, laid: Families, passes: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """The rows that may be among the best of some problems: (position in `problems`, row); and
        how many rows were bracketed to find them."""
        rows = np.diff(laid.rep_at)[None]
        if passes is not None:
            rows = np.add.reduceat(passes[:, laid.rows], laid.rep_at[:-1], axis=1, dtype=np.int64)
        fewest = int(rows.min(where=rows > 0, initial=self.best))
        with jax.enable_x64(True):
            words, looked = _reaching(
                self.candidates.base,
                shape_of(self.outer).names,
                self._axes,
                on_one_device(lengthened(problems, self.chunk), int(problems[0]) // self.chunk),
                len(problems),
                laid.table,
                _Layout(laid.reps, laid.columns, np.diff(laid.family_at), laid.family_at[:-1]),
                rows if passes is None else lengthened(rows, self.chunk),
                need=min(-(-self.best // fewest), len(laid.reps)),
                lanes=self.sizes.lanes,
                first=self.sizes.first,
                neutral=self.candidates.neutral,
                serial=self.candidates.schedule == SERIAL,
                head=self.candidates.head,
            )
        problem, rep = _positions(np.asarray(words)[: len(problems)])
        each = np.diff(laid.rep_at)[rep]
        ends = np.cumsum(each)
        member = np.arange(each.sum()) + np.repeat(laid.rep_at[rep] - ends + each, each)
        problem, row = np.repeat(problem, each), laid.rows[member]
        if passes is not None:
            problem, row = problem[passes[problem, row]], row[passes[problem, row]]
        return problem, row, int(np.asarray(looked).sum())


def _positions(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the bits of words are 1: (row, position in the row's bits)."""
    some = np.flatnonzero(words.reshape(-1) != 0)
    row, word = np.divmod(some, words.shape[1])
    bytes_of = words.reshape(-1)[some].astype("<u8").view(np.uint8)
    at, bit = np.divmod(np.flatnonzero(np.unpackbits(bytes_of, bitorder="little")), WORD)
    return row[at], word[at] * WORD + bit


def _count(reason: np.ndarray) -> np.ndarray:
    """How many rows have each reason."""
    return np.bincount(reason, minlength=len(REASONS))
