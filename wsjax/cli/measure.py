"""`wsjax measure`: kernels timed on the GPU at hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wsjax.cli.app import AsJson, HardwareName, app
from wsjax.cli.terminal import progress, show_json

if TYPE_CHECKING:
    from wsjax.measuring import Measured


@app.command
def measure(
    rows: Annotated[Path, Parameter(help="a plan, or any table of problems and kernels")],
    /,
    *,
    out: Annotated[Path, Parameter(help="the table of measured times, .csv; continued if there")],
    engine: Annotated[
        str, Parameter(help="gluon (Hopper), triton, or module:Class of your own kernels")
    ] = "gluon",
    hardware: HardwareName = "h200",
    timeout: Annotated[float, Parameter(help="seconds for each row, compilation too")] = 60.0,
    repeats: Annotated[float, Parameter(help="the share of rows measured twice")] = 0.05,
    json: AsJson = False,
) -> int:
    """Measure kernels on the GPU at hand: the table that `calibrate` and `validate` read.

    wsjax measure plan.csv --out measured.csv

    Each row is appended as it ends, so that the same command goes on where a run stopped. Kernels
    come in random order, each checked against a reference, `l2_state` cold with L2 overwritten
    before each of 15 to 60 runs; median, p10, p90. One that hangs, crashes, is wrong or does not
    compile is a row with that `status`, which fits leave out. `--hardware` fills the columns that
    the rows leave open.

    `gluon` is a warp-specialised GEMM with every choice that the model knows of (Hopper only);
    `triton` a plain pipelined one, `schedule` serial, for Ampere and later. Both need
    `pip install 'wsjax[measure]'`. `python -m pydoc wsjax.measuring.worker` says what a class of
    yours needs to measure other kernels.
    """
    from wsjax import measuring

    with progress(f"measuring {rows}", begin="compiling", quiet=json) as advance:
        measured = measuring.measure(
            rows,
            out,
            engine=engine,
            hardware=hardware,
            timeout_s=timeout,
            repeats=repeats,
            progress=advance,
        )
    if json:
        show_json(measured.__dict__)
    else:
        _show(measured, out)
    return 0


def _show(measured: "Measured", out: Path) -> None:
    statuses = ", ".join(f"{count:,} {status}" for status, count in measured.statuses.items())
    resumed = f", {measured.resumed:,} of them before" if measured.resumed else ""
    print(f"{measured.rows:,} rows on {measured.facts['device']}{resumed}: {statuses}")
    if measured.noise == measured.noise:
        print(f"rows measured twice differ by {measured.noise:.1%} (median)")
    print(
        f"{measured.kernel_s:.1f} s of kernel time in {measured.seconds:.0f} s; "
        f"written to {out}; wsjax calibrate {out} --start MACHINE --out mine.toml"
    )
