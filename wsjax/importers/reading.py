"""A file or a frame of measurements -> one table in our columns."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wsjax import tables
from wsjax.errors import InputError, nearest
from wsjax.importers import checks, columns, outcome, texts, values
from wsjax.importers.columns import joined
from wsjax.importers.formats import FORMATS, cutlass, h200, plain
from wsjax.importers.outcome import Report, counts
from wsjax.importers.source import Source, open_source
from wsjax.importers.texts import MALFORMED
from wsjax.schema import BLOCKS, COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

TIME = columns.TIMES[0]
"""The column of measured times, in µs."""
_WINNERS = re.compile(r"best config selected:", re.I)
JSON = "Kernel Tuner's cache or T4, Triton's autotune.json, TorchInductor's log"


class Imported(NamedTuple):
    """A table in our columns (see `outcome.finish`), and the counts of its rows."""

    table: "pd.DataFrame"
    report: Report


TABLES = ("plain", "h200")
"""Formats whose columns are largely ours: tables that stand for themselves."""
CONVERTERS = (h200.cutlass, h200.gluon)
READ = ("kernel", "math_org", "epilogue", "grid")
"""What `convert` looks at beside configuration columns."""


def convert(given: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"] | None:
    """The columns with those of a foreign format translated; None if no format is recognised."""
    for translate in CONVERTERS:
        translated = translate(given)
        if translated is not None:
            return {**given, **translated}
    return None


def has_times(names: Sequence[object]) -> bool:
    """Whether one of a table's columns holds measured times."""
    return TIME in plain.names([name for name in names if isinstance(name, str)])


def is_measured(names: Sequence[str]) -> bool:
    """Whether a table has measured times of kernels; predictions are none."""
    return {TIME, *BLOCKS} <= plain.names(list(names)).keys()


def read_frame(frame: "pd.DataFrame", usual: Mapping[str, int] = outcome.NONE) -> "pd.DataFrame":
    """`read` for a plain table in memory: its rows in our columns."""
    theirs = {str(name): values for name, values in frame.reset_index(drop=True).items()}
    ours = h200.translate(theirs)
    if problems := plain.complaints(ours, list(theirs)):
        raise InputError(problems)
    return outcome.finish(columns.compact(ours), "frame", usual)[0]


def read_own(
    path: str | Path, usual: Mapping[str, int], *, measured: bool = False
) -> "pa.Table | pd.DataFrame":
    """A table for `predict` or `choose`: CSV or Parquet as it is, of other formats what `read`
    makes of them, given `usual`. measured: also of tables with measured times of kernels."""
    source = open_source(path)
    foreign = _detect(source) not in TABLES
    if foreign or (measured and is_measured(plain.columns(source))):
        return read(path, usual=usual).table
    return _as_it_is(path, source)


def _as_it_is(path: str | Path, source: Source) -> "pa.Table":
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
        delimiter=texts.delimiter_of(line),
        skipped=skipped,
    )
    return table if h200.recognises(source) else _in_our_words(table)


def _in_our_words(table: "pa.Table") -> "pa.Table":
    theirs = table.column_names
    if len(set(theirs)) < len(theirs):
        return table
    known = plain.names(theirs)
    ours = {known[name]: name for name in COLUMNS if name in known}
    if known.get(TIME) == "time_us":  # which is a prediction's name
        ours["time_us"] = TIME
    table = table.rename_columns([ours.get(name, name) for name in theirs])
    for name in set(ours.values()) & set(COLUMNS):
        if COLUMNS[name].choices:
            given = tables.series(table, name)
            told = values.each(given, lambda word, name=name: values.ours(name, word))
            if not told.equals(given.astype(object)):
                at = table.column_names.index(name)
                column = tables.from_frame(told.to_frame(name)).column(0)
                table = table.set_column(at, name, column)
    return table


def _detect(source: Source) -> str:
    return next(name for name, format_ in FORMATS.items() if format_.recognises(source))


def read(
    path: str | Path,
    format: str = "auto",
    mapping: Mapping[str, str] | None = None,
    usual: Mapping[str, int] = outcome.NONE,
) -> Imported:
    """Read a file of measurements: times in µs, configurations in our words, nothing dropped.

    format: a name of `FORMATS`, or `auto`. mapping: ours to theirs (or a value for all rows),
    for columns that the format does not tell; `time_ms` and its like name a time's unit. usual:
    numbers of columns that the file does not tell, in place of the schema's defaults.

    Raises InputError for a file that is no table of measurements, with file, line and mend.
    """
    if not isinstance(path, str | Path):
        what = type(path).__name__
        raise InputError(f"expected a file's path, not {what}; calibrate and validate take frames")
    if not isinstance(mapping or {}, Mapping):
        what = type(mapping).__name__
        raise InputError(f"mapping: expected {{'time_ms': 'latency', ...}}, not {what}")
    mapping = {ours: str(theirs) for ours, theirs in (mapping or {}).items()}
    if format not in (*FORMATS, "auto"):
        raise InputError(f"format '{format}' is unknown{nearest(format, [*FORMATS, 'auto'])}")
    source = open_source(path, mapping.values())
    found = _detect(source)
    if format not in ("auto", "plain", found):
        raise InputError(f"{source.path}: is not {format}, but {found}; leave --format out")
    name = found if format == "auto" else format
    if name in ("plain", "cutlass_profiler") and (known := _untimed(source)):
        raise InputError(f"{source.path}: {known}")
    try:
        given = _columns(source, name, mapping)
        if name == "plain":
            given = _consistent(given)
        table, notes = outcome.finish(given, source.path.name, usual)
    except InputError as error:
        prefix = f"{source.path}:"
        raise InputError(
            p if p.startswith(prefix) else f"{prefix} {p}" for p in error.problems
        ) from None
    excluded = counts(table)
    kept = len(table) - sum(excluded.values())
    notes = (*dict.fromkeys(source.notes), *notes, *checks.notes(table))
    return Imported(table, Report(source.path, name, len(table), kept, excluded, notes))


def together(parts: Sequence["pd.DataFrame"]) -> "pd.DataFrame":
    """Imported tables as one, in which rows that repeat another table's are excluded too."""
    return outcome.finish(joined(list(parts)), "")[0]


import_table = read
"""`read` under its public name."""


def _consistent(given: "pd.DataFrame") -> "pd.DataFrame":
    """A plain table with the rows marked whose time contradicts their rate; InputError if most do,
    since then the unit is wrong."""
    wrong, problem = checks.contradiction(given)
    if problem:
        raise InputError(problem)
    return given.assign(**{outcome.UNCOVERED: np.where(wrong, "contradicts", "")})


def _untimed(source: Source) -> str:
    """What is wrong with a file that lies beside the one with the times; "" if nothing is."""
    if source.is_json:
        return f"is JSON of no known format; known: {JSON}"
    if cutlass.is_text(source):
        return (
            "is the text that cutlass_profiler prints, without its CSV; run it with --output=FILE, "
            "and import the FILE.gemm.csv that it writes"
        )
    if _WINNERS.search(source.head) and not {"m", "n", "k"} <= set(plain.columns(source)):
        return (
            "holds the winners only of Triton's autotuning, without times; import the "
            "<kernel>.autotune.json that Triton writes with TRITON_CACHE_AUTOTUNING=1"
        )
    return ""


def _columns(source: Source, name: str, mapping: Mapping[str, str]) -> "pd.DataFrame":
    """All pieces of a file, translated, mapped and joined."""
    format_ = FORMATS[name]
    found: list[pd.DataFrame] = []
    for piece in format_.pieces(source):
        theirs = {str(n): c for n, c in piece.items()}
        if lacking := [c for c in format_.NEEDS if c not in theirs]:
            raise InputError(f"column '{c}' is missing, which {name} has" for c in lacking)
        columns.check(mapping, theirs)
        visible = theirs
        if name in TABLES:
            visible = {n: c for n, c in theirs.items() if n not in mapping.values()}
        ours = {**format_.translate(visible), **columns.mapped(mapping, theirs)}
        if MALFORMED in theirs:
            ours[MALFORMED] = theirs[MALFORMED]
        if name == "plain" and (problems := plain.complaints(ours, list(theirs))):
            raise InputError(problems)
        found.append(columns.compact(ours))
    if not found:
        why = f" ({source.notes[0]})" if source.notes else ""
        raise InputError(f"has no rows{why}; write it again, or choose another file")
    return joined(found)
