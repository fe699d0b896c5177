"""The critical path of a play: the chain of events, each starting when the one before it ends, that
leads from a CTA's begin to its last epilogue; and what to call it.

Shortening an event off the path changes nothing. Where two events end at once, MATH's own turn goes
before the data, and a DMA warp's own last load before a slot that is released.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wsjax.model import PINGPONG, SERIAL, Pipeline
from wsjax.timelines.steps import Steps

LOAD_A, LOAD_B, LATENCY, COMPUTE, EPILOGUE = range(5)
PARTS = ("load", "load", "latency", "compute", "epilogue")
"""What parts of a path are called."""


class CriticalPath(NamedTuple):
    """A critical path in order of time: each event's kind (a code into PARTS) and step.

    counts: how often each duration of a `Pipeline` is on it. With constant durations these are the
    derivatives of the CTA's time.
    """

    kind: np.ndarray
    step: np.ndarray
    counts: Mapping[str, int]


def path(p: Pipeline, s: Steps) -> CriticalPath:
    """The critical path to the end of a play."""
    n, steps = p.k_tiles, len(s.start)
    repeats = 1
    if p.schedule == SERIAL and steps > n:
        repeats, steps = steps // n, n
        s = Steps(*(x[:n] for x in s))
    kinds, at = _back(p, s, steps)
    kind, step = np.array(kinds[::-1], int), np.array(at[::-1], int)
    starts = _startups(p, s, kind, step)
    total = {
        "load_a_us": np.sum(kind == (LOAD_A if p.dma_warps == 2 else LOAD_B)),
        "load_b_us": np.sum(kind == LOAD_B),
        "load_startup_us": starts,
        "load_latency_us": np.sum(kind == LATENCY),
        "compute_us": np.sum(kind == COMPUTE),
        "epilogue_us": np.sum(kind == EPILOGUE),
    }
    counts = {name: int(number) * repeats for name, number in total.items()}
    offsets = np.repeat(np.arange(repeats) * n, len(step))
    return CriticalPath(np.tile(kind, repeats), np.tile(step, repeats) + offsets, counts)


def _back(p: Pipeline, s: Steps, steps: int) -> tuple[list[int], list[int]]:
    """The events of a path from its last to its first, and their steps."""
    times = (s.done_a, s.done_b, s.ready, s.turn, s.end, s.released, s.acquire_a, s.acquire_b)
    lists = (x.tolist() for x in times)
    done_a, done_b, ready, turn, end, released, acquire_a, acquire_b = lists
    n, depth, two = p.k_tiles, p.stages, p.dma_warps == 2
    kinds, at = [], []

    def slot(g: int, own: list[float]) -> tuple[int, int]:
        """What a load of step g waited for: its warp's last load, or a released slot."""
        other = g - depth
        if g == 0 or other < 0 or own[g - 1] >= released[other]:
            return (LOAD_A if own is done_a and two else LOAD_B), g - 1
        return (LATENCY, other + 1) if released[other] > end[other] else (COMPUTE, other)

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
            if ready[g] > turn[g] or g == 0:
                event = LATENCY
            elif g % n:
                g -= 1
            elif p.schedule != PINGPONG:
                event, g = EPILOGUE, g - 1
            elif end[g - 1] >= turn[g]:
                g -= 1
            else:
                event, g = EPILOGUE, g - 1 - n
        elif not two:
            event, g = slot(g, done_b)
        elif event == LOAD_B:
            if done_a[g] >= acquire_b[g] + p.load_startup_us:
                event = LOAD_A
            else:
                event, g = slot(g, done_b)
        elif g and done_b[g - 1] > acquire_a[g] + p.load_startup_us:
            event, g = LOAD_B, g - 1
        else:
            event, g = slot(g, done_a)
    return kinds, at


def _startups(p: Pipeline, s: Steps, kind: np.ndarray, step: np.ndarray) -> int:
    """How many start-ups of loads are on a path."""
    if p.dma_warps == 1:
        return 2 * int(np.sum(kind == LOAD_B))
    before = np.concatenate([[0.0], s.done_b[:-1]])
    a, b = step[kind == LOAD_A], step[kind == LOAD_B]
    queued_a = before[a] > s.acquire_a[a] + p.load_startup_us
    queued_b = s.done_a[b] >= s.acquire_b[b] + p.load_startup_us
    return int(np.sum(~queued_a) + np.sum(~queued_b))


def shares(p: Pipeline, found: CriticalPath) -> dict[str, float]:
    """How long loads, latencies, computes and epilogues are on a path, in µs."""
    count = found.counts
    return {
        "load": count["load_a_us"] * p.load_a_us
        + count["load_b_us"] * p.load_b_us
        + count["load_startup_us"] * p.load_startup_us,
        "latency": count["load_latency_us"] * p.load_latency_us,
        "compute": count["compute_us"] * p.compute_us,
        "epilogue": count["epilogue_us"] * p.epilogue_us,
    }


def name(p: Pipeline, limiter: str) -> str:
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
