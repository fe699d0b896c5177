"""Files of tables: their names, and writing them whole or not at all.

A file is written under a temporary name beside its place and renamed when it is finished.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from wsjax.errors import InputError

SUFFIXES = (".parquet", ".csv", ".csv.gz")


def suffix(path: str | Path) -> str:
    """The one of `SUFFIXES` that `path` ends in; InputError if none."""
    for known in SUFFIXES:
        if str(path).lower().endswith(known):
            return known
    raise InputError(f"{path}: a table's name ends in {', '.join(SUFFIXES)}; choose one of them")


def check_destination(path: str | Path, source: str | Path | None = None) -> None:
    """Raise InputError if no table can be written to `path`, before any work is done for it.

    source: a table that is read for it, which must not be written over.
    """
    path = Path(path)
    suffix(path)
    check_place(path)
    if source is not None:
        read, written = Path(source).resolve(), path.resolve()
        if read == written or (read.is_dir() and read in written.parents):
            raise InputError(f"{path}: is the table that is read, or inside it; choose another")


def check_place(path: Path) -> None:
    """Raise InputError if no file can be written to `path`, whatever is in it."""
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give a file's name")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no directory {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: directory {path.parent} is not writable; choose another")


def existing(path: str | Path) -> Path:
    """`path`, if there is something; InputError with the most similar neighbour if not."""
    path = Path(path)
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        close = get_close_matches(path.name, siblings, n=1)
        hint = f"; did you mean '{path.parent / close[0]}'?" if close else ""
        raise InputError(f"{path}: no such file{hint}")
    return path


def make_directory(path: Path) -> None:
    """Make a directory, or find it made; InputError if it can't be."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; give a directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: can't make this directory: {error.strerror}") from None


def make_writable(path: Path) -> None:
    """`make_directory`; InputError also if nothing can be written there."""
    make_directory(path)
    if not os.access(path, os.W_OK):
        raise InputError(f"{path}: is not writable; choose another directory")


@contextmanager
def replacing(path: str | Path, mark: str = "") -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and else vanishes.

    It is on the disk before it has its name, so that a name never stands for half a file. `mark`:
    what tells its temporary name from those of others who may write the same file.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}{f'.{mark}' if mark else ''}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename, error.filename2 = str(path), None
        raise
