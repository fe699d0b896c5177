"""One shard of a sweep: its rows predicted and written, all of them or each problem's best."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import numpy as np

from wsjax import distributions, given_columns, tables
from wsjax.axes import PROBLEM_COLUMNS
from wsjax.best import Best, best_of
from wsjax.blocks import (
    BLOCK_ROWS,
    Kept,
    Part,
    by_reason,
    legal_rows,
    pieces,
    predict_rows,
    predict_times,
)
from wsjax.board import best_of as best_rows
from wsjax.dataset import SHARD_KEY, Shard
from wsjax.limits import REASONS
from wsjax.space import COLUMNS, Product
from wsjax.spec import Spec, split

if TYPE_CHECKING:
    import pyarrow as pa


SHARD_ROWS_LEAST, SHARD_ROWS = 2**18, 2**20
"""Rows of a file: candidates, or, where only the best are kept, those."""
SHARD_CANDIDATES = 2**30
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


def _quantiles(part: Part, run: Spec, keep: Keep, advance: Advance) -> Written:
    """Each problem's distribution of times, where it has any legal row."""
    predicate = run.predicate()
    each = len(split(part.product)[1])
    tally, found = distributions.Tally(), []
    counts = Kept(np.zeros(0, np.int64), 0, np.zeros(len(REASONS), np.int64))
    problems = legal = 0

    def times(start: int) -> tuple[Kept, np.ndarray]:
        kept = legal_rows(part, predicate, start, min(start + BLOCK_ROWS, part.stop))
        return kept, predict_times(part, kept.numbers)

    def flush() -> None:
        nonlocal problems, found
        problems += len(found)
        names = given_columns.names_of(part)
        first = np.array([one.group * each for one in found], np.int64)
        given = given_columns.arrow_columns(part, names, first)
        keep(Table(given | distributions.columns(found), Best()))
        found = []

    for start, (kept, times_us) in in_order(times, range(part.start, part.stop, BLOCK_ROWS)):
        found += tally.add(kept.numbers // each, times_us)
        legal += len(kept.numbers)
        illegal = counts.illegal + kept.illegal
        counts = counts._replace(filtered=counts.filtered + kept.filtered, illegal=illegal)
        if len(found) >= BLOCK_ROWS:
            flush()
        advance(min(start + BLOCK_ROWS, part.stop) - start)
    found += tally.end()
    if found or not problems:
        flush()
    shard = Shard(
        part.machine.name,
        part.start,
        part.stop,
        problems,
        counts.filtered,
        by_reason(counts.illegal),
        legal - problems,
    )
    return Written(shard)


def _all(part: Part, run: Spec, keep: Keep, advance: Advance) -> Written:
    """All legal rows: some are predicted while others are written."""
    predicate = run.predicate()
    rows = filtered = 0
    illegal = np.zeros(len(REASONS), np.int64)

    def blocks() -> Iterator[np.ndarray]:
        nonlocal rows, filtered, illegal
        for start in range(part.start, part.stop, BLOCK_ROWS):
            kept = legal_rows(part, predicate, start, min(start + BLOCK_ROWS, part.stop))
            rows, filtered = rows + len(kept.numbers), filtered + kept.filtered
            illegal = illegal + kept.illegal
            yield kept.numbers

    done = part.start
    for numbers, table in in_order(partial(_table, part, run), filled(blocks(), BLOCK_ROWS)):
        keep(table)
        if len(numbers):
            advance(int(numbers[-1]) + 1 - done)
            done = int(numbers[-1]) + 1
    advance(part.stop - done)
    name, counts = part.machine.name, by_reason(illegal)
    return Written(Shard(name, part.start, part.stop, rows, filtered, counts))


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
    from wsjax.winners import Contest

    count, times_us = run.output.best, partial(predict_times, part)
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
