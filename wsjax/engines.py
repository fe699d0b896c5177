"""Who makes a sweep's files: this process, one after the other, or a cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec

from wsjax import shards, tables
from wsjax.best import Best
from wsjax.errors import InputError, nearest
from wsjax.layout import Piece, folder_columns
from wsjax.spec import Spec
from wsjax.stores import Store

ENGINES = ("local", "ray")
Make = Callable[[Piece, Best, shards.Advance], tuple[shards.Written, Best]]


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
) -> Iterator[Make]:
    """A function that makes a piece's file, and says what `best` is with its rows.

    todo: the pieces that it will be asked for first, in this order.
    """
    if name == "local":

        def write(piece: Piece, best: Best, advance: shards.Advance):
            file = place.replacing(piece.name)
            return shards.write(file, texts, piece.part, run, best, advance), best

        yield write
        return
    from wsjax.clusters import on_ray

    with on_ray(place, texts, todo, address) as wait:

        def take(piece: Piece, best: Best, advance: shards.Advance):
            written = wait(piece)
            try:
                best = read(best, piece, place, run)
            except (InputError, OSError):
                raise InputError(
                    f"{place.shown(piece.name)}: a worker wrote it, but it is not here; give --out "
                    "a directory that all machines share, or a URI such as s3://bucket/path"
                ) from None
            advance(piece.part.stop - piece.part.start)
            return written, best

        yield take


def read(best: Best, piece: Piece, place: Store, run: Spec) -> Best:
    """`best` with a file's rows; InputError if they can't be read."""
    best = deepcopy(best)
    name, part = piece
    for columns in tables.read_batches(place.source(name)):
        if run.output.quantiles:
            continue
        rows = len(columns["time_us"])
        folders = folder_columns(part, run.output.partition_by, rows)
        shards.compare(best, columns | folders, part)
    return best
