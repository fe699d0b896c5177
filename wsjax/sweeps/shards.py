"""One shard of a sweep: its rows predicted and written, all of them, each problem's best, or how
each problem's times are distributed."""

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import numpy as np

from wsjax import engine, tables
from wsjax.errors import InputError
from wsjax.schema import REASONS
from wsjax.spec import Predicate, Spec, split
from wsjax.sweeps import quantiles, topk
from wsjax.sweeps.dataset import SHARD_KEY, Record
from wsjax.sweeps.layout import USUAL_ROWS, ShardRows, folder_columns
from wsjax.sweeps.rows import (
    CHUNK_ROWS,
    Shard,
    by_reason,
    given_columns,
    given_names,
    legal_rows,
    predict_rows,
)
from wsjax.sweeps.summary import Highlights, highlights_of
from wsjax.tables import Store

if TYPE_CHECKING:
    import pyarrow as pa

Advance = Callable[[int], None]
Keep = Callable[[Mapping[str, "pa.Array"]], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sizes:
    """How much of a sweep is done at once; the defaults serve but tests.

    chunk_rows: rows that are predicted, and held in memory, at once. threads: so many chunks are
    predicted, or searched for best rows, while another is written. files: so many are made at once.
    many: so many candidates are worth a word before the work begins. shard_rows: rows of a file.
    best: of the search for best rows; None: the device's.
    """

    chunk_rows: int = CHUNK_ROWS
    threads: int = min(os.cpu_count() or 2, 4)
    files: int = min(os.cpu_count() or 2, 8)
    many: int = 10**9
    shard_rows: ShardRows = USUAL_ROWS
    best: topk.Sizes | None = None


USUAL = Sizes()


class Written(NamedTuple):
    """A shard that is done: its record, and what a summary may show of it; and, where only the best
    rows are kept, of how many legal ones the time was looked at, and how many others a bound alone
    ruled out."""

    record: Record
    highlights: Highlights = Highlights()
    evaluated: int = 0
    bounded: int = 0


def write(
    place: AbstractContextManager[BinaryIO],
    texts: Mapping[str, str],
    shard: Shard,
    run: Spec,
    sizes: Sizes,
    advance: Advance,
) -> Written:
    """Write the rows of a shard that are to be kept, to what `place` gives.

    advance(n): n more candidates are done.
    """
    folders, highlights = run.output.partition_by, Highlights()
    with tables.shard_writer(place, texts) as (add, note):

        def keep(columns: Mapping[str, "pa.Array"]) -> None:
            nonlocal highlights
            add({name: column for name, column in columns.items() if name not in folders})
            if not run.output.quantiles:
                highlights = highlights.followed_by(highlights_of(columns, shard, run))

        kind = _quantiles if run.output.quantiles else _all if run.output.best is None else _best
        written = kind(shard, run, sizes, keep, advance)
        note(SHARD_KEY, written.record.text())
    return written._replace(highlights=highlights)


def finished(
    place: Store,
    records: Mapping[str, Record | None],
    shards: Iterable[Shard],
    run: Spec,
    sizes: Sizes,
) -> Generator[tuple[Shard, Written | None]]:
    """The shards that are there; None for one that is damaged: every page is read."""

    def read(shard: Shard) -> Written | None:
        record, highlights = records[shard.name], Highlights()
        if record is None or record[:3] != (shard.machine.name, shard.start, shard.stop):
            return None
        try:
            for columns in tables.read_batches(place.source(shard.name)):
                if run.output.quantiles:
                    continue
                rows = len(next(iter(columns.values())))
                folders = folder_columns(shard, run.output.partition_by, rows)
                highlights = highlights.followed_by(highlights_of(columns | folders, shard, run))
        except InputError:
            return None
        return Written(record, highlights)

    there = (shard for shard in shards if shard.name in records)
    return in_order(read, there, sizes.threads)


def ahead(
    start: Callable[[Item], Callable[[], Result]],
    items: Iterable[Item],
    most: Callable[[], int],
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in order, while up to `most()` others are started ahead.

    start(item): starts the work -> a function that waits for its result.
    """
    started: deque[tuple[Item, Callable[[], Result]]] = deque()
    for item in items:
        started.append((item, start(item)))
        if len(started) > most():
            first, wait = started.popleft()
            yield first, wait()
    while started:
        first, wait = started.popleft()
        yield first, wait()


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[tuple[Item, Result]]:
    """Each item with the function's result, which other threads find a few items ahead."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield from ahead(lambda item: pool.submit(function, item).result, items, lambda: threads)
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass
class _Tally:
    """A shard's candidates, looked at in order: how many were legal, filtered, or illegal, by code
    of the reason; and how far the work on the legal ones has come."""

    shard: Shard
    predicate: Predicate | None
    legal: int = 0
    filtered: int = 0
    illegal: np.ndarray = field(default_factory=lambda: np.zeros(len(REASONS), np.int64))
    done: int = 0

    def chunks(self, rows: int) -> Iterator[np.ndarray]:
        """The numbers of legal rows, so many at a time; at least one chunk, if empty."""
        return filled(self._legal(rows), rows)

    def _legal(self, rows: int) -> Iterator[np.ndarray]:
        for start in range(self.shard.start, self.shard.stop, rows):
            stop = min(start + rows, self.shard.stop)
            legal = legal_rows(self.shard, self.predicate, start, stop)
            self.legal += len(legal.numbers)
            self.filtered += legal.filtered
            self.illegal = self.illegal + legal.illegal
            yield legal.numbers

    def behind(self, numbers: np.ndarray) -> int:
        """How many candidates are done with these rows, which come next."""
        before = self.done
        self.done = int(numbers[-1]) + 1 - self.shard.start if len(numbers) else before
        return self.done - before

    def record(self, rows: int) -> Record:
        """All of them, of whom so many `rows` are kept."""
        name, start, stop = self.shard.machine.name, self.shard.start, self.shard.stop
        illegal = by_reason(self.illegal)
        return Record(name, start, stop, rows, self.filtered, illegal, self.legal - rows)


def filled(chunks: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The same numbers in chunks of `size`, the last shorter; at least one, if empty."""
    held: list[np.ndarray] = []
    count, first = 0, True
    for chunk in chunks:
        held, count = [*held, chunk], count + len(chunk)
        while count >= size:
            joined = np.concatenate(held)
            yield joined[:size]
            held, count, first = [joined[size:]], count - size, False
    if count or first:
        yield np.concatenate(held)


def _predicted(shard: Shard, run: Spec, numbers: np.ndarray) -> dict[str, "pa.Array"]:
    """Legal rows as all files of the sweep hold them, whatever machine has intervals."""
    columns = predict_rows(shard, numbers)
    if any(machine.spread for machine in run.hardware):
        return tables.with_interval(columns)
    return columns


def _all(shard: Shard, run: Spec, sizes: Sizes, keep: Keep, advance: Advance) -> Written:
    """All legal rows: some are predicted while others are written."""
    tally = _Tally(shard, run.predicate())
    predicted = partial(_predicted, shard, run)
    chunks = tally.chunks(sizes.chunk_rows)
    for numbers, columns in in_order(predicted, chunks, sizes.threads):
        keep(columns)
        advance(tally.behind(numbers))
    advance(shard.stop - shard.start - tally.done)
    return Written(tally.record(tally.legal))


def _quantiles(shard: Shard, run: Spec, sizes: Sizes, keep: Keep, advance: Advance) -> Written:
    """Each problem's distribution of times, where it has any legal row."""
    each, tally = len(split(shard.product)[1]), _Tally(shard, run.predicate())
    names, problems = given_names(shard), 0
    chunks = tally.chunks(sizes.chunk_rows * engine.widening())
    spreads = in_order(partial(quantiles.spread, shard.candidates, each), chunks, sizes.threads)

    def noted() -> Iterator[list[quantiles.Distribution]]:
        for numbers, some in spreads:
            yield some
            advance(tally.behind(numbers))

    for some in quantiles.by_group(noted(), sizes.chunk_rows):
        first = np.array([spread.group * each for spread in some], np.int64)
        keep(given_columns(shard, names, first) | quantiles.columns(some))
        problems += len(some)
    advance(shard.stop - shard.start - tally.done)
    return Written(tally.record(problems))


def _best(shard: Shard, run: Spec, sizes: Sizes, keep: Keep, advance: Advance) -> Written:
    """Each problem's best rows, by time, then by number."""
    count, times_us = run.output.best, partial(engine.times_of_rows, shard.candidates)
    assert count is not None
    search = topk.TopK(
        shard.candidates, count, run.predicate(), times_us, sizes.best or topk.usual()
    )
    each, results = len(search.inner), []
    chunks = search.chunks(shard.start // each, shard.stop // each)
    for chunk, best in in_order(search.best_of, chunks, sizes.threads):
        results.append(best)
        advance(len(chunk) * each)
    rows = np.concatenate([best.rows for best in results])
    rows = rows[topk.least_of(times_us(rows), rows // each, rows, count)]
    for start in range(0, max(len(rows), 1), sizes.chunk_rows):
        keep(_predicted(shard, run, rows[start : start + sizes.chunk_rows]))
    filtered = sum(best.filtered for best in results)
    illegal = by_reason(np.sum([best.illegal for best in results], axis=0))
    beaten = shard.stop - shard.start - len(rows) - filtered - sum(illegal.values())
    record = Record(
        shard.machine.name, shard.start, shard.stop, len(rows), filtered, illegal, beaten
    )
    evaluated = sum(best.bracketed for best in results)
    return Written(record, Highlights(), evaluated, len(rows) + beaten - evaluated)


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sums by reason, in the order of `REASONS`."""
    sums = sum(map(Counter, counts), Counter())
    return {reason: sums[reason] for reason in REASONS if sums[reason]}
