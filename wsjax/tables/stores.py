"""Where a sweep's files are: a directory, or a place in an object store that a URI names.

A directory of this machine has renaming and a lock. Behind a URI (`s3://bucket/path`, `gs://…`;
what pyarrow knows) there is neither: a file appears whole when its upload ends, and two sweeps
that write the same one write the same bytes.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import uuid4

from wsjax.errors import InputError, WsjaxError
from wsjax.tables.files import make_directory, replacing

if TYPE_CHECKING:
    import pyarrow.fs as fs

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
PATIENCE = "retry_limit_seconds=60"
"""What a gs:// URI says of how long to try; pyarrow's default is 15 minutes."""
IN_MEMORY = 2**24
"""Bytes of a file on its way to an object store that are kept off this machine's disk."""


@dataclass(frozen=True)
class Folder:
    """A directory of this machine. Names of files in it have `/` between their parts."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        """What is in it, and in folders such as `m=16`; other folders count as one."""
        return sorted(self._names(self.path, ""))

    def _names(self, folder: Path, before: str) -> Iterator[str]:
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and "=" in path.name:
                yield from self._names(path, f"{before}{path.name}/")
            else:
                yield before + path.name

    def place(self) -> "tuple[fs.FileSystem, str]":
        """A file system of pyarrow's, and where the directory is there."""
        import pyarrow.fs as fs

        return fs.LocalFileSystem(), str(self.path.absolute())

    def shown(self, name: str) -> str:
        """A file, for messages."""
        return str(self.path / name)

    def source(self, name: str) -> Path:
        """A file, for those who read Parquet."""
        return self.path / name

    def start(self, name: str, count: int) -> bytes | None:
        """A file's first bytes; None if it is none."""
        if not (self.path / name).is_file():
            return None
        with (self.path / name).open("rb") as file:
            return file.read(count)

    def remove(self, name: str) -> None:
        """Remove a file, if that can be done."""
        with suppress(OSError):
            (self.path / name).unlink()

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A binary file that takes the place of `name` when the block ends well."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, uuid4().hex[:8]) as file:
            yield file

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory, and hold it against other sweeps, where the system has locks."""
        make_directory(self.path)
        try:
            import fcntl
        except ImportError:
            yield
            return
        import os

        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise WsjaxError(f"{self}: another sweep is writing here; wait for it") from None
        except OSError:
            pass
        try:
            yield
        finally:
            os.close(handle)


@dataclass(frozen=True)
class Bucket:
    """A place in a pyarrow file system: `path` there, which `uri` names."""

    uri: str
    system: "fs.FileSystem"
    path: str

    def __str__(self) -> str:
        return public(self.uri)

    def names(self) -> list[str]:
        """The files in it, and in folders there."""
        import pyarrow.fs as fs

        if self._is_file():
            return []
        wanted = fs.FileSelector(self.path, allow_not_found=True, recursive=True)
        infos: Sequence[Any] = self._asked(wanted)
        files = [info.path for info in infos if info.type == fs.FileType.File]
        return sorted(path.removeprefix(self.path).lstrip("/") for path in files)

    def place(self) -> "tuple[fs.FileSystem, str]":
        """A file system of pyarrow's, and where the directory is there."""
        return self.system, self.path

    def shown(self, name: str) -> str:
        """A file, for messages."""
        uri, mark, query = str(self).partition("?")
        return f"{uri.rstrip('/')}/{name}{mark}{query}"

    def source(self, name: str) -> "Any":
        """A file, for those who read Parquet."""
        return self.system.open_input_file(self._path(name))

    def start(self, name: str, count: int) -> bytes | None:
        """A file's first bytes."""
        with self.system.open_input_file(self._path(name)) as file:
            return file.read(count)

    def remove(self, name: str) -> None:
        """Remove a file, if that can be done."""
        with suppress(OSError):
            self.system.delete_file(self._path(name))

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A binary file that is uploaded as `name` when the block ends well."""
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            yield file  # pyright: ignore[reportReturnType] (it is one, but in name)
            file.seek(0)
            path = self._path(name)
            with self._opened(path) as upload:
                shutil.copyfileobj(file, upload, 2**20)

    def _opened(self, path: str) -> Any:
        try:
            return self.system.open_output_stream(path)
        except FileNotFoundError:
            self.system.create_dir(path.rpartition("/")[0], recursive=True)
            return self.system.open_output_stream(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing holds it."""
        if self._is_file():
            raise InputError(f"{self}: is a file; give a directory")
        yield

    def _is_file(self) -> bool:
        import pyarrow.fs as fs

        return bool(self.path) and self._asked(self.path).type == fs.FileType.File

    def _asked(self, wanted: "str | fs.FileSelector") -> Any:
        """What the store says of a path; WsjaxError if it can't be asked."""
        try:
            return self.system.get_file_info(wanted)
        except OSError as error:
            reason = str(error).splitlines()[0]
            raise WsjaxError(f"{self}: can't be reached: {reason}") from None

    def _path(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}" if self.path else name


Store = Folder | Bucket


def store(place: str | Path) -> Store:
    """The directory that a path or URI names; InputError for a URI that can't be opened."""
    if not is_uri(place):
        return Folder(Path(place))
    import pyarrow as pa
    import pyarrow.fs as fs

    try:
        system, path = _opened(str(place))
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise _unopened(place, reason) from None
    if isinstance(system, fs.LocalFileSystem):
        return Folder(Path(path))
    if not path and system.type_name in ("s3", "gcs"):
        raise _unopened(place, "it names no bucket")
    return Bucket(str(place), system, path)


def _opened(uri: str) -> "tuple[fs.FileSystem, str]":
    import pyarrow.fs as fs

    return fs.FileSystem.from_uri(_impatient(uri))


def _impatient(uri: str) -> str:
    """A URI that gives up in time, unless it says itself when to."""
    if not uri.startswith(("gs://", "gcs://")) or PATIENCE.partition("=")[0] in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}{PATIENCE}"


def _unopened(place: str | Path, reason: str) -> InputError:
    return InputError(
        f"{public(place)}: can't open this place: {public(reason)}; give a directory, or a URI "
        "such as s3://bucket/path, gs://bucket/path, file:///path"
    )


def parent(place: Store) -> tuple[Store, str]:
    """The directory that a file is in, and the file's name there."""
    if isinstance(place, Folder):
        return Folder(place.path.parent), place.path.name
    uri, mark, query = place.uri.partition("?")
    folder, _, name = place.path.rpartition("/")
    return Bucket(f"{uri.rpartition('/')[0]}{mark}{query}", place.system, folder), name


def public(place: str | Path) -> str:
    """A place for messages: a URI without the keys that may stand before its bucket."""
    return re.sub(r"://[^/?@\s]*:[^/?\s]*@", "://", str(place))


def is_uri(place: str | Path) -> bool:
    """Whether a place is named by a URI, not by a path."""
    return isinstance(place, str) and SCHEME.match(place) is not None
