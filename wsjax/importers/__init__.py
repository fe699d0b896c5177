"""Other tools' measurements, read as one table. What a file is shows in its content.

`read` takes a file of any format in `FORMATS`; `convert` takes columns of a frame in memory.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wsjax import tables
from wsjax.errors import InputError, nearest
from wsjax.importers import (
    aiconfigurator,
    autoheuristic,
    checks,
    columns,
    cutlass,
    h200,
    inductor,
    kernel_tuner,
    nsight,
    outcome,
    plain,
    triton,
)
from wsjax.importers import mapping as maps
from wsjax.importers.csv_rows import MALFORMED, delimiter_of
from wsjax.importers.mapping import TIMES, parse_mapping  # noqa: F401 (others read them)
from wsjax.importers.outcome import Report
from wsjax.importers.source import Source, open_source
from wsjax.schema import INTERVAL_COLUMNS, PREDICTION_COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Format(NamedTuple):
    """How a format is known, read a piece at a time, and translated.

    `translate` takes a piece with the file's columns, `needs` among them, and returns ours.
    """

    recognises: Callable[[Source], bool]
    pieces: Callable[[Source], Iterator["pd.DataFrame"]]
    translate: Callable[[Mapping[str, "pd.Series"]], Mapping[str, "pd.Series"]]
    needs: Collection[str] = ()


class Imported(NamedTuple):
    """A table in our columns (see `outcome.finish`), and the counts of its rows."""

    table: "pd.DataFrame"
    report: Report


FORMATS: dict[str, Format] = {
    "kernel_tuner": Format(kernel_tuner.recognises, kernel_tuner.pieces, kernel_tuner.translate),
    "triton": Format(triton.recognises, triton.pieces, triton.translate, ["p50"]),
    "inductor": Format(inductor.recognises, inductor.pieces, inductor.translate),
    "autoheuristic": Format(
        autoheuristic.recognises, autoheuristic.pieces, autoheuristic.translate, autoheuristic.NEEDS
    ),
    "cutlass_profiler": Format(
        cutlass.recognises, cutlass.pieces, cutlass.translate, cutlass.NEEDS
    ),
    "nsight": Format(nsight.recognises, nsight.pieces, nsight.translate, ["Kernel Name"]),
    "aiconfigurator": Format(
        aiconfigurator.recognises,
        aiconfigurator.pieces,
        aiconfigurator.translate,
        aiconfigurator.COLUMNS,
    ),
    "h200": Format(h200.recognises, h200.pieces, h200.translate, h200.COLUMNS),
    "plain": Format(lambda source: True, plain.pieces, plain.translate),
}
"""By name, in the order in which they are tried: plain takes what no other does."""
TIME = TIMES[0]
"""The column of measured times, in µs."""
TILE = ("block_m", "block_n", "block_k")
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


def is_measured(names: Sequence[str]) -> bool:
    """Whether a table has measured times of kernels; predictions are none."""
    ours = (*PREDICTION_COLUMNS, *INTERVAL_COLUMNS)
    others = [name for name in names if name not in ours]
    return {TIME, *TILE} <= plain.names(others).keys()


def read_frame(frame: "pd.DataFrame") -> "pd.DataFrame":
    """`read` for a plain table in memory: its rows in our columns."""
    theirs = {str(name): values for name, values in frame.reset_index(drop=True).items()}
    return outcome.finish(columns.compact(h200.translate(theirs)), "frame")[0]


def read_own(path: str | Path, *, measured: bool = False) -> "pa.Table | pd.DataFrame":
    """A table for `predict` or `choose`: CSV or Parquet as it is, of other formats what `read`
    makes of them. measured: also of tables with measured times of kernels."""
    source = open_source(path)
    if _detect(source) not in TABLES or (measured and is_measured(plain.columns(source))):
        return read(path).table
    return tables.read_table(
        path,
        parquet=source.parquet,
        compressed=source.compressed,
        encoding=source.encoding,
        delimiter=delimiter_of(source.first_line()),
    )


def format_of(path: str | Path) -> str:
    """The name of a file's format, by its content; InputError if it can be none."""
    return _detect(open_source(path))


def _detect(source: Source) -> str:
    return next(name for name, format_ in FORMATS.items() if format_.recognises(source))


def read(
    path: str | Path, format: str = "auto", mapping: Mapping[str, str] | None = None
) -> Imported:
    """Read a file of measurements: times in µs, configurations in our words, nothing dropped.

    format: a name of `FORMATS`, or `auto`. mapping: ours to theirs (or a value for all rows),
    for columns that the format does not tell; `time_ms` and its like name a time's unit.

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
    if name == "plain" and source.head.lstrip()[:1] in ("{", "["):
        known = "Kernel Tuner's cache or T4, Triton's autotune.json, TorchInductor's log"
        raise InputError(f"{source.path}: is JSON of no known format; known: {known}")
    try:
        table, notes = outcome.finish(_columns(source, name, mapping), source.path.name)
    except InputError as error:
        prefix = f"{source.path}:"
        raise InputError(
            p if p.startswith(prefix) else f"{prefix} {p}" for p in error.problems
        ) from None
    excluded = outcome.counts(table)
    kept = len(table) - sum(excluded.values())
    notes = (*dict.fromkeys(source.notes), *notes, *checks.notes(table))
    return Imported(table, Report(source.path, name, len(table), kept, excluded, notes))


def together(parts: Sequence["pd.DataFrame"]) -> "pd.DataFrame":
    """Imported tables as one, in which rows that repeat another table's are excluded too."""
    return outcome.finish(columns.joined(list(parts)), "")[0]


import_table = read
"""`read` under its public name."""


def _columns(source: Source, name: str, mapping: Mapping[str, str]) -> "pd.DataFrame":
    """All pieces of a file, translated, mapped and joined."""
    format_ = FORMATS[name]
    pieces: list[pd.DataFrame] = []
    for piece in format_.pieces(source):
        theirs = {str(n): c for n, c in piece.items()}
        if lacking := [c for c in format_.needs if c not in theirs]:
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
        pieces.append(columns.compact(ours))
    if not pieces:
        why = f" ({source.notes[0]})" if source.notes else ""
        raise InputError(f"has no rows{why}; write it again, or choose another file")
    return columns.joined(pieces)
