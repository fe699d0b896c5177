"""Many traced kernels under their predictions, in one still picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wsjax import schema
from wsjax.schema import SCHEDULES
from wsjax.timelines import Comparison, Scene, measured
from wsjax.timelines import scene_of as scene
from wsjax.views.picture import FONT, LIGHT, bars, frame, legend, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KERNELS_MOST = 12
"""How many kernels one picture shows."""
COLUMNS = 2
WIDTH, ROW, GAP, BETWEEN = 15.0, 0.24, 0.66, 1.75


def write_comparisons(compared: Sequence[Comparison], out: Path) -> None:
    """Draw traced kernels under their predictions into a .png or .svg, whole or not at all."""
    save(figure(compared), out)


def figure(compared: Sequence[Comparison]) -> "Figure":
    """The first steps of each kernel from its first load on, predicted and measured.

    compared: a CTA of each, its measured period that of the kernel (`comparison.over_ctas`).
    """
    from matplotlib.figure import Figure

    scenes = [scene(one.timeline, 100, [measured(one)]) for one in compared]
    lines = -(-len(compared) // COLUMNS)
    tall = [
        max(len(s.labels) - 1 + len(s.measured[0].labels) for s in scenes[at : at + COLUMNS]) * ROW
        for at in range(0, len(scenes), COLUMNS)
    ]
    height = sum(tall) + GAP * lines + 1.5
    drawn = Figure(figsize=(WIDTH, height))
    grid = drawn.add_gridspec(
        lines,
        COLUMNS,
        height_ratios=tall,
        left=1.5 / WIDTH,
        right=1 - 0.2 / WIDTH,
        top=1 - 1.15 / height,
        bottom=0.85 / height,
        hspace=GAP / (sum(tall) / lines),
        wspace=BETWEEN / ((WIDTH - 1.7 - BETWEEN * (COLUMNS - 1)) / COLUMNS),
    )
    problems = {schema.problem_words(one.timeline.configuration) for one in compared}
    of = f", {problems.pop()}" if len(problems) == 1 else ""
    title = f"predicted and measured: first steps of {len(compared)} kernels{of}"
    drawn.text(0.25 / WIDTH, 1 - 0.4 / height, title, fontsize=13, weight="bold")
    note = (
        f"on {compared[0].timeline.hardware}; both begin with their first load; of measured loads "
        "their issue is drawn; a step: the mean time from one compute to the next, in all tiles of "
        "all CTAs"
    )
    drawn.text(0.25 / WIDTH, 1 - 0.65 / height, note, fontsize=10, color=LIGHT["soft"])
    for place, (one, own) in enumerate(zip(compared, scenes, strict=True)):
        _panel(drawn.add_subplot(grid[divmod(place, COLUMNS)]), one, own, named=not of)
    shown = [own.slices.take(own.slices.begin_us < own.windows[0].end_us) for own in scenes]
    legend(drawn, [own.take(own.track > 0) for own in shown], path=False)
    return drawn


def _panel(axes: "Axes", one: Comparison, own: Scene, *, named: bool) -> None:
    c, window, seen = one.timeline.configuration, own.windows[0], own.measured[0]
    launch_us = one.timeline.figures["launch_us"]
    end_us = window.end_us - launch_us
    warps = own.slices.take(own.slices.track > 0)
    rows = len(own.labels) - 1
    for found, row, shift in ((warps, -1, -launch_us), (seen.slices, rows, -seen.begin_us)):
        moved = found._replace(begin_us=found.begin_us + shift, end_us=found.end_us + shift)
        near = (moved.end_us > -0.1) & (moved.begin_us < end_us)
        bars(axes, moved.take(near), row, edge=True)
    axes.axhline(rows - 0.5, color=LIGHT["soft"], lw=0.8)
    labels = [*own.labels[1:], *(f"{label}, measured" for label in seen.labels)]
    more = ", pingpong" if SCHEDULES[c.schedule] == "pingpong" else ""
    problem = f"{c.m}x{c.n}x{c.k}  " if named else ""
    name = (
        f"{problem}{c.block_m}x{c.block_n}x{c.block_k}, {c.stages} stage{'s' * (c.stages > 1)}"
        f"{more}: a step {one.predicted_us:.3f} µs, measured {one.measured_us:.3f} "
        f"({one.error:+.1%})"
    )
    frame(axes, labels, -0.02 * end_us, end_us, name)
    axes.tick_params(labelsize=FONT - 1.5)
    axes.set_xlabel("")
    axes.xaxis.set_major_locator(_ticks(end_us))


def _ticks(end_us: float):
    from matplotlib.ticker import MultipleLocator

    rough = end_us / 6
    power = 10.0 ** np.floor(np.log10(rough))
    return MultipleLocator(float(power * next(x for x in (1, 2, 5, 10) if x * power >= rough)))
