"""The k best rows of each problem, without a close look at the others.

Rows of a product come problem by problem (and machine by machine), the same inner rows for each.
For some problems at a time:

1. every family of inner rows gets its bound on each problem (`bounds`);
2. the rows of each problem's most promising families are bracketed one by one (`programs.bracket`):
   the k-th least upper end is a time that k rows reach;
3. families whose bound lies above it have lost; the others' rows are bracketed too;
4. rows whose lower end does not lie above it are left. Where they are more than k, the exact model
   ranks them: by time, then by number.

An accelerator does 1 to 3 in one program without a word to the host (`brackets.reaching`), and says
which rows are left. The answer is that of evaluating every row, either way.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from wsjax.engine import (
    SHAPING,
    Axes,
    Source,
    axes_of,
    lengthened,
    on_one_device,
    over_devices,
    shape_of,
)
from wsjax.model import SERIAL
from wsjax.schema import REASONS, Product
from wsjax.spec import Predicate, Sieve, sieve_of, split
from wsjax.sweeps.board import Board, below
from wsjax.sweeps.brackets import (
    FIRST,
    WORD,
    Layout,
    bounds_of_families,
    brackets_of_rows,
    reaching,
)
from wsjax.sweeps.families import Inner, lay_out

INNER_ROWS = 2**20
"""Inner rows that are laid out at once."""
PENDING_ROWS, PENDING_FAMILIES = 2**22, 2**16
"""Rows that may wait to be ranked, and families whose rows are bracketed at once."""
ANY_SIZE = {"m": 1, "n": 1, "k": 1}


class Sizes(NamedTuple):
    """Problems at a time: one of `problems`, so that few programs are compiled, with at most
    `bounds` bounds if not the fewest; bounds of a call of a program, and brackets. `whole`: whether
    one program does it all, with `bounds` representatives."""

    problems: tuple[int, ...]
    bounds: int
    lanes: int
    brackets: int
    whole: bool


ON_CPU = Sizes((16, 64, 256, 1024), 2**19, 2**16, 2**13, False)
ON_ACCELERATOR = Sizes((16, 256, 1024, 4096, 16384), 2**28, 2**22, 2**20, True)


class Found(NamedTuple):
    """The winners' row numbers; how many rows were filtered away, and how many were illegal, by
    code of their reason; and how many no bound of a family settled."""

    rows: np.ndarray
    filtered: int
    illegal: np.ndarray
    close: int


@dataclass(frozen=True, eq=False)
class Contest:
    """A sweep on one machine of which the `best` rows of each problem are wanted.

    times_us(rows): the exact model of rows by their numbers in the product.
    """

    source: Source
    best: int
    predicate: Predicate | None
    times_us: Callable[[np.ndarray], np.ndarray]
    _laid: dict[Any, Inner] = field(default_factory=dict)

    @cached_property
    def _parts(self) -> tuple[Product, Product]:
        return split(self.source.product)

    @property
    def outer(self) -> Product:
        """The problems, and what is swept of the machine."""
        return self._parts[0]

    @property
    def inner(self) -> Product:
        """What is tried on each of them."""
        return self._parts[1]

    def chunks(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """The numbers of problems `start` to `stop`, as `winners` takes them."""
        for first in range(start, stop, self.chunk):
            yield np.arange(first, min(first + self.chunk, stop))

    def winners(self, problems: np.ndarray) -> Found:
        """The best rows of some problems."""
        given = self.outer.take(problems)
        keys = [name for name in SHAPING if name in given]
        codes = np.zeros(len(problems), np.int64)
        if keys:
            table = np.stack([given[name] for name in keys])
            codes = np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)
        parts = []
        for code in np.unique(codes):
            mine = np.flatnonzero(codes == code)
            key = {name: given[name][mine[0]].item() for name in keys}
            parts.append(self._contend(problems[mine], key))
        return Found(
            np.sort(np.concatenate([part.rows for part in parts])),
            sum(part.filtered for part in parts),
            np.sum([part.illegal for part in parts], axis=0),
            sum(part.close for part in parts),
        )

    @cached_property
    def _sizes(self) -> Sizes:
        return ON_CPU if jax.default_backend() == "cpu" else ON_ACCELERATOR

    @cached_property
    def chunk(self) -> int:
        """How many problems are taken at a time."""
        key = {name: column[0].item() for name, column in self.outer.take(np.zeros(1, int)).items()}
        laid = self.lay({name: key[name] for name in SHAPING if name in key}, 0)
        rows = laid.reps if self._sizes.whole else laid.families["ctas"]
        each = max(len(rows), self.best, 1)
        fits = [size for size in self._sizes.problems if size * each <= self._sizes.bounds]
        return max(fits, default=self._sizes.problems[0])

    @cached_property
    def _axes(self) -> Axes:
        return axes_of(self.outer)

    @cached_property
    def _sieve(self) -> Sieve:
        return sieve_of(self.predicate, self.outer, self.inner)

    def lay(self, key: Mapping[str, Any], start: int) -> Inner:
        """The inner rows from `start` on, for problems of a key; kept if they are all."""
        at = (*key.values(), start)
        if at in self._laid:
            return self._laid[at]
        base = self.source.base._replace(columns={**ANY_SIZE, **self.source.base.columns, **key})
        rows = min(INNER_ROWS, len(self.inner))
        silent = frozenset(["dma_warps"] if "load_startup_us" in self.source.neutral else [])
        laid = lay_out(base, self.inner, start, rows, silent, self._sieve.rows)
        if rows == len(self.inner):
            self._laid[at] = laid
        return laid

    def _contend(self, problems: np.ndarray, key: Mapping[str, Any]) -> Found:
        """The best rows of some problems for which the same is legal."""
        count, inner = len(problems), len(self.inner)
        given = self.outer.take(problems)
        enter = self._sieve.problems(given, count)
        filtered = int(count - enter.sum()) * inner
        problems, given = problems[enter], {name: x[enter] for name, x in given.items()}
        board = Board(np.full((len(problems), self.best), np.inf))
        illegal, close = np.zeros(len(REASONS), np.int64), 0
        for start in range(0, inner if len(problems) else 0, INNER_ROWS):
            laid = self.lay(key, start)
            passes = self._sieve.both(given, laid.table, len(laid.reason))
            if passes is None:
                filtered += len(problems) * int(np.sum(~laid.passes))
                illegal += len(problems) * _count(laid.reason[laid.passes])
            else:
                filtered += int(np.sum(~passes))
                illegal += np.sum([_count(laid.reason[mask]) for mask in passes], axis=0)
            close += self._compete(problems, laid, passes, board)
        board.settle(partial(self._times, problems))
        return Found(problems[board.problem] * inner + board.row, filtered, illegal, close)

    def _times(self, problems: np.ndarray, problem: np.ndarray, row: np.ndarray) -> np.ndarray:
        return self.times_us(problems[problem] * len(self.inner) + row)

    def _compete(
        self, problems: np.ndarray, laid: Inner, passes: np.ndarray | None, board: Board
    ) -> int:
        """Let the rows of a layout compete -> how many were bracketed."""
        if not len(laid.reps):
            return 0
        looked = 0

        def look(problem: np.ndarray, rep: np.ndarray) -> None:
            nonlocal looked
            problem, row, least_us, most_us = self._bracketed(problems, laid, problem, rep)
            if passes is not None:
                let = passes[problem, row]
                problem, row, least_us, most_us = (
                    x[let] for x in (problem, row, least_us, most_us)
                )
            looked += len(row)
            board.admit(problem, laid.start + row, least_us, most_us)
            if len(board.row) > PENDING_ROWS:
                board.settle(partial(self._times, problems))

        if self._sizes.whole and passes is None:
            problem, rep, bracketed = self._left(problems, laid)
            which, twin = _spread(problem, rep, laid.rep_at)
            board.enter(which, laid.start + laid.twins[twin])
            return bracketed
        nowhere = np.full(len(problems), np.inf)
        bounds = self.bounds_us(problems, laid, nowhere)
        first = min(FIRST, bounds.shape[1])
        best = np.argpartition(bounds, first - 1, axis=1)[:, :first].reshape(-1)
        every = np.repeat(np.arange(len(problems)), first)
        look(*_spread(every, best, laid.family_at))
        bounds = below(self.bounds_us(problems, laid, board.reach_us))
        bounds[every, best] = np.nan
        problem, family = np.nonzero(bounds <= board.reach_us[:, None])
        for piece in np.array_split(np.arange(len(problem)), 1 + len(problem) // PENDING_FAMILIES):
            near = bounds[problem[piece], family[piece]] <= board.reach_us[problem[piece]]
            piece = piece[near]
            look(*_spread(problem[piece], family[piece], laid.family_at))
        return looked

    def _left(self, problems: np.ndarray, laid: Inner) -> tuple[np.ndarray, np.ndarray, int]:
        """The representatives that may be among the best of some problems: (problem, rep); and how
        many rows were bracketed to find them."""
        twins = np.diff(laid.rep_at)
        need = min(-(-self.best // int(twins.min())), len(twins))
        with jax.enable_x64(True):
            words, looked = reaching(
                self.source.base,
                shape_of(self.outer).names,
                self._axes,
                on_one_device(lengthened(problems, self.chunk), int(problems[0]) // self.chunk),
                laid.table,
                _layout(laid),
                need,
                self._sizes.brackets,
                self.source.neutral,
                self.source.schedule == SERIAL,
            )
        words = np.asarray(words)[: len(problems)]
        some = np.flatnonzero(words.reshape(-1) != 0)
        problem, word = np.divmod(some, words.shape[1])
        bytes_of = words.reshape(-1)[some].astype("<u8").view(np.uint8)
        at, bit = np.divmod(np.flatnonzero(np.unpackbits(bytes_of, bitorder="little")), WORD)
        looked = int(np.asarray(looked)[: len(problems)].sum())
        return problem[at], word[at] * WORD + bit, looked

    def bounds_us(self, problems: np.ndarray, laid: Inner, reach_us: np.ndarray) -> np.ndarray:
        """(problems, families): the bounds, in µs, for what must not be above `reach_us`."""
        families = len(laid.families["ctas"])
        size = max(self.chunk, 1)
        wide = max(self._sizes.lanes // size, 1)
        padded, reach_us = lengthened(problems, size), lengthened(reach_us, size)
        found = np.empty((len(problems), families))
        for start in range(0, families, wide):
            at = np.minimum(np.arange(start, start + wide), families - 1)
            part = {name: column[at] for name, column in laid.families.items()}
            with jax.enable_x64(True):
                bounds = bounds_of_families(
                    self.source.base,
                    shape_of(self.outer).names,
                    self._axes,
                    over_devices(padded),
                    over_devices(reach_us),
                    part,
                    self.source.neutral,
                )
            found[:, start : start + wide] = np.asarray(bounds)[: len(problems), : families - start]
        return found

    def _bracketed(
        self, problems: np.ndarray, laid: Inner, problem: np.ndarray, rep: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All rows that some representatives stand for: (problem, row, least and most µs)."""
        size = self._sizes.brackets
        least_us, most_us = np.empty((2, len(rep)))
        padded = lengthened(problems, self.chunk)
        alone = self.source.schedule == SERIAL
        for start in range(0, len(rep), size):
            part = np.s_[start : start + size]
            with jax.enable_x64(True):
                found = brackets_of_rows(
                    self.source.base,
                    shape_of(self.outer).names,
                    self._axes,
                    padded,
                    laid.table,
                    over_devices(lengthened(problem[part], size)),
                    over_devices(lengthened(laid.reps[rep[part]], size)),
                    self.source.neutral,
                    alone,
                )
            count = len(rep[part])
            least_us[part] = np.asarray(found.least_us)[:count]
            most_us[part] = np.asarray(found.most_us)[:count]
        which, twin = _spread(np.arange(len(rep)), rep, laid.rep_at)
        return problem[which], laid.twins[twin], least_us[which], most_us[which]


def _layout(laid: Inner) -> Layout:
    """What `reaching` takes of an `Inner`."""
    rows, sizes = np.diff(laid.rep_at[laid.family_at]), np.diff(laid.family_at)
    return Layout(laid.reps, laid.families, rows, sizes, laid.family_at[:-1])


def _count(reason: np.ndarray) -> np.ndarray:
    """How many rows have each reason."""
    return np.bincount(reason, minlength=len(REASONS))


def _spread(
    which: np.ndarray, group: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`which` once for each member of its group: (which, member); members stand from starts[g]."""
    sizes = np.diff(starts)[group]
    ends = np.cumsum(sizes)
    member = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
    return np.repeat(which, sizes), np.repeat(starts[group], sizes) + member
