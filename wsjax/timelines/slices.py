"""A timeline as slices of time on tracks, one a warp role: what pictures and trace files are made
of.

A long timeline is condensed: its first and last steps stay, and groups of those between become one
wait and one load or compute each, so that waits add up all the same.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from wsjax.timelines import steps as played
from wsjax.timelines.steps import count, math_groups
from wsjax.timelines.timeline import Timeline

KINDS = ("launch", "wave", "cold", "wait", "queue", "load", "compute", "epilogue")
"""wave: one output tile of the CTA. cold: what a cold first wave adds to the wait for the first
data. queue: for the transfer server that two DMA warps share."""
LAUNCH, WAVE, COLD, WAIT, QUEUE, LOAD, COMPUTE, EPILOGUE = range(len(KINDS))
GROUPS = 1000
"""How many groups of steps condensing leaves on a track, at most."""
TAIL_SHARE = 0.25
SHORTEST_US = 1e-12


class Slices(NamedTuple):
    """Slices in order of tracks and time: arrays (slices,)."""

    track: np.ndarray
    """The position in `tracks`."""
    kind: np.ndarray
    """The position in `KINDS`."""
    begin_us: np.ndarray
    """From the kernel's begin; of traced CTAs, from theirs."""
    end_us: np.ndarray
    """Likewise."""
    step: np.ndarray
    """The first step of the slice, counted over all output tiles."""
    steps: np.ndarray
    """How many steps it stands for (a wave: all of its tile's)."""
    critical: np.ndarray
    """Whether it is on the critical path."""

    def take(self, rows: Any) -> "Slices":
        """Only these slices (a mask or positions)."""
        return Slices(*(x[rows] for x in self))

    def moved(self, by_us: float) -> "Slices":
        """The same slices so much later."""
        return self._replace(begin_us=self.begin_us + by_us, end_us=self.end_us + by_us)

    def within(self, begin_us: float, end_us: float) -> "Slices":
        """The slices of which a part lies between two times."""
        return self.take((self.end_us > begin_us) & (self.begin_us < end_us))


class _Row(NamedTuple):
    """A track's events, one a step: arrays (steps,), times in µs from the kernel's begin."""

    busy: int
    """LOAD, COMPUTE or WAVE."""
    step: np.ndarray
    """Its step, counted over all output tiles."""
    turn: np.ndarray
    """The warp comes to the step, and waits."""
    begin: np.ndarray
    """It has its slot or data, and queues for the transfer."""
    queued: np.ndarray
    """It loads or computes."""
    end: np.ndarray
    """It has loaded or computed."""
    until: np.ndarray
    """The epilogue behind it ends; `end` where there is none."""
    critical: np.ndarray
    """Whether the load or compute is on the critical path."""
    ends_critical: np.ndarray
    """Whether the epilogue is."""
    missing_us: float
    """Waits of the steps that are not played, summed."""

    def take(self, kept: np.ndarray) -> "_Row":
        """Only the steps of a mask."""
        arrays = {name: x[kept] for name, x in self._asdict().items() if isinstance(x, np.ndarray)}
        return self._replace(**arrays)


def tracks(t: Timeline) -> tuple[str, ...]:
    """What the tracks are called: the kernel, the DMA warps, the MATH groups."""
    return ("kernel", *names(t.pipeline.dma_warps, math_groups(t.pipeline)))


def names(dma_warps: int, math_groups: int) -> tuple[str, ...]:
    """What the warps' tracks are called."""
    dma = ("DMA warp A", "DMA warp B") if dma_warps == 2 else ("DMA warp",)
    math = ("MATH group 1", "MATH group 2") if math_groups == 2 else ("MATH warps",)
    return (*dma, *math)


def slices(t: Timeline, most: int | None = None) -> Slices:
    """All slices of a timeline, condensed to about `most` steps one by one."""
    pieces = [columns(0, LAUNCH, [0.0], [t.figures["launch_us"]], [0], 0, True)]
    for track, row in enumerate(_rows(t)):
        pieces += _pieces(track, row, t, most)
    return merged(pieces)


def merged(pieces: Iterable[Slices]) -> Slices:
    """Slices in order of tracks and time, without those that take no time."""
    joined = Slices(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    joined = joined.take(joined.end_us - joined.begin_us > SHORTEST_US)
    return joined.take(np.lexsort((joined.begin_us, joined.track)))


def covered(slices: Slices, edges: np.ndarray) -> np.ndarray:
    """How long slices that do not overlap last between each two edges."""
    times = np.column_stack([slices.begin_us, slices.end_us]).ravel()
    spent = np.cumsum(
        np.column_stack([np.zeros(len(slices.step)), slices.end_us - slices.begin_us])
    )
    total = np.interp(edges, np.append(0.0, times), np.append(0.0, spent)) if len(times) else 0.0
    return np.diff(np.broadcast_to(total, edges.shape))


def one_by_one(steps: int, most: int | None) -> np.ndarray:
    """Which of so many steps stay by themselves if at most `most` do: the first and the last."""
    if most is None or steps <= most:
        return np.ones(steps, dtype=bool)
    tail = int(most * TAIL_SHARE)
    at = np.arange(steps)
    return (at < most - tail) | (at >= steps - tail)


def filled_slots(t: Timeline, most: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, filled slots from then on, slots being loaded): how the ring fills and empties.

    Where steps are in groups, because there are more than `most`, it counts as empty.
    """
    s = t.steps
    times = np.concatenate([s.released, s.acquire_b, s.ready])
    filled = np.repeat([-1, 0, 1], len(s.start))
    loading = np.repeat([0, 1, -1], len(s.start))
    order = np.argsort(times, kind="stable")
    times, filled, loading = times[order], np.cumsum(filled[order]), np.cumsum(loading[order])
    last = np.append(np.diff(times) > SHORTEST_US, True)
    times, filled, loading = times[last], filled[last], loading[last]
    single = one_by_one(len(s.start), most)
    if single.all():
        return times, filled, loading
    begin, end = s.acquire_b[np.flatnonzero(~single)[[0, -1]]]
    gone = (times > begin) & (times < end)
    first = gone & ~np.append(False, gone[:-1])
    filled, loading = np.where(gone, 0, filled), np.where(gone, 0, loading)
    kept = ~gone | first
    return times[kept], filled[kept], loading[kept]


def _rows(t: Timeline) -> list[_Row]:
    s, p, path = t.steps, t.pipeline, t.path
    steps = np.arange(len(s.start))
    two = p.dma_warps == 2
    marked = np.zeros((4, len(steps)), dtype=bool)
    for place, kind in enumerate((played.LOAD_A, played.LOAD_B, played.COMPUTE, played.EPILOGUE)):
        marked[place, path.step[path.kind == kind]] = True
    none = np.zeros(len(steps), dtype=bool)
    waits = s.wait_a.sum() * two, s.wait_b.sum(), s.math_wait.sum()
    missing = max(t.figures["dma_wait_us"] - waits[0] - waits[1], 0.0)
    rows = [_waves(t)]
    for place, (name, load_us) in enumerate((("a", p.load_a_us), ("b", p.load_b_us))):
        if name == "a" and not two:
            continue
        acquire, done, wait = (getattr(s, f"{word}_{name}") for word in ("acquire", "done", "wait"))
        queue = np.zeros(len(steps))
        if two:
            total_us = done - acquire
            queue = np.maximum(total_us - load_us - p.load_startup_us, 0.0)
        drawn = (waits[place] + SHORTEST_US) / (waits[0] + waits[1] + (1 + two) * SHORTEST_US)
        times = (acquire - wait, acquire, acquire + queue, done, done)
        rows.append(_Row(LOAD, steps, *times, marked[place], none, missing * drawn))
    groups = math_groups(p)
    until = np.where(np.isfinite(s.epilogue), s.epilogue, s.end)
    missing = max(t.figures["math_wait_us"] - waits[2], 0.0) / max(waits[2], SHORTEST_US)
    for group in range(groups):
        mine = (steps // p.k_tiles) % groups == group
        share = missing * s.math_wait[mine].sum()
        times = (s.turn, s.start, s.start, s.end, until)
        rows.append(_Row(COMPUTE, steps, *times, marked[2], marked[3], share).take(mine))
    return rows


def _waves(t: Timeline) -> _Row:
    """The CTA's output tiles, each from MATH's turn on to the next one's."""
    n = t.pipeline.k_tiles
    first = np.arange(0, len(t.steps.start), n)
    begin = t.steps.turn[first]
    begin[:1] = t.figures["launch_us"]
    whole_us = t.time_us if t.complete else t.steps.end[-1]
    end = np.append(begin[1:], whole_us)
    none = np.zeros(len(first), dtype=bool)
    return _Row(WAVE, first, begin, begin, begin, end, end, none, none, 0.0)


def _pieces(track: int, row: _Row, t: Timeline, most: int | None) -> list[Slices]:
    """The slices of a track."""
    n = len(t.steps.start)
    width = t.pipeline.k_tiles if row.busy == WAVE else 1
    single = one_by_one(n, most)[row.step]
    pieces: list[Slices] = []
    if not single.all():
        pieces = _groups(track, row, ~single, -(-(n - (most or 0)) // GROUPS), width)
    r = row.take(single)
    many = np.full(len(r.step), width)
    pieces += [
        columns(track, WAIT, r.turn, r.begin, r.step, many, False),
        columns(track, QUEUE, r.begin, r.queued, r.step, many, False),
        columns(track, r.busy, r.queued, r.end, r.step, many, r.critical),
        columns(track, EPILOGUE, r.end, r.until, r.step, many, r.ends_critical),
    ]
    launch_us = t.figures["launch_us"]
    if row.busy == COMPUTE and len(row.step) and row.step[0] == 0 and t.pipeline.tiles > 1:
        pieces.append(columns(track, COLD, [launch_us], row.turn[:1], [0], [1], False))
    if not t.complete and len(row.step):
        pieces += _rest(track, row, t)
    return pieces


def _groups(track: int, row: _Row, inside: np.ndarray, size: int, width: int) -> list[Slices]:
    """Steps in groups of `size`: all waits of a group, then its queues, loads or computes, and
    epilogues."""
    at = np.flatnonzero(inside)
    if not len(at):
        return []
    group = (row.step[at] - row.step[at[0]]) // size
    bounds = np.flatnonzero(np.diff(group, prepend=-1))
    members = np.diff(np.append(bounds, len(at)))
    parts = ((row.turn, row.begin), (row.begin, row.queued), (row.queued, row.end))
    lasts = [
        np.add.reduceat((end - begin)[at], bounds) for begin, end in (*parts, (row.end, row.until))
    ]
    times = row.turn[at[bounds]] + np.cumsum([np.zeros(len(bounds)), *lasts], axis=0)
    critical = np.add.reduceat(row.critical[at].astype(int), bounds) * 2 > members
    step, many = row.step[at[bounds]], members * width
    return [
        columns(track, kind, times[place], times[place + 1], step, many, critical & (place == 2))
        for place, kind in enumerate((WAIT, QUEUE, row.busy, EPILOGUE))
    ]


def _rest(track: int, row: _Row, t: Timeline) -> list[Slices]:
    """What was not played, in even groups: a wait, then loads or computes. Output tiles: in one."""
    played, total = len(t.steps.start), count(t.pipeline)
    pieces = 1 if row.busy == WAVE else min(GROUPS, total - played)
    step = np.linspace(played, total, pieces + 1).astype(int)
    edges = np.linspace(row.until[-1], t.time_us, pieces + 1)
    waited = np.minimum(edges[:-1] + row.missing_us / pieces, edges[1:])
    many = np.diff(step)
    return [
        columns(track, WAIT, edges[:-1], waited, step[:-1], many, False),
        columns(track, row.busy, waited, edges[1:], step[:-1], many, False),
    ]


def columns(
    track: int, kind: int, begin: Any, end: Any, step: Any, steps: Any, critical: Any
) -> Slices:
    """Slices of one track and kind."""
    begin = np.asarray(begin, float)
    shape = begin.shape
    return Slices(
        np.full(shape, track),
        np.full(shape, kind),
        begin,
        np.asarray(end, float),
        np.asarray(step, int),
        np.broadcast_to(np.asarray(steps, int), shape),
        np.broadcast_to(np.asarray(critical, bool), shape),
    )
