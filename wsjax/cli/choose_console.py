"""What `wsjax choose` prints, and the files that it writes."""

import json
import sys
from pathlib import Path
from typing import Any

from wsjax import tables
from wsjax.cli.terminal import INTERRUPTED, telling
from wsjax.errors import InputError
from wsjax.portfolio import Choice, Point, choose, loss_svg, slower_pct
from wsjax.portfolio import MeasuredChoice as Measured
from wsjax.tables import make_writable, replacing

KERNELS_SHOWN = 32
PIPE_WIDTH = 160


def run_choose(
    workload: Path, k: int | None, out: Path | None, *, as_json: bool, **options: Any
) -> int:
    """Choose, write the files, and print the answer; the exit code, `INTERRUPTED` after Ctrl-C."""
    if k is None:
        raise InputError("-k: missing; how many kernels to choose at most, such as -k 8")
    if out is not None:
        make_writable(out)
    with telling("choosing kernels; Ctrl-C: the best so far", quiet=as_json):
        found = choose(workload, k, **options)
    written = [] if out is None else write_choice(found, out)
    if as_json:
        print(json.dumps(found.record(), allow_nan=False))
    else:
        _show(found)
        if written:
            print(f"written to {out}: {', '.join(written)}")
            _show_missing(found)
    return INTERRUPTED if found.interrupted else 0


def write_choice(found: Choice, directory: Path) -> list[str]:
    """The files of a choice, in a directory; their names.

    `kernels.csv`, `assignment.parquet`, `loss.csv`, `loss.svg`, `triton_configs.py`, and
    `cutlass_filter.txt` if CUTLASS can have any of the kernels.
    """
    texts = tables.metadata([found.hardware])
    parts = {
        "kernels.csv": found.kernels,
        "assignment.parquet": found.assignment,
        "loss.csv": found.loss,
    }
    for name, frame in parts.items():
        table = frame if tables.is_arrow(frame) else tables.from_frame(frame)
        tables.write_table(table, directory / name, texts)
    loss = found.loss.to_pandas() if tables.is_arrow(found.loss) else found.loss
    points = [
        Point(row.k, row.loss_pct, slower_pct(row.bound_us, found.all_us), row.proved)
        for row in loss.itertuples()
    ]
    others = {
        "loss.svg": loss_svg(points, f"{_problems(found)} on {found.hardware.name}"),
        "triton_configs.py": found.triton_configs,
        "cutlass_filter.txt": found.cutlass_filter,
    }
    written = {name: text for name, text in others.items() if text}
    for name, text in written.items():
        with replacing(directory / name) as file:
            file.write(text.encode())
    return [*parts, *written]


def _show(found: Choice) -> None:
    data = "calibrated" if found.hardware.calibrated else "not calibrated"
    print(
        f"{len(found.names)} of {found.available:,} kernels for {_problems(found)} "
        f"on {found.hardware.name} ({data})"
    )
    shown = found.kernels.head(KERNELS_SHOWN)
    builds = "build_cost" in shown
    _table(
        ["kernel", "problems", "time %", *(["build cost"] if builds else [])],
        [
            [
                row["kernel"],
                f"{row['problems']:,}",
                f"{row['time_share_pct']:.1f}",
                *([f"{row['build_cost']:g}"] if builds else []),
            ]
            for row in shown.to_dict("records")
        ],
    )
    if len(found.kernels) > len(shown):
        print(f"and {len(found.kernels) - len(shown):,} more")
    print(
        f"{found.time_us:,.1f} µs in all, {found.loss_pct:.2f} % more than with every kernel; "
        f"{_proof(found)}"
    )
    _table(
        ["k", "time µs", "loss %", "worst problem %", "proved"],
        [
            [
                str(row["k"]),
                f"{row['time_us']:,.1f}",
                f"{row['loss_pct']:.2f}",
                f"{row['worst_pct']:.1f}",
                "yes" if row["proved"] else "no",
            ]
            for row in found.loss.to_dict("records")
        ],
    )
    if found.measured is not None:
        _show_measured(found.measured)


def _show_missing(found: Choice) -> None:
    """Which kernels the filter for CUTLASS leaves out."""
    missing = ", ".join(found.not_in_cutlass[:KERNELS_SHOWN])
    if missing and found.cutlass_filter:
        print(f"cutlass_filter.txt leaves out what CUTLASS has not: {missing}")
    elif missing:
        print("no cutlass_filter.txt: CUTLASS has none of these kernels")


def _problems(found: Choice) -> str:
    count = len(found.assignment)
    return f"{count:,} problem{'s' * (count != 1)}"


def _proof(found: Choice) -> str:
    """What is known of better sets."""
    if found.proved:
        return f"proved: no set of {found.k} takes less ({found.seconds:.2f} s)"
    why = "interrupted" if found.interrupted else "time is up"
    return (
        f"not proved ({why} after {found.seconds:.1f} s): no set of {found.k} takes more than "
        f"{found.gap_pct:.2g} % less"
    )


def _show_measured(measured: Measured) -> None:
    """The set in measured times."""
    print(
        f"measured, the set takes {measured.time_us:,.1f} µs: {measured.excess_pct:.2f} % more "
        f"than the best set with hindsight ({measured.hindsight_us:,.1f} µs)"
    )
    print(
        f"with the kernel that is predicted to be the best of the set on each problem, "
        f"{measured.picked_us:,.1f} µs: {measured.picked_excess_pct:.2f} % more"
    )


def _table(headings: list[str], rows: list[list[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, heading in enumerate(headings):
        left = heading == "kernel" or position == 0
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(width=width, markup=False, emoji=False).print(table)
