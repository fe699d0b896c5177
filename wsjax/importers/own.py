"""Tables of problems or kernels that stand for themselves: read with the columns they have."""

from pathlib import Path
from typing import TYPE_CHECKING

from wsjax import tables
from wsjax.importers import csv_rows
from wsjax.importers.formats import plain
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pyarrow as pa


def as_it_is(path: str | Path, source: Source) -> "pa.Table":
    """A CSV or Parquet table with its own columns, from the line that names them."""
    line, skipped = source.first_line(), 0
    if not source.parquet:
        skipped = plain.lines_before(source)
        line = source.head_lines[skipped] if skipped else line
    return tables.read_table(
        path,
        parquet=source.parquet,
        compressed=source.compressed,
        encoding=source.encoding,
        delimiter=csv_rows.delimiter_of(line),
        skipped=skipped,
    )
