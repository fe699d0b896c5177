"""Traced kernels beside predicted ones: which configuration a trace is of, its slices, and the
period of its steps.

The name of a traced kernel says its configuration, as the Gluon kernels of the measured H200 table
are called: `m128n128k64s4d1w8pe0` has tile 128x128x64, 4 stages, 1 DMA warp and 8 MATH warps;
`p`: ping-pong, each of two groups with so many warps; `e0` stores C by TMA, `e1` directly. What
follows is free. Whether one MMA stays in flight is seen in the trace itself.

The **period** of steps is the mean time from one compute's start to the next inside output tiles:
what a step costs, without launch, first data and epilogues.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wsjax.errors import InputError
from wsjax.schema import COLUMNS, WRITES
from wsjax.timelines import traces
from wsjax.timelines.scene import Measured
from wsjax.timelines.slices import COMPUTE, EPILOGUE, LOAD, WAIT, Slices, columns, merged, names
from wsjax.timelines.timeline import Timeline
from wsjax.timelines.traces import Trace

NAME = re.compile(r"m(\d+)n(\d+)k(\d+)s(\d+)d(\d)w(\d+)(p?)e([01])")


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


def configuration(trace: Trace) -> dict[str, int]:
    """The configuration columns that a trace's kernel and problem say, as numbers.

    Raises InputError for a kernel's name that does not say them.
    """
    name, m, n, k, group_m, _ = trace.kernel
    match = NAME.match(name)
    if not match:
        raise InputError(
            f"traced kernel '{name}': its name does not say its tile; call it like "
            "m128n128k64s4d1w8e0: block_m, block_n, block_k, stages, DMA and MATH warps, store"
        )
    block_m, block_n, block_k, stages, dma_warps, warps = map(int, match.groups()[:6])
    pingpong = bool(match[7])
    words = {
        "layout": "nn",
        "schedule": "pingpong" if pingpong else "persistent",
        "write_back": WRITES[int(match[8])],
    }
    numbers = {
        "m": m,
        "n": n,
        "k": k,
        "block_m": block_m,
        "block_n": block_n,
        "block_k": block_k,
        "stages": stages,
        "dma_warps": dma_warps,
        "math_warps": warps * (2 if pingpong else 1),
        "mma_in_flight": trace.mma_in_flight,
        "group_m": max(group_m, 1),
    }
    return numbers | {name: COLUMNS[name].choices.index(word) for name, word in words.items()}


def compare(trace: Trace, timeline: Timeline) -> Comparison:
    """The periods of a traced CTA and of its prediction."""
    return Comparison(
        trace,
        timeline,
        period_us(trace.events["data_ready_math_start"], trace.k_tiles),
        period_us(timeline.steps.start, timeline.pipeline.k_tiles),
    )


def over_ctas(found: Sequence[Comparison]) -> Comparison:
    """A kernel's first CTA, its measured period the mean over all of them."""
    return found[0]._replace(measured_us=float(np.mean([cta.measured_us for cta in found])))


def period_us(start_us: np.ndarray, k_tiles: int) -> float:
    """The mean time from one step's start to the next, inside output tiles; NaN where none has two
    steps."""
    gaps = np.diff(start_us)
    inside = np.arange(1, len(start_us)) % k_tiles > 0
    return float(gaps[inside].mean()) if inside.any() else float("nan")


def measured(found: Comparison) -> Measured:
    """A traced CTA's rows: of each DMA warp the waits for a slot and the issue of loads, of each
    MATH group the waits for data, the computes, and the stores of tiles.

    A compute is drawn up to the next wait where the next one starts before it is retired.
    """
    trace = found.trace
    seen, steps = trace.events, np.arange(trace.steps)
    pieces: list[Slices] = []
    for row in range(trace.dma_warps):
        came, empty, issued = (seen[name][row] for name in traces.DMA)
        pieces += [
            columns(row, WAIT, came, empty, steps, 1, False),
            columns(row, LOAD, empty, issued, steps, 1, False),
        ]
    tile = steps // trace.k_tiles
    stored, done = (seen[name] for name in traces.TILE)
    for group in range(trace.math_groups):
        row, own = trace.dma_warps + group, tile % trace.math_groups == group
        came, ready, retired = (seen[name][own] for name in traces.MATH)
        stores = stored[tile[own]]
        ends = np.flatnonzero(np.diff(tile[own], append=-1))
        following = np.append(came[1:], np.inf)
        following[ends] = np.fmin(following[ends], stores[ends])
        until = np.maximum(np.minimum(retired, following), ready)
        pieces += [
            columns(row, WAIT, came, ready, steps[own], 1, False),
            columns(row, COMPUTE, ready, until, steps[own], 1, False),
        ]
        tiles = np.arange(group, len(stored), trace.math_groups)
        tiles = tiles[np.isfinite(stored[tiles] + done[tiles])]
        first = tiles * trace.k_tiles
        pieces.append(columns(row, EPILOGUE, stored[tiles], done[tiles], first, 1, False))
    return Measured(
        name=f"CTA {trace.kernel[-1]}",
        labels=names(trace.dma_warps, trace.math_groups),
        slices=merged(pieces),
        start_us=seen["data_ready_math_start"],
        begin_us=float(seen["slot_empty"][:, 0].min()),
        note=f"a step takes {found.predicted_us:.3f} µs as predicted, {found.measured_us:.3f} "
        f"measured ({found.error:+.1%}; CTA {trace.kernel[-1]}, {trace.kernel[0]}); "
        "of measured loads their issue is drawn",
    )
