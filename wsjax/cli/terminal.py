"""What verbs share in printing: a status line, a progress bar, tables, numbers, JSON, and words."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wsjax.errors import UnfinishedError

if TYPE_CHECKING:
    from rich.table import Table

    from wsjax.hardware import Hardware

INTERRUPTED = 130
"""The exit code of a verb that Ctrl-C ended, with what it had found."""
PIPE_WIDTH = 200
LONG = 1e9
"""From here on numbers are shown as powers of ten."""


def exit_code(*, proved: bool, interrupted: bool) -> int:
    """The exit code of a search: 0 if its answer is proved, else why it ended early."""
    return 0 if proved else INTERRUPTED if interrupted else UnfinishedError.exit_code


@contextmanager
def telling(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Say on a terminal's stderr what is being done."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False).status(text):
        yield


@contextmanager
def progress(
    text: str, *, begin: str = "", quiet: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """A function to call with rows done and rows in all; it draws a bar on a terminal's stderr.

    begin: what stands in place of the rate before the first call.
    """
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
        task = bar.add_task(text, total=None, rate=begin)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f} rows/s" if speed else "")

        yield advance


def show_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[int] = (0,),
    spare: Sequence[int] = (),
    title: str = "",
) -> None:
    """Print a table; in a narrow terminal without the columns `spare`, as far as must be.

    headings: without any, rows are pairs of a label and its value. left: the columns of text,
    which stand to the left and may go on in a second line; the others are numbers.
    """
    from rich.console import Console

    rows, dropped = list(rows), 0
    if not rows:
        return
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    table = _table(headings, rows, left, (), title)
    while dropped < len(spare) and _wide(table) > console.width:
        dropped += 1
        table = _table(headings, rows, left, spare[:dropped], title)
    console.print(table)
    if dropped:
        names = ", ".join(headings[position] for position in spare[:dropped])
        print(f"the terminal is too narrow for {names}; `| less -S` shows all")


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int],
    dropped: Sequence[int],
    title: str,
) -> "Table":
    from rich import box
    from rich.table import Table

    shown = [position for position in range(len(rows[0])) if position not in dropped]
    table = Table(
        box=box.SIMPLE_HEAD if headings else box.SIMPLE,
        pad_edge=False,
        show_header=bool(headings),
        title=title or None,
        title_justify="left",
        title_style="bold",
    )
    for position in shown:
        is_text = position in left
        heading = headings[position] if headings else ""
        table.add_column(
            heading,
            justify="left" if is_text else "right",
            no_wrap=not is_text,
            overflow="fold",
            min_width=len(heading),
        )
    for row in rows:
        table.add_row(*(row[position] for position in shown))
    return table


def _wide(table: "Table") -> int:
    """How many columns of a terminal a table takes."""
    from rich.console import Console

    console = Console(width=PIPE_WIDTH)
    return console.measure(table).maximum


def show_json(record: Any) -> None:
    """Print one JSON value; numbers that are not finite are null."""
    from wsjax.tables import finite

    print(json.dumps(finite(record), allow_nan=False))


def number(value: float, digits: int) -> str:
    """A number for people: with so many digits behind the point, or a power of ten."""
    return f"{value:,.{digits}f}" if abs(value) < LONG else f"{value:.6g}"


def on_machine(machine: "Hardware") -> str:
    """The machine of a prediction, and whether its parameters are fitted to measurements."""
    fitted = "calibrated" if machine.calibrated else "not calibrated"
    return f"on {machine.name} ({fitted})"


def show_extrapolation(machine: "Hardware", columns: Mapping[str, Any]) -> None:
    """Print which configuration columns lie outside what a machine was fitted to, if any does; of a
    machine that is not calibrated its heading says enough.

    columns: one value or many of each, words or their codes.
    """
    from wsjax.hardware import extrapolation

    if machine.calibrated and (why := extrapolation(machine, columns)):
        print(f"extrapolated: {why}")
