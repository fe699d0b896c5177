"""What the command line prints of a sweep: its progress, and its summary."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wsjax.sweeps import Summary, load_run, output_directory, sweep

IF_VARIED = ("hardware", "DMA")
"""Columns of a summary that are left out where all its rows agree."""
PIPE_WIDTH = 120
INTERRUPTED = 130


def run_sweep(spec: Path, out: Path | None, *, quiet: bool) -> int:
    """Run a sweep with a progress bar on a terminal's stderr, and print its summary."""
    run = load_run(spec)
    directory = output_directory(run, out)
    try:
        with _progress(run.name, quiet=quiet) as advance:
            summary = sweep(run, directory, progress=advance)
    except KeyboardInterrupt:
        print(
            f"wsjax: interrupted; {directory} keeps the finished shards: "
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
        TextColumn("{task.description}"),
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

    print(f"{summary.rows:,} rows of {summary.candidates:,} candidates in {summary.directory}")
    if summary.filtered:
        print(f"{summary.filtered:,} did not pass the filter")
    for reason, count in summary.illegal.items():
        print(f"{count:,} illegal: {reason}")
    if summary.resumed:
        print(f"{summary.resumed} of {summary.shards} shards were there already")
    if summary.fastest is None:
        return
    rows = [_cells(row, swept) for row in summary.best]
    fastest = _cells(summary.fastest, swept)
    if fastest not in rows:
        rows.append(fastest)
        print("fastest configurations of the first problems; last: most TFLOP/s of all")
    else:
        print("fastest configurations")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown = [name for name in fastest if name not in IF_VARIED or len({r[name] for r in rows}) > 1]
    for name in shown:
        right = name not in ("problem", "hardware", "schedule")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "problem")
    for row in rows:
        table.add_row(*(row[name] for name in shown))
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def _cells(row: Mapping[str, Any], swept: Sequence[str]) -> dict[str, str]:
    """One row of a sweep as a line of its summary: headings and texts."""
    return {
        "problem": f"{row.get('problem', '')} {row['m']}x{row['n']}x{row['k']}".strip(),
        "hardware": row["hardware"],
        **{name: f"{row[name]:g}" for name in swept},
        "tile": "x".join(str(row[name]) for name in ("block_m", "block_n", "block_k")),
        "stages": str(row["stages"]),
        "DMA": str(row["dma_warps"]),
        "schedule": row["schedule"],
        "time µs": f"{row['time_us']:,.2f}",
        "TFLOP/s": f"{row['tflops']:,.1f}",
    }
