"""What the command line prints of a report: its progress, and where the page is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wsjax.views import report


def run_report(source: Path, out: Path | None) -> int:
    """Write a page with a progress bar on a terminal's stderr, and say where it is."""
    with _progress(f"reading {source}") as advance:
        found = report(source, out, progress=advance)
    size = found.path.stat().st_size / 1e6
    print(f"{found.kind}, {found.content}: {found.path} ({size:.1f} MB); open it in a browser")
    return 0


@contextmanager
def _progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """A function to call with rows done and rows in all; it draws only on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(text), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
