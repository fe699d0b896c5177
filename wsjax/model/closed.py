"""The event recurrences in O(1): exact formulas where they are proved, a lower bound everywhere.

**One graph.** With constant durations the recurrences of `events` are max-plus linear: the end is
the heaviest path through the event graph of N = n*J steps (n k-tiles, J output tiles). Write

    s  slope of the DMA row, one step after the other when loads bind. One DMA warp:
       2 load_startup + load_a + load_b; two: the larger of load_startup + load_a,
       load_startup + load_b and load_a + load_b
    u  landing, from a released slot to its data: s (one warp), load_startup + load_a + load_b (two)
    L, c, e  load latency, compute, epilogue;  D  ring depth

A path runs along the DMA row (s a step) or the MATH row (c a step, and e where it crosses into the
next tile, if the epilogue keeps MATH busy); it goes down from DMA to MATH for L + c, and back up by
a released slot, which lands u later and D steps on. Every path has u + L + c + e and, at best, the
larger slope M = max(s, c) for each of the other N - 1 steps. So

    end = u + L + c + e + (N - 1) M + V,    math_wait = u + L + (N - 1) gamma + V - (J - 1) em

with gamma = M - c, em = e where a crossed tile boundary costs MATH its epilogue (J > 1, not
ping-pong), else 0. (math_wait is the end less the time in which MATH computes or stores.) V is what
a path gains over that: a *window* of D steps, down and up again once round the ring, instead of D
steps at M gains G = u + L + c - D M; with an MMA in flight the slot of step g is released by
ready[g+1], so a window of D - 1 steps gains H = G + gamma (else H = G). Windows are disjoint, and
one that covers a tile boundary forfeits its em. V is therefore the best packing of such windows.

- **No window pays (H <= 0).** Compute-bound (c >= s): the MATH row, V = (J-1) em. Load-bound: the
  DMA row, left only to collect an epilogue, V = (J-1) max(0, em - gamma - min((n-1) gamma, -G)):
  leaving costs gamma at the boundary, and either gamma for each of the tile's other steps (stay on
  the MATH row) or -G (come back by a window). Exact if such a window fits between two boundaries
  (n > D), or nothing is to be collected (em <= gamma), or J = 1.
- **Windows pay, D steps each.** If no epilogue is worth collecting (e1 = max(0, em - gamma) = 0)
  they are laid end to end: V = floor((N-1)/D) G. Otherwise each tile holds a = floor((n-1)/D)
  without touching a boundary, and the rho = (n-1) mod D + 1 steps left over, A = floor(D/rho)
  boundaries' worth of them, may be pooled to one more window at the price of A epilogues:
  V = J a G + (J-1) e1 + floor((J-1)/A) max(0, G - A e1). By an exchange argument this is optimal if
  J = 1, or n > D and (pooling does not pay, or rho divides D).
- **Windows pay, D' = D - 1 steps each (MMA in flight).** A window may not start at a tile's first
  step (its slot drains). With em = 0, or em <= 2 gamma and n > D, greedy packing is optimal and V
  is H times its count, periodic with the first start that meets a boundary (a modular inverse).
  Otherwise each tile keeps omega = floor((n-2)/D') windows and the boundary its epilogue:
  V = J omega H + (J-1)(em - 2 gamma), if n > D and that epilogue is worth more than the windows
  that could be squeezed over it: at most max(floor((2r+2)/D'), (1.5 r + 2)/D') a boundary, with
  r = (n-2) mod D'. Where D' = 1 and n > 2 the choice at each boundary is between one more window
  and the epilogue, and MATH has caught up two steps later, so that boundaries are independent:
  V = (n-2) H + (J-1) ((n-1) H + max(0, em - 2 gamma - H)).

Ping-pong equals persistent with em = 0 when e <= n c or J <= 2: the other group's mainloop hides
the epilogue. `serial` repeats one isolated tile (J = 1), which is always proved.

One DMA warp is done with the last step at N s + dma_wait, so dma_wait is the gain of the best path
to that event. With two warps the two queues' waits do not telescope; they are proved only where no
window pays and DMA never waits.

All formulas are continuous across their conditions, so rounding cannot flip a result; waits are
summed from their own terms, not as differences of large numbers.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from wsjax.model.arithmetic import Number, Truth, floor_div, inverse
from wsjax.model.events import (
    MAX_STAGES,
    PINGPONG,
    SERIAL,
    Outcome,
    Pipeline,
    isolate,
    keeps_one_in_flight,
    queued,
)


class Slopes(NamedTuple):
    """The per-step terms of the module's docstring, in µs, and counts as floats."""

    landing: Number
    """u: from a released slot to its data, but for the latency."""
    load: Number
    """s: the slope of the DMA row, time a step when loads bind."""
    period: Number
    """M: the larger slope, of loads or computes."""
    spare: Number
    """gamma = M - compute: how much MATH idles a step when loads bind."""
    ring_gain: Number
    """G: what a window of D steps round the ring lasts longer than D steps at M."""
    window_gain: Number
    """H: the same for the windows that there are, of D - 1 steps with an MMA in flight."""
    in_flight: Truth
    """Whether a slot waits for the next step's data."""
    n: Number
    """k-tiles an output tile."""
    tiles: Number
    """J: output tiles that follow each other."""
    depth: Number
    """D: slots of the ring."""


def slopes(pipeline: Pipeline) -> Slopes:
    """Per-step terms of one pipeline whose `tiles` follow each other (`serial` isolated before)."""
    p = pipeline
    both = p.load_a_us + p.load_b_us
    sig = p.load_startup_us
    is_one = p.dma_warps == 1
    landing = jnp.where(is_one, 2 * sig, sig) + both
    two = jnp.maximum(sig + jnp.maximum(p.load_a_us, p.load_b_us), both)
    load = jnp.where(is_one, landing, two)
    period = jnp.maximum(load, p.compute_us)
    spare = period - p.compute_us
    n, tiles, depth = (x * 1.0 for x in (p.k_tiles, p.tiles, p.stages))
    in_flight = keeps_one_in_flight(p) & (p.k_tiles >= 2)
    ring_gain = landing + p.load_latency_us + p.compute_us - depth * period
    window_gain = ring_gain + jnp.where(in_flight, spare, 0.0)
    return Slopes(landing, load, period, spare, ring_gain, window_gain, in_flight, n, tiles, depth)


def isolated(pipeline: Pipeline) -> tuple[Outcome, Truth, Truth]:
    """One tile alone (J = 1), always proved -> (outcome, True, whether dma_wait is proved)."""
    p, q = pipeline, slopes(pipeline)
    per_width = jnp.where(q.in_flight, inverse(jnp.maximum(q.depth - 1, 1.0)), inverse(q.depth))
    first = 1.0 + q.in_flight
    windows = floor_div(jnp.maximum(q.n - first, 0.0), per_width) * (q.n > q.depth)
    gain = windows * jnp.maximum(q.window_gain, 0.0)
    start = q.landing + p.load_latency_us
    end = start + p.compute_us + (q.n - 1) * q.period + gain + p.epilogue_us
    math_wait = start + (q.n - 1) * q.spare + gain
    behind = (q.n - 1) * (q.period - q.load)
    wraps = q.n > q.depth
    slack = jnp.where(q.window_gain > 0, gain, q.ring_gain)
    dma_wait = jnp.where(wraps, jnp.maximum(behind + slack, 0.0), 0.0)
    waits_proved = (p.dma_warps == 1) | _never_waits(p, q, 0.0)
    return Outcome(end, math_wait, dma_wait), jnp.bool_(True), waits_proved


def overlapped(pipeline: Pipeline) -> tuple[Outcome, Truth, Truth]:
    """Tiles that follow each other -> (outcome, end and math_wait proved, dma_wait proved)."""
    p, q = pipeline, slopes(pipeline)
    steps = q.n * q.tiles
    crossings = q.tiles - 1
    compute_bound = p.compute_us >= q.load
    wraps = q.n > q.depth
    per_depth = inverse(q.depth)
    rings = floor_div(steps - 1, per_depth)
    epilogue = jnp.where((p.schedule == PINGPONG) | (p.tiles == 1), 0.0, p.epilogue_us)
    collected = jnp.maximum(epilogue - q.spare, 0.0)
    hidden = (p.epilogue_us <= q.n * p.compute_us) | (p.tiles <= 2)

    detour = jnp.minimum((q.n - 1) * q.spare, -q.ring_gain)
    gain_bound = crossings * jnp.where(
        compute_bound, epilogue, jnp.maximum(epilogue - q.spare - detour, 0.0)
    )
    proved_bound = compute_bound | wraps | (epilogue <= q.spare) | (p.tiles == 1)

    per_tile = floor_div(q.n - 1, per_depth)
    leftover = q.n - per_tile * q.depth
    pooled = floor_div(q.depth, inverse(leftover))
    pool_gain = q.ring_gain - pooled * collected
    pools = floor_div(crossings, inverse(jnp.maximum(pooled, 1.0)))
    gain_ring = jnp.where(
        collected <= 0,
        rings * q.ring_gain,
        q.tiles * per_tile * q.ring_gain
        + crossings * collected
        + pools * jnp.maximum(pool_gain, 0.0),
    )
    divides = pooled * leftover == q.depth
    proved_ring = (collected <= 0) | (p.tiles == 1) | (wraps & ((pool_gain <= 0) | divides))

    width = jnp.maximum(q.depth - 1, 1.0)
    per_width = inverse(width)
    short_per_tile = floor_div(jnp.maximum(q.n - 2, 0.0), per_width)
    short_left = q.n - 2 - short_per_tile * width
    greedy = jnp.where(
        p.tiles == 1, short_per_tile * wraps, _greedy_windows(q, steps, width, per_width)
    )
    extra = epilogue - 2 * q.spare
    free = (epilogue <= 0) | ((extra <= 0) & wraps)
    squeezed = floor_div(2 * short_left + 2, per_width)
    squeezed = jnp.maximum(squeezed, (1.5 * short_left + 2) * per_width)
    gain_short = jnp.where(
        free,
        greedy * q.window_gain,
        q.tiles * short_per_tile * q.window_gain + crossings * extra,
    )
    proved_short = free | (wraps & (extra > 0) & (extra >= q.window_gain * squeezed))
    single = wraps & (width == 1)
    windows = q.n - 2 + crossings * (q.n - 1)
    kept = crossings * jnp.maximum(extra - q.window_gain, 0.0)
    gain_short = jnp.where(single, windows * q.window_gain + kept, gain_short)
    proved_short |= single

    no_window = q.window_gain <= 0
    gain = jnp.where(no_window, gain_bound, jnp.where(q.in_flight, gain_short, gain_ring))
    proved = jnp.where(no_window, proved_bound, jnp.where(q.in_flight, proved_short, proved_ring))
    proved &= hidden | (p.schedule != PINGPONG)

    start = q.landing + p.load_latency_us
    end = start + p.compute_us + (steps - 1) * q.period + gain + p.epilogue_us
    math_wait = start + (steps - 1) * q.spare + (gain - crossings * epilogue)

    behind = (steps - 1) * (q.period - q.load)
    ring_back = behind + q.ring_gain + epilogue * floor_div(steps - 1 - q.depth, inverse(q.n))
    collect = crossings * (epilogue - q.spare) - jnp.maximum(crossings - 1, 0.0) * detour
    collect = jnp.maximum(epilogue - q.spare, collect) + q.ring_gain
    bound_wait = jnp.where(
        compute_bound,
        jnp.where(rings >= 1, ring_back, 0.0),
        jnp.where(wraps & (p.tiles > 1), collect, 0.0),
    )
    taken = jnp.where(
        q.in_flight,
        jnp.where(free, greedy, short_per_tile),
        jnp.where(collected <= 0, rings, per_tile),
    )
    window_wait = jnp.where(taken >= 1, behind + gain, 0.0)
    dma_wait = jnp.where(no_window, jnp.maximum(bound_wait, 0.0), window_wait)
    never = _never_waits(p, q, epilogue)
    dma_wait = jnp.where(p.dma_warps == 1, dma_wait, 0.0)
    return Outcome(end, math_wait, dma_wait), proved, proved & ((p.dma_warps == 1) | never)


def _never_waits(p: Pipeline, q: Slopes, epilogue: Number) -> Truth:
    """Whether neither of two DMA warps ever waits: load-bound, and the ring holds MATH's lag."""
    steps = q.n * q.tiles
    skew = jnp.maximum(p.load_b_us, p.load_startup_us + p.load_b_us - p.load_a_us)
    backlog = jnp.maximum(epilogue - q.spare, 0.0) + p.load_latency_us + skew
    fits = backlog + p.compute_us <= (q.depth - 1) * q.load
    fits &= jnp.logical_not(q.in_flight) | (p.load_latency_us + skew <= (q.depth - 2) * q.load)
    loads = (q.window_gain <= 0) & (p.compute_us < q.load) & (epilogue <= q.n * q.spare)
    return (steps <= q.depth) | (loads & fits)


def _modular_inverses() -> np.ndarray:
    """inverse[d, r]: r**-1 modulo d, or 0 where there is none (and 1 modulo 1)."""
    table = np.zeros((MAX_STAGES + 1, MAX_STAGES + 1))
    for d in range(1, MAX_STAGES + 1):
        for r in range(d):
            table[d, r] = 1 if d == 1 else next((x for x in range(d) if x * r % d == 1), 0)
    return table


_INVERSES = _modular_inverses()


def _greedy_windows(q: Slopes, steps: Number, width: Number, per_width: Number) -> Number:
    """Windows of `width` steps laid end to end from step 1, none starting at a tile's first step.

    The k-th start is 1 + k*width until that is a multiple of n: k = (t*n - 1)/width with
    t = n**-1 mod width. There the greedy choice moves on by one step, and the pattern repeats.
    """
    remainder = q.n - floor_div(q.n, per_width) * width
    turns = jnp.asarray(_INVERSES, width.dtype)[
        width.astype(jnp.int32), remainder.astype(jnp.int32)
    ]
    in_cycle = jnp.maximum(floor_div(turns * q.n - 1, per_width), 1.0)
    cycle = in_cycle * width + 1
    cycles = jnp.where(turns > 0, floor_div(steps - 1, inverse(cycle)), 0.0)
    rest = steps - 1 - cycles * cycle
    return cycles * in_cycle + floor_div(jnp.maximum(rest - 1, 0.0), per_width)


def closed(pipeline: Pipeline) -> tuple[Outcome, Truth, Truth]:
    """All schedules -> (outcome in µs, end and math_wait are exact, dma_wait is too).

    A `schedule` that is the Python number SERIAL compiles the formulas of one isolated tile alone.
    """
    once, repeats = isolate(pipeline)
    alone = isinstance(pipeline.schedule, int) and pipeline.schedule == SERIAL
    one, proved, waits_proved = (isolated if alone else overlapped)(once)
    return queued(pipeline, Outcome(*(x * repeats for x in one))), proved, waits_proved


def exchange_us(full: Pipeline, first: Pipeline, last: Pipeline) -> Number:
    """What a kernel gains on `full` where its first and last wave last longer or shorter, in µs.

    The busiest CTA's first tile is exchanged for one of a cold wave, and its last, if it is not
    also the first, for one of a partial wave, each as if it ran alone: the end of `first` less that
    of `full`, and of `last` less that of `full`. For `serial` this is the exact sum over waves.
    """

    def alone_us(pipeline: Pipeline) -> Number:
        return isolated(pipeline._replace(tiles=1.0))[0].end_us

    usual_us = alone_us(full)
    last_us = jnp.where(full.tiles > 1, alone_us(last) - usual_us, 0.0)
    return alone_us(first) - usual_us + last_us


def lower_bound(pipeline: Pipeline) -> Number:
    """A bound <= the exact end, in µs, from a few paths that always exist (see the graph above).

    The MATH row with its epilogues; the DMA row; as many windows as fit, end to end, over either
    row; each tile's own windows and its epilogue; the same with an MMA in flight; and, for
    ping-pong, one group's mainloops and epilogues. Each is the weight of a path, so none exceeds
    the heaviest.
    """
    p, repeats = isolate(pipeline)
    q = slopes(p)
    steps, crossings = q.n * q.tiles, q.tiles - 1
    epilogue = jnp.where(p.schedule == PINGPONG, 0.0, p.epilogue_us)
    math_row = (steps - 1) * p.compute_us + crossings * epilogue
    load_row = (steps - 1) * q.load
    per_depth = inverse(q.depth)
    ring = (steps - 1) * q.period + floor_div(steps - 1, per_depth) * q.ring_gain
    tile = (q.n - 1) * q.period + floor_div(q.n - 1, per_depth) * q.ring_gain
    tile = q.tiles * tile + crossings * (epilogue + p.compute_us)
    wraps = q.n > q.depth
    width = jnp.maximum(q.depth - 1, 1.0)
    short_gain = q.landing + p.load_latency_us - width * q.period
    short = q.tiles * floor_div(q.n - 2, inverse(width)) * short_gain
    short += (steps - 1) * q.period + crossings * (epilogue - 2 * q.spare)
    own = jnp.ceil(q.tiles / 2)
    group = own * (q.n * p.compute_us + p.epilogue_us)
    group += (2 * own == q.tiles) * q.n * p.compute_us - p.compute_us - p.epilogue_us
    rest = jnp.maximum(jnp.maximum(math_row, load_row), ring)
    rest = jnp.maximum(rest, jnp.where(wraps, tile, 0.0))
    rest = jnp.maximum(rest, jnp.where(wraps & q.in_flight, short, 0.0))
    rest = jnp.maximum(rest, jnp.where(p.schedule == PINGPONG, group, 0.0))
    first = q.landing + p.load_latency_us + p.compute_us
    return (first + rest + p.epilogue_us) * repeats
