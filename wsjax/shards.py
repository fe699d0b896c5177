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
from wsjax.best import Best
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
from wsjax.board import best_of
from wsjax.dataset import SHARD_KEY, Shard
from wsjax.limits import REASONS
from wsjax.space import Product
from wsjax.spec import Spec, split
from wsjax.where import Predicate

if TYPE_CHECKING:
    import pyarrow as pa


SHARD_ROWS = 2**20
"""Rows of a file: candidates, or, where only the best are kept, those."""
SHARD_CANDIDATES = 2**30
"""Candidates of a file of best rows, at most, if one problem has not more."""
WORKERS = min(os.cpu_count() or 2, 4)
"""Threads that predict, or seek winners, while rows are written."""

Advance = Callable[[int], None]


class Written(NamedTuple):
    """A new shard; and, where only the best rows are kept, of how many legal ones the time was
    looked at, and how many others a bound alone ruled out."""

    shard: Shard
    evaluated: int = 0
    bounded: int = 0


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
    best: Best | None,
    advance: Advance,
) -> Written:
    """Write the rows of a part that are to be kept, to what `place` gives.

    `best` sees them; advance(n): n more candidates are done.
    """
    predicate = run.predicate()
    folders = run.output.partition_by
    with tables.shard_writer(place, texts) as (add, note):

        def keep(columns: Mapping[str, "pa.Array"]) -> None:
            if any(machine.spread for machine in run.hardware) and not run.output.quantiles:
                columns = tables.with_interval(columns)
            add({name: column for name, column in columns.items() if name not in folders})
            if best is not None and not run.output.quantiles:
                compare(best, columns, part)

        if run.output.quantiles:
            written = _quantiles(part, predicate, keep, advance)
        elif run.output.best is None:
            written = _all(part, predicate, keep, advance)
        else:
            written = _best(part, run.output.best, predicate, keep, advance)
        note(SHARD_KEY, written.shard.text())
    return written


def _quantiles(
    part: Part,
    predicate: Predicate | None,
    keep: Callable[[Mapping[str, "pa.Array"]], None],
    advance: Advance,
) -> Written:
    """Each problem's distribution of times, where it has any legal row."""
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
        keep(given | distributions.columns(found))
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


def _all(
    part: Part,
    predicate: Predicate | None,
    keep: Callable[[Mapping[str, "pa.Array"]], None],
    advance: Advance,
) -> Written:
    """All legal rows: some are predicted while others are written."""
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
    for numbers, columns in in_order(partial(predict_rows, part), filled(blocks(), BLOCK_ROWS)):
        keep(columns)
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


def _best(
    part: Part,
    count: int,
    predicate: Predicate | None,
    keep: Callable[[Mapping[str, "pa.Array"]], None],
    advance: Advance,
) -> Written:
    """Each problem's `count` best rows, by time, then by number."""
    from wsjax.winners import Contest

    times_us = partial(predict_times, part)
    contest = Contest(part.source, count, predicate, times_us)
    each = len(contest.inner)
    found = []
    chunks = contest.chunks(part.start // each, part.stop // each)
    for chunk, winners in in_order(contest.winners, chunks):
        found.append(winners)
        advance(len(chunk) * each)
    rows = np.concatenate([winners.rows for winners in found])
    rows = rows[best_of(times_us(rows), rows // each, rows, count)]
    for piece in pieces(rows) or [rows]:
        keep(predict_rows(part, piece))
    filtered = sum(winners.filtered for winners in found)
    illegal = by_reason(np.sum([winners.illegal for winners in found], axis=0))
    beaten = part.stop - part.start - len(rows) - filtered - sum(illegal.values())
    name = part.machine.name
    shard = Shard(name, part.start, part.stop, len(rows), filtered, illegal, beaten)
    evaluated = sum(winners.close for winners in found)
    return Written(shard, evaluated, len(rows) + beaten - evaluated)


def compare(best: Best, columns: Mapping[str, "pa.Array"], part: Part) -> None:
    """Let a table's rows compete for the summary's best."""
    numbers = {
        name: tables.numbers(columns[name], part.words.get(name, ()))
        for name in (*best.keys, "time_us", "tflops")
    }
    best.update(numbers, partial(tables.row, columns))


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sums by reason, in the order of `REASONS`."""
    sums = sum(map(Counter, counts), Counter())
    return {reason: sums[reason] for reason in REASONS if sums[reason]}
