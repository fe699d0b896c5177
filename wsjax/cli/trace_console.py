"""What the command line does with timelines: shows them in a few lines, draws them into files, and
states how far off they are beside traced kernels."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from wsjax import schema, timelines, views
from wsjax.cli.terminal import telling
from wsjax.errors import InputError, gather
from wsjax.hardware import Hardware, load_hardware
from wsjax.schema import COLUMNS
from wsjax.tables import check_place
from wsjax.timelines import Comparison, Timeline, Trace, title
from wsjax.timelines import MeasuredScene as Measured
from wsjax.timelines import scene_of as scene
from wsjax.timelines import timeline_of as timeline
from wsjax.views import check_plotly

PIPE_WIDTH, WIDTHS = 120, (60, 160)
MOST_STEPS = 4_000
PROBLEM = ("m", "n", "k")
CHECKS: dict[str, Callable[[], None]] = {
    ".json": lambda: None,
    ".html": check_plotly,
    ".svg": views.check_matplotlib,
    ".png": views.check_matplotlib,
}
"""What must be there for a file of each kind."""


def run_trace(
    options: Mapping[str, int | str],
    hardware: str,
    out: Path | None,
    measured: Path | None,
    *,
    quiet: bool,
) -> int:
    """Show one configuration's timeline, or traced kernels beside their predictions."""
    alone = measured is None
    missing = ", or --measured FILE" if alone else None
    machine, numbers, _ = gather(
        partial(load_hardware, hardware),
        partial(schema.from_options, options, missing),
        partial(_check, out, quiet=quiet),
    )
    if measured is None:
        with telling("playing the kernel", quiet=quiet):
            found = timeline(schema.resolve_one(numbers, machine.facts), machine)
        _finish(found, None, out, quiet=quiet)
        return 0
    with telling(f"reading {measured}", quiet=quiet):
        kernels = _matching(timelines.read(measured), numbers, measured)
    _check_count(out, kernels)
    with telling(f"predicting {len(kernels)} traced kernels", quiet=quiet):
        compared = [_compared(kernel, machine) for kernel in kernels]
    if len(compared) == 1:
        one = compared[0]
        _finish(one[0].timeline, one[0], out, quiet=quiet)
        if not quiet:
            views.show(compared)
        return 0
    if not quiet:
        views.show(compared)
    if out is not None:
        with telling(f"drawing {out}", quiet=quiet):
            views.save(views.figure([timelines.over_ctas(one) for one in compared]), out)
        _tell_written(out, quiet=quiet)
    return 0


def _check(out: Path | None, *, quiet: bool) -> None:
    """Raise InputError if no timeline can be written there, before any work is done."""
    if out is None:
        if quiet:
            raise InputError("--quiet: leaves nothing to do without --out; give a file")
        return
    if out.suffix.lower() not in CHECKS:
        kinds = ".json (Chrome trace), .html, .svg or .png"
        raise InputError(f"{out}: a timeline's name ends in {kinds}; choose one of them")
    check_place(out)
    CHECKS[out.suffix.lower()]()


def _matching(read: list[Trace], numbers: Mapping[str, int], path: Path) -> list[list[Trace]]:
    """The traced kernels that have these values, each with its CTAs."""
    kernels: dict[tuple, list[Trace]] = {}
    for one in read:
        kernels.setdefault(one.kernel[:-1], []).append(one)
    found = [
        ctas
        for ctas in kernels.values()
        for own in [timelines.configuration(ctas[0])]
        if all(own.get(name, COLUMNS[name].default_number) == x for name, x in numbers.items())
    ]
    if not found:
        raise InputError(
            f"{path}: none of its {len(kernels)} kernels is like that; it has "
            f"{_spelled(next(iter(kernels.values()))[0])} and others: leave options out to see all"
        )
    return found


def _check_count(out: Path | None, kernels: Sequence[list[Trace]]) -> None:
    """Raise InputError if a file cannot show so many kernels."""
    if out is None or len(kernels) == 1:
        return
    most = views.MOST if out.suffix.lower() in (".png", ".svg") else 1
    if len(kernels) > most:
        shows = f"shows at most {most} kernels" if most > 1 else "shows one kernel"
        raise InputError(
            f"{out}: such a file {shows}, and {len(kernels)} traced ones match; say which, such as "
            f"{_spelled(kernels[0][0])}"
        )


def _spelled(trace: Trace) -> str:
    """A traced kernel as options."""
    own = timelines.configuration(trace)
    tile = "x".join(str(own[name]) for name in schema.BLOCKS)
    problem = " ".join(f"-{name} {own[name]}" for name in PROBLEM)
    return f"{problem} --tile {tile} --stages {own['stages']} --dma-warps {own['dma_warps']}"


def _compared(kernel: Sequence[Trace], machine: Hardware) -> list[Comparison]:
    c = schema.resolve_one(timelines.configuration(kernel[0]), machine.facts)
    predicted = timeline(c, machine, ran=True)
    return [timelines.compare(trace, predicted) for trace in kernel]


def _finish(t: Timeline, compared: Comparison | None, out: Path | None, *, quiet: bool) -> None:
    """Show one timeline, and draw it."""
    measured = [] if compared is None else [timelines.measured(compared)]
    if not quiet:
        _view(t, measured)
    if out is None:
        return
    with telling(f"drawing {out}", quiet=quiet):
        kind = out.suffix.lower()
        if kind == ".json":
            views.write_chrome_trace(t, title(t), out)
        elif kind == ".html":
            views.write_timeline_page(scene(t, views.MOST_STEPS_ON_PAGE, measured), out)
        else:
            views.write_picture(scene(t, views.MOST_STEPS_DRAWN, measured), out)
    _tell_written(out, quiet=quiet)


def _view(t: Timeline, measured: Sequence[Measured]) -> None:
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    width = int(np.clip(console.width, *WIDTHS)) if sys.stdout.isatty() else PIPE_WIDTH
    found = scene(t, MOST_STEPS, measured)
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    for line in (found.title, *found.notes, ""):
        console.print(line)
    for line in views.lines(found, width):
        console.print(line)


def _tell_written(out: Path, *, quiet: bool) -> None:
    if not quiet:
        opens = "; opens in Perfetto and chrome://tracing" if out.suffix.lower() == ".json" else ""
        print(f"written to {out}{opens}")
