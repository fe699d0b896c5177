"""CSV a piece at a time: the header found behind log lines, repeated headers, ragged rows."""

import csv
from collections.abc import Callable, Iterator
from io import StringIO
from typing import TYPE_CHECKING

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
