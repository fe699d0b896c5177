"""One CTA step by step, and its critical path.

`play` keeps every event of the recurrences' own scan (`wsjax.model`). `path` is the chain of
events, each starting when the one before it ends, that leads from the CTA's begin to its last
epilogue: shortening an event off the path changes nothing. Where two events end at once, MATH's own
turn goes before the data, and a DMA warp's own last load before a slot that is released.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.model import MAX_STAGES, PINGPONG, SERIAL, Events, Pipeline, played, start_carry

CHUNK_STEPS = 1024
COUNTS = ("k_tiles", "tiles", "stages", "schedule", "dma_warps", "mma_in_flight")
WAITS = ("wait_a", "wait_b", "math_wait")
LOAD_A, LOAD_B, LATENCY, COMPUTE, EPILOGUE = range(5)
"""Kinds of events on a path; one DMA warp's loads are LOAD_B."""


def numbers(pipeline: Pipeline) -> Pipeline:
    """A pipeline of arrays of one element, as Python numbers."""
    known = {name: x for name, x in pipeline._asdict().items() if x is not None}
    values = {name: float(np.asarray(x).flat[0]) for name, x in known.items()}
    return Pipeline(**values | {name: int(values[name]) for name in COUNTS})


def count(pipeline: Pipeline) -> int:
    """The steps of all output tiles of the CTA."""
    return pipeline.k_tiles * pipeline.tiles


def math_groups(pipeline: Pipeline) -> int:
    """The consumer groups that alternate output tiles."""
    return 2 if pipeline.schedule == PINGPONG else 1


def play(pipeline: Pipeline, most: int) -> Events:
    """The events of the first steps of a pipeline of Python numbers, at most `most`, as arrays;
    each step's `released` is its own slot's. `serial` repeats its tile.

    Needs float64 (`jax.enable_x64`).
    """
    p = pipeline
    serial = p.schedule == SERIAL
    steps = min(p.k_tiles if serial else count(p), most)
    data = jax.tree.map(jnp.asarray, p._replace(tiles=1 if serial else p.tiles))
    carry, chunks = start_carry(MAX_STAGES, data.compute_us), []
    for _ in range(0, steps, CHUNK_STEPS):
        carry, events = played(data, carry, CHUNK_STEPS)
        chunks.append(jax.tree.map(np.asarray, events))
    events = Events(*(np.concatenate(x)[:steps] for x in zip(*chunks, strict=True)))
    events = events._replace(released=np.append(events.released[1:], events.end[-1]))
    if not (serial and p.tiles > 1 and steps == p.k_tiles):
        return events
    tiles = min(p.tiles, max(most // steps, 1))
    begins = np.repeat(np.arange(tiles) * events.epilogue[-1], steps)
    return Events(
        *(
            np.tile(x, tiles) + (0.0 if name in WAITS else begins)
            for name, x in events._asdict().items()
        )
    )


class CriticalPath(NamedTuple):
    """A critical path in order of time: each event's kind (LOAD_A to EPILOGUE) and step.

    counts: how often each duration of a `Pipeline` is on it. With constant durations these are the
    derivatives of the CTA's time.
    """

    kind: np.ndarray
    step: np.ndarray
    counts: Mapping[str, int]


def path(p: Pipeline, events: Events) -> CriticalPath:
    """The critical path to the end of a play."""
    n, steps = p.k_tiles, len(events.start)
    repeats = 1
    if p.schedule == SERIAL and steps > n:
        repeats, steps = steps // n, n
        events = Events(*(x[:n] for x in events))
    queues = _queues(p, events)
    kind, step = (np.array(x[::-1], int) for x in _back(p, events, queues, steps))
    if p.dma_warps == 1:
        startups = 2 * np.sum(kind == LOAD_B)
    else:
        queue_a, queue_b = queues
        startups = np.sum(~queue_a[step[kind == LOAD_A]]) + np.sum(~queue_b[step[kind == LOAD_B]])
    total = {
        "load_a_us": np.sum(kind == (LOAD_A if p.dma_warps == 2 else LOAD_B)),
        "load_b_us": np.sum(kind == LOAD_B),
        "load_startup_us": startups,
        "load_latency_us": np.sum(kind == LATENCY),
        "compute_us": np.sum(kind == COMPUTE),
        "epilogue_us": np.sum(kind == EPILOGUE),
    }
    counts = {name: int(number) * repeats for name, number in total.items()}
    offsets = np.repeat(np.arange(repeats) * n, len(step))
    return CriticalPath(np.tile(kind, repeats), np.tile(step, repeats) + offsets, counts)


def _queues(p: Pipeline, events: Events) -> tuple[np.ndarray, np.ndarray]:
    """Which loads of A, and of B, of two DMA warps begin when the other warp's transfer ends."""
    before_b = np.append(0.0, events.done_b[:-1])
    queue_a = before_b > events.acquire_a + p.load_startup_us
    return queue_a, events.done_a >= events.acquire_b + p.load_startup_us


def _back(
    p: Pipeline, events: Events, queues: tuple[np.ndarray, np.ndarray], steps: int
) -> tuple[list[int], list[int]]:
    """The events of a path from its last to its first, and their steps.

    Each event follows what it waited for, if it waited, and else the warp's own event before.
    """
    n, depth, two = p.k_tiles, p.stages, p.dma_warps == 2
    waited_a, waited_b, waited = ((x > 0).tolist() for x in (getattr(events, w) for w in WAITS))
    queue_a, queue_b = (x.tolist() for x in queues)
    late_release = (events.released > events.end).tolist()
    held = np.append(False, events.end[:-1] < events.turn[1:]).tolist()
    kinds, at = [], []

    def before_load(g: int, kind: int, waited: list[bool]) -> tuple[int, int]:
        """What a load of step g waited for: its warp's last load, or a released slot."""
        if not waited[g]:
            return kind, g - 1
        other = g - depth
        return (LATENCY, other + 1) if late_release[other] else (COMPUTE, other)

    event = EPILOGUE if steps % n == 0 else COMPUTE
    g = steps - 1
    while g >= 0:
        kinds.append(event)
        at.append(g)
        if event == EPILOGUE:
            event = COMPUTE
        elif event == LATENCY:
            event = LOAD_B
        elif event == COMPUTE:
            if waited[g] or g == 0:
                event = LATENCY
            elif g % n == 0 and p.schedule != PINGPONG:
                event, g = EPILOGUE, g - 1
            elif g % n == 0 and held[g]:
                event, g = EPILOGUE, g - 1 - n
            else:
                g -= 1
        elif event == LOAD_A:
            if queue_a[g]:
                event, g = LOAD_B, g - 1
            else:
                event, g = before_load(g, LOAD_A, waited_a)
        elif two and queue_b[g]:
            event = LOAD_A
        else:
            event, g = before_load(g, LOAD_B, waited_b)
    return kinds, at


def shares(p: Pipeline, critical: CriticalPath) -> dict[str, float]:
    """How long loads, latencies, computes and epilogues are on a path, in µs."""
    count = critical.counts
    return {
        "load": count["load_a_us"] * p.load_a_us
        + count["load_b_us"] * p.load_b_us
        + count["load_startup_us"] * p.load_startup_us,
        "latency": count["load_latency_us"] * p.load_latency_us,
        "compute": count["compute_us"] * p.compute_us,
        "epilogue": count["epilogue_us"] * p.epilogue_us,
    }


def limiter_name(p: Pipeline, limiter: str) -> str:
    """What limits a step, with the numbers that say so."""
    sigma_us = p.load_startup_us
    both_us = p.load_a_us + p.load_b_us
    landing_us = both_us + sigma_us * (2 if p.dma_warps == 1 else 1)
    two_us = max(both_us, sigma_us + max(p.load_a_us, p.load_b_us))
    load_us = landing_us if p.dma_warps == 1 else two_us
    if limiter == "latency":
        kept = p.mma_in_flight == 1 and p.stages >= 2 and p.k_tiles >= 2
        slots = p.stages - kept
        round_us = landing_us + p.load_latency_us + (0.0 if kept else p.compute_us)
        covered_us = slots * max(load_us, p.compute_us)
        many = "stage covers" if slots == 1 else "stages cover"
        held = ", one held by the MMA in flight" if kept else ""
        return f"latency-bound: {slots} {many} {covered_us:.2f} µs of {round_us:.2f} µs{held}"
    if limiter == "load":
        return f"load-bound: a step loads for {load_us:.3f} µs and computes for {p.compute_us:.3f}"
    return f"compute-bound: a step computes for {p.compute_us:.3f} µs and loads for {load_us:.3f}"
