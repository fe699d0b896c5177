"""One shard of a sweep: its rows predicted and written, all of them or each problem's best."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import numpy as np

from wsjax import tables
from wsjax.schema import COLUMNS, REASONS, Product
from wsjax.spec import PROBLEM_COLUMNS, Predicate, Spec, split
from wsjax.sweeps import given_columns
from wsjax.sweeps import quantiles as distributions
from wsjax.sweeps.blocks import BLOCK_ROWS, Part, by_reason, legal_rows, pieces, predict_rows
from wsjax.sweeps.board import best_of as best_rows
from wsjax.sweeps.dataset import SHARD_KEY, Shard
from wsjax.sweeps.summary import Best, best_of

if TYPE_CHECKING:
    import pyarrow as pa


SHARD_ROWS_LEAST, SHARD_ROWS = 2**18, 2**20
"""Rows of a file: candidates, or, where only the best are kept, those."""
SHARD_CANDIDATES = 2**28
"""Candidates of a file of best rows, at most, if one problem has not more."""
WORKERS = min(os.cpu_count() or 2, 4)
"""Threads that predict, or seek winners, while rows are written."""

FEW = 5
"""Leaders of the only problem."""

Advance = Callable[[int], None]


class Table(NamedTuple):
    """Rows for a file, and what is best of them."""

    columns: Mapping[str, "pa.Array"]
    best: Best


Keep = Callable[[Table], None]


class Written(NamedTuple):
    """A new shard, and the best of its rows; and, where only the best are kept, of how many legal
    ones the time was looked at, and how many others a bound alone ruled out."""

    shard: Shard
    best: Best = Best()
    evaluated: int = 0
    bounded: int = 0


def usual_rows(candidates: int) -> int:
    """Rows of a file of so many candidates: a quarter, so that some are made at once, in bounds."""
    return min(max(-(-candidates // 4), SHARD_ROWS_LEAST), SHARD_ROWS)


def rows_of(product: Product, best: int | None, shard_rows: int) -> int:
    """How many of a product's rows are a shard's; whole problems if their `best` are kept."""
    if best is None:
        return shard_rows
    each = len(split(product)[1])
    return each * max(1, min(shard_rows // best, SHARD_CANDIDATES // each))


def write(
    place: AbstractContextManager[BinaryIO],
    texts: Mapping[str, str],
    part: Part,
    run: Spec,
    advance: Advance,
) -> Written:
    """Write the rows of a part that are to be kept, to what `place` gives.

    advance(n): n more candidates are done.
    """
    with tables.shard_writer(place, texts) as (add, note):
        best = Best()

        def keep(table: Table) -> None:
            nonlocal best
            folders = run.output.partition_by
            add({name: column for name, column in table.columns.items() if name not in folders})
            best = best.followed_by(table.best)

        kind = _quantiles if run.output.quantiles else _all if run.output.best is None else _best
        written = kind(part, run, keep, advance)
        note(SHARD_KEY, written.shard.text())
    return written._replace(best=best)


def _table(part: Part, run: Spec, numbers: np.ndarray) -> Table:
    """Legal rows, predicted."""
    columns = predict_rows(part, numbers)
    if any(machine.spread for machine in run.hardware):
        columns = tables.with_interval(columns)
    return Table(columns, compare(columns, part, run))


@dataclass
class _Candidates:
    """A part's candidates, looked at in order: how many were legal, filtered, or illegal, by code
    of the reason; and how far the work on the legal ones has come."""

    part: Part
    predicate: Predicate | None
    legal: int = 0
    filtered: int = 0
    illegal: np.ndarray = field(default_factory=lambda: np.zeros(len(REASONS), np.int64))
    done: int = 0

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """The numbers of legal rows, so many at a time; at least one block, if empty."""
        return filled(self._legal(rows), rows)

    def _legal(self, rows: int) -> Iterator[np.ndarray]:
        for start in range(self.part.start, self.part.stop, rows):
            stop = min(start + rows, self.part.stop)
            kept = legal_rows(self.part, self.predicate, start, stop)
            self.legal += len(kept.numbers)
            self.filtered += kept.filtered
            self.illegal = self.illegal + kept.illegal
            yield kept.numbers

    def behind(self, numbers: np.ndarray) -> int:
        """How many candidates are done with these rows, which come next."""
        before = self.done
        self.done = int(numbers[-1]) + 1 - self.part.start if len(numbers) else before
        return self.done - before

    def shard(self, rows: int) -> Shard:
        """All of them, of whom so many `rows` are kept."""
        name, start, stop = self.part.machine.name, self.part.start, self.part.stop
        illegal = by_reason(self.illegal)
        return Shard(name, start, stop, rows, self.filtered, illegal, self.legal - rows)


def _quantiles(part: Part, run: Spec, keep: Keep, advance: Advance) -> Written:
    """Each problem's distribution of times, where it has any legal row."""
    from wsjax.engine import widening
    from wsjax.sweeps.histograms import spread

    each, candidates = len(split(part.product)[1]), _Candidates(part, run.predicate())
    tally, found = distributions.Tally(), []
    problems = 0

    def flush() -> None:
        nonlocal problems, found
        problems += len(found)
        names = given_columns.names_of(part)
        first = np.array([one.group * each for one in found], np.int64)
        given = given_columns.arrow_columns(part, names, first)
        keep(Table(given | distributions.columns(found), Best()))
        found = []

    spread_of = partial(spread, part.source, each)
    for numbers, some in in_order(spread_of, candidates.blocks(BLOCK_ROWS * widening())):
        found += tally.add(some)
        if len(found) >= BLOCK_ROWS:
            flush()
        advance(candidates.behind(numbers))
    found += tally.end()
    if found or not problems:
        flush()
    advance(part.stop - part.start - candidates.done)
    return Written(candidates.shard(problems))


def _all(part: Part, run: Spec, keep: Keep, advance: Advance) -> Written:
    """All legal rows: some are predicted while others are written."""
    candidates = _Candidates(part, run.predicate())
    for numbers, table in in_order(partial(_table, part, run), candidates.blocks(BLOCK_ROWS)):
        keep(table)
        advance(candidates.behind(numbers))
    advance(part.stop - part.start - candidates.done)
    return Written(candidates.shard(candidates.legal))


def filled(blocks: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The same numbers in blocks of `size`, the last shorter; at least one, if empty."""
    held: list[np.ndarray] = []
    count, first = 0, True
    for block in blocks:
        held, count = [*held, block], count + len(block)
        while count >= size:
            whole = np.concatenate(held)
            yield whole[:size]
            held, count, first = [whole[size:]], count - size, False
    if count or first:
        yield np.concatenate(held)


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[tuple[Item, Result]]:
    """Each item with the function's result, which other threads find, a few items ahead."""
    pool = ThreadPoolExecutor(WORKERS)
    ahead: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            ahead.append((item, pool.submit(function, item)))
            if len(ahead) > WORKERS:
                first, result = ahead.popleft()
                yield first, result.result()
        while ahead:
            first, result = ahead.popleft()
            yield first, result.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _best(part: Part, run: Spec, keep: Keep, advance: Advance) -> Written:
    """Each problem's best rows, by time, then by number."""
    from wsjax.engine import times_of_rows
    from wsjax.sweeps.winners import Contest

    count, times_us = run.output.best, partial(times_of_rows, part.source)
    assert count is not None
    contest = Contest(part.source, count, run.predicate(), times_us)
    each = len(contest.inner)
    found = []
    chunks = contest.chunks(part.start // each, part.stop // each)
    for chunk, winners in in_order(contest.winners, chunks):
        found.append(winners)
        advance(len(chunk) * each)
    rows = np.concatenate([winners.rows for winners in found])
    rows = rows[best_rows(times_us(rows), rows // each, rows, count)]
    for piece in pieces(rows) or [rows]:
        keep(_table(part, run, piece))
    filtered = sum(winners.filtered for winners in found)
    illegal = by_reason(np.sum([winners.illegal for winners in found], axis=0))
    beaten = part.stop - part.start - len(rows) - filtered - sum(illegal.values())
    name = part.machine.name
    shard = Shard(name, part.start, part.stop, len(rows), filtered, illegal, beaten)
    evaluated = sum(winners.close for winners in found)
    return Written(shard, evaluated=evaluated, bounded=len(rows) + beaten - evaluated)


def compare(columns: Mapping[str, "pa.Array"], part: Part, run: Spec) -> Best:
    """What of a table's rows a summary may show."""
    varying = [name for axis in run.axes if len(axis) > 1 for name in axis.names]
    problem = [name for name in varying if name in PROBLEM_COLUMNS or name not in COLUMNS]
    keys = ("hardware", *problem, *(override.name for override in run.overrides))
    numbers = {
        name: tables.numbers(columns[name], part.words.get(name, ()))
        for name in (*keys, "time_us", "tflops")
    }
    return best_of(numbers, keys, 1 if len(keys) > 1 else FEW, partial(tables.rows, columns))


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sums by reason, in the order of `REASONS`."""
    sums = sum(map(Counter, counts), Counter())
    return {reason: sums[reason] for reason in REASONS if sums[reason]}
