"""A sweep's directory: Parquet shards and nothing else, valid at every instant.

A shard appears whole, by renaming. Its metadata says which sweep it belongs to and, under
`wsjax.shard`, which of its candidate rows it stands for: so a directory alone tells what is done,
and who repeats the command with the same texts makes what is missing or damaged.
"""

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from wsjax import tables
from wsjax.errors import InputError, WsjaxError
from wsjax.files import make_directory
from wsjax.limits import REASONS

SHARD_KEY = "wsjax.shard"
SHARD = re.compile(r"part-(\d{5,})\.parquet")
TEMPORARY = re.compile(rf"\.{SHARD.pattern}\.tmp")
PARQUET = b"PAR1"
WORDS = {
    "wsjax.name": "it has another name",
    "wsjax.spec": "the sweep file has changed",
    "wsjax.hardware": "a hardware file has changed",
    "wsjax.version": "another version of wsjax wrote it",
    "wsjax.schema_version": "its tables have other columns",
}
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
    """An open directory; `shards`: the files that were there, by number, None if damaged."""

    directory: Path
    shards: dict[int, Shard | None]

    def path(self, number: int) -> Path:
        """Where shard `number` is."""
        return self.directory / f"part-{number:05d}.parquet"

    def finished(self, number: int, hardware: str, start: int, stop: int) -> Shard | None:
        """Shard `number` if it was there and stands for these rows; a warning if it does not."""
        if number not in self.shards:
            return None
        shard = self.shards[number]
        if shard is not None and shard[:3] == (hardware, start, stop):
            return shard
        self.warn(number)
        return None

    def warn(self, number: int) -> None:
        """Say that shard `number` is there but can't be used."""
        warnings.warn(f"{self.path(number)}: is damaged; it is made again", stacklevel=2)


@contextmanager
def open_dataset(directory: Path, texts: Mapping[str, str], count: int) -> Iterator[Dataset]:
    """Make or resume the directory of the sweep that `texts` describe, of `count` shards; no one
    else may meanwhile.

    Raises InputError for a directory of another sweep, or with files that no sweep wrote.
    """
    make_directory(directory)
    with _locked(directory):
        yield Dataset(directory, _shards(directory, texts, count))


def _shards(directory: Path, texts: Mapping[str, str], count: int) -> dict[int, Shard | None]:
    """The shards in `directory`; InputError if anything else is there."""
    found: dict[int, Shard | None] = {}
    foreign, left = [], []
    for path in sorted(directory.iterdir()):
        match = SHARD.fullmatch(path.name)
        if TEMPORARY.fullmatch(path.name):
            left.append(path)
        elif match is None or not _is_ours(path):
            foreign.append(path.name)
        else:
            number = int(match[1])
            found[number] = _read(path, texts)
            if number >= count or path.name != f"part-{number:05d}.parquet":
                last = f"part-{count - 1:05d}.parquet"
                raise InputError(
                    f"{path}: is no shard of this sweep, which ends with {last}; {MEND}"
                )
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise InputError(
            f"{directory}: holds files that no sweep wrote: {', '.join(foreign[:3])}{more}; {MEND}"
        )
    for path in left:
        with suppress(OSError):
            path.unlink()
    return found


def _is_ours(path: Path) -> bool:
    """Whether a sweep wrote a file, as far as one can tell when it is damaged."""
    if not path.is_file():
        return False
    footer = tables.read_footer(path)
    if footer is not None:
        return "wsjax.spec" in footer.texts
    with path.open("rb") as file:
        return file.read(len(PARQUET)) in (PARQUET, b"", b"\0" * len(PARQUET))


def _read(path: Path, texts: Mapping[str, str]) -> Shard | None:
    """What a file stands for, None if it is damaged; InputError if it is another sweep's."""
    footer = tables.read_footer(path)
    if footer is None:
        return None
    found = {key: text for key, text in footer.texts.items() if key != SHARD_KEY}
    differing = [key for key in {**texts, **found} if found.get(key) != texts.get(key)]
    if differing:
        why = " and ".join(WORDS.get(key, f"{key} differs") for key in differing)
        raise InputError(f"{path}: belongs to another sweep ({why}); {MEND}")
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


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the directory against other sweeps, where the system has file locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    import os

    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise WsjaxError(f"{directory}: another sweep is writing here; wait for it") from None
    except OSError:
        pass
    try:
        yield
    finally:
        os.close(handle)
