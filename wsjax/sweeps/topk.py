"""The k best rows of each problem, without a close look at the others: exact top-k by pruning.

Rows of a product come problem by problem (and machine by machine), the same inner rows for each,
laid out once as families of representatives (`families`). For a chunk of problems one compiled
program (`pruning`) says which representatives may be among the best. Where these stand for more
than k rows, the exact model ranks them: by time, then by number. The answer is that of evaluating
every row.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from wsjax.engine import (
    Axes,
    Candidates,
    axes_of,
    lengthened,
    on_one_device,
    shape_of,
)
from wsjax.model import SERIAL
from wsjax.schema import REASONS, TMA_BYTES, Product
from wsjax.spec import Filter, Predicate, filter_of, split
from wsjax.sweeps.families import Families, lay_out
from wsjax.sweeps.pruning import WORD, Layout, reaching
from wsjax.sweeps.rows import ANY_SIZE


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
        silent = frozenset(["dma_warps"] * ("load_startup_us" in self.candidates.neutral))
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
            words, looked = reaching(
                self.candidates.base,
                shape_of(self.outer).names,
                self._axes,
                on_one_device(lengthened(problems, self.chunk), int(problems[0]) // self.chunk),
                len(problems),
                laid.table,
                Layout(laid.reps, laid.columns, np.diff(laid.family_at), laid.family_at[:-1]),
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
