"""Files of tables: their names, the places they are in, and writing them whole or not at all.

A place is a directory of this machine, or one in an object store that a URI names (`s3://bucket/
path`, `gs://…`; what pyarrow knows). A directory has renaming and a lock: a file is written under a
temporary name beside its place and renamed when it is finished. An object store has neither: a file
appears whole when its upload ends, and two sweeps that write the same one write the same bytes.
"""

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import getnode, uuid4

from wsjax.errors import InputError, WsjaxError, public

if TYPE_CHECKING:
    import pyarrow.fs as fs

SUFFIXES = (".parquet", ".csv", ".csv.gz")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
PATIENCE = "retry_limit_seconds=60"
"""What a gs:// URI says of how long to try; pyarrow's default is 15 minutes."""
IN_MEMORY = 2**24
"""Bytes of a file on its way to an object store that are kept off this machine's disk."""


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
def replacing(path: str | Path, *, alone: bool = True) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and else vanishes.

    It is on the disk before it has its name, so that a name never stands for half a file. Its
    temporary name is its own: of several who write the same path, each writes a whole file, and the
    last one's stays. alone: what killed processes of this machine left of the same file is removed.
    """
    path = Path(path)
    if alone:
        _remove_left(path)
    temporary = path.with_name(f".{path.name}.{getnode():x}-{os.getpid():x}-{uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("xb") as file:
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


def _remove_left(path: Path) -> None:
    """Remove temporary files of `path` whose processes, on this machine, are no more."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{getnode():x}-*.tmp"):
        process = left.name.split("-")[-2]
        try:
            os.kill(int(process, 16), 0)
        except ProcessLookupError:
            left.unlink(missing_ok=True)
        except (OSError, ValueError, OverflowError):
            continue  # another user's, or no process's number


@dataclass(frozen=True)
class Store:
    """A directory in a file system of pyarrow's. Names of files in it have `/` between folders.

    uri: as a user gives it, which may hold keys: messages show `str(store)`. path: the same for
    `system`.
    """

    uri: str = field(repr=False)
    system: "fs.FileSystem"
    path: str

    def __str__(self) -> str:
        return public(self.uri)

    @property
    def local(self) -> Path | None:
        """The directory, if it is one of this machine."""
        import pyarrow.fs as fs

        return Path(self.uri) if isinstance(self.system, fs.LocalFileSystem) else None

    def names(self) -> list[str]:
        """The files in it and in its folders: on this machine only in those such as `m=16`, others
        count as one."""
        import pyarrow.fs as fs

        if not self.local:
            if self._is_file():
                return []
            wanted = fs.FileSelector(self.path, allow_not_found=True, recursive=True)
            files = [info.path for info in self._asked(wanted) if info.type == fs.FileType.File]
            return sorted(path.removeprefix(self.path).lstrip("/") for path in files)
        return sorted(_names(self.local, ""))

    def shown(self, name: str) -> str:
        """A file, for messages."""
        uri, mark, query = str(self).partition("?")
        return f"{uri.rstrip('/')}/{name}{mark}{query}"

    def source(self, name: str) -> Any:
        """A file, for those who read Parquet."""
        return self.local / name if self.local else self.system.open_input_file(self._path(name))

    def start(self, name: str, count: int) -> bytes | None:
        """A file's first bytes; None if it is none."""
        if self.system.get_file_info(self._path(name)).is_file:
            with self.system.open_input_file(self._path(name)) as file:
                return file.read(count)
        return None

    def remove(self, name: str) -> None:
        """Remove a file, if that can be done."""
        with suppress(OSError):
            self.system.delete_file(self._path(name))

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A binary file that takes the place of `name` when the block ends well."""
        if self.local:
            path = self.local / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path, alone=False) as file:
                yield file
            return
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            yield file  # pyright: ignore[reportReturnType] (it is one, but in name)
            file.seek(0)
            with self._upload(self._path(name)) as upload:
                shutil.copyfileobj(file, upload, 2**20)

    def _upload(self, path: str) -> Any:
        try:
            return self.system.open_output_stream(path)
        except FileNotFoundError:
            self.system.create_dir(path.rpartition("/")[0], recursive=True)
            return self.system.open_output_stream(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory and lock it against other sweeps, where the system has locks."""
        if self.local:
            make_directory(self.local)
            with _locked(self.local):
                yield
        elif self._is_file():
            raise InputError(f"{self}: is a file; give a directory")
        else:
            yield

    def _is_file(self) -> bool:
        return bool(self.path) and self._asked(self.path).is_file

    def _asked(self, wanted: "str | fs.FileSelector") -> Any:
        """What the store says of a path; WsjaxError if it can't be asked."""
        try:
            return self.system.get_file_info(wanted)
        except OSError as error:
            reason = str(error).splitlines()[0]
            raise WsjaxError(f"{self}: can't be reached: {reason}") from None

    def _path(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}" if self.path else name


def _names(folder: Path, before: str) -> Iterator[str]:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and "=" in path.name:
            yield from _names(path, f"{before}{path.name}/")
        else:
            yield before + path.name


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory; WsjaxError if another sweep does."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise WsjaxError(f"{directory}: another sweep is writing here; wait for it") from None
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(handle)


def store(place: str | Path) -> Store:
    """The directory that a path or URI names; InputError for a URI that can't be opened."""
    import pyarrow as pa
    import pyarrow.fs as fs

    if not (isinstance(place, str) and SCHEME.match(place)):
        return Store(str(place), fs.LocalFileSystem(), str(Path(place).absolute()))
    try:
        system, path = open_uri(str(place))
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise _unopened(place, reason) from None
    if not path and system.type_name in ("s3", "gcs"):
        raise _unopened(place, "it names no bucket")
    return Store(path if isinstance(system, fs.LocalFileSystem) else place, system, path)


def open_uri(uri: str) -> "tuple[fs.FileSystem, str]":
    """The file system that a URI names, and the path there."""
    import pyarrow.fs as fs

    return fs.FileSystem.from_uri(_impatient(uri))


def _impatient(uri: str) -> str:
    """A URI that gives up in time, unless it says itself when to."""
    if not uri.startswith(("gs://", "gcs://")) or PATIENCE.partition("=")[0] in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}{PATIENCE}"


def _unopened(place: str | Path, reason: str) -> InputError:
    return InputError(
        f"{place}: can't open this place: {reason}; give a directory, or a URI "
        "such as s3://bucket/path, gs://bucket/path, file:///path"
    )


def parent(place: Store) -> tuple[Store, str]:
    """The directory that a file is in, and the file's name there."""
    if place.local:
        return store(place.local.parent), place.local.name
    uri, mark, query = place.uri.partition("?")
    folder, _, name = place.path.rpartition("/")
    return Store(f"{uri.rpartition('/')[0]}{mark}{query}", place.system, folder), name
