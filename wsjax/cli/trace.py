"""`wsjax trace`: when every load and compute of a kernel happens, as text, in a file, and beside
traced kernels."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wsjax.cli.app import NOTHING_GIVEN, ConfigurationOptions, HardwareName, app
from wsjax.cli.terminal import show_extrapolation, show_table, telling
from wsjax.errors import InputError, gather

if TYPE_CHECKING:
    from wsjax.hardware import Hardware
    from wsjax.schema import Configuration
    from wsjax.timelines import Comparison, Timeline, Trace

PIPE_WIDTH, WIDTHS = 120, (60, 160)
"""Columns of a timeline: in a pipe; at least and at most in a terminal."""
MOST_STEPS = 4_000
LISTED = 24
"""More kernels of several problems are shown as configurations by problems."""
KERNEL_HEADINGS = ("tile", "stages", "DMA", "MATH", "schedule")


@app.command
def trace(
    *,
    configuration: ConfigurationOptions = NOTHING_GIVEN,
    hardware: HardwareName = "h200",
    measured: Annotated[
        Path | None,
        Parameter(help="a table of traced kernels (CSV or Parquet) to set beside the predictions"),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(help="draw it, too: .json (Chrome trace, for Perfetto), .html, .svg or .png"),
    ] = None,
    quiet: Annotated[bool, Parameter(negative="", help="only write --out's file")] = False,
) -> int:
    """Show when every load and compute of one configuration starts and ends.

    wsjax trace -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4 --out t.html

    wsjax trace --measured trace.csv.gz --hardware h200-gluon -m 4096 --out traced.png

    `--measured` sets traced kernels under their predictions, with the error of a step's period. The
    options choose some of them; without any, all are compared: in a table, up to 12 in one picture.
    Pictures and pages need `pip install 'wsjax[report]'`.
    """
    from wsjax import schema, timelines
    from wsjax.hardware import load_hardware, resolve_one

    missing = ", or --measured FILE" if measured is None else None
    machine, numbers, _ = gather(
        partial(load_hardware, hardware),
        partial(schema.from_options, configuration.given(), missing),
        partial(_check, out, quiet=quiet),
    )
    if measured is None:
        with telling("playing the kernel", quiet=quiet):
            resolved = resolve_one(numbers, machine)
            timeline = timelines.timeline_of(resolved, machine)
        if not quiet:
            _show_timeline(timeline, [])
            show_extrapolation(machine, resolved._asdict())
        if out is not None:
            _draw([], timeline, out, quiet=quiet)
        return 0
    with telling(f"reading {measured}", quiet=quiet):
        kernels = _matching(timelines.read(measured), numbers, measured)
    if out is not None:
        _check_count(out, kernels)
    with telling(f"predicting {len(kernels)} traced kernels", quiet=quiet):
        compared = [_compared(kernel, machine) for kernel in kernels]
    timeline = compared[0][0].timeline
    if not quiet:
        if len(compared) == 1:
            _show_timeline(timeline, compared[0][:1])
        _show_errors(compared)
    if out is not None:
        shown = compared[0][:1] if len(compared) == 1 else map(timelines.over_ctas, compared)
        _draw(list(shown), timeline, out, quiet=quiet)
    return 0


def _check(out: Path | None, *, quiet: bool) -> None:
    """Raise InputError if no timeline can be written there, before any work is done."""
    from wsjax.views import check_timeline_file

    if out is not None:
        check_timeline_file(out)
    elif quiet:
        raise InputError("--quiet: leaves nothing to do without --out; give a file")


def _matching(read: "list[Trace]", numbers: Mapping[str, int], path: Path) -> "list[list[Trace]]":
    """The traced kernels that have these values, each with its CTAs."""
    from wsjax.schema import COLUMNS
    from wsjax.timelines import configuration

    kernels: dict[tuple, list[Trace]] = {}
    for trace in read:
        kernels.setdefault(trace.kernel[:-1], []).append(trace)
    matching = [
        ctas
        for ctas in kernels.values()
        for columns in [configuration(ctas[0])]
        if all(columns.get(name, COLUMNS[name].default_number) == x for name, x in numbers.items())
    ]
    if not matching:
        raise InputError(
            f"{path}: none of its {len(kernels)} kernels is like that; it has "
            f"{_as_options(next(iter(kernels.values()))[0])} and others: leave options out to see "
            "all"
        )
    return matching


def _check_count(out: Path, kernels: "Sequence[list[Trace]]") -> None:
    """Raise InputError if a file cannot show so many kernels."""
    from wsjax import views

    most = views.KERNELS_MOST if out.suffix.lower() in (".png", ".svg") else 1
    if len(kernels) > most:
        shows = f"shows at most {most} kernels" if most > 1 else "shows one kernel"
        raise InputError(
            f"{out}: such a file {shows}, and {len(kernels)} traced ones match; say which, such as "
            f"{_as_options(kernels[0][0])}"
        )


def _as_options(trace: "Trace") -> str:
    """A traced kernel as options."""
    from wsjax.schema import BLOCKS, sizes
    from wsjax.timelines import configuration

    columns = configuration(trace)
    problem = " ".join(f"-{name} {columns[name]}" for name in "mnk")
    ring = f"--stages {columns['stages']} --dma-warps {columns['dma_warps']}"
    return f"{problem} --tile {sizes(columns, BLOCKS)} {ring}"


def _compared(kernel: "Sequence[Trace]", machine: "Hardware") -> "list[Comparison]":
    from wsjax import timelines
    from wsjax.schema import resolve_one

    c = resolve_one(timelines.configuration(kernel[0]), machine.facts)
    predicted = timelines.timeline_of(c, machine, ran=True)
    return [timelines.compare(trace, predicted) for trace in kernel]


def _show_timeline(t: "Timeline", compared: "Sequence[Comparison]") -> None:
    from rich.console import Console

    from wsjax import timelines, views

    width = PIPE_WIDTH
    if sys.stdout.isatty():
        width = min(max(Console().width, WIDTHS[0]), WIDTHS[1])
    scene = timelines.scene_of(
        t, MOST_STEPS, [timelines.measured(comparison) for comparison in compared]
    )
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    for line in (scene.title, *scene.notes, "", *views.timeline_text(scene, width)):
        console.print(line)


def _draw(compared: "Sequence[Comparison]", t: "Timeline", out: Path, *, quiet: bool) -> None:
    """Draw one timeline, or traced kernels under their predictions, into a file."""
    from wsjax import timelines, views

    with telling(f"drawing {out}", quiet=quiet):
        if len(compared) > 1:
            views.write_comparisons(compared, out)
        else:
            views.write_timeline(
                t, out, [timelines.measured(comparison) for comparison in compared]
            )
    if not quiet:
        opens = "; opens in Perfetto and chrome://tracing" if out.suffix.lower() == ".json" else ""
        print(f"written to {out}{opens}")


def _show_errors(compared: "Sequence[Sequence[Comparison]]") -> None:
    """Print the period of each kernel's step, the measured one as the mean over its CTAs."""
    import numpy as np

    from wsjax.timelines import over_ctas

    means = [over_ctas(ctas) for ctas in compared]
    problems = list(dict.fromkeys(_problem(mean.timeline.configuration) for mean in means))
    if len(compared) > LISTED and len(problems) > 1:
        _show_by_problem(means, problems)
    else:
        rows = [
            [
                _problem(mean.timeline.configuration),
                *_kernel(mean.timeline.configuration),
                f"{len(ctas)}",
                f"{mean.predicted_us:.3f} µs",
                f"{mean.measured_us:.3f} µs",
                f"{mean.error:+.1%}",
            ]
            for ctas, mean in zip(compared, means, strict=True)
        ]
        figures = ("CTAs", "step, predicted", "measured", "error")
        show_table(("problem", *KERNEL_HEADINGS, *figures), rows, left=(0, 1, 5))
    errors = np.array([mean.error for mean in means])
    errors = errors[np.isfinite(errors)]
    if len(errors) > 1:
        print(
            f"error of a step's period: mean {np.mean(errors):+.1%}, "
            f"mean absolute {np.mean(np.abs(errors)):.1%}, "
            f"from {errors.min():+.1%} to {errors.max():+.1%}"
        )


def _show_by_problem(means: "Sequence[Comparison]", problems: Sequence[str]) -> None:
    """Errors: a row a configuration, a column a problem."""
    import numpy as np

    print("error of a step's period, predicted to measured")
    errors: dict[tuple[str, ...], dict[str, float]] = {}
    for mean in means:
        c = mean.timeline.configuration
        errors.setdefault(_kernel(c), {})[_problem(c)] = mean.error
    rows = [
        [
            *kernel,
            *(f"{by_problem[name]:+.1%}" if name in by_problem else "" for name in problems),
            f"{np.nanmean(np.abs(list(by_problem.values()))):.1%}",
        ]
        for kernel, by_problem in errors.items()
    ]
    show_table([*KERNEL_HEADINGS, *problems, "mean absolute"], rows, left=(0, 4))


def _kernel(c: "Configuration") -> tuple[str, ...]:
    from wsjax.schema import BLOCKS, SCHEDULES, sizes

    return (
        sizes(c._asdict(), BLOCKS),
        f"{c.stages}",
        f"{c.dma_warps}",
        f"{c.math_warps}",
        SCHEDULES[c.schedule],
    )


def _problem(c: "Configuration") -> str:
    from wsjax.schema import sizes

    return sizes(c._asdict(), "mnk")
