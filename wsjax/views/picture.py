"""Timelines as still pictures: PNG and SVG, drawn with matplotlib (extra `wsjax[report]`)."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax.errors import InputError
from wsjax.tables import replacing
from wsjax.timelines import (
    COLD,
    COMPUTE,
    EPILOGUE,
    KINDS,
    LOAD,
    QUEUE,
    WAIT,
    WAVE,
    MeasuredScene,
    Scene,
    Slices,
    Window,
    covered,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIGHT = {
    "launch": "#9aa3ad",
    "wave": "#b9c2cc",
    "cold": "#e8d5c4",
    "wait": "#e3e7eb",
    "queue": "#a9d3ee",
    "load": "#0072b2",
    "compute": "#009e73",
    "epilogue": "#cc79a7",
    "path": "#d55e00",
    "ink": "#1c2128",
    "soft": "#59636e",
    "line": "#d5dbe1",
}
"""Colours of what happens in a kernel, after Okabe and Ito: all can tell them apart."""
MOST_STEPS = 4_000
WIDTH = 14.0
ROW = 0.42
"""Heights and widths are in inches."""
DPI = 160
NAMES = {
    "wait": "wait for a slot or data",
    "queue": "queue for the transfer",
    "cold": "cold first wave",
}
LEGEND = ("load", "queue", "compute", "epilogue", "wait", "cold", "launch")
FONT = 9
LETTER_SHARE = 0.02
"""Two windows that begin within this share of the time have one label."""
SLICES_MAX = 600
"""More slices of the whole kernel are drawn as shares of the time."""
BINS, STEPS_A_BIN = (64, 512), 8
"""How many such parts there are, at least and at most, and how many steps each should hold."""


def check_matplotlib() -> None:
    """Raise InputError if matplotlib is not there, before any work is done."""
    if find_spec("matplotlib") is None:
        raise InputError(
            "PNG and SVG pictures are drawn with matplotlib, which is not installed: "
            'pip install "wsjax[report]"'
        )


def write(scene: Scene, out: Path) -> None:
    """Draw one timeline into a .png or .svg, whole or not at all."""
    save(figure(scene), out)


def save(drawn: "Figure", out: Path) -> None:
    """Write a figure under a name that ends in .png or .svg."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "wsjax", "svg.fonttype": "none"}), replacing(out) as file:
        kind = out.suffix[1:].lower()
        drawn.savefig(file, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else {})


def figure(scene: Scene) -> "Figure":
    """The whole kernel above, two windows below, and the ring under each."""
    from matplotlib.figure import Figure

    rows = len(scene.labels)
    extra = sum(len(m.labels) for m in scene.measured)
    heights = [rows * ROW + 0.5, (rows - 1 + extra) * ROW + 0.3, 0.8]
    top = 0.72 + 0.22 * len(scene.notes)
    drawn = Figure(figsize=(WIDTH, top + sum(heights) + 2.1))
    height = drawn.get_figheight()
    edges = {"left": 1.75 / WIDTH, "right": 1 - 0.25 / WIDTH}
    top_grid = drawn.add_gridspec(
        1, 1, top=1 - top / height, bottom=1 - (top + heights[0]) / height, **edges
    )
    below = top + heights[0] + 0.95
    grid = drawn.add_gridspec(
        2,
        len(scene.windows),
        top=1 - below / height,
        bottom=0.75 / height,
        height_ratios=heights[1:],
        hspace=0.12,
        wspace=0.05,
        **edges,
    )
    _headline(drawn, scene, height)
    whole = drawn.add_subplot(top_grid[0])
    _whole(whole, scene)
    for place, window in enumerate(scene.windows):
        steps = drawn.add_subplot(grid[0, place])
        ring = drawn.add_subplot(grid[1, place])
        _steps(steps, scene, place)
        _ring(ring, scene, window, labelled=place == 0)
    legend(drawn, [scene.slices])
    return drawn


def _headline(drawn: "Figure", scene: Scene, height: float) -> None:
    left = 0.25 / WIDTH
    drawn.text(left, 1 - 0.38 / height, scene.title, fontsize=13, weight="bold", color=LIGHT["ink"])
    for place, note in enumerate(scene.notes):
        drawn.text(
            left,
            1 - (0.64 + 0.22 * place) / height,
            note,
            fontsize=10,
            color=LIGHT["path"] if place == 0 else LIGHT["soft"],
            weight="bold" if place == 0 else "normal",
        )


def legend(drawn: "Figure", shown: Sequence[Slices], *, path: bool = True) -> None:
    """What the colours mean, at the figure's foot."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    kinds = {KINDS[code] for slices in shown for code in np.unique(slices.kind)}
    handles: list[Any] = [
        Patch(color=LIGHT[kind], label=NAMES.get(kind, kind)) for kind in LEGEND if kind in kinds
    ]
    handles += [Line2D([], [], color=LIGHT["path"], lw=2, label="critical path")] if path else []
    drawn.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.15 / WIDTH, 0.02 / drawn.get_figheight()),
        ncols=len(handles),
        frameon=False,
        fontsize=FONT,
        handlelength=1.2,
        columnspacing=1.4,
    )


def _whole(axes: "Axes", scene: Scene) -> None:
    waves = scene.slices.take(scene.slices.track == 0)
    bars(axes, waves, 0, edge=False)
    warps = scene.slices.take(scene.slices.track > 0)
    if len(warps.step) > SLICES_MAX:
        _shares(axes, warps, scene)
    else:
        bars(axes, warps, 0, edge=False)
    waves = waves.take(waves.kind == WAVE)
    if len(waves.step) <= 60:
        numbers = np.arange(1, len(waves.step) + 1)
        for number, begin, end in zip(numbers, waves.begin_us, waves.end_us, strict=True):
            if (end - begin) / scene.time_us > 0.012:
                middle = (begin + end) / 2
                axes.text(middle, 0, f"{number}", ha="center", va="center", fontsize=FONT - 1)
    begins = [window.begin_us for window in scene.windows]
    letters = [" a", " b"]
    if len(begins) > 1 and begins[1] - begins[0] < LETTER_SHARE * scene.time_us:
        letters = [" a, b", ""]
    for letter, window in zip(letters, scene.windows, strict=False):
        if len(scene.windows) == 1:
            continue
        style = {"edgecolor": LIGHT["ink"], "lw": 0.8, "ls": (0, (3, 2))}
        axes.axvspan(window.begin_us, window.end_us, fill=False, **style)
        axes.text(window.begin_us, -0.6, letter, fontsize=FONT - 1, va="bottom")
    labels = ("output tiles", *scene.labels[1:])
    frame(axes, labels, 0.0, scene.time_us, "")


def _shares(axes: "Axes", warps: Slices, scene: Scene) -> None:
    """Of many slices, what each track does in each part of the time."""
    bins = int(np.clip(scene.steps / STEPS_A_BIN, *BINS))
    edges = np.linspace(0.0, scene.time_us, bins + 1)
    for track in np.unique(warps.track):
        bottom = np.full(bins, track + 0.37)
        for kind in (COMPUTE, LOAD, EPILOGUE, QUEUE, COLD, WAIT):
            part = warps.take((warps.track == track) & (warps.kind == kind))
            share = covered(part, edges) / (edges[1] - edges[0])
            top = bottom - 0.74 * share
            axes.stairs(top, edges, baseline=bottom, fill=True, color=LIGHT[KINDS[kind]], lw=0)
            bottom = top


def _steps(axes: "Axes", scene: Scene, place: int) -> None:
    window = scene.windows[place]
    shown = scene.slices.take(scene.slices.track > 0).within(window.begin_us, window.end_us)
    bars(axes, shown._replace(track=shown.track - 1), 0, edge=True)
    _numbers(axes, shown._replace(track=shown.track - 1), scene, window)
    labels = list(scene.labels[1:])
    for measured, shift in zip(scene.measured, window.shift_us, strict=True):
        _measured(axes, scene, measured, shift, len(labels), window)
        labels += [f"{label}, measured" for label in measured.labels]
    _path(axes, scene, window)
    if scene.measured:
        axes.axhline(len(scene.labels) - 1.5, color=LIGHT["soft"], lw=0.8)
    several = len(scene.windows) > 1
    name = f"{'ab'[place]}   {window.name}" if several else window.name
    if scene.measured and place:
        moved = (
            f"{shift - first:+.2f} µs"
            for shift, first in zip(window.shift_us, scene.windows[0].shift_us, strict=True)
        )
        name += f" (measured moved by {', '.join(moved)})"
    frame(axes, labels, window.begin_us, window.end_us, name, labelled=place == 0)
    axes.tick_params(labelbottom=False)
    axes.set_xlabel("")


def _path(axes: "Axes", scene: Scene, window: Window) -> None:
    """The critical path under the bars that are on it; dotted between them."""
    from matplotlib.collections import LineCollection

    line = scene.line
    near = (line.time_us >= window.begin_us - 1) & (line.time_us <= window.end_us + 1)
    pairs = near.reshape(-1, 2).all(axis=1).repeat(2)
    points = np.column_stack([line.time_us, line.track - 1 + 0.42])[pairs]
    axes.plot(*points.T, color=LIGHT["path"], lw=1.3, ls=(0, (1, 1.2)))
    solid = LineCollection(points.reshape(-1, 2, 2).tolist(), colors=LIGHT["path"], linewidths=2.4)
    axes.add_collection(solid, autolim=False)


def _measured(
    axes: "Axes", scene: Scene, measured: MeasuredScene, shift: float, row: int, window: Window
) -> None:
    shown = measured.slices.moved(shift).within(window.begin_us, window.end_us)
    bars(axes, shown, row, edge=True)
    _numbers(axes, shown._replace(track=shown.track + row), scene, window)


def _ring(axes: "Axes", scene: Scene, window: Window, *, labelled: bool) -> None:
    times, filled, loading = scene.ring
    axes.fill_between(times, filled, step="post", color=LIGHT["load"], lw=0)
    both = filled + loading
    axes.fill_between(times, filled, both, step="post", color=LIGHT["queue"], lw=0)
    axes.axhline(scene.depth, color=LIGHT["ink"], lw=0.8, ls=(0, (3, 2)))
    axes.set_ylim(0, scene.depth * 1.15)
    axes.set_yticks([0, scene.depth])
    _plain(axes, window.begin_us, window.end_us)
    axes.tick_params(labelleft=labelled)
    for place, (text, colour) in enumerate(
        (("ring slots", "ink"), ("■ filled", "load"), ("■ loading", "queue"))
    ):
        if labelled:
            axes.annotate(
                text,
                (0, 0.5),
                (-22, 9 - 11 * place),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=FONT - place * 0.5,
                color=LIGHT[colour],
            )


def bars(axes: "Axes", slices: Slices, row: int, *, edge: bool) -> None:
    """Slices as bars, track 0 in row `row`; one collection a kind and track."""
    for track in np.unique(slices.track):
        for kind in np.unique(slices.kind[slices.track == track]):
            shown = slices.take((slices.track == track) & (slices.kind == kind))
            height = 0.46 if kind in (WAIT, COLD) else 0.74
            colours: Any = LIGHT[KINDS[kind]]
            if kind == WAVE:
                colours = [("#c3cbd4", "#dde2e8")[place % 2] for place in range(len(shown.step))]
            axes.broken_barh(
                np.column_stack([shown.begin_us, shown.end_us - shown.begin_us]).tolist(),
                (track + row - height / 2, height),
                facecolors=colours,
                edgecolor="white" if edge else "none",
                linewidth=0.6 if edge else 0,
            )


def _numbers(axes: "Axes", shown: Slices, scene: Scene, window: Window) -> None:
    """The number of its step, from 0 in its tile, in every bar that has room for it."""
    letter_us = (window.end_us - window.begin_us) * 0.0048 * len(scene.windows)
    for row in zip(*(x.tolist() for x in shown), strict=True):
        track, kind, begin, end, step, _, _ = row
        begin, end = max(begin, window.begin_us), min(end, window.end_us)
        text = f"{step % scene.k_tiles}"
        if kind in (LOAD, COMPUTE) and end - begin > letter_us * (len(text) + 0.6):
            axes.text(
                (begin + end) / 2,
                track - 0.02,
                text,
                ha="center",
                va="center",
                fontsize=FONT - 2,
                color="white",
            )


def frame(
    axes: "Axes",
    labels: Any,
    begin: float,
    end: float,
    title: str,
    *,
    labelled: bool = True,
) -> None:
    """Rows with their labels, and the time axis."""
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.set_yticks(range(len(labels)), labels if labelled else [""] * len(labels))
    axes.set_title(title, loc="left", fontsize=FONT + 1, color=LIGHT["ink"], pad=4)
    _plain(axes, begin, end)


def _plain(axes: "Axes", begin: float, end: float) -> None:
    axes.set_xlim(begin, end)
    axes.set_xlabel("µs since the kernel's begin", fontsize=FONT, color=LIGHT["soft"])
    axes.tick_params(labelsize=FONT, color=LIGHT["line"], labelcolor=LIGHT["ink"], length=3)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LIGHT["line"])
    axes.grid(axis="x", color=LIGHT["line"], lw=0.5)
    axes.set_axisbelow(True)
