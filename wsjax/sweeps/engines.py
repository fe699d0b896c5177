"""Who makes a sweep's files: this process, several at a time, or a cluster."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from threading import Event

from wsjax import tables
from wsjax.errors import InputError, nearest
from wsjax.spec import Spec
from wsjax.sweeps import shards
from wsjax.sweeps.layout import Piece, folder_columns
from wsjax.sweeps.summary import Best
from wsjax.tables import Store

ENGINES = ("local", "ray")
Make = Callable[[Piece], shards.Written]
FILES = min(os.cpu_count() or 2, 8)
"""So many are made at once."""


def check_engine(engine: str, address: str | None) -> None:
    """Raise InputError for an engine that is none or not installed, or an address that none
    needs."""
    if engine not in ENGINES:
        raise InputError(f"--engine: unknown word '{engine}'{nearest(engine, ENGINES)}")
    if address is not None and engine != "ray":
        raise InputError("--address: only with --engine ray; leave one out or add the other")
    if engine == "ray" and find_spec("ray") is None:
        raise InputError("--engine ray: ray is not installed; pip install 'wsjax[ray]'")


@contextmanager
def engine(
    name: str,
    address: str | None,
    place: Store,
    texts: Mapping[str, str],
    run: Spec,
    todo: Sequence[Piece],
    advance: shards.Advance,
) -> Iterator[Make]:
    """A function that makes a piece's file.

    todo: the pieces that it will be asked for first, in this order; others may follow.
    advance(n): n more candidates are done.
    """
    if name == "local":
        with _local(place, texts, run, todo, advance) as take:
            yield take
        return
    from wsjax.sweeps.clusters import on_ray

    with on_ray(place, texts, todo, address) as wait:

        def wait_for(piece: Piece) -> shards.Written:
            written = wait(piece)
            if tables.read_footer(place.source(piece.name)) is None:
                raise InputError(
                    f"{place.shown(piece.name)}: a worker wrote it, but it is not here; give --out "
                    "a directory that all machines share, or a URI such as s3://bucket/path"
                )
            advance(piece.part.stop - piece.part.start)
            return written

        yield wait_for


@contextmanager
def _local(
    place: Store,
    texts: Mapping[str, str],
    run: Spec,
    todo: Sequence[Piece],
    advance: shards.Advance,
) -> Iterator[Make]:
    """Files of all rows are made several at a time: one thread can't write as fast as others
    predict."""
    alone = run.output.best is not None or run.output.quantiles
    at_once = 1 if alone else FILES
    waiting, given, stopped = iter(todo), {}, Event()

    def going_on(rows: int) -> None:
        if stopped.is_set():
            raise CancelledError
        advance(rows)

    def write(piece: Piece) -> shards.Written:
        file = place.replacing(piece.name)
        return shards.write(file, texts, piece.part, run, going_on)

    with ThreadPoolExecutor(at_once) as pool:

        def take(piece: Piece) -> shards.Written:
            next_ones = islice(waiting, at_once + 1 - len(given))
            given.update({one.name: pool.submit(write, one) for one in next_ones})
            made = given.pop(piece.name, None) or pool.submit(write, piece)
            return made.result()

        try:
            yield take
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


def read(piece: Piece, place: Store, run: Spec) -> Best:
    """The best of a file's rows; InputError if they can't be read."""
    best, (name, part) = Best(), piece
    for columns in tables.read_batches(place.source(name)):
        if run.output.quantiles:
            continue
        rows = len(columns["time_us"])
        folders = folder_columns(part, run.output.partition_by, rows)
        best = best.followed_by(shards.compare(columns | folders, part, run))
    return best
