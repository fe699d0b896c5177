"""What all verbs show: what is being done, and tables of words, however narrow the terminal."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

INTERRUPTED = 130
"""The exit code of a verb that Ctrl-C ended, with what it had found."""
PIPE_WIDTH = 200


@contextmanager
def telling(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Say on a terminal's stderr what is being done."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False).status(text):
        yield


def show_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Sequence[int] = (0,),
    spare: Sequence[int] = (),
) -> None:
    """Print a table; in a narrow terminal without the columns `spare`, as far as must be.

    left: the columns that stand to the left.
    """
    from rich.console import Console

    rows, dropped = list(rows), 0
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(width=width, markup=False, emoji=False)
    table = _table(headings, rows, left, ())
    while dropped < len(spare) and _wide(table) > console.width:
        dropped += 1
        table = _table(headings, rows, left, spare[:dropped])
    console.print(table)
    if dropped:
        names = ", ".join(headings[position] for position in spare[:dropped])
        print(f"the terminal is too narrow for {names}; `| less -S` shows all")


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int],
    dropped: Sequence[int],
) -> "Table":
    from rich import box
    from rich.table import Table

    shown = [position for position in range(len(headings)) if position not in dropped]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position in shown:
        justify = "left" if position in left else "right"
        table.add_column(headings[position], justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(row[position] for position in shown))
    return table


def _wide(table: "Table") -> int:
    """How many columns of a terminal a table takes."""
    from rich.console import Console

    console = Console(width=PIPE_WIDTH)
    return console.measure(table).maximum
