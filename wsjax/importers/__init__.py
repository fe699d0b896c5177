"""Other tools' measurements as one table.

Every tool that times GEMM kernels writes its own columns, words and units. `read` makes one table
of any of them: configuration columns (`wsjax.space.COLUMNS`) in our words, times in µs, and for
each row what became of it. Nothing is dropped: column `excluded` says why a fit leaves a row out,
and a report counts the rows by reason. `calibrate`, `validate`, `choose` and `predict --table` read
files through this package too, so that a file that one of them takes means the same to all.

How a file passes through, and where to read on:

1. `source`: what a file is by its first bytes (Parquet, compressed, encoding), its text by lines.
2. `formats`: one module a format. The first whose `recognises` says yes reads the file (`pieces`)
   and gives our columns (`translate`). CSV goes by `csv_rows`, which finds headers behind log lines
   and marks ragged rows; JSON by `json_text`, which keeps what is whole of a file that ends early.
3. `mapping`: `--map ours=theirs` for what no format tells; `untimed` names files without times.
4. `values` reads numbers with any separators and units; `words` knows the field's words for types
   and the like; `kernel_names` what the names of CUTLASS kernels tell.
5. `coverage`: kernels that the model has no terms for, such as stream-K, each with its reason.
6. `outcome`: checks every value, fills in defaults, finds repeats, and gives each row its `status`
   and `excluded`; `checks` compares what a table says twice, such as a time and a rate.

To add a format `foo`:

1. Write `formats/foo.py` with `NEEDS`, `recognises`, `pieces` and `translate` (see
   `formats.Format`; `formats/aiconfigurator.py` is a short one). `translate` returns what the file
   tells: `values.times_us(column, values.US_PER["ms"])` as `time_us_measured`, sizes as `m n k
   block_m …`, element types in the file's own words, the kernel's name as `kernel`, a word of
   `outcome.REASONS` as `status` where a run failed. Defaults, words, blanks and repeats are not its
   business.
2. Name it in `formats/__init__.py`, before those whose files it would be taken for.

Its values get a sample in `tests/importers/test_importers_golden.py`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.importers import checks, columns, coverage, outcome, own, untimed
from wsjax.importers import mapping as maps
from wsjax.importers.columns import joined
from wsjax.importers.coverage import modelled
from wsjax.importers.csv_rows import MALFORMED
from wsjax.importers.formats import FORMATS, h200, plain
from wsjax.importers.formats.plain import TRACED, pieces
from wsjax.importers.formats.plain import columns as column_names
from wsjax.importers.mapping import parse_mapping
from wsjax.importers.outcome import REASONS, Report, counts
from wsjax.importers.source import Source, open_source

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "FORMATS",
    "MALFORMED",
    "READ",
    "REASONS",
    "TIME",
    "TRACED",
    "Imported",
    "Report",
    "column_names",
    "convert",
    "counts",
    "has_times",
    "import_table",
    "is_measured",
    "joined",
    "modelled",
    "open_source",
    "parse_mapping",
    "pieces",
    "read",
    "read_frame",
    "read_own",
    "together",
]

TIME = maps.TIMES[0]
"""The column of measured times, in µs."""
TILE = ("block_m", "block_n", "block_k")


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
    return {TIME, *TILE} <= plain.names(list(names)).keys()


def read_frame(frame: "pd.DataFrame", usual: Mapping[str, int] = outcome.NONE) -> "pd.DataFrame":
    """`read` for a plain table in memory: its rows in our columns."""
    theirs = {str(name): values for name, values in frame.reset_index(drop=True).items()}
    ours = h200.translate(theirs)
    if problems := plain.complaints(ours, list(theirs)):
        raise InputError(problems)
    return outcome.finish(columns.compact(ours), "frame", usual)[0]


def read_own(path: str | Path, *, measured: bool = False) -> "pa.Table | pd.DataFrame":
    """A table for `predict` or `choose`: CSV or Parquet as it is, of other formats what `read`
    makes of them. measured: also of tables with measured times of kernels."""
    source = open_source(path)
    foreign = _detect(source) not in TABLES
    if foreign or (measured and is_measured(column_names(source))):
        return read(path).table
    return own.read(path, source)


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
    if name in ("plain", "cutlass_profiler") and (known := untimed.complaint(source)):
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
    return given.assign(**{coverage.COLUMN: np.where(wrong, "contradicts", "")})


def _columns(source: Source, name: str, mapping: Mapping[str, str]) -> "pd.DataFrame":
    """All pieces of a file, translated, mapped and joined."""
    format_ = FORMATS[name]
    found: list[pd.DataFrame] = []
    for piece in format_.pieces(source):
        theirs = {str(n): c for n, c in piece.items()}
        if lacking := [c for c in format_.NEEDS if c not in theirs]:
            raise InputError(f"column '{c}' is missing, which {name} has" for c in lacking)
        maps.check(mapping, theirs)
        visible = theirs
        if name in TABLES:
            visible = {n: c for n, c in theirs.items() if n not in mapping.values()}
        ours = {**format_.translate(visible), **maps.mapped(mapping, theirs)}
        if MALFORMED in theirs:
            ours[MALFORMED] = theirs[MALFORMED]
        if name == "plain" and (problems := plain.complaints(ours, list(theirs))):
            raise InputError(problems)
        found.append(columns.compact(ours))
    if not found:
        why = f" ({source.notes[0]})" if source.notes else ""
        raise InputError(f"has no rows{why}; write it again, or choose another file")
    return joined(found)
