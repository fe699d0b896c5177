"""A file as a reader sees it: what it is by its content, its text, and what is noticed on the way.

Its name and extension count for nothing: compression, encoding and kind show in the first bytes.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

from wsjax.errors import InputError
from wsjax.tables import existing

HEAD_BYTES = 2**20
"""A format shows in this much of a file."""
LINE_MAX = 2**20
"""Characters of the longest line that a table or a log may have."""
TEXT_MAX = 2**28
"""Characters of the longest JSON text, which is read whole."""
LFS = b"version https://git-lfs.github.com/spec/"
_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True, eq=False)
class Source:
    """An open question: which format `path` is in.

    `parquet`: it is Parquet, or a directory of it, and has no text. `head`: the first of its text.
    `expected`: names that its columns have, as the user says. `notes`: what a reader noticed, for
    the report; readers add to it.
    """

    path: Path
    parquet: bool
    head: str
    encoding: str = "utf-8"
    compressed: bool = False
    expected: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The lines of its text, without their ends; LF, CRLF and CR all end one.

        InputError for one of more than `LINE_MAX` characters.
        """
        number = 0
        try:
            with self._open() as file:
                while line := file.readline(LINE_MAX + 1):
                    number += 1
                    if len(line) > LINE_MAX:
                        raise InputError(
                            f"{self.path}:{number}: a line of more than {LINE_MAX:,} characters; "
                            "no table has one: is a quote left open, or is it another file?"
                        )
                    yield line.rstrip("\n")
        except EOFError:
            self.notes.append("the compressed file ends early: read up to there")

    def check_lines(self) -> None:
        """Raise InputError for a line that is too long."""
        for _ in self.lines():
            pass

    def text(self) -> str:
        """All of its text; InputError if it has more than `TEXT_MAX` characters."""
        parts, size = [], 0
        try:
            with self._open() as file:
                while part := file.read(HEAD_BYTES):
                    parts.append(part)
                    size += len(part)
                    if size > TEXT_MAX:
                        raise InputError(
                            f"{self.path}: is JSON of more than {TEXT_MAX:,} characters, which is "
                            "read whole; split it"
                        )
        except EOFError:
            self.notes.append("the compressed file ends early: read up to there")
        return "".join(parts)

    def _open(self) -> IO[str]:
        opened = gzip.open if self.compressed else open
        return opened(self.path, "rt", encoding=self.encoding, errors="replace")  # type: ignore[return-value]

    @cached_property
    def head_lines(self) -> tuple[str, ...]:
        """The lines of `head`; the last may be cut."""
        return tuple(self.head.splitlines())

    @cached_property
    def is_json(self) -> bool:
        """Whether its text begins as JSON does; `[default0]:` and `[START]` do not."""
        return bool(_JSON.match(self.head))

    def first_line(self) -> str:
        """The first line that is not blank."""
        return next((line for line in self.head_lines if line.strip()), "")


def open_source(path: str | Path, expected: Iterable[str] = ()) -> Source:
    """Look at a file; InputError if it is absent, empty, a Git-LFS pointer or no table at all."""
    path, names = existing(path), frozenset(expected)
    if path.is_dir():
        return Source(path, parquet=True, head="", expected=names)
    with path.open("rb") as file:
        data = file.read(HEAD_BYTES)
    compressed = data.startswith(b"\x1f\x8b")
    if compressed:
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, HEAD_BYTES)
        except zlib.error as error:
            raise InputError(f"{path}: is damaged (gzip): {error}; copy it again") from None
    if data.startswith(LFS):
        raise InputError(f"{path}: {_pointer(data)}")
    if data.startswith(b"PAR1") and not compressed:
        return Source(path, parquet=True, head="", expected=names)
    encoding = next((name for mark, name in MARKS.items() if data.startswith(mark)), "utf-8")
    head = data.decode(encoding, errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    if not head.strip():
        raise InputError(f"{path}: is empty; write it again, or choose another file")
    if "\0" in head:
        raise InputError(
            f"{path}: is neither text nor Parquet; give a CSV, JSON, log or Parquet file"
        )
    return Source(path, False, head, encoding, compressed, names)


def _pointer(data: bytes) -> str:
    size = re.search(rb"size (\d+)", data)
    what = f" to {int(size[1]):,} bytes" if size else ""
    return (
        f"is a Git-LFS pointer{what}, not the table; "
        "run `git lfs pull` in its repository, then import it again"
    )
