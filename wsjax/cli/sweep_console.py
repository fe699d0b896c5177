"""What the command line prints of a sweep: its progress, and its summary."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from wsjax.cli.console import number
from wsjax.cli.terminal import INTERRUPTED
from wsjax.sweeps import Summary, load_run, output_directory, sweep
from wsjax.tables import public

ALIKE = "alike"
IF_VARIED = {"hardware": set(), "DMA": set(), ALIKE: {"1"}}
"""Columns of a summary that are left out where all its rows agree, and agree with this."""
PIPE_WIDTH = 120


def run_sweep(
    spec: str,
    out: str | None,
    *,
    shard_rows: int | None,
    engine: str,
    address: str | None,
    quiet: bool,
) -> int:
    """Run a sweep with a progress bar on a terminal's stderr, and print its summary."""
    run = load_run(spec)
    directory = output_directory(run, out)
    try:
        with _progress(run.name, quiet=quiet) as advance:
            summary = sweep(
                run,
                directory,
                shard_rows=shard_rows,
                engine=engine,
                address=address,
                progress=advance,
            )
    except KeyboardInterrupt:
        print(
            f"wsjax: interrupted; {public(directory)} keeps the finished shards: "
            "repeat the command to go on from there",
            file=sys.stderr,
        )
        return INTERRUPTED
    if not quiet:
        _show_summary(summary, [override.name for override in run.overrides])
    return 0


@contextmanager
def _progress(name: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A function to call with rows done and rows in all; it draws only on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, rate="compiling")

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f} rows/s" if speed else "")

        yield advance


def _show_summary(summary: Summary, swept: Sequence[str]) -> None:
    """Rows and why others are not there; the fastest configurations of the first problems."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    directory = public(summary.directory)
    print(f"{summary.rows:,} rows of {summary.candidates:,} candidates in {directory}")
    if summary.filtered:
        print(f"{summary.filtered:,} did not pass the filter")
    for reason, count in summary.illegal.items():
        print(f"{count:,} illegal: {reason}")
    if summary.beaten and summary.best:
        print(f"{summary.beaten:,} are not among the best of their problem")
    elif summary.beaten:
        print(f"{summary.rows + summary.beaten:,} legal: the rows tell how their times are spread")
    if summary.bounded:
        looked = f"the times of {summary.evaluated:,} were looked at"
        print(f"bounds alone ruled out {summary.bounded:,}; {looked}")
    if summary.resumed:
        print(f"{summary.resumed} of {summary.shards} shards were there already")
    if summary.fastest is None:
        return
    rows = [_cells(leader.row, swept) | {ALIKE: f"{leader.alike:,}"} for leader in summary.best]
    fastest = _cells(summary.fastest, swept)
    if any(fastest.items() <= row.items() for row in rows):
        print("fastest configurations")
    else:
        rows.append(fastest)
        print("fastest configurations of some problems; last: most TFLOP/s of all")
    if any(leader.alike > 1 for leader in summary.best):
        which = "of the rows kept" if summary.beaten else "configurations"
        print(f"{ALIKE}: how many {which} have that time; the first of them is shown")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown = [
        name
        for name in rows[0]
        if name not in IF_VARIED or len({row.get(name, "1") for row in rows} | IF_VARIED[name]) > 1
    ]
    for name in shown:
        right = name not in ("problem", "hardware", "schedule")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "problem")
    for row in rows:
        table.add_row(*(row.get(name, "") for name in shown))
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(width=width, markup=False, emoji=False).print(table)


def _cells(row: Mapping[str, Any], swept: Sequence[str]) -> dict[str, str]:
    """One row of a sweep as a line of its summary: headings and texts."""
    return {
        "problem": f"{row.get('problem', '')} {row['m']}x{row['n']}x{row['k']}".strip(),
        "hardware": row["hardware"],
        **{name: f"{row[name]:.12g}" for name in swept},
        "tile": "x".join(str(row[name]) for name in ("block_m", "block_n", "block_k")),
        "stages": str(row["stages"]),
        "DMA": str(row["dma_warps"]),
        "schedule": row["schedule"],
        "time µs": number(row["time_us"], 2),
        "TFLOP/s": number(row["tflops"], 1),
    }
