"""Sweeps: a sweep file's rows, predicted a chunk at a time and written shard by shard.

Rows come machine by machine, in the product's order. Those that the filter drops and those that
are illegal are counted, not written. Memory holds a few chunks, however many rows there are.
"""

import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from wsjax import tables
from wsjax.errors import InputError
from wsjax.spec import Spec, load_spec
from wsjax.sweeps import engines, shards
from wsjax.sweeps.dataset import ROWS_KEY, described, open_dataset
from wsjax.sweeps.layout import SHARD_ROWS_MAX, layout, run_of
from wsjax.sweeps.shards import USUAL, Sizes, Written
from wsjax.sweeps.summary import Highlights, Leader
from wsjax.tables import Store, existing, parent, public, store

Progress = Callable[[int, int], None]


class Summary(NamedTuple):
    """What a sweep did: `candidates` = `rows` + `filtered` + the sum of `illegal` + `beaten`.

    directory: where the files are; a URI without its keys. candidates: rows of the product, on all
    machines. rows: rows written. filtered: rows that the filter dropped. illegal: illegal rows, by
    reason. beaten: legal rows that are not among the best, where only those are kept. shards:
    files. resumed: how many of them were found done. evaluated, bounded: where only the best are
    kept, legal rows whose times this run looked at, and others, which a bound alone ruled out.
    best: the fastest row of each of a few problems (and machines) spread over the sweep, or the few
    fastest times if there is but one problem, each with how many written rows of the problem have
    that time. fastest: the row of most TFLOP/s of all.
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
    sizes: Sizes = USUAL,
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
    `wsjax.sweeps.engines`). `progress(done, candidates)` is called after every chunk. sizes: how
    much is done at once; the defaults are right but for tests.

    Raises InputError for mistakes in the files, and for a directory that holds anything else.
    """
    engines.check_engine(engine, address)
    run = spec if isinstance(spec, Spec) else load_run(spec)
    where = output_directory(run, out)
    place = store(where)
    rows = _shard_rows(shard_rows, place)
    texts = tables.metadata(run.hardware, name=run.name, spec=run.text)
    texts |= {ROWS_KEY: str(rows)} if rows else {}
    files = layout(run, rows, sizes.shard_rows)
    candidates = sum(shard.stop - shard.start for shard in files)
    if candidates > sizes.many and run.output.best is None and not run.output.quantiles:
        warnings.warn(
            f"{candidates:,} candidates: {len(files):,} files in {place}; "
            'a [filter] drops rows, fewer values save the time, [output] keep = "best" both',
            stacklevel=2,
        )
    done, lock = 0, Lock()

    def advance(rows: int) -> None:
        nonlocal done
        with lock:
            done += rows
            if progress is not None:
                progress(done, candidates)

    written: dict[str, Written] = {}
    with open_dataset(place, texts, [shard.name for shard in files]) as records:
        with closing(shards.finished(place, records, files, run, sizes)) as there:
            for shard, result in there:
                if result is None:
                    name = place.shown(shard.name)
                    warnings.warn(f"{name}: is damaged; it is made again", stacklevel=2)
                else:
                    written[shard.name] = result
                    advance(shard.stop - shard.start)
        resumed = len(written)
        todo = [shard for shard in files if shard.name not in written]
        work = engines.Work(place, texts, run, todo, sizes, advance)
        with closing(engines.make(engine, address, work)) as made:
            written |= {shard.name: result for shard, result in made}
    return _summary(place.local or str(place), [written[shard.name] for shard in files], resumed)


def _summary(directory: Path | str, written: list[Written], resumed: int) -> Summary:
    highlights, records = Highlights(), [shard.record for shard in written]
    for shard in written:
        highlights = highlights.followed_by(shard.highlights)
    fastest = highlights.fastest
    return Summary(
        directory=directory,
        candidates=sum(record.stop - record.start for record in records),
        rows=sum(record.rows for record in records),
        filtered=sum(record.filtered for record in records),
        illegal=shards.total(record.illegal for record in records),
        beaten=sum(record.beaten for record in records),
        shards=len(records),
        resumed=resumed,
        evaluated=sum(shard.evaluated for shard in written),
        bounded=sum(shard.bounded for shard in written),
        best=highlights.leaders(),
        fastest=fastest,
    )


def output_directory(run: Spec, out: str | Path | None = None) -> Path | str:
    """Where a sweep's files go: a directory, or a URI."""
    if out is None:
        return Path("results") / run.name
    place = store(out)
    return place.local or place.uri


def load_run(source: str | Path) -> Spec:
    """A sweep from its file, or from the metadata of a table that it wrote, or of its directory."""
    if not isinstance(source, str | Path):
        raise InputError(f"a sweep is a file's name or a Spec, not {type(source).__name__}")
    place = store(source)
    texts = described(place)
    folder, name = parent(place)
    if not texts and name.endswith(".parquet"):
        if folder.local:
            existing(folder.local / name)
        footer = tables.read_footer(folder.source(name))
        if footer is None:
            raise InputError(f"{public(source)}: cannot be read as Parquet; copy or write it again")
        texts = footer.texts
    elif not texts and place.local:
        return load_spec(place.local)
    return run_of(texts, public(source))


def _shard_rows(given: int | None, place: Store) -> int | None:
    """Rows of a file: as they are given, else as the directory has them; None: the default."""
    if given is not None and not (type(given) is int and 1 <= given <= SHARD_ROWS_MAX):
        raise InputError(
            f"--shard-rows: expected a whole number from 1 to {SHARD_ROWS_MAX:,}, not {given!r}"
        )
    known = described(place).get(ROWS_KEY, "") if given is None else ""
    return int(known) if known.isdecimal() else given
