"""Timelines as HTML pages, drawn with Plotly (extra `wsjax[report]`): zoom from the whole kernel
down to single steps."""

from pathlib import Path
from typing import Any

import numpy as np

from wsjax.tables import replacing
from wsjax.timelines import Scene, Slices
from wsjax.views.pages.html import Section, packed, page

MOST_STEPS = 10_000
LEAD = (
    "Drag to move, scroll to zoom; the buttons go to the whole kernel, its first steps, and the "
    "end of an output tile. Numbers are steps of an output tile."
)
TYPES = ("u1", "u1", "f8", "f8", "u4", "u4", "u1")
NAMES = ("track", "kind", "begin", "end", "step", "steps", "critical")


def write(found: Scene, out: Path) -> None:
    """Write a page, whole or not at all."""
    text = page(found.title, [Section("timeline", "", LEAD)], data(found), ["trace.js"], "")
    with replacing(out) as file:
        file.write(text.encode())


def data(found: Scene) -> dict[str, Any]:
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
