"""The event recurrences of a warp-specialised GEMM: when each load and compute starts and ends.

One CTA computes `tiles` output tiles of `k_tiles` steps each. Step g (counted over all tiles)
loads an A and a B tile into a slot of a ring of D = `stages` slots, and MATH multiplies them:

    one DMA warp:   acquire[g] = max(done[g-1], released[g-D])
                    done[g]    = acquire[g] + 2*load_startup + load_a + load_b
    two DMA warps:  acquireA[g] = max(doneA[g-1], released[g-D])
                    acquireB[g] = max(doneB[g-1], released[g-D])
                    doneA[g] = max(acquireA[g] + load_startup, doneB[g-1]) + load_a
                    doneB[g] = max(acquireB[g] + load_startup, doneA[g])   + load_b
    ready[g]    = doneB[g] + load_latency
    start[g]    = max(ready[g], turn[g]);  end[g] = start[g] + compute
    turn[g]     = end[g-1] inside a tile; at a tile's first step
                  persistent, cooperative: the end of the previous tile's epilogue
                  pingpong: max(end[g-1], the end of this group's previous epilogue)
    released[g] = max(end[g], ready[g+1]) when one MMA stays in flight (mma_in_flight = 1,
                  D >= 2, g not its tile's last step), else end[g]

MATH waits start[g] - turn[g], a DMA warp acquire[g] - done[g-1]. `serial` repeats one isolated
tile. Source: "A Performance Model for Warp Specialization Kernels", arXiv 2506.11209, extended by
ping-pong, load latency, epilogues and MMAs in flight. This module is the definition: `closed` and
`periodic` give the same numbers faster.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from wsjax import kept
from wsjax.model.arithmetic import Number, Truth
from wsjax.schema import SCHEDULES

SERIAL, PERSISTENT, PINGPONG, COOPERATIVE = range(len(SCHEDULES))
MAX_STAGES = 32
QUEUE_STEPS = 1024


class Pipeline(NamedTuple):
    """One CTA's work and how long each event takes: all that the recurrences know.

    Fields that are Python numbers specialise the compiled program; arrays are data.
    """

    k_tiles: Number
    """Steps an output tile."""
    tiles: Number
    """Output tiles, one after the other; of `serial` each one alone."""
    stages: Number
    """Slots of the ring: D."""
    load_a_us: Number
    """The transfer of a step's tile of A."""
    load_b_us: Number
    """The transfer of a step's tile of B."""
    load_startup_us: Number
    """A DMA warp busy before each transfer; one DMA warp: twice a step."""
    load_latency_us: Number
    """From the end of the transfer to data that MATH can read; loads overlap in it."""
    compute_us: Number
    """MATH busy with a step."""
    epilogue_us: Number
    """From an output tile's last compute to its C being stored."""
    schedule: Number
    """SERIAL, PERSISTENT, PINGPONG or COOPERATIVE."""
    dma_warps: Number
    """1: one DMA warp loads A and B; 2: each loads one of them."""
    mma_in_flight: Number
    """0 or 1: MMAs that run on while MATH goes to the next step."""
    queue_end_us: Number | None = None
    """The run does not end before: when the last output tile's reductions are over if they queue
    from the first wave on (`splits`); None where no output tile is divided."""


DURATIONS = tuple(
    name for name in Pipeline._fields if name.endswith("_us") and name != "queue_end_us"
)
"""How long the events of a step and an output tile take."""


class Carry(NamedTuple):
    """What step g needs to know of the steps before it. Times in µs since the CTA began."""

    tile: Number
    """The output tile of step g, from 0."""
    in_tile: Number
    """The k-tile of step g in its output tile, from 0."""
    done_a: Number
    """done[g-1] of the DMA warp that loads A (one DMA warp: of the only one)."""
    done_b: Number
    """done[g-1] of the DMA warp that loads B (one DMA warp: of the only one)."""
    released: Number
    """The last releases, an array (depth,): entry i belongs to step g-1-i."""
    turn: Number
    """turn[g]: when MATH could compute step g if its data were there."""
    epilogue_end: Number
    """The end of the last epilogue so far."""
    math_wait: Number
    """MATH's waits for data so far, summed."""
    dma_wait: Number
    """The DMA warps' waits for slots so far, summed over both warps."""


class Events(NamedTuple):
    """The events of one step, or arrays (steps,) of many. Times in µs since the CTA began."""

    acquire_a: Number
    """The DMA warp that loads A has its slot and begins (one DMA warp: the same as b)."""
    done_a: Number
    """That warp is done with the load of A."""
    acquire_b: Number
    """The DMA warp that loads B (one DMA warp: both) has its slot and begins."""
    done_b: Number
    """That warp is done."""
    ready: Number
    """The step's data can be read in its slot."""
    turn: Number
    """MATH could compute if the data were there."""
    start: Number
    """MATH begins to compute."""
    end: Number
    """MATH has computed."""
    released: Number
    """A slot is free again: of `step`, the slot of the step before, which may have to wait for this
    step's data; see `played`."""
    epilogue: Number
    """The end of the epilogue behind a tile's last step, NaN at other steps."""
    wait_a: Number
    """How long the DMA warp that loads A waited for the slot (one DMA warp: the same as b)."""
    wait_b: Number
    """How long the DMA warp that loads B waited for the slot."""
    math_wait: Number
    """How long MATH waited for the data."""


class Outcome(NamedTuple):
    """The end of the last epilogue and the summed waits of MATH and of the DMA warps, in µs."""

    end_us: Number
    math_wait_us: Number
    dma_wait_us: Number


class Loads(NamedTuple):
    """One step's loads: the first four of its `Events`, and the DMA warps' summed waits, in µs."""

    acquire_a: Number
    done_a: Number
    acquire_b: Number
    done_b: Number
    wait: Number


def load(pipeline: Pipeline, done_a: Number, done_b: Number, free: Number) -> Loads:
    """The loads of a step whose slot is free from `free` on, given those of the step before."""
    p = pipeline
    both_us = p.load_a_us + p.load_b_us
    acquire_a, acquire_b = jnp.maximum(done_a, free), jnp.maximum(done_b, free)
    wait_a, wait_b = acquire_a - done_a, acquire_b - done_b
    two_a = jnp.maximum(acquire_a + p.load_startup_us, done_b) + p.load_a_us
    two_b = jnp.maximum(acquire_b + p.load_startup_us, two_a) + p.load_b_us
    one = acquire_b + (2 * p.load_startup_us + both_us)
    is_one = p.dma_warps == 1
    return Loads(
        acquire_a,
        jnp.where(is_one, one, two_a),
        acquire_b,
        jnp.where(is_one, one, two_b),
        wait_b + jnp.where(is_one, 0.0, wait_a),
    )


def keeps_one_in_flight(pipeline: Pipeline) -> Truth:
    """Whether a slot waits for the next step's data: an MMA in flight needs a second slot."""
    return (pipeline.mma_in_flight == 1) & (pipeline.stages >= 2)


def start_carry(depth: int, like: Number) -> Carry:
    """The carry before the first step: an empty ring at time zero."""
    zero, begin = jnp.zeros_like(like), jnp.zeros((), int)
    return Carry(begin, begin, zero, zero, jnp.zeros(depth, zero.dtype), zero, zero, zero, zero)


def step(pipeline: Pipeline, carry: Carry) -> tuple[Carry, Events]:
    """One CTA's next step. Past the last tile it only idles."""
    p = pipeline
    first, last = carry.in_tile == 0, carry.in_tile == p.k_tiles - 1
    alive = carry.tile < p.tiles

    loads = load(p, carry.done_a, carry.done_b, carry.released[p.stages - 1])
    ready = loads.done_b + p.load_latency_us
    start = jnp.maximum(ready, carry.turn)
    end = start + p.compute_us
    epilogue_end = end + p.epilogue_us

    newest = carry.released[0]
    newest = jnp.where(keeps_one_in_flight(p) & ~first, jnp.maximum(newest, ready), newest)
    released = jnp.concatenate([end[None], newest[None], carry.released[1:-1]])
    next_tile = jnp.where(
        p.schedule == PINGPONG, jnp.maximum(end, carry.epilogue_end), epilogue_end
    )
    events = Events(
        acquire_a=loads.acquire_a,
        done_a=loads.done_a,
        acquire_b=loads.acquire_b,
        done_b=loads.done_b,
        ready=ready,
        turn=carry.turn,
        start=start,
        end=end,
        released=newest,
        epilogue=jnp.where(last, epilogue_end, jnp.nan),
        wait_a=loads.acquire_a - carry.done_a,
        wait_b=loads.acquire_b - carry.done_b,
        math_wait=start - carry.turn,
    )
    carry = Carry(
        tile=carry.tile + last,
        in_tile=jnp.where(last, 0, carry.in_tile + 1),
        done_a=loads.done_a,
        done_b=loads.done_b,
        released=released[: carry.released.shape[0]],
        turn=jnp.where(last, next_tile, end),
        epilogue_end=jnp.where(last & alive, epilogue_end, carry.epilogue_end),
        math_wait=carry.math_wait + jnp.where(alive, start - carry.turn, 0.0),
        dma_wait=carry.dma_wait + jnp.where(alive, loads.wait, 0.0),
    )
    return carry, events


def isolate(pipeline: Pipeline) -> tuple[Pipeline, Number]:
    """The pipeline to run, and how often: `serial` is one isolated tile, `tiles` times."""
    serial = pipeline.schedule == SERIAL
    once = pipeline._replace(tiles=jnp.where(serial, 1, pipeline.tiles))
    return once, jnp.where(serial, pipeline.tiles, 1)


def outcome(carry: Carry, repeats: Number) -> Outcome:
    """The end and waits of a finished run that repeats."""
    return Outcome(
        carry.epilogue_end * repeats, carry.math_wait * repeats, carry.dma_wait * repeats
    )


def queued(pipeline: Pipeline, one: Outcome) -> Outcome:
    """The outcome of a run whose last output tile may wait for its queue of reductions."""
    if pipeline.queue_end_us is None:
        return one
    return one._replace(end_us=jnp.maximum(one.end_us, pipeline.queue_end_us))


def simulate(pipeline: Pipeline, max_steps: int, max_stages: int, unroll: int = 1) -> Outcome:
    """Run one CTA step by step with `lax.scan`; exact when k_tiles * tiles <= max_steps.

    `max_steps` and `max_stages` are static; shorter runs and shallower rings are masked.
    """
    once, repeats = isolate(pipeline)
    first = start_carry(max_stages, pipeline.compute_us)
    return queued(pipeline, outcome(_after(once, first, max_steps, unroll), repeats))


def _after(pipeline: Pipeline, carry: Carry, steps: int, unroll: int = 1) -> Carry:
    """The carry after so many more steps."""
    return lax.scan(lambda c, _: (step(pipeline, c)[0], None), carry, length=steps, unroll=unroll)[
        0
    ]


@partial(kept.jit, static_argnames=("steps",))
def played(
    pipeline: Pipeline, carry: Carry, steps: int, varying: Mapping[str, Number] | None = None
) -> tuple[Carry, Events]:
    """The next steps of a CTA with all their events, arrays (steps,).

    varying: fields of the pipeline that change from step to step, by name, arrays (steps,).
    """

    def advance(carry: Carry, now: Mapping[str, Number]) -> tuple[Carry, Events]:
        return step(pipeline._replace(**now), carry)

    return lax.scan(advance, carry, dict(varying or {}), length=steps)


@kept.jit
def _advance(queue: Pipeline, carry: Carry) -> Carry:
    return jax.vmap(partial(_after, steps=QUEUE_STEPS))(queue, carry)


@kept.jit
def _begin(queue: Pipeline) -> tuple[Pipeline, Number, Carry]:
    once, repeats = jax.vmap(isolate)(queue)
    carry = jax.vmap(lambda like: start_carry(MAX_STAGES, like))(queue.compute_us)
    return once, repeats, carry


_finish = kept.jit(outcome)


def simulate_queue(queue: Pipeline) -> Outcome:
    """Run arrays of pipelines step by step to their ends, however long, in scans of one length."""
    once, repeats, carry = _begin(queue)
    while np.any(np.asarray(carry.tile) < np.asarray(once.tiles)):
        carry = _advance(once, carry)
    return queued(queue, _finish(carry, repeats))
