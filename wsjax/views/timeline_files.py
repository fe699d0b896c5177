"""Timelines as files, by what their name ends in.

`.json` is Chrome's trace format, which opens in Perfetto and in chrome://tracing: one track a warp
role, and two counters, slots of the ring that are filled and being loaded. Slices are pairs of
begin and end events, so that neighbours share their very timestamp and no viewer rounds them into
one another; timestamps are µs. `.html` is a page, drawn with Plotly, to zoom from the whole kernel
down to single steps; `.svg` and `.png` are still pictures (see `picture`). Pages and pictures need
`pip install 'wsjax[report]'`.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wsjax.errors import InputError
from wsjax.tables import check_place, replacing
from wsjax.timelines import (
    KINDS,
    LAUNCH,
    WAIT,
    WAVE,
    MeasuredScene,
    Scene,
    Slices,
    Timeline,
    filled_slots,
    scene_of,
    slices_of,
    title,
    tracks,
)
from wsjax.views import picture
from wsjax.views.html import Section, check_plotly, packed, page

STEPS_MOST = {".json": 20_000, ".html": 10_000, ".svg": 4_000, ".png": 4_000}
"""How many steps a file of each kind shows."""
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
        found = scene_of(t, most, measured)
        sections = [Section("timeline", "", LEAD)]
        text = page(found.title, sections, _page_data(found), ["trace.js"], "")
    with replacing(out) as file:
        file.write(text.encode())


def chrome_events(t: Timeline, name: str, most: int) -> Iterator[dict[str, Any]]:
    """The events of a trace file of at most so many steps; the process is called `name`."""
    yield _named("process_name", 0, name)
    for track, role in enumerate(tracks(t)):
        yield _named("thread_name", track, role)
        yield {**_named("thread_sort_index", track, ""), "args": {"sort_index": track}}
    found = slices_of(t, most)
    for row in zip(*(x.tolist() for x in found), strict=True):
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


def _page_data(found: Scene) -> dict[str, Any]:
    """What the page's script reads."""
    times, filled, loading = found.ring
    whole = {"name": "whole kernel", "begin": 0.0, "end": found.time_us}
    shift = found.windows[0].shift_us
    return {
        "subtitle": found.notes[0],
        "notes": found.notes[1:],
        "facts": [],
        "labels": found.labels,
        "k_tiles": found.k_tiles,
        "depth": found.depth,
        "time": found.time_us,
        "slices": _packed(found.slices),
        "ring": {
            "time": packed(times, "f8"),
            "filled": packed(filled, "u1"),
            "loading": packed(loading, "u1"),
        },
        "path": {
            "time": packed(found.line.time_us, "f8"),
            "track": packed(found.line.track, "u1"),
        },
        "windows": [
            {**whole, "shift": shift},
            *(
                {"name": w.name, "begin": w.begin_us, "end": w.end_us, "shift": w.shift_us}
                for w in found.windows
            ),
        ],
        "measured": [
            {"labels": one.labels, "slices": _packed(one.slices)} for one in found.measured
        ],
    }


def _packed(found: Slices) -> dict[str, Any]:
    return {
        name: packed(np.asarray(values), kind)
        for name, values, kind in zip(NAMES, found, TYPES, strict=True)
    }
