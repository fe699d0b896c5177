"""Verbs that ask the model: predict, sweep, hardware."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wsjax.cli.options import (
    NOTHING_GIVEN,
    ConfigurationOptions,
    HardwareName,
    Whole,
    app,
    hardware,
)
from wsjax.errors import InputError


@app.command
def predict(
    *,
    configuration: ConfigurationOptions = NOTHING_GIVEN,
    table: Annotated[Path | None, Parameter(help="predict a CSV or Parquet file's rows")] = None,
    out: Annotated[
        Path | None, Parameter(help="where --table's rows go: .parquet, .csv or .csv.gz")
    ] = None,
    hardware: HardwareName = "h200",
    precision: Annotated[
        str, Parameter(help="float64, or float32: times to 1e-5 of them")
    ] = "float64",
    json: Annotated[
        bool, Parameter(negative="", help="print one JSON object of the prediction columns")
    ] = False,
) -> int:
    """Predict one configuration, or all rows of a table.

    wsjax predict -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4 --schedule pingpong

    wsjax predict --table measured.csv.gz --hardware h200 --out predicted.parquet
    """
    given = configuration.given()
    if table is None and out is None:
        from wsjax.cli import console

        return console.predict_one(given, hardware, precision, as_json=json)
    problems = []
    if table is None or out is None:
        problems.append("--table and --out go together: --table FILE --out FILE")
    if given or json:
        alone = ", ".join([*given, *(["--json"] if json else [])])
        problems.append(f"{alone}: not with --table, whose columns say it; leave out")
    if problems or table is None or out is None:
        raise InputError(problems)
    from wsjax.cli.terminal import telling
    from wsjax.predictions import predict_table

    with telling(f"predicting {table}"):
        predict_table(table, out, hardware, precision)
    return 0


@app.command
def sweep(
    spec: Annotated[
        str, Parameter(help="a sweep file (.toml), or a table of an earlier sweep to repeat")
    ],
    /,
    *,
    out: Annotated[
        str | None, Parameter(help="directory or URI (s3://, gs://); default: results/NAME")
    ] = None,
    shard_rows: Annotated[
        Whole,
        Parameter(help="rows of a file; default: up to 1,048,576, or as the directory has them"),
    ] = None,
    engine: Annotated[str, Parameter(help="local (default), or ray: on a cluster")] = "local",
    address: Annotated[
        str | None, Parameter(help="of the Ray cluster; default: RAY_ADDRESS, or this machine")
    ] = None,
    quiet: Annotated[bool, Parameter(negative="", help="no progress, no summary")] = False,
) -> int:
    """Predict all configurations of a sweep file, into a directory of Parquet files.

    A sweep that was interrupted goes on where it stopped when the command is repeated.

    wsjax sweep sweeps/quickstart.toml --out results/quickstart

    wsjax sweep my.toml --out s3://bucket/my --engine ray --address auto --shard-rows 100000
    """
    from wsjax.cli.sweep_console import run_sweep

    return run_sweep(
        spec,
        out,
        shard_rows=shard_rows,
        engine=engine,
        address=address,
        quiet=quiet,
    )


@hardware.command(name="list")
def list_hardware() -> None:
    """The shipped machines."""
    from wsjax.cli import console

    console.list_hardware()


@hardware.command(name="show")
def show_hardware(name: HardwareName, /) -> None:
    """A machine's file: its facts and parameters, and where they come from."""
    from wsjax.hardware import load_hardware

    print(load_hardware(name).text.rstrip())
