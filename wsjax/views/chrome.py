"""Timelines in Chrome's trace format: they open in Perfetto and in chrome://tracing.

One track a warp role, and two counters: slots of the ring that are filled, and being loaded.
Slices are pairs of begin and end events, so that neighbours share their very timestamp and no
viewer rounds them into one another. Timestamps are µs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wsjax.tables import replacing
from wsjax.timelines import KINDS, LAUNCH, WAIT, WAVE, Timeline, filled_slots, tracks
from wsjax.timelines import slices_of as slices

MOST_STEPS = 20_000
PROCESS = 1


def events(t: Timeline, title: str) -> Iterator[dict[str, Any]]:
    """The events of a trace file. `title`: what the process is called."""
    yield _named("process_name", 0, title)
    for track, name in enumerate(tracks(t)):
        yield _named("thread_name", track, name)
        yield {**_named("thread_sort_index", track, ""), "args": {"sort_index": track}}
    found = slices(t, MOST_STEPS)
    for row in zip(*(x.tolist() for x in found), strict=True):
        yield from _slice(t, *row)
    ring = (x.tolist() for x in filled_slots(t, MOST_STEPS))
    for time, full, coming in zip(*ring, strict=True):
        yield {
            "name": "ring slots",
            "ph": "C",
            "pid": PROCESS,
            "ts": time,
            "args": {"filled": full, "loading": coming},
        }


def write(t: Timeline, title: str, out: Path) -> None:
    """Write a trace file, whole or not at all."""
    whole = {
        "displayTimeUnit": "ns",
        "otherData": {"time_us": t.time_us, "hardware": t.hardware},
        "traceEvents": list(events(t, title)),
    }
    with replacing(out) as file:
        file.write(json.dumps(whole, allow_nan=False, separators=(",", ":")).encode())


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
