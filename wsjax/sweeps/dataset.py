"""A sweep's directory: Parquet shards and nothing else, valid at every instant.

A shard appears whole, by renaming, or when its upload ends. Its metadata says which sweep it
belongs to and, under `wsjax.shard`, which of its candidate rows it stands for: so a directory
alone tells what is done, and who repeats the command with the same texts makes what is missing or
damaged.
"""

import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from wsjax import tables
from wsjax.errors import InputError
from wsjax.schema import REASONS
from wsjax.tables import Store

SHARD_KEY = "wsjax.shard"
ROWS_KEY = "wsjax.shard_rows"
SHARD = re.compile(r"(?:.*/)?part-(\d{5,})\.parquet")
TEMPORARY = re.compile(r"(?:.*/)?\.part-\d{5,}\.parquet(?:\.[0-9a-f]+)?\.tmp")
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


class Shard(NamedTuple):
    """What one file stands for: candidate rows `start` to `stop` on a machine, and how many of
    them were written, filtered away, illegal for each reason, and beaten: not among the best."""

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


@dataclass(frozen=True)
class Dataset:
    """An open directory; `shards`: the files that were there, by name, None if damaged."""

    store: Store
    shards: dict[str, Shard | None]

    def finished(self, name: str, hardware: str, start: int, stop: int) -> Shard | None:
        """The shard of that name if it was there and stands for these rows; a warning if it does
        not."""
        if name not in self.shards:
            return None
        shard = self.shards[name]
        if shard is not None and shard[:3] == (hardware, start, stop):
            return shard
        self.warn(name)
        return None

    def warn(self, name: str) -> None:
        """Say that a shard is there but can't be used."""
        warnings.warn(f"{self.store.shown(name)}: is damaged; it is made again", stacklevel=2)


@contextmanager
def open_dataset(store: Store, texts: Mapping[str, str], names: Sequence[str]) -> Iterator[Dataset]:
    """Make or resume the directory of the sweep that `texts` describe, whose shards are to have
    these names; no one else may meanwhile.

    Raises InputError for a directory of another sweep, or with files that no sweep wrote.
    """
    with store.held():
        yield Dataset(store, _shards(store, texts, names))
        _tidy(store, store.names())


def shard_names(names: Iterable[str]) -> list[str]:
    """Those of a directory's names that are shards', in their order."""
    found = [(int(match[1]), name) for name in names if (match := SHARD.fullmatch(name))]
    return [name for _, name in sorted(found)]


def footers(store: Store, names: Sequence[str]) -> dict[str, tables.Footer | None]:
    """The footers of files; None for one that has none."""
    with ThreadPoolExecutor(READERS) as pool:
        found = pool.map(lambda name: tables.read_footer(store.source(name)), names)
        return dict(zip(names, found, strict=True))


def described(store: Store) -> Mapping[str, str]:
    """The texts of a directory's first sound shard; none if there is no such shard."""
    for name in shard_names(store.names()):
        footer = tables.read_footer(store.source(name))
        if footer is not None and "wsjax.spec" in footer.texts:
            return footer.texts
    return {}


def _shards(
    store: Store, texts: Mapping[str, str], names: Sequence[str]
) -> dict[str, Shard | None]:
    """The shards in a directory; InputError if anything else is there."""
    there = store.names()
    found = footers(store, shard_names(there))
    left = [name for name in there if TEMPORARY.fullmatch(name)]
    foreign = [
        name
        for name in there
        if name not in left and not (name in found and is_ours(store, name, found[name]))
    ]
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise InputError(
            f"{store}: holds files that no sweep wrote: {', '.join(foreign[:3])}{more}; "
            "choose another --out, or move them away"
        )
    shards = {name: read(store, name, footer, texts) for name, footer in found.items()}
    if odd := sorted(shards.keys() - {*names}):
        whose = {name.rpartition("/")[2]: name for name in names}
        if right := whose.get(odd[0].rpartition("/")[2]):
            raise InputError(
                f"{store.shown(odd[0])}: lies in the wrong folder; move it to {right}, or delete it"
            )
        raise InputError(
            f"{store.shown(odd[0])}: is no shard of this sweep, which ends with {names[-1]}; {MEND}"
        )
    _tidy(store, left)
    return shards


def _tidy(store: Store, names: Iterable[str]) -> None:
    """Remove what writers that were killed have left."""
    for name in names:
        if TEMPORARY.fullmatch(name):
            store.remove(name)


def is_ours(store: Store, name: str, footer: tables.Footer | None) -> bool:
    """Whether a sweep wrote a file, as far as one can tell when it is damaged."""
    if footer is not None:
        return "wsjax.spec" in footer.texts
    start = store.start(name, len(PARQUET))
    return start in (PARQUET, b"", b"\0" * len(PARQUET))


def read(
    store: Store, name: str, footer: tables.Footer | None, texts: Mapping[str, str]
) -> Shard | None:
    """What a file stands for, None if it is damaged; InputError if it is another sweep's."""
    if footer is None:
        return None
    found = {key: text for key, text in footer.texts.items() if key != SHARD_KEY}
    differing = [key for key in {**texts, **found} if found.get(key) != texts.get(key)]
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
    shard = _parse(footer.texts.get(SHARD_KEY, ""))
    return shard if shard is not None and shard.rows == footer.rows else None


def _parse(text: str) -> Shard | None:
    """A `Shard` from its text, if that is one whose counts add up."""
    try:
        shard = Shard(**json.loads(text))
        kinds = [shard.rows, shard.filtered, shard.beaten, *shard.illegal.values()]
        counts = [shard.start, shard.stop, *kinds]
    except (ValueError, TypeError, AttributeError):
        return None
    whole = all(type(count) is int and count >= 0 for count in counts)
    known = set(shard.illegal) <= set(REASONS)
    return shard if whole and known and sum(kinds) == shard.stop - shard.start else None
