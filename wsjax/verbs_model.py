"""Verbs that ask the model: predict, sweep, hardware."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wsjax.errors import InputError
from wsjax.options import HardwareName, Whole, app, hardware


@app.command
def predict(
    *,
    m: Annotated[Whole, Parameter(name="-m", help="rows of A and C")] = None,
    n: Annotated[Whole, Parameter(name="-n", help="columns of B and C")] = None,
    k: Annotated[Whole, Parameter(name="-k", help="columns of A, rows of B")] = None,
    tile: Annotated[
        str | None, Parameter(help="block_m x block_n x block_k, such as 128x128x64")
    ] = None,
    stages: Annotated[
        Whole, Parameter(help="slots of the circular buffer; default: all that fit")
    ] = None,
    schedule: Annotated[
        str | None, Parameter(help="serial, persistent (default), pingpong or cooperative")
    ] = None,
    dma_warps: Annotated[Whole, Parameter(help="1 (default) or 2")] = None,
    math_warps: Annotated[Whole, Parameter(help="default: 4; pingpong and cooperative 8")] = None,
    mma_in_flight: Annotated[Whole, Parameter(help="0 (default) or 1")] = None,
    dtype: Annotated[str | None, Parameter(help="of A, B and C; default: bf16")] = None,
    dtype_out: Annotated[str | None, Parameter(help="of C, if it is another")] = None,
    layout: Annotated[
        str | None, Parameter(help="nt (default), nn, tn or tt: how A and B are stored")
    ] = None,
    batch: Annotated[Whole, Parameter(help="GEMMs of one launch; default: 1")] = None,
    group_m: Annotated[
        Whole, Parameter(help="rows of tiles that the raster order groups; default: 1")
    ] = None,
    table: Annotated[Path | None, Parameter(help="predict a CSV or Parquet file's rows")] = None,
    out: Annotated[
        Path | None, Parameter(help="where --table's rows go: .parquet, .csv or .csv.gz")
    ] = None,
    hardware: HardwareName = "h200",
    json: Annotated[
        bool, Parameter(negative="", help="print one JSON object of the prediction columns")
    ] = False,
) -> int:
    """Predict one configuration, or all rows of a table.

    wsjax predict -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4 --schedule pingpong

    wsjax predict --table measured.csv.gz --hardware h200 --out predicted.parquet
    """
    options = {
        "-m": m,
        "-n": n,
        "-k": k,
        "--tile": tile,
        "--stages": stages,
        "--schedule": schedule,
        "--dma-warps": dma_warps,
        "--math-warps": math_warps,
        "--mma-in-flight": mma_in_flight,
        "--dtype": dtype,
        "--dtype-out": dtype_out,
        "--layout": layout,
        "--batch": batch,
        "--group-m": group_m,
    }
    given = {option: value for option, value in options.items() if value is not None}
    if table is None and out is None:
        from wsjax import console

        return console.predict_one(given, hardware, as_json=json)
    problems = []
    if table is None or out is None:
        problems.append("--table and --out go together: --table FILE --out FILE")
    if given or json:
        alone = ", ".join([*given, *(["--json"] if json else [])])
        problems.append(f"{alone}: not with --table, whose columns say it; leave out")
    if problems or table is None or out is None:
        raise InputError(problems)
    from wsjax.predictions import predict_table

    predict_table(table, out, hardware)
    return 0


@app.command
def sweep(
    spec: Annotated[
        Path, Parameter(help="a sweep file (.toml), or a table of an earlier sweep to repeat")
    ],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="directory; default: results/NAME")] = None,
    quiet: Annotated[bool, Parameter(negative="", help="no progress, no summary")] = False,
) -> int:
    """Predict all configurations of a sweep file, into a directory of Parquet files.

    A sweep that was interrupted goes on where it stopped when the command is repeated.
    """
    from wsjax.sweep_console import run_sweep

    return run_sweep(spec, out, quiet=quiet)


@hardware.command(name="list")
def list_hardware() -> None:
    """The shipped machines."""
    from wsjax import console

    console.list_hardware()


@hardware.command(name="show")
def show_hardware(name: HardwareName, /) -> None:
    """A machine's file: its facts and parameters, and where they come from."""
    from wsjax.hardware import load_hardware

    print(load_hardware(name).text.rstrip())
