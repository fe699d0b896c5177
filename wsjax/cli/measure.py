"""`wsjax plan` and `wsjax measure`: which kernels to time, and their times on the GPU at hand."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, Token

from wsjax.cli.app import AsJson, HardwareName, SpaceFile, app
from wsjax.cli.terminal import progress, show_json, show_table, telling

if TYPE_CHECKING:
    from wsjax.measuring import Measured, Plan

SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(_: object, tokens: Sequence[Token]) -> float:
    """Seconds: 90, 90s, 1.5m."""
    text = tokens[0].value
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?) *(s|m|min|h|)", text)
    if not found:
        raise ValueError(f"'{text}' is no duration; write it as 60s or 2m")
    return float(found[1]) * SECONDS[found[2]]


@app.command
def plan(
    workload: Annotated[Path, Parameter(help="a table of problems: m, n, k, weight, ...")],
    /,
    *,
    out: Annotated[Path, Parameter(help="the rows to measure, .csv or .parquet")],
    hardware: HardwareName = "h200-datasheet",
    space: SpaceFile = None,
    rows: Annotated[int, Parameter(help="how many, at most")] = 100,
    budget: Annotated[
        float | None,
        Parameter(converter=duration, help="what they may take on the GPU, such as 60s"),
    ] = None,
    measured: Annotated[
        list[Path] | None, Parameter(help="tables of what has been measured already")
    ] = None,
    seed: Annotated[int, Parameter(help="of the sample of pairs to choose from")] = 0,
    json: AsJson = False,
) -> int:
    """The few kernels to measure after which a workload is predicted best.

    wsjax plan workload.csv --hardware h200-datasheet --rows 100 --out plan.csv

    A row is a problem of the workload on a kernel of `--space` (default: those of the engine
    `gluon`); of a workload that names kernels too, its own rows. From how predictions there grow
    with each parameter, and what the machine's file and rows `--measured` already tell, each row in
    turn is the one that lowers the expected error of the workload most; of a `--budget`, most per
    second. The plan is in that order, so that its first rows are a shorter plan.

    Told are each parameter's standard error before and after, those on which no row tells anything,
    and those that all rows only tell together.
    """
    from wsjax import measuring, tables

    tables.check_destination(out, workload)
    with telling("choosing rows to measure", quiet=json):
        found = measuring.plan(
            workload,
            hardware,
            space=space,
            rows=rows,
            budget_s=float("inf") if budget is None else budget,
            measured=measured or (),
            seed=seed,
        )
    tables.write_table(tables.from_frame(found.frame), out, {})
    if json:
        record = {name: value for name, value in vars(found).items() if name != "frame"}
        show_json(record | {"rows": len(found.frame)})
    else:
        _show_plan(found, out)
    return 0


def _show_plan(found: "Plan", out: Path) -> None:
    cells = [
        (name, f"{100 * before:.1f}", f"{100 * after:.1f}")
        for name, before, after in sorted(found.parameters, key=lambda p: p[2] / p[1])
        if name not in found.untold
    ]
    show_table(("parameter", "standard error %", "after %"), cells)
    if found.untold:
        print(f"no row tells more of {', '.join(found.untold)}")
    for pair in found.together:
        print(f"told only together: {' and '.join(pair)}")
    before, after = found.error_pct
    print(
        f"{len(found.frame):,} rows of {found.problems:,} problems, {found.kernel_s:.1f} s on the "
        f"GPU; the workload's expected error: {before:.1f} % -> {after:.1f} %"
    )
    print(f"written to {out}; wsjax measure {out} --out measured.csv")


@app.command
def measure(
    rows: Annotated[Path, Parameter(help="a plan, or any table of problems and kernels")],
    /,
    *,
    out: Annotated[Path, Parameter(help="the table of measured times, .csv; continued if there")],
    engine: Annotated[
        str,
        Parameter(
            help="gluon (Hopper), triton, cutlass_profiler, or module:Class of your own kernels"
        ),
    ] = "gluon",
    profiler: Annotated[
        Path | None, Parameter(help="the binary of cutlass_profiler; without one, prints commands")
    ] = None,
    hardware: HardwareName = "h200",
    timeout: Annotated[float, Parameter(help="seconds for each row, compilation too")] = 60.0,
    repeats: Annotated[float, Parameter(help="the share of rows measured twice")] = 0.05,
    machine: Annotated[
        Path | None, Parameter(help="a new machine's file, .toml: the GPU's facts, like --hardware")
    ] = None,
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
    `pip install 'wsjax[measure]'`. `cutlass_profiler` runs yours, or, without `--profiler`, prints
    the commands that append to OUT.gemm.csv. `python -m pydoc wsjax.measuring.worker` says what a
    class of yours needs to measure other kernels.
    """
    from wsjax import measuring, tables

    if machine is not None:
        tables.check_place(machine)
    if engine == "cutlass_profiler" and profiler is None:
        lines, missing = measuring.profiler_commands(rows, hardware, str(out.with_suffix("")))
        print("\n".join(lines))
        if missing:
            print(f"rows that CUTLASS has no kernel for: {missing:,}", file=sys.stderr)
        return 0
    with progress(f"measuring {rows}", begin="compiling", quiet=json) as advance:
        measured = measuring.measure(
            rows,
            out,
            engine=engine,
            profiler=profiler,
            hardware=hardware,
            timeout_s=timeout,
            repeats=repeats,
            progress=advance,
        )
    if machine is not None:
        _begin_machine(machine, hardware, measured)
    if json:
        show_json(vars(measured))
    else:
        _show(measured, out)
    return 0


def _begin_machine(path: Path, like: str, measured: "Measured") -> None:
    """Write what is known of the GPU as a machine's file, for `calibrate --start`."""
    from wsjax.hardware import NewFacts, new_machine
    from wsjax.tables import replacing

    facts, clock_mhz = measured.facts, 1e3 * measured.clock_ghz
    told = NewFacts(
        sms=facts.get("sms"),
        l2_mib=facts["l2_bytes"] / 2**20 if "l2_bytes" in facts else None,
        clock_max_mhz=clock_mhz if clock_mhz == clock_mhz else None,
    )
    with replacing(path) as file:
        file.write(new_machine(path.stem, like, told).encode())


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
