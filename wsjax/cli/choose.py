"""`wsjax choose`: the few kernels to ship for a workload, and the files that it writes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wsjax.cli.app import AsJson, HardwareName, Names, SpaceFile, Whole, app
from wsjax.cli.terminal import (
    exit_code,
    on_machine,
    show_extrapolation,
    show_json,
    show_table,
    telling,
)
from wsjax.errors import InputError

if TYPE_CHECKING:
    from wsjax.portfolio import Choice, MeasuredChoice

MEASURED = "by measured times, of measured pairs only"
KERNELS_SHOWN = 32


@app.command
def choose(
    workload: Annotated[
        Path, Parameter(help="problems with weights (CSV, Parquet), or a measured table")
    ],
    /,
    *,
    k: Annotated[Whole, Parameter(name="-k", help="how many kernels, at most")] = None,
    hardware: HardwareName = "h200",
    space: SpaceFile = None,
    kernels: Annotated[
        Path | None, Parameter(help="a table of kernels to choose from, instead (CSV, Parquet)")
    ] = None,
    include: Annotated[Names, Parameter(help="kernels that must be in: NAME,NAME,...")] = (),
    exclude: Annotated[
        Names, Parameter(help="kernels that must not: NAME,NAME,...; * stands for any letters")
    ] = (),
    within_pct: Annotated[
        float | None,
        Parameter(help="per cent that no problem may be slower than on its best kernel"),
    ] = None,
    budget: Annotated[
        float | None, Parameter(help="what building the set may cost, at most")
    ] = None,
    build_cost: Annotated[
        str | None, Parameter(help="the kernels' column of build costs; default: build_cost")
    ] = None,
    measured: Annotated[
        bool, Parameter(negative="", help="choose by the table's measured times, not predictions")
    ] = False,
    timeout: Annotated[
        float, Parameter(help="seconds; then the best found so far is printed, with its bound")
    ] = 120.0,
    out: Annotated[
        Path | None,
        Parameter(help="a directory for the set, the assignment, the loss, and lists for tools"),
    ] = None,
    json: AsJson = False,
) -> int:
    """The few kernels to ship: with which a workload takes the least time, proved.

    wsjax choose workload.csv -k 8 --hardware h200 --out chosen

    A workload has columns m, n, k, and where needed batch, dtype_in, dtype_out, layout, weight (how
    often the problem comes) and problem (its name). Kernels come from `--space`, `--kernels`, the
    workload's own table, or the default space.

    Each problem runs on the best kernel of the set. What is printed is proved, or, at `--timeout`
    and Ctrl-C, comes with how much better a set could be; the exit code is then 4 or 130. It is 3
    if no set of kernels meets all constraints; those that conflict are named. `--measured` takes
    the workload's measured times, and only pairs of problem and kernel that were measured.

    `--out` gets `kernels.csv`, `assignment.parquet`, `loss.csv` and `loss.svg` (loss against every
    kernel for k = 1, 2, ...), `cutlass_filter.txt` (for `cutlass_profiler --kernels=` and
    CUTLASS_LIBRARY_KERNELS) and `triton_configs.py`.
    """
    from wsjax import portfolio
    from wsjax.tables import make_writable

    if k is None:
        raise InputError("-k: missing; how many kernels to choose at most, such as -k 8")
    if out is not None:
        make_writable(out)
    with telling("choosing kernels; Ctrl-C: the best so far", quiet=json):
        choice = portfolio.choose(
            workload,
            k,
            hardware=hardware,
            space=space,
            kernels=kernels,
            include=include,
            exclude=exclude,
            within_pct=within_pct,
            budget=budget,
            build_cost=build_cost,
            measured=measured,
            timeout_s=timeout,
        )
    written = [] if out is None else write_choice(choice, out)
    if json:
        show_json(choice.record())
    else:
        _show(choice)
        if not measured:
            _show_extrapolation(choice)
        if written:
            print(f"written to {out}: {', '.join(written)}")
            _show_missing(choice)
    return exit_code(proved=choice.proved, interrupted=choice.interrupted)


def write_choice(choice: "Choice", directory: Path) -> list[str]:
    """The files of a choice (of pandas frames), in a directory; their names.

    `kernels.csv`, `assignment.parquet`, `loss.csv`, `loss.svg`, `triton_configs.py`, and
    `cutlass_filter.txt` if CUTLASS can have any of the kernels.
    """
    from wsjax import portfolio, tables

    texts = tables.metadata([choice.hardware])
    parts = {
        "kernels.csv": choice.kernels,
        "assignment.parquet": choice.assignment,
        "loss.csv": choice.loss,
    }
    for name, frame in parts.items():
        cells = portfolio.without_formulas(frame) if name.endswith(".csv") else frame
        tables.write_table(tables.from_frame(cells), directory / name, texts)
    points = [
        portfolio.Point(
            row.k, row.loss_pct, portfolio.slower_pct(row.bound_us, choice.all_us), row.proved
        )
        for row in choice.loss.itertuples()
    ]
    others = {
        "loss.svg": portfolio.loss_svg(points, _title(choice)),
        "triton_configs.py": choice.triton_configs,
        "cutlass_filter.txt": choice.cutlass_filter,
    }
    written = {name: text for name, text in others.items() if text}
    for name, text in written.items():
        with tables.replacing(directory / name) as file:
            file.write(text.encode())
    return [*parts, *written]


def _show(choice: "Choice") -> None:
    print(
        f"{len(choice.names)} of {choice.available:,} kernels for {_problems(choice)} "
        f"{MEASURED if choice.by_measured else on_machine(choice.hardware)}"
    )
    shown = choice.kernels.head(KERNELS_SHOWN)
    builds = ["build cost"] if "build_cost" in shown else []
    rows = [
        [
            row["kernel"],
            f"{row['problems']:,}",
            f"{row['time_share_pct']:.1f}",
            *(f"{row['build_cost']:g}" for _ in builds),
        ]
        for row in shown.to_dict("records")
    ]
    show_table(["kernel", "problems", "time %", *builds], rows)
    if len(choice.kernels) > len(shown):
        print(f"and {len(choice.kernels) - len(shown):,} more")
    print(
        f"{choice.time_us:,.1f} µs in all, {choice.loss_pct:.2f} % more than with every kernel; "
        f"{_proof(choice)}"
    )
    for name, why in list(choice.unable.items())[:KERNELS_SHOWN]:
        print(f"left out: {name} can run no problem: {why}")
    if len(choice.unable) > KERNELS_SHOWN:
        print(f"left out: {len(choice.unable) - KERNELS_SHOWN:,} more that can run no problem")
    losses = choice.loss.to_dict("records")
    told = [
        row
        for before, row in zip([None, *losses], losses, strict=False)
        if before is None or row["kernels"] != before["kernels"]
    ]
    rows = [
        [
            str(row["k"]),
            f"{row['time_us']:,.1f}",
            f"{row['loss_pct']:.2f}",
            f"{row['worst_pct']:.1f}",
            "yes" if row["proved"] else "no",
        ]
        for row in told
    ]
    show_table(["k", "time µs", "loss %", "worst problem %", "proved"], rows)
    if told and told[-1] is not losses[-1]:
        print(f"more than k = {told[-1]['k']} kernels save no time")
    if choice.measured is not None:
        _show_measured(choice.measured)


def _show_extrapolation(choice: "Choice") -> None:
    """Of each problem on its kernel."""
    from wsjax import schema
    from wsjax.hardware import resolve

    assigned = choice.assignment.merge(choice.kernels, on="kernel", suffixes=("", "_of_kernel"))
    columns = {name: assigned[name] for name in schema.COLUMNS if name in assigned}
    rows = schema.read_rows(columns, len(assigned), list(columns))
    configurations = resolve(rows.columns, choice.hardware)
    show_extrapolation(choice.hardware, configurations._asdict())


def _show_missing(choice: "Choice") -> None:
    """Which kernels the filter for CUTLASS leaves out."""
    missing = ", ".join(choice.not_in_cutlass[:KERNELS_SHOWN])
    if missing and choice.cutlass_filter:
        print(f"cutlass_filter.txt leaves out what CUTLASS has not: {missing}")
    elif missing:
        print("no cutlass_filter.txt: CUTLASS has none of these kernels")


def _title(choice: "Choice") -> str:
    return f"{_problems(choice)} {MEASURED if choice.by_measured else f'on {choice.hardware.name}'}"


def _problems(choice: "Choice") -> str:
    count = len(choice.assignment)
    return f"{count:,} problem{'s' * (count != 1)}"


def _proof(choice: "Choice") -> str:
    """What is known of better sets."""
    if choice.proved:
        return f"proved: no set of {choice.k} takes less ({choice.seconds:.2f} s)"
    why = "interrupted" if choice.interrupted else "time is up"
    return (
        f"not proved ({why} after {choice.seconds:.1f} s): no set of {choice.k} takes more than "
        f"{choice.gap_pct:.2g} % less"
    )


def _show_measured(measured: "MeasuredChoice") -> None:
    """The set in measured times."""
    print(
        f"measured, the set takes {measured.time_us:,.1f} µs: {measured.excess_pct:.2f} % more "
        f"than the best set with hindsight ({measured.hindsight_us:,.1f} µs)"
    )
    print(
        f"with the kernel that is predicted to be the best of the set on each problem, "
        f"{measured.picked_us:,.1f} µs: {measured.picked_excess_pct:.2f} % more"
    )
