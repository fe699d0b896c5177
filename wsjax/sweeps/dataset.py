"""A sweep's directory: Parquet shards and nothing else, valid at every instant.

A shard appears whole, by renaming, or when its upload ends. Its metadata says which sweep it
belongs to and, under `wsjax.shard`, which of its candidate rows it stands for: so a directory
alone tells what is done, and who repeats the command with the same texts makes what is missing or
damaged. Its pages have checksums, and its metadata one of its schema and of themselves.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wsjax import tables
from wsjax.errors import InputError
from wsjax.schema import REASONS
from wsjax.spec import Spec
from wsjax.sweeps.layout import folder_columns, run_of, shard_of
from wsjax.tables import Store, existing, store

if TYPE_CHECKING:
    import pyarrow.dataset as ds

SHARD_KEY = "wsjax.shard"
ROWS_KEY = "wsjax.shard_rows"
SHARD = re.compile(r"(?:.*/)?part-(\d{5,})\.parquet")
TEMPORARY = re.compile(r"(?:.*/)?\.part-\d{5,}\.parquet(?:\.[0-9a-f-]+)?\.tmp")
PARQUET = b"PAR1"
READERS = 16
"""Files whose footers are read at once."""
WORDS = {
    "wsjax.name": "it has another name",
    "wsjax.spec": "the sweep file has changed",
    "wsjax.hardware": "a hardware file has changed",
    "wsjax.version": "another version of wsjax wrote it",
    "wsjax.schema_version": "its tables have other columns",
    ROWS_KEY: "of files with another number of rows",
}
TEXTS = {"wsjax.name", "wsjax.spec", "wsjax.hardware"}
"""What a directory's own files say of its sweep, so that they suffice to go on with it."""
MEND = "choose another --out, or delete it"


class Record(NamedTuple):
    """What a shard's metadata say that it stands for.

    hardware: the machine's name. start, stop: its candidate rows there. rows: how many of them were
    written. filtered: how many the filter dropped. illegal: how many are illegal, by reason.
    beaten: how many legal ones are not among the best of their problem, where only those are kept.
    """

    hardware: str
    start: int
    stop: int
    rows: int
    filtered: int
    illegal: dict[str, int]
    beaten: int = 0

    def text(self) -> str:
        """As the metadata hold it."""
        return json.dumps(self._asdict(), ensure_ascii=False)


def open(directory: str | Path) -> "ds.Dataset":
    """The table that a sweep wrote into a directory, as a `pyarrow.dataset.Dataset`.

    directory: a path, or a URI such as `s3://bucket/path`. Nothing is read but the ends of files:
    `.to_table(columns=[…], filter=…)` reads, and DuckDB and Polars (`scan_pyarrow_dataset`) query
    it. Columns that folders stand for (`[output] partition_by`) are the last.

    Raises InputError for a directory that no sweep wrote, or that is not whole: it says which files
    or rows are missing.
    """
    if not isinstance(directory, str | Path):
        raise InputError(f"a sweep's directory is a path, not {type(directory).__name__}")
    place = store(directory)
    if place.local and not existing(place.local).is_dir():
        raise InputError(f"{place}: is a file; give the directory of a sweep")
    texts = {key: text for key, text in described(place).items() if key != SHARD_KEY}
    if not texts:
        raise InputError(f"{place}: no sweep wrote this directory; give one that `sweep` made")
    run = run_of(texts, str(place))
    ends = _footers(place, shard_names(place.names()))
    records = {name: _read(place, name, footer, texts) for name, footer in ends.items()}
    damaged = [
        f"{name} is damaged{'' if _is_ours(place, name, ends[name]) else ' (move it away first)'}"
        for name, record in records.items()
        if record is None
    ]
    if problems := [*damaged, *missing_rows(run, filter(None, records.values()))]:
        mend = f"wsjax sweep {place} --out {place} makes what is missing"
        raise InputError(f"{place}: not whole: {'; '.join(problems)}; {mend}")
    folders = folder_columns(shard_of(run, run.hardware[0], 0, 1), run.output.partition_by)
    files = [f"{place.path}/{name}" for name in records]
    return tables.parquet_dataset(files, place.system, place.path, folders)


def missing_rows(run: Spec, records: Iterable[Record]) -> list[str]:
    """The rows of each machine that no file stands for, in words."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for record in records:
        spans[record.hardware].append((record.start, record.stop))
    missing = []
    for machine in run.hardware:
        end, count = 0, len(run.product(machine))
        for start, stop in [*sorted(spans[machine.name]), (count, count)]:
            if start > end:
                missing.append(f"rows {end:,} to {start - 1:,} on {machine.name} are missing")
            end = max(end, stop)
    return missing


@contextmanager
def open_dataset(
    store: Store, texts: Mapping[str, str], names: Sequence[str]
) -> Iterator[dict[str, Record | None]]:
    """Make or resume the directory of the sweep that `texts` describe, whose shards are to have
    these names -> the records of those that are there, None if damaged; no one else may meanwhile.

    Raises InputError for a directory of another sweep, or with files that no sweep wrote.
    """
    with store.held():
        yield _records(store, texts, names)
        _tidy(store, store.names())


def shard_names(names: Iterable[str]) -> list[str]:
    """Those of a directory's names that are shards', in their order."""
    numbered = [(int(match[1]), name) for name in names if (match := SHARD.fullmatch(name))]
    return [name for _, name in sorted(numbered)]


def described(store: Store) -> Mapping[str, str]:
    """The texts of a directory's first sound shard; none if there is no such shard."""
    for name in shard_names(store.names()):
        footer = tables.read_footer(store.source(name))
        if footer is not None and "wsjax.spec" in footer.texts:
            return footer.texts
    return {}


def _footers(store: Store, names: Sequence[str]) -> dict[str, tables.Footer | None]:
    """The footers of files; None for one that has none."""
    with ThreadPoolExecutor(READERS) as pool:
        footers = pool.map(lambda name: tables.read_footer(store.source(name)), names)
        return dict(zip(names, footers, strict=True))


def _records(
    store: Store, texts: Mapping[str, str], names: Sequence[str]
) -> dict[str, Record | None]:
    """The shards in a directory; InputError if anything else is there."""
    there = store.names()
    footers = _footers(store, shard_names(there))
    left = [name for name in there if TEMPORARY.fullmatch(name)]
    foreign = [
        name
        for name in there
        if name not in left and not (name in footers and _is_ours(store, name, footers[name]))
    ]
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise InputError(
            f"{store}: holds files that no sweep wrote: {', '.join(foreign[:3])}{more}; "
            "choose another --out, or move them away"
        )
    records = {name: _read(store, name, footer, texts) for name, footer in footers.items()}
    if odd := sorted(records.keys() - {*names}):
        whose = {name.rpartition("/")[2]: name for name in names}
        if right := whose.get(odd[0].rpartition("/")[2]):
            raise InputError(
                f"{store.shown(odd[0])}: lies in the wrong folder; move it to {right}, or delete it"
            )
        raise InputError(
            f"{store.shown(odd[0])}: is no shard of this sweep, which ends with {names[-1]}; {MEND}"
        )
    _tidy(store, left)
    return records


def _tidy(store: Store, names: Iterable[str]) -> None:
    """Remove what writers that were killed have left."""
    for name in names:
        if TEMPORARY.fullmatch(name):
            store.remove(name)


def _is_ours(store: Store, name: str, footer: tables.Footer | None) -> bool:
    """Whether a sweep wrote a file, as far as one can tell when it is damaged."""
    if footer is not None:
        return "wsjax.spec" in footer.texts
    start = store.start(name, len(PARQUET))
    return start in (PARQUET, b"", b"\0" * len(PARQUET))


def _read(
    store: Store, name: str, footer: tables.Footer | None, texts: Mapping[str, str]
) -> Record | None:
    """What a file stands for, None if it is damaged; InputError if it is another sweep's."""
    if footer is None:
        return None
    held = {key: text for key, text in footer.texts.items() if key != SHARD_KEY}
    differing = [key for key in {**texts, **held} if held.get(key) != texts.get(key)]
    if differing == [ROWS_KEY]:
        raise InputError(
            f"{store}: its files have another number of rows; leave --shard-rows out to go on with "
            "it, or choose another --out"
        )
    if differing:
        why = " and ".join(WORDS.get(key, f"{key} differs") for key in differing)
        again = f"; to go on with that one: wsjax sweep {store} --out {store}"
        raise InputError(
            f"{store.shown(name)}: belongs to another sweep ({why}); {MEND}"
            f"{again if {*differing} <= TEXTS else ''}"
        )
    record = _parse(footer.texts.get(SHARD_KEY, "")) if footer.proved else None
    return record if record is not None and record.rows == footer.rows else None


def _parse(text: str) -> Record | None:
    """A `Record` from its text, if that is one whose counts add up."""
    try:
        record = Record(**json.loads(text))
        kinds = [record.rows, record.filtered, record.beaten, *record.illegal.values()]
        counts = [record.start, record.stop, *kinds]
    except (ValueError, TypeError, AttributeError):
        return None
    counted = all(type(count) is int and count >= 0 for count in counts)
    known = set(record.illegal) <= set(REASONS)
    return record if counted and known and sum(kinds) == record.stop - record.start else None
