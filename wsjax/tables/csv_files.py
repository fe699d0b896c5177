"""CSV files by Arrow, with the place of what is wrong in them."""

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsjax.errors import InputError
from wsjax.tables.files import replacing, suffix

if TYPE_CHECKING:
    import pyarrow as pa

CSV_BLOCK_BYTES = 2**28
"""A column's type is inferred from this much of the file."""
LINE_BYTES = 2**23
MEND = "save the file as UTF-8"


def read(
    path: Path, *, compressed: bool, encoding: str, delimiter: str, skipped: int = 0
) -> "pa.Table":
    """Read a CSV file; InputError with the place of ragged rows and of what is no text.

    skipped: lines before the header.
    """
    import pyarrow as pa
    import pyarrow.csv as csv

    ragged: list[Any] = []

    def parse(*, threads: bool) -> "pa.Table":
        ragged.clear()
        with pa.input_stream(str(path), compression="gzip" if compressed else None) as stream:
            return csv.read_csv(
                pa.PythonFile(_Lines(path, stream), "r") if compressed else stream,
                read_options=csv.ReadOptions(
                    skip_rows=skipped,
                    block_size=CSV_BLOCK_BYTES,
                    encoding=encoding,
                    use_threads=threads,
                ),
                parse_options=csv.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=lambda row: ragged.append(row) or "skip",
                ),
            )

    try:
        table = parse(threads=True)
        if ragged:
            parse(threads=False)  # rows are numbered only then
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not {encoding} text: {error.reason}; {MEND}") from None
    except (pa.ArrowException, OSError) as error:
        if "Empty CSV" in str(error):
            raise InputError(f"{path}: has no rows below its header; write some") from None
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    if ragged:
        first = ragged[0]
        row = first.number - 2 - skipped
        rows = "1 row has" if len(ragged) == 1 else f"{len(ragged)} rows have"
        raise InputError(
            f"{path}: {rows} not as many values as the header, first row {row} "
            f"(from 0): {first.actual_columns} instead of {first.expected_columns}"
        )
    try:
        names = table.column_names
    except UnicodeDecodeError as error:
        name = error.object.decode(errors="replace")
        raise InputError(f"{path}: header: '{name}' is not UTF-8 text; {MEND}") from None
    problems = [
        f"{path}: column '{name}', row {_first_not_text(column)}"
        for name, column in zip(names, table.columns, strict=True)
        if pa.types.is_binary(column.type)
    ]
    if problems:
        raise InputError(problems)
    return table


class _Lines:
    """A stream that refuses a line of `LINE_BYTES` or more, before all of it is in memory: a small
    compressed file can hold a very long one."""

    def __init__(self, path: Path, stream: Any):
        self.path, self.stream, self.closed = path, stream, False

    def read(self, count: int) -> bytes:
        pieces, left = [], count
        while left > 0:
            piece = self.stream.read(min(left, LINE_BYTES))
            pieces.append(piece)
            left -= len(piece)
            if len(piece) < LINE_BYTES:
                break
            if b"\n" not in piece and b"\r" not in piece:
                raise InputError(
                    f"{self.path}: a line of more than {LINE_BYTES:,} bytes; a table's are "
                    "shorter: is it a CSV file?"
                )
        return b"".join(pieces)

    def close(self) -> None:
        self.closed = True


def _first_not_text(column: "pa.ChunkedArray") -> str:
    """The row of a column of bytes that is the first to be no UTF-8, and what is wrong."""
    for row, cell in enumerate(column.to_pylist()):
        try:
            (cell or b"").decode()
        except UnicodeDecodeError as error:
            byte = cell[error.start]
            return f"{row} (from 0): not UTF-8 text (byte 0x{byte:02x}); {MEND}"
    raise AssertionError("Arrow found text that it called none")


def write(table: "pa.Table", path: str | Path) -> None:
    """Write a table to a .csv or .csv.gz file; InputError for columns that CSV can't hold."""
    import pyarrow as pa
    import pyarrow.csv as csv

    kind = suffix(path)
    table = _plain(table, path)
    try:
        with replacing(path) as file:
            if kind == ".csv":
                csv.write_csv(table, file)
            else:
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as stream:
                    csv.write_csv(table, stream)
    except pa.ArrowException as error:
        raise InputError(f"{path}: cannot be written as {kind}: {error}") from None


def _plain(table: "pa.Table", path: str | Path) -> "pa.Table":
    """A table as CSV holds it: no dictionaries. InputError for columns that it can't hold."""
    import pyarrow as pa

    plain = {
        name: values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
        for name, values in zip(table.column_names, table.columns, strict=True)
    }
    nested = [name for name, values in plain.items() if pa.types.is_nested(values.type)]
    if nested:
        raise InputError(
            f"{path}: column '{name}' holds lists or records, which CSV does not; "
            "drop it, or write .parquet"
            for name in nested
        )
    return pa.table(plain)
