"""CSV and JSON a piece at a time, whatever stands around them.

CSV: the header is found behind log lines, may be repeated, and rows may be ragged. JSON is read
whole; of a text that ends early, the items that are there.
"""

import csv
import json
import re
from collections.abc import Callable, Collection, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any

from wsjax.errors import InputError
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

PIECE_ROWS = 100_000
MALFORMED = "\0malformed"
"""Name of the column that is true where a row had too few or too many fields."""
DELIMITERS = ",;\t|"
FIELD_MAX = 2**14
"""A quote that is not closed within so many characters is a stray one."""


def cells(line: str, delimiter: str = ",") -> list[str]:
    """One line's fields, without the spaces around them."""
    try:
        fields = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        fields = line.replace('"', "").split(delimiter)
    return [field.strip() for field in fields]


def delimiter_of(header: str) -> str:
    """What separates a header's names: the commonest of comma, semicolon, tab and bar."""
    return max(DELIMITERS, key=header.count)


def frames(
    source: Source,
    is_header: Callable[[str], bool],
    *,
    is_row: Callable[[str], bool] | None = None,
    as_text: bool = False,
) -> Iterator["pd.DataFrame"]:
    """The rows below each header, in pieces of at most `PIECE_ROWS`.

    is_header: whether a line is one; what stands before the first is no row. A later header may
    name other columns. is_row: whether a line is a row at all; by default, what has a delimiter.
    as_text: leave numbers as they are written.

    Ragged rows are cut or filled up, and marked in column `MALFORMED`. Notes say how many lines
    were no rows.
    """
    header, delimiter, width = "", ",", 0
    lines, ragged = [], []
    before = between = 0
    for line in _logical(source.lines(), is_header):
        if is_header(line):
            if lines:
                yield _frame(header, lines, ragged, as_text=as_text)
            header, lines, ragged = line, [], []
            delimiter = delimiter_of(header)
            width = len(cells(header, delimiter))
        elif not line.strip():
            continue
        elif not header:
            before += 1
        elif is_row(line) if is_row else delimiter in line or width == 1:
            quoted = '"' in line
            count = len(cells(line, delimiter)) if quoted else line.count(delimiter) + 1
            if count != width or (quoted and line.count('"') % 2):
                ragged.append(len(lines))
                line = _fitted(line.replace('"', ""), delimiter, width)
            lines.append(line)
            if len(lines) == PIECE_ROWS:
                yield _frame(header, lines, ragged, as_text=as_text)
                lines, ragged = [], []
        else:
            between += 1
    if lines:
        yield _frame(header, lines, ragged, as_text=as_text)
    if before:
        source.notes.append(f"lines before the header, which are no rows: {before:,}")
    if between:
        source.notes.append(f"lines among the rows, which are no rows: {between:,}")


def _logical(lines: Iterator[str], is_header: Callable[[str], bool]) -> Iterator[str]:
    """Lines, joined where a quoted field holds a line's end; a stray quote joins none."""
    held = ""
    for line in lines:
        if held and is_header(line):
            yield from held.split("\n")
            held = ""
        joined = f"{held}\n{line}" if held else line
        inside = bool(held) != bool(line.count('"') % 2)
        if not inside:
            yield joined
        elif len(joined) >= FIELD_MAX:
            yield from joined.split("\n")
        held = joined if inside and len(joined) < FIELD_MAX else ""
    if held:
        yield from held.split("\n")


def _fitted(line: str, delimiter: str, width: int) -> str:
    """A ragged line with as many fields as the header."""
    fields = line.split(delimiter)
    return delimiter.join([*fields, *[""] * width][:width])


def _frame(header: str, lines: list[str], ragged: list[int], *, as_text: bool) -> "pd.DataFrame":
    import pandas as pd

    delimiter = delimiter_of(header)
    try:
        frame = pd.read_csv(
            StringIO("\n".join([header, *lines])),
            sep=delimiter,
            skipinitialspace=True,
            skip_blank_lines=False,
            low_memory=False,
            dtype=str if as_text else None,
            keep_default_na=not as_text,
            index_col=False,
        )
    except pd.errors.ParserError:
        frame = pd.DataFrame()
    if len(frame) != len(lines):  # quotes in the wrong places: as if there were none
        names = cells(header, delimiter)
        fitted = [_fitted(line.replace('"', ""), delimiter, len(names)) for line in lines]
        frame = pd.DataFrame([line.split(delimiter) for line in fitted], columns=names)
        ragged = [*range(len(lines))]
    frame.columns = [str(name).strip() for name in frame.columns]
    frame[MALFORMED] = False
    frame.loc[ragged, MALFORMED] = True
    return frame


CUT = "the file ends early (an interrupted run?): read up to there"
_DECODER = json.JSONDecoder()
_MARK = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],]', re.S)
_FRAGMENT = re.compile(r"[^,:{}\[\]\"\n]{0,40}\s*")

Part = tuple[str, Any, Any]


def parts(source: Source, many: Collection[str] = ()) -> Iterator[Part]:
    """(name, key, value) of a JSON text's parts, in order.

    A member of the outermost object is one (name, None, value); one that `many` names comes item
    by item, (name, key or position, value), and so does an outermost list, whose name is "".
    Where the text ends early so do the parts, and a note says it; InputError with file:line for a
    text that is wrong before its end.
    """
    value = _load(source)
    for name, member in value.items() if isinstance(value, dict) else [("", value)]:
        if isinstance(member, list) and (name in many or not name):
            yield from ((name, key, item) for key, item in enumerate(member))
        elif isinstance(member, dict) and name in many:
            yield from ((name, key, item) for key, item in member.items())
        else:
            yield name, None, member


def _load(source: Source) -> Any:
    text = source.text()
    start = len(text) - len(text.lstrip())
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if not _is_cut(text, error):
            raise _broken(source, text, error.pos, error.msg) from None
        source.notes.append(CUT)
        return json.loads(_closed(text[start:]))
    except RecursionError:
        raise _broken(source, text, start, "nested too deeply") from None
    if text[end:].strip():
        line = text.count("\n", 0, end) + 1
        source.notes.append(f"text behind the end of the JSON, line {line}, is not read")
    return value


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether nothing but a piece of a value follows the place of an error."""
    unterminated = error.msg.startswith("Unterminated string")
    return unterminated or bool(_FRAGMENT.fullmatch(text, error.pos))


def _closed(text: str) -> str:
    """The text up to its last whole item, with the brackets closed that are open there.

    Items are those of the outermost list, or of the lists and objects in the outermost object.
    """
    closing, end, open_there = "", 0, ""
    depth = 1 if text.startswith("[") else 2
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark in "{[":
            closing = ("}" if mark == "{" else "]") + closing
            whole = match.end() if len(closing) <= depth else 0
        elif mark in "}]":
            closing = closing[1:]
            whole = match.end() if len(closing) <= depth else 0
        else:
            whole = match.start() if mark == "," and len(closing) <= depth else 0
        if whole:
            end, open_there = whole, closing
    return text[:end] + open_there


def _broken(source: Source, text: str, at: int, what: str) -> InputError:
    line = text.count("\n", 0, at) + 1
    near = text[at : at + 30].splitlines()
    return InputError(
        f"{source.path}:{line}: is broken JSON: {what} at '{near[0] if near else ''}'; "
        "mend it there, or write the file again"
    )
