"""Tables of problems or kernels that stand for themselves: read with the columns they have."""

from pathlib import Path
from typing import TYPE_CHECKING

from wsjax import tables
from wsjax.importers import csv_rows, values, words
from wsjax.importers.formats import h200, plain
from wsjax.importers.mapping import TIMES
from wsjax.importers.source import Source
from wsjax.schema import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa


def read(path: str | Path, source: Source) -> "pa.Table":
    """A CSV or Parquet table with its own columns, from the line that names them.

    Columns and words that `import` knows by other names than ours get ours, but for tables that
    `convert` translates.
    """
    line, skipped = source.first_line(), 0
    if not source.parquet:
        source.check_lines()
        skipped = plain.lines_before(source)
        line = source.head_lines[skipped] if skipped else line
    table = tables.read_table(
        path,
        parquet=source.parquet,
        compressed=source.compressed,
        encoding=source.encoding,
        delimiter=csv_rows.delimiter_of(line),
        skipped=skipped,
    )
    return table if h200.recognises(source) else _in_our_words(table)


def _in_our_words(table: "pa.Table") -> "pa.Table":
    theirs = table.column_names
    if len(set(theirs)) < len(theirs):
        return table
    known = plain.names(theirs)
    ours = {known[name]: name for name in COLUMNS if name in known}
    if known.get(TIMES[0]) == "time_us":  # which is a prediction's name
        ours["time_us"] = TIMES[0]
    table = table.rename_columns([ours.get(name, name) for name in theirs])
    for name in set(ours.values()) & set(COLUMNS):
        if COLUMNS[name].choices:
            given = tables.series(table, name)
            told = values.each(given, lambda word, name=name: words.ours(name, word))
            if not told.equals(given.astype(object)):
                at = table.column_names.index(name)
                column = tables.from_frame(told.to_frame(name)).column(0)
                table = table.set_column(at, name, column)
    return table
