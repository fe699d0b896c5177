"""Sweeps: a sweep file's rows, predicted a block at a time and written shard by shard.

Rows come machine by machine, in the product's order. Those that the filter drops and those that
are illegal are counted, not written. Memory holds a few blocks, however many rows there are.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from wsjax import schema, tables
from wsjax.errors import InputError
from wsjax.spec import Spec, load_spec
from wsjax.sweeps import engines, shards
from wsjax.sweeps.dataset import ROWS_KEY, Dataset, described, open_dataset
from wsjax.sweeps.layout import SHARD_ROWS_MAX, Piece, layout, run_of
from wsjax.sweeps.summary import Best, Leader
from wsjax.tables import Folder, Store, existing, parent, public, store

MANY = 10**9
"""So many candidates are worth a word before the work begins."""
Progress = Callable[[int, int], None]


class Summary(NamedTuple):
    """What a sweep did: `candidates` = `rows` written + `filtered` + the sum of `illegal` +
    `beaten`: the legal rows that are not among the best, where only those are kept.

    `shards`, and how many of them were `resumed`: found done. Where only the best are kept,
    `evaluated`: legal rows whose times this run looked at, `bounded`: others, which a bound alone
    ruled out.
    `best`: the fastest row of each of a few problems (and machines) spread over the sweep, or the
    few fastest times if there is but one problem, each with how many written rows of the problem
    have that time; `fastest`: the row of most TFLOP/s of all.
    """

    directory: Path | str
    candidates: int
    rows: int
    filtered: int
    illegal: dict[str, int]
    beaten: int
    shards: int
    resumed: int
    evaluated: int
    bounded: int
    best: list[Leader]
    fastest: dict[str, Any] | None


def sweep(
    spec: str | Path | Spec,
    out: str | Path | None = None,
    *,
    shard_rows: int | None = None,
    engine: str = "local",
    address: str | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Predict all rows of a sweep into a directory of Parquet files, `results/<name>` by default.

    spec: a sweep file (see `wsjax.spec`), or a Parquet file that a sweep wrote, or its directory:
    its metadata repeats the sweep, whatever has become of the files it was made from.

    out: a directory, or a place in an object store (`s3://bucket/path`, `gs://bucket/path`), where
    nothing keeps two sweeps apart: they write the same bytes. A directory that holds a part of the
    same sweep is completed; the result is the same, byte for byte.

    shard_rows: rows of a file (of the best, where only these are kept), and of the work that one
    interruption loses; default: as the directory has them, or a quarter of a machine's candidates,
    from 262,144 to 1,048,576. engine: `local`, or `ray`: on the cluster at `address` (see
    `wsjax.clusters`). `progress(done, candidates)` is called after every block.

    Raises InputError for mistakes in the files, and for a directory that holds anything else.
    """
    engines.check_engine(engine, address)
    run = spec if isinstance(spec, Spec) else load_run(spec)
    where = output_directory(run, out)
    place = store(where)
    rows = _shard_rows(shard_rows, place)
    texts = tables.metadata(run.hardware, name=run.name, spec=run.text)
    texts |= {ROWS_KEY: str(rows)} if rows else {}
    pieces = layout(run, rows)
    candidates = sum(part.stop - part.start for _, part in pieces)
    if candidates > MANY and run.output.best is None and not run.output.quantiles:
        warnings.warn(
            f"{candidates:,} candidates: {len(pieces):,} files in {place}; "
            'a [filter] drops rows, fewer values save the time, [output] keep = "best" both',
            stacklevel=2,
        )
    best, made = Best(), []
    done = resumed = evaluated = bounded = 0
    lock = Lock()

    def advance(rows: int) -> None:
        nonlocal done
        with lock:
            done += rows
            if progress is not None:
                progress(done, candidates)

    with open_dataset(place, texts, [piece.name for piece in pieces]) as dataset:
        found = {
            name: dataset.finished(name, part.machine.name, part.start, part.stop)
            for name, part in pieces
        }
        todo = [piece for piece in pieces if found[piece.name] is None]
        with engines.engine(engine, address, place, texts, run, todo, advance) as make:
            for piece in pieces:
                shard = found[piece.name]
                own = _read(piece, dataset, run) if shard else None
                if shard and own is not None:
                    written, resumed = shards.Written(shard, own), resumed + 1
                    advance(piece.part.stop - piece.part.start)
                else:
                    written = make(piece)
                made.append(written.shard)
                best = best.followed_by(written.best)
                evaluated, bounded = evaluated + written.evaluated, bounded + written.bounded
    if best.fastest is not None and best.fastest["time_us"] == 0:
        warnings.warn(f"{best.fastest['hardware']}: {schema.NEUTRAL}", stacklevel=2)
    return Summary(
        directory=where,
        candidates=candidates,
        rows=sum(shard.rows for shard in made),
        filtered=sum(shard.filtered for shard in made),
        illegal=shards.total(shard.illegal for shard in made),
        beaten=sum(shard.beaten for shard in made),
        shards=len(made),
        resumed=resumed,
        evaluated=evaluated,
        bounded=bounded,
        best=best.leaders(),
        fastest=best.fastest,
    )


def output_directory(run: Spec, out: str | Path | None = None) -> Path | str:
    """Where a sweep's files go: a directory, or a URI."""
    if out is None:
        return Path("results") / run.name
    place = store(out)
    return place.path if isinstance(place, Folder) else place.uri


def load_run(source: str | Path) -> Spec:
    """A sweep from its file, or from the metadata of a table that it wrote, or of its directory."""
    if not isinstance(source, str | Path):
        raise InputError(f"a sweep is a file's name or a Spec, not {type(source).__name__}")
    place = store(source)
    texts = described(place)
    folder, name = parent(place)
    if not texts and name.endswith(".parquet"):
        if isinstance(folder, Folder):
            existing(folder.path / name)
        footer = tables.read_footer(folder.source(name))
        if footer is None:
            raise InputError(f"{public(source)}: cannot be read as Parquet; copy or write it again")
        texts = footer.texts
    elif not texts and isinstance(place, Folder):
        return load_spec(place.path)
    return run_of(texts, public(source))


def _shard_rows(given: int | None, place: Store) -> int | None:
    """Rows of a file: as they are given, else as the directory has them; None: the default."""
    if given is not None and not (type(given) is int and 1 <= given <= SHARD_ROWS_MAX):
        raise InputError(
            f"--shard-rows: expected a whole number from 1 to {SHARD_ROWS_MAX:,}, not {given!r}"
        )
    own = described(place).get(ROWS_KEY, "") if given is None else ""
    return int(own) if own.isdecimal() else given


def _read(piece: Piece, dataset: Dataset, run: Spec) -> Best | None:
    """The best of a finished shard's rows; None, and a warning, if they can't be read."""
    try:
        return engines.read(piece, dataset.store, run)
    except InputError:
        dataset.warn(piece.name)
        return None
