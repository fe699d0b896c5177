"""`wsjax import`: measured tables of any format into one file, and what became of their rows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wsjax.cli.app import app
from wsjax.cli.terminal import show_table, telling
from wsjax.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@app.command(name="import")
def import_(
    files: Annotated[list[Path], Parameter(help="measured times, in any format")],
    /,
    *,
    out: Annotated[Path, Parameter(help="the table: .parquet, .csv or .csv.gz")],
    format: Annotated[
        str, Parameter(help="a format's name, instead of what the content shows")
    ] = "auto",
    map: Annotated[
        list[str] | None,
        Parameter(
            help="ours=theirs: what a column of ours is called in the file, or its value for all "
            "rows; time_ms (time_s, time_us, time_ns) is the measured time in that unit",
            negative="",
            consume_multiple=True,
        ),
    ] = None,
) -> int:
    """Read other tools' measurements into one table of ours, and count what became of the rows.

    cutlass_profiler, hipblaslt-bench, Kernel Tuner (cache, T4), Triton, TorchInductor (JSON, log),
    AutoHeuristic, aiconfigurator, Nsight Compute, and any CSV or Parquet table. Rows that are no
    measurement, or repeat one, stay in the table: column `excluded` says why a fit leaves them out.
    Exit code 2 if a fit could take none.

    wsjax import profile.csv --out profile.parquet

    wsjax import mine.csv --out mine.parquet --map time_ms=latency block_m=TILE dtype_in=fp16

    The format shows in the content. `calibrate`, `validate`, `choose` and `predict --table` read
    the same files directly. `python -m pydoc wsjax.importers` says how to add a format.
    """
    from wsjax import importers, tables

    for path in files:
        tables.check_destination(out, path)
    mapping = importers.parse_mapping(map or ())
    imported, problems = [], []
    for path in files:
        try:
            with telling(f"reading {path}"):
                imported.append(importers.read(path, format, mapping))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    table = imported[0].table
    if len(imported) > 1:
        table = importers.together([each.table for each in imported])
    counts = {str(each.report.path): dict(each.report.excluded) for each in imported}
    texts = tables.metadata([], imported=json.dumps(counts, ensure_ascii=False))
    tables.write_table(tables.from_frame(table), out, texts)
    for each in imported:
        _show(f"{each.report.path}: {each.report.format}", each.table, each.report.notes)
    if len(imported) > 1:
        _show(f"{out}: all together", table)
    if not _kept(table):
        raise InputError(f"{out}: no row counts for a fit; the table holds them with their reasons")
    return 0


def _kept(table: "pd.DataFrame") -> int:
    """How many rows some machine's model may take."""
    return table["excluded"].to_list().count("")


def _fit_for(table: "pd.DataFrame") -> str:
    """For a fit of which machines the rows are that are kept."""
    kept = table.loc[(table["excluded"] == "").to_numpy()]
    if kept.empty:
        return "for a fit"
    dtypes = ", ".join(sorted(set(kept["dtype_in"].astype(str))))
    clusters = " and clusters" if (kept["cluster_m"] * kept["cluster_n"] > 1).any() else ""
    return f"for a fit, of a machine with {dtypes}{clusters}"


def _show(title: str, table: "pd.DataFrame", notes: Sequence[str] = ()) -> None:
    from wsjax import importers

    excluded, kept = importers.counts(table), _kept(table)
    print(title)
    rows = [("read", f"{len(table):,}", ""), ("kept", f"{kept:,}", _fit_for(table))]
    for reason, count in excluded.items():
        rows.append((reason, f"{count:,}", importers.REASONS.get(reason, "the file's own status")))
    show_table((), rows, left=(0, 2))
    for note in notes:
        print(f"note: {note}")
