"""The command line: verbs only. What they do is elsewhere, and imported when a verb needs it."""

import errno
import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, Token, UnusedCliTokensError

from wsjax import __version__
from wsjax.compiled import keep_compiled
from wsjax.errors import InputError, WsjaxError

PLACES = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}
"""Errors of the system that another file or directory mends, as those of `InputError`."""

app = App(
    name="wsjax",
    help="Predict how long warp-specialised GEMM kernels take.",
    version=__version__,
    suppress_keyboard_interrupt=False,
)
hardware = App(name="hardware", help="The machines that wsjax knows.")
app.command(hardware)


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """A whole number as it is written: 3.5 is none."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]{1,30}", text):
        raise ValueError(f"'{text}' is not a whole number")
    return int(text)


Whole = Annotated[int | None, Parameter(converter=_whole)]
HardwareName = Annotated[str, Parameter(help="a shipped machine's name or a TOML file")]


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


def _names(_: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names with commas between them, in one or several options."""
    words = (word.strip() for token in tokens for word in token.value.split(","))
    return tuple(word for word in words if word)


Names = Annotated[tuple[str, ...], Parameter(converter=_names, negative="", n_tokens=1)]
ReportDirectory = Annotated[Path | None, Parameter(help="a directory for tables as files")]


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
    from wsjax import import_console

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
) -> int:
    """Fit a machine's parameters to measured times, and write its file.

    wsjax calibrate measured.csv.gz --start h200 --out mine.toml
    """
    from wsjax import fit_console

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
    )


@app.command
def validate(
    tables: Annotated[list[Path], Parameter(help="measured times, in any format of import")],
    /,
    *,
    hardware: HardwareName = "h200",
    against: Annotated[
        str | None, Parameter(help="another machine's name or file, on the same tables")
    ] = None,
    report: ReportDirectory = None,
    json: Annotated[bool, Parameter(negative="", help="print one JSON object")] = False,
) -> int:
    """Compare predicted with measured times: errors, ranks, and what a choice costs.

    wsjax validate measured.csv.gz --hardware mine.toml --against h200
    """
    from wsjax import fit_console

    return fit_console.run_validate(tables, hardware, against, report, as_json=json)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; its exit code: 0, 1 (could not go on), 2 (wrong input), 130 (Ctrl-C)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    keep_compiled()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", message=".*persistent compilation cache")
        warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
        try:
            code = app(
                list(sys.argv[1:] if arguments is None else arguments),
                exit_on_error=False,
                print_error=False,
                result_action="return_value",
            )
            sys.stdout.flush()
            return code or 0
        except WsjaxError as error:
            _say(str(error))
            return error.exit_code
        except UnusedCliTokensError as error:
            verb = " ".join(["wsjax", *(error.command_chain or ())])
            words = ", ".join(f"'{word}'" for word in error.unused_tokens or ())
            _say(f"{words}: not expected here; see {verb} --help")
            return 2
        except CycloptsError as error:
            _say(str(error))
            return 2
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        except KeyboardInterrupt:
            _say("interrupted")
            return 130
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _say(f"{where}{error.strerror or error}")
            return 2 if error.errno in PLACES else 1


def _say(text: str) -> None:
    for line in text.splitlines():
        print(f"wsjax: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
