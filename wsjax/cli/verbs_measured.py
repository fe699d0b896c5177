"""Verbs that take measured times: import, calibrate, validate."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wsjax.cli.options import HardwareName, Names, ReportDirectory, app
from wsjax.errors import InputError


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
    """
    from wsjax.cli import import_console

    return import_console.run_import(files, out, format, map or ())


@app.command
def calibrate(
    tables: Annotated[list[Path], Parameter(help="measured times, in any format of import")],
    /,
    *,
    start: Annotated[
        str, Parameter(help="where parameters start: a machine's name or a TOML file")
    ] = "h200",
    out: Annotated[Path, Parameter(help="the machine's new file, .toml")],
    report: ReportDirectory = None,
    fix: Annotated[Names, Parameter(help="parameters that stay: NAME,NAME,...")] = (),
    free: Annotated[Names, Parameter(help="fit only these parameters: NAME,NAME,...")] = (),
    family_only: Annotated[
        bool, Parameter(negative="", help="fit only what belongs to the kernel family")
    ] = False,
    held_out: Annotated[float, Parameter(help="share of problems kept out of the fit")] = 0.2,
    seed: Annotated[int, Parameter(help="of the split, the sample and the starts")] = 0,
    ablate: Annotated[
        bool,
        Parameter(negative="", help="then leave out each term: what it earns on problems kept out"),
    ] = False,
    quiet: Annotated[
        bool, Parameter(negative="", help="only write files: no progress, no summary")
    ] = False,
) -> int:
    """Fit a machine's parameters to measured times, and write its file.

    wsjax calibrate measured.csv.gz --start h200 --out mine.toml

    wsjax calibrate fifty-rows.csv --start h200-cutlass --family-only --out mine.toml
    """
    from wsjax.cli import fit_console

    return fit_console.run_calibrate(
        tables,
        start,
        out,
        report,
        fix=fix,
        free=free,
        family_only=family_only,
        held_out=held_out,
        seed=seed,
        ablate=ablate,
        quiet=quiet,
    )


@app.command
def validate(
    tables: Annotated[
        list[Path] | None, Parameter(help="measured times, in any format of import")
    ] = None,
    /,
    *,
    hardware: HardwareName = "h200",
    against: Annotated[
        str | None, Parameter(help="another machine's name or file, on the same tables")
    ] = None,
    trace: Annotated[
        Path | None,
        Parameter(help="instead of tables: events of traced kernels, against the recurrences"),
    ] = None,
    report: ReportDirectory = None,
    json: Annotated[bool, Parameter(negative="", help="print one JSON object")] = False,
) -> int:
    """Compare predicted with measured times: errors, ranks, and what a choice costs.

    wsjax validate measured.csv.gz --hardware mine.toml --against h200

    wsjax validate --trace events.csv.gz
    """
    from wsjax.cli import fit_console

    if trace is None and not tables:
        raise InputError("give tables of measured times, or --trace FILE")
    if trace is not None and (tables or against is not None):
        raise InputError("--trace: not with tables or --against; validate them apart")
    if trace is not None:
        return fit_console.run_trace(trace, report, as_json=json)
    return fit_console.run_validate(tables or [], hardware, against, report, as_json=json)
