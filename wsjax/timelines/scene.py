"""What a picture of a timeline shows, before any library draws it: rows, critical path, windows.

Beside the whole kernel two windows are shown: its first steps, and some steps around the end of an
output tile. Measured events stand under the predicted ones: their first load begins where the
predicted one does, and in the second window its first step starts where the predicted one does.

The **period** of steps is the mean time from one compute's start to the next inside output tiles:
what a step costs, without launch, first data and epilogues. Predicted and measured are compared by
it (`Comparison`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wsjax import schema
from wsjax.schema import LIMITERS
from wsjax.timelines import slices as rows
from wsjax.timelines import steps as played
from wsjax.timelines import traces
from wsjax.timelines.slices import Slices, columns, filled_slots, one_by_one, slices, tracks
from wsjax.timelines.timeline import Timeline
from wsjax.timelines.traces import Trace

STEPS_MIN, STEPS_MAX = 8, 20
"""How many steps a window shows, at least and at most."""
AROUND = 5
"""Steps shown before and behind the end of a tile."""
SHARE_LEAST = 0.005


class Comparison(NamedTuple):
    """One traced CTA and the prediction of its configuration, times in µs."""

    trace: Trace
    timeline: Timeline
    measured_us: float
    predicted_us: float

    @property
    def error(self) -> float:
        """Of the predicted period, relative to the measured one."""
        return self.predicted_us / self.measured_us - 1.0


class MeasuredScene(NamedTuple):
    """What a picture shows of a traced CTA."""

    name: str
    labels: tuple[str, ...]
    """What its rows are called."""
    slices: Slices
    """The slices of its rows, in µs since the CTA began; `track` is the row."""
    start_us: np.ndarray
    """When each step's compute starts: (steps,), since the CTA began."""
    begin_us: float
    """When its first load begins."""
    note: str
    """What is to be said of it under the title."""


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
    """What to draw of a timeline. Times in µs from the kernel's begin."""

    title: str
    notes: tuple[str, ...]
    """Lines under the title."""
    labels: tuple[str, ...]
    """What the predicted tracks are called."""
    slices: Slices
    line: Line
    """The critical path."""
    ring: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Times, filled slots from then on, and slots being loaded: see `slices.filled_slots`."""
    depth: int
    """The ring's slots."""
    k_tiles: int
    """Steps of an output tile."""
    steps: int
    """How many steps were played."""
    time_us: float
    windows: tuple[Window, ...]
    measured: tuple[MeasuredScene, ...]
    """Traced CTAs, under the predicted tracks."""


def scene(t: Timeline, most: int, measured: Sequence[MeasuredScene] = ()) -> Scene:
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
    limiter = played.limiter_name(t.pipeline, LIMITERS[t.figures["limiter"]])
    lines = [f"{t.time_us:,.2f} µs, {limiter}", *learned_text(t), path_text(t)]
    steps, complete = t.pipeline.k_tiles * t.pipeline.tiles, len(t.steps.start)
    shown = min(complete, most)
    if shown < steps:
        means = "" if t.complete else f", those after the first {complete:,} by their mean"
        lines.append(
            f"{shown:,} of {steps:,} steps are drawn one by one, the others in groups{means}"
        )
    return tuple(lines)


def learned_text(t: Timeline) -> tuple[str, ...]:
    """What `predict` gives where a learned correction changes the time of the recurrences."""
    if t.predicted_us == t.time_us:
        return ()
    change = t.predicted_us / t.time_us - 1.0
    return (
        f"by the recurrences alone; predicted with the learned correction, which has no events: "
        f"{t.predicted_us:,.3f} µs ({100 * change:+.1f} %)",
    )


def path_text(t: Timeline) -> str:
    """What the critical path is made of, in one line."""
    shares = (f"{k} {v:.0%}" if v > 0 else f"{k} saves {-v:.0%}" for k, v in parts(t).items())
    return f"critical path: {', '.join(shares)}"


def parts(t: Timeline) -> dict[str, float]:
    """The shares, at least `SHARE_LEAST`, of the time that the critical path spends; negative where
    it saves time. Of a kernel that is not played to its end: of the time that is."""
    spent = {"launch": t.figures["launch_us"], **played.shares(t.pipeline, t.path)}
    spent |= {"cold first wave": t.first_us}
    if t.complete:
        spent |= {"partial last wave": t.last_us}
    total_us = (t.time_us if t.complete else float(t.steps.end[-1])) or 1.0
    return {name: us / total_us for name, us in spent.items() if abs(us / total_us) >= SHARE_LEAST}


def windows(t: Timeline, measured: Sequence[MeasuredScene] = ()) -> tuple[Window, ...]:
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
    here = (path.kind != played.LATENCY) & one_by_one(len(s.start), most)[path.step]
    kind, step = path.kind[here], path.step[here]
    loads_a = kind == played.LOAD_A
    computes, ends = kind == played.COMPUTE, kind == played.EPILOGUE
    which = [loads_a, computes, ends]
    begin = np.select(which, [s.acquire_a[step], s.start[step], s.end[step]], s.acquire_b[step])
    end = np.select(which, [s.done_a[step], s.end[step], s.epilogue[step]], s.done_b[step])
    queued = np.minimum(np.maximum(begin[1:], end[:-1]), end[1:])
    begin[1:] = np.where(computes[1:] | ends[1:], begin[1:], queued)
    dma = p.dma_warps
    group = (step // p.k_tiles) % played.math_groups(p)
    track = np.where(computes | ends, dma + 1 + group, np.where(loads_a, 1, dma))
    return Line(np.column_stack([begin, end]).ravel(), np.repeat(track, 2))


def compare(trace: Trace, timeline: Timeline) -> Comparison:
    """The periods of a traced CTA and of its prediction."""
    return Comparison(
        trace,
        timeline,
        period_us(trace.events["data_ready_math_start"], trace.k_tiles),
        period_us(timeline.steps.start, timeline.pipeline.k_tiles),
    )


def over_ctas(ctas: Sequence[Comparison]) -> Comparison:
    """A kernel's first CTA, its measured period the mean over all of them."""
    return ctas[0]._replace(measured_us=float(np.mean([cta.measured_us for cta in ctas])))


def period_us(start_us: np.ndarray, k_tiles: int) -> float:
    """The mean time from one step's start to the next, inside output tiles; NaN where none has two
    steps."""
    gaps = np.diff(start_us)
    inside = np.arange(1, len(start_us)) % k_tiles > 0
    return float(gaps[inside].mean()) if inside.any() else float("nan")


def measured(compared: Comparison) -> MeasuredScene:
    """A traced CTA's rows: of each DMA warp the waits for a slot and the issue of loads, of each
    MATH group the waits for data, the computes, and the stores of tiles.

    A compute is drawn up to the next wait where the next one starts before it is retired.
    """
    trace = compared.trace
    seen, steps = trace.events, np.arange(trace.steps)
    drawn: list[Slices] = []
    for row in range(trace.dma_warps):
        came, empty, issued = (seen[name][row] for name in traces.DMA)
        drawn += [
            columns(row, rows.WAIT, came, empty, steps, 1, False),
            columns(row, rows.LOAD, empty, issued, steps, 1, False),
        ]
    tile = steps // trace.k_tiles
    stored, done = (seen[name] for name in traces.TILE)
    for group in range(trace.math_groups):
        row, mine = trace.dma_warps + group, tile % trace.math_groups == group
        came, ready, retired = (seen[name][mine] for name in traces.MATH)
        stores = stored[tile[mine]]
        ends = np.flatnonzero(np.diff(tile[mine], append=-1))
        following = np.append(came[1:], np.inf)
        following[ends] = np.fmin(following[ends], stores[ends])
        until = np.maximum(np.minimum(retired, following), ready)
        drawn += [
            columns(row, rows.WAIT, came, ready, steps[mine], 1, False),
            columns(row, rows.COMPUTE, ready, until, steps[mine], 1, False),
        ]
        tiles = np.arange(group, len(stored), trace.math_groups)
        tiles = tiles[np.isfinite(stored[tiles] + done[tiles])]
        first = tiles * trace.k_tiles
        drawn.append(columns(row, rows.EPILOGUE, stored[tiles], done[tiles], first, 1, False))
    return MeasuredScene(
        name=f"CTA {trace.kernel[-1]}",
        labels=rows.names(trace.dma_warps, trace.math_groups),
        slices=rows.merged(drawn),
        start_us=seen["data_ready_math_start"],
        begin_us=float(seen["slot_empty"][:, 0].min()),
        note=f"a step takes {compared.predicted_us:.3f} µs as predicted, "
        f"{compared.measured_us:.3f} measured ({compared.error:+.1%}; "
        f"CTA {trace.kernel[-1]}, {trace.kernel[0]}); "
        "of measured loads their issue is drawn",
    )
