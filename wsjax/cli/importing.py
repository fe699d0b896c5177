"""`wsjax import`: measured tables of any format into one file, and what became of their rows."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wsjax.cli.app import app
from wsjax.cli.terminal import show_table, telling
from wsjax.errors import InputError

if TYPE_CHECKING:
    from wsjax.importers import Report


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

    cutlass_profiler, Kernel Tuner (cache, T4), Triton, TorchInductor (JSON, log), AutoHeuristic,
    aiconfigurator, Nsight Compute, and any CSV or Parquet table. Rows that are no measurement, or
    repeat one, stay in the table: column `excluded` says why a fit leaves them out.

    wsjax import profile.csv --out profile.parquet

    wsjax import mine.csv --out mine.parquet --map time_ms=latency block_m=TILE dtype_in=fp16

    The format shows in the content. `calibrate`, `validate`, `choose` and `predict --table` read
    the same files directly. `python -m pydoc wsjax.importers` says how to add a format.
    """
    from wsjax import importers, tables
    from wsjax.importers import outcome, parse_mapping

    for path in files:
        tables.check_destination(out, path)
    mapping = parse_mapping(map or ())
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
        table = importers.together([one.table for one in imported])
    counts = {str(one.report.path): dict(one.report.excluded) for one in imported}
    texts = tables.metadata([], imported=json.dumps(counts, ensure_ascii=False))
    tables.write_table(tables.from_frame(table), out, texts)
    for one in imported:
        _show(one.report)
    if len(imported) > 1:
        excluded = outcome.counts(table)
        kept = len(table) - sum(excluded.values())
        _show(importers.Report(out, "all together", len(table), kept, excluded))
    return 0


def _show(report: "Report") -> None:
    from wsjax.importers import outcome

    print(f"{report.path}: {report.format}")
    rows = [("read", f"{report.read:,}", ""), ("kept", f"{report.kept:,}", "for a fit")]
    for reason, count in report.excluded.items():
        rows.append((reason, f"{count:,}", outcome.REASONS.get(reason, "the file's own status")))
    show_table((), rows, left=(0, 2))
    for note in report.notes:
        print(f"note: {note}")
