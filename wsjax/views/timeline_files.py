"""Timelines as files, by what their name ends in.

`.json` is Chrome's trace format, which opens in Perfetto and in chrome://tracing: one track a warp
role, and two counters, slots of the ring that are filled and being loaded. Slices are pairs of
begin and end events, so that neighbours share their very timestamp and no viewer rounds them into
one another; timestamps are µs. `.html` is a page, drawn with Plotly, to zoom from the whole kernel
down to single steps; `.svg` and `.png` are still pictures (see `picture`). Pages and pictures need
`pip install 'wsjax[report]'`. Several traced kernels under their predictions make one picture.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import schema
from wsjax.errors import InputError
from wsjax.schema import BLOCKS, SCHEDULES
from wsjax.tables import check_place, replacing
from wsjax.timelines import (
    KINDS,
    LAUNCH,
    WAIT,
    WAVE,
    Comparison,
    MeasuredScene,
    Scene,
    Slices,
    Timeline,
    filled_slots,
    measured,
    scene_of,
    slices_of,
    title,
    tracks,
)
from wsjax.views import picture
from wsjax.views.html import Section, check_plotly, packed, page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS_MOST = {".json": 20_000, ".html": 10_000, ".svg": 4_000, ".png": 4_000}
"""How many steps a file of each kind shows."""
KERNELS_MOST = 12
"""How many kernels one picture shows."""
GRID_COLUMNS = 2
GRID_WIDTH, GRID_ROW, GAP, BETWEEN = 15.0, 0.24, 0.66, 1.75
"""Inches."""
PROCESS = 1
LEAD = (
    "Drag to move, scroll to zoom; the buttons go to the whole kernel, its first steps, and the "
    "end of an output tile. Numbers are steps of an output tile."
)
TYPES = ("u1", "u1", "f8", "f8", "u4", "u4", "u1")
NAMES = ("track", "kind", "begin", "end", "step", "steps", "critical")


def check_timeline_file(out: Path) -> None:
    """Raise InputError if no timeline can be written there, before any work is done."""
    kind = out.suffix.lower()
    if kind not in STEPS_MOST:
        kinds = ".json (Chrome trace), .html, .svg or .png"
        raise InputError(f"{out}: a timeline's name ends in {kinds}; choose one of them")
    check_place(out)
    if kind == ".html":
        check_plotly()
    elif kind != ".json":
        picture.check_matplotlib()


def write_timeline(t: Timeline, out: Path, measured: Sequence[MeasuredScene] = ()) -> None:
    """Write one timeline, whole or not at all; `measured`: traced CTAs to draw under it."""
    kind = out.suffix.lower()
    most = STEPS_MOST[kind]
    if kind in (".svg", ".png"):
        picture.write(scene_of(t, most, measured), out)
        return
    if kind == ".json":
        trace = {
            "displayTimeUnit": "ns",
            "otherData": {"time_us": t.time_us, "hardware": t.hardware},
            "traceEvents": list(chrome_events(t, title(t), most)),
        }
        text = json.dumps(trace, allow_nan=False, separators=(",", ":"))
    else:
        scene = scene_of(t, most, measured)
        sections = [Section("timeline", "", LEAD)]
        text = page(scene.title, sections, _page_data(scene), ["trace.js"], "")
    with replacing(out) as file:
        file.write(text.encode())


def chrome_events(t: Timeline, name: str, most: int) -> Iterator[dict[str, Any]]:
    """The events of a trace file of at most so many steps; the process is called `name`."""
    yield _named("process_name", 0, name)
    for track, role in enumerate(tracks(t)):
        yield _named("thread_name", track, role)
        yield {**_named("thread_sort_index", track, ""), "args": {"sort_index": track}}
    slices = slices_of(t, most)
    for row in zip(*(x.tolist() for x in slices), strict=True):
        yield from _slice(t, *row)
    ring = (x.tolist() for x in filled_slots(t, most))
    for time, full, coming in zip(*ring, strict=True):
        yield {
            "name": "ring slots",
            "ph": "C",
            "pid": PROCESS,
            "ts": time,
            "args": {"filled": full, "loading": coming},
        }


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": PROCESS, "tid": track, "args": {"name": name}}


def _slice(
    t: Timeline,
    track: int,
    kind: int,
    begin_us: float,
    end_us: float,
    step: int,
    steps: int,
    critical: bool,
) -> Iterator[dict[str, Any]]:
    p = t.pipeline
    tile, in_tile = divmod(step, p.k_tiles)
    name, args = KINDS[kind], {}
    if kind == WAVE:
        first, last = tile + 1, (step + steps - 1) // p.k_tiles + 1
        name = f"wave {first} of {p.tiles}" if first == last else f"waves {first} to {last}"
    elif kind != LAUNCH:
        args = {"tile": tile, "step": in_tile, "slot": step % p.stages}
        args |= {"steps": steps} if steps > 1 else {}
        args |= {"critical": True} if critical else {}
    if kind == WAIT:
        name = "wait for data" if tracks(t)[track].startswith("MATH") else "wait for a slot"
    where = {"pid": PROCESS, "tid": track}
    yield {"name": name, "cat": KINDS[kind], "ph": "B", "ts": begin_us, **where, "args": args}
    yield {"name": name, "cat": KINDS[kind], "ph": "E", "ts": end_us, **where}


def _page_data(scene: Scene) -> dict[str, Any]:
    """What the page's script reads."""
    times, filled, loading = scene.ring
    kernel = {"name": "whole kernel", "begin": 0.0, "end": scene.time_us}
    shift = scene.windows[0].shift_us
    return {
        "subtitle": scene.notes[0],
        "notes": scene.notes[1:],
        "facts": [],
        "labels": scene.labels,
        "k_tiles": scene.k_tiles,
        "depth": scene.depth,
        "time": scene.time_us,
        "slices": _packed(scene.slices),
        "ring": {
            "time": packed(times, "f8"),
            "filled": packed(filled, "u1"),
            "loading": packed(loading, "u1"),
        },
        "path": {
            "time": packed(scene.line.time_us, "f8"),
            "track": packed(scene.line.track, "u1"),
        },
        "windows": [
            {**kernel, "shift": shift},
            *(
                {"name": w.name, "begin": w.begin_us, "end": w.end_us, "shift": w.shift_us}
                for w in scene.windows
            ),
        ],
        "measured": [
            {"labels": cta.labels, "slices": _packed(cta.slices)} for cta in scene.measured
        ],
    }


def _packed(slices: Slices) -> dict[str, Any]:
    return {
        name: packed(np.asarray(values), kind)
        for name, values, kind in zip(NAMES, slices, TYPES, strict=True)
    }


def write_comparisons(compared: Sequence[Comparison], out: Path) -> None:
    """Draw traced kernels under their predictions into a .png or .svg, whole or not at all."""
    picture.save(comparisons_figure(compared), out)


def comparisons_figure(compared: Sequence[Comparison]) -> "Figure":
    """The first steps of each kernel from its first load on, predicted and measured.

    compared: a CTA of each, its measured period that of the kernel (`comparison.over_ctas`).
    """
    from matplotlib.figure import Figure

    scenes = [scene_of(comparison.timeline, 100, [measured(comparison)]) for comparison in compared]
    lines = -(-len(compared) // GRID_COLUMNS)
    tall = [
        max(len(s.labels) - 1 + len(s.measured[0].labels) for s in scenes[at : at + GRID_COLUMNS])
        * GRID_ROW
        for at in range(0, len(scenes), GRID_COLUMNS)
    ]
    height = sum(tall) + GAP * lines + 1.5
    drawn = Figure(figsize=(GRID_WIDTH, height))
    grid = drawn.add_gridspec(
        lines,
        GRID_COLUMNS,
        height_ratios=tall,
        left=1.5 / GRID_WIDTH,
        right=1 - 0.2 / GRID_WIDTH,
        top=1 - 1.15 / height,
        bottom=0.85 / height,
        hspace=GAP / (sum(tall) / lines),
        wspace=BETWEEN / ((GRID_WIDTH - 1.7 - BETWEEN * (GRID_COLUMNS - 1)) / GRID_COLUMNS),
    )
    problems = {schema.problem_words(comparison.timeline.configuration) for comparison in compared}
    of = f", {problems.pop()}" if len(problems) == 1 else ""
    title = f"predicted and measured: first steps of {len(compared)} kernels{of}"
    drawn.text(0.25 / GRID_WIDTH, 1 - 0.4 / height, title, fontsize=13, weight="bold")
    note = (
        f"on {compared[0].timeline.hardware}; both begin with their first load; of measured loads "
        "their issue is drawn; a step: the mean time from one compute to the next, in all tiles of "
        "all CTAs"
    )
    drawn.text(0.25 / GRID_WIDTH, 1 - 0.65 / height, note, fontsize=10, color=picture.LIGHT["soft"])
    for place, (comparison, scene) in enumerate(zip(compared, scenes, strict=True)):
        _panel(
            drawn.add_subplot(grid[divmod(place, GRID_COLUMNS)]), comparison, scene, named=not of
        )
    shown = [scene.slices.take(scene.slices.begin_us < scene.windows[0].end_us) for scene in scenes]
    picture.legend(drawn, [scene.take(scene.track > 0) for scene in shown], path=False)
    return drawn


def _panel(axes: "Axes", comparison: Comparison, scene: Scene, *, named: bool) -> None:
    c, window, seen = comparison.timeline.configuration, scene.windows[0], scene.measured[0]
    launch_us = comparison.timeline.figures["launch_us"]
    end_us = window.end_us - launch_us
    warps = scene.slices.take(scene.slices.track > 0)
    rows = len(scene.labels) - 1
    for slices, row, shift in ((warps, -1, -launch_us), (seen.slices, rows, -seen.begin_us)):
        picture.bars(axes, slices.moved(shift).within(-0.1, end_us), row, edge=True)
    axes.axhline(rows - 0.5, color=picture.LIGHT["soft"], lw=0.8)
    labels = [*scene.labels[1:], *(f"{label}, measured" for label in seen.labels)]
    more = ", pingpong" if SCHEDULES[c.schedule] == "pingpong" else ""
    columns = c._asdict()
    problem = f"{schema.sizes(columns, 'mnk')}  " if named else ""
    name = (
        f"{problem}{schema.sizes(columns, BLOCKS)}, {c.stages} stage{'s' * (c.stages > 1)}{more}: "
        f"a step {comparison.predicted_us:.3f} µs, measured {comparison.measured_us:.3f} "
        f"({comparison.error:+.1%})"
    )
    picture.frame(axes, labels, -0.02 * end_us, end_us, name)
    axes.tick_params(labelsize=picture.FONT - 1.5)
    axes.set_xlabel("")
    axes.xaxis.set_major_locator(_ticks(end_us))


def _ticks(end_us: float):
    from matplotlib.ticker import MultipleLocator

    rough = end_us / 6
    power = 10.0 ** np.floor(np.log10(rough))
    return MultipleLocator(float(power * next(x for x in (1, 2, 5, 10) if x * power >= rough)))
