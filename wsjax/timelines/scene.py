"""What a picture of a timeline shows, before any library draws it: rows, critical path, windows.

Beside the whole kernel two windows are shown: its first steps, and some steps around the end of an
output tile. Measured events stand under the predicted ones: their first load begins where the
predicted one does, and in the second window its first step starts where the predicted one does.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wsjax import schema
from wsjax.model import PINGPONG
from wsjax.schema import LIMITERS
from wsjax.timelines import critical
from wsjax.timelines.critical import COMPUTE as PATH_COMPUTE
from wsjax.timelines.critical import EPILOGUE as PATH_EPILOGUE
from wsjax.timelines.critical import LATENCY, LOAD_A
from wsjax.timelines.slices import Slices, filled_slots, one_by_one, slices, tracks
from wsjax.timelines.timeline import Timeline

STEPS_MIN, STEPS_MAX = 8, 20
"""How many steps a window shows, at least and at most."""
AROUND = 5
"""Steps shown before and behind the end of a tile."""


class Measured(NamedTuple):
    """A traced CTA's rows: what each is called, its slices (in µs since the CTA began), when each
    step's compute starts, and when the first load begins. note: what is to be said of it."""

    name: str
    labels: tuple[str, ...]
    slices: Slices
    start_us: np.ndarray
    begin_us: float
    note: str


class Window(NamedTuple):
    """A part of the time axis. shift_us: what is added to measured times in it, a CTA each."""

    name: str
    begin_us: float
    end_us: float
    shift_us: tuple[float, ...]


class Line(NamedTuple):
    """The critical path as a line over times and tracks (of `slices.tracks`)."""

    time_us: np.ndarray
    track: np.ndarray


class Scene(NamedTuple):
    """What to draw. labels: of the predicted tracks. notes: lines under the title."""

    title: str
    notes: tuple[str, ...]
    labels: tuple[str, ...]
    slices: Slices
    line: Line
    ring: tuple[np.ndarray, np.ndarray, np.ndarray]
    depth: int
    k_tiles: int
    steps: int
    time_us: float
    windows: tuple[Window, ...]
    measured: tuple[Measured, ...]


def scene(t: Timeline, most: int, measured: Sequence[Measured] = ()) -> Scene:
    """What to draw of a timeline, condensed to about `most` steps."""
    return Scene(
        title=title(t),
        notes=(*notes(t, most), *(m.note for m in measured)),
        labels=tracks(t),
        slices=slices(t, most),
        line=_line(t, most),
        ring=filled_slots(t, most),
        depth=t.pipeline.stages,
        k_tiles=t.pipeline.k_tiles,
        steps=len(t.steps.start),
        time_us=t.time_us,
        windows=windows(t, measured),
        measured=tuple(measured),
    )


def title(t: Timeline) -> str:
    """The configuration and the machine, in one line."""
    c = t.configuration
    return f"{schema.problem_words(c)}, {schema.kernel_words(c)}, on {t.hardware}"


def notes(t: Timeline, most: int) -> tuple[str, ...]:
    """What limits it, what the critical path is made of, and what is not shown step by step."""
    found = [f"{t.time_us:,.2f} µs, {critical.name(t.pipeline, LIMITERS[t.figures['limiter']])}"]
    found.append(path_text(t))
    steps, played = t.pipeline.k_tiles * t.pipeline.tiles, len(t.steps.start)
    shown = min(played, most)
    if shown < steps:
        means = "" if t.complete else f", those after the first {played:,} by their mean"
        found.append(
            f"{shown:,} of {steps:,} steps are drawn one by one, the others in groups{means}"
        )
    return tuple(found)


def path_text(t: Timeline) -> str:
    """What the critical path is made of, in one line."""
    shares = (f"{k} {v:.0%}" if v > 0 else f"{k} saves {-v:.0%}" for k, v in parts(t).items())
    return f"critical path: {', '.join(shares)}"


def parts(t: Timeline) -> dict[str, float]:
    """The shares of the time that the critical path spends, 0.5 % and more; negative where it saves
    time. Of a kernel that is not played to its end: of the time that is."""
    spent = {"launch": t.figures["launch_us"], **critical.shares(t.pipeline, t.path)}
    spent |= {"cold first wave": t.first_us}
    if t.complete:
        spent |= {"partial last wave": t.last_us}
    whole = (t.time_us if t.complete else float(t.steps.end[-1])) or 1.0
    return {name: us / whole for name, us in spent.items() if abs(us / whole) >= 0.005}


def windows(t: Timeline, measured: Sequence[Measured] = ()) -> tuple[Window, ...]:
    """The first steps, and those around the end of an output tile."""
    s, n = t.steps, t.pipeline.k_tiles
    total = len(s.start)
    launch_us = t.figures["launch_us"]
    shift = tuple(launch_us - m.begin_us for m in measured)
    if total <= STEPS_MAX:
        return (_window("all steps", launch_us, t.time_us, shift),)
    last = min(max(2 * t.pipeline.stages + 2, STEPS_MIN), STEPS_MAX) - 1
    first = _window("first steps", launch_us, float(s.end[last]), shift)
    tile = 2 if t.pipeline.tiles > 2 else 1
    at = min(tile * n, total)
    begin, end = max(at - AROUND, 0), min(at + AROUND, total) - 1
    until = t.time_us if end == total - 1 else float(s.end[end])
    shift = tuple(
        float(s.start[begin] - m.start_us[begin]) if begin < len(m.start_us) else 0.0
        for m in measured
    )
    name = f"end of tile {tile}" if at == total else f"from tile {tile} to tile {tile + 1}"
    return first, _window(name, float(s.turn[begin]), until, shift)


def _window(name: str, begin_us: float, end_us: float, shift: tuple[float, ...]) -> Window:
    margin = 0.02 * (end_us - begin_us)
    return Window(name, max(begin_us - margin, 0.0), end_us + margin, shift)


def _line(t: Timeline, most: int) -> Line:
    s, path, p = t.steps, t.path, t.pipeline
    here = (path.kind != LATENCY) & one_by_one(len(s.start), most)[path.step]
    kind, step = path.kind[here], path.step[here]
    loads_a, computes, ends = kind == LOAD_A, kind == PATH_COMPUTE, kind == PATH_EPILOGUE
    which = [loads_a, computes, ends]
    begin = np.select(which, [s.acquire_a[step], s.start[step], s.end[step]], s.acquire_b[step])
    end = np.select(which, [s.done_a[step], s.end[step], s.epilogue[step]], s.done_b[step])
    queued = np.minimum(np.maximum(begin[1:], end[:-1]), end[1:])
    begin[1:] = np.where(computes[1:] | ends[1:], begin[1:], queued)
    dma = p.dma_warps
    group = (step // p.k_tiles) % 2 if p.schedule == PINGPONG else 0
    track = np.where(computes | ends, dma + 1 + group, np.where(loads_a, 1, dma))
    return Line(np.column_stack([begin, end]).ravel(), np.repeat(track, 2))
