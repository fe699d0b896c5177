"""One CTA step by step: when each load and compute of a pipeline starts and ends.

`events.step`, the definition, is scanned and its every event kept. The other events of a step
follow from these by the same recurrences, in numpy.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from wsjax.model import MAX_STAGES, PINGPONG, SERIAL, Pipeline, start_carry, step

CHUNK_STEPS = 1024
COUNTS = ("k_tiles", "tiles", "stages", "schedule", "dma_warps", "mma_in_flight")
WAITS = ("wait_a", "wait_b", "math_wait")


class Steps(NamedTuple):
    """The events of a CTA's first steps, in µs from the launch's end: arrays (steps,).

    acquire_a, done_a: of the DMA warp that loads A (with one DMA warp, the same as b: of the one
    that loads both, or B). ready: the data is in its slot. turn: MATH could compute if it were.
    start, end: of the compute. released: the slot is free. epilogue: when the epilogue of the
    step's tile ends, behind its last step (NaN at other steps). wait_a, wait_b, math_wait: how long
    the DMA warps wait for the slot and MATH for the data, before the step.
    """

    acquire_a: np.ndarray
    done_a: np.ndarray
    acquire_b: np.ndarray
    done_b: np.ndarray
    ready: np.ndarray
    turn: np.ndarray
    start: np.ndarray
    end: np.ndarray
    released: np.ndarray
    epilogue: np.ndarray
    wait_a: np.ndarray
    wait_b: np.ndarray
    math_wait: np.ndarray


def numbers(pipeline: Pipeline) -> Pipeline:
    """A pipeline of arrays of one element, as Python numbers."""
    values = {name: float(np.asarray(x).flat[0]) for name, x in pipeline._asdict().items()}
    return Pipeline(**values | {name: int(values[name]) for name in COUNTS})


def count(pipeline: Pipeline) -> int:
    """The steps of all output tiles of the CTA."""
    return pipeline.k_tiles * pipeline.tiles


@jax.jit
def _chunk(p: Pipeline, carry):
    def one(carry, _):
        carry, start = step(p, carry)
        return carry, (carry.done_a, carry.done_b, start)

    return lax.scan(one, carry, length=CHUNK_STEPS)


def play(pipeline: Pipeline, most: int) -> Steps:
    """The first steps of a pipeline of Python numbers, at most `most`. `serial` repeats its tile.

    Needs float64 (`jax.enable_x64`).
    """
    p = pipeline
    serial = p.schedule == SERIAL
    steps = min(p.k_tiles if serial else count(p), most)
    data = jax.tree.map(jnp.asarray, p._replace(tiles=1 if serial else p.tiles))
    carry, pieces = start_carry(MAX_STAGES, data.compute_us), []
    for _ in range(0, steps, CHUNK_STEPS):
        carry, events = _chunk(data, carry)
        pieces.append(jax.tree.map(np.asarray, events))
    done_a, done_b, start = (np.concatenate(part)[:steps] for part in zip(*pieces, strict=True))
    found = _filled(p, done_a, done_b, start)
    if serial and p.tiles > 1 and steps == p.k_tiles:
        tiles = min(p.tiles, max(most // steps, 1))
        begins = np.repeat(np.arange(tiles) * found.epilogue[-1], steps)
        found = Steps(
            *(
                np.tile(x, tiles) + (0.0 if name in WAITS else begins)
                for name, x in found._asdict().items()
            )
        )
    return found


def _filled(p: Pipeline, done_a: np.ndarray, done_b: np.ndarray, start: np.ndarray) -> Steps:
    """All events of steps, from those that the scan gives. `serial`: of one tile."""
    steps = len(start)
    in_tile = np.arange(steps) % p.k_tiles
    first, last = in_tile == 0, in_tile == p.k_tiles - 1
    end, ready = start + p.compute_us, done_b + p.load_latency_us
    epilogue = np.where(last, end + p.epilogue_us, np.nan)
    released = end.copy()
    if p.mma_in_flight == 1 and p.stages >= 2 and steps > 1:
        later = np.maximum(end[:-1], ready[1:])
        released[:-1] = np.where(last[:-1], end[:-1], later)
    free = np.concatenate([np.zeros(p.stages), released])[:steps]
    before_a, before_b = (np.concatenate([[0.0], done[:-1]]) for done in (done_a, done_b))
    acquire_a, acquire_b = np.maximum(before_a, free), np.maximum(before_b, free)
    turn = np.concatenate([[0.0], end[:-1]])
    begins = np.flatnonzero(first)[1:]
    if p.schedule == PINGPONG:
        own = np.concatenate([[0.0], epilogue[begins[:-1] - 1]]) if len(begins) else begins * 0.0
        turn[begins] = np.maximum(turn[begins], own)
    else:
        turn[begins] = epilogue[begins - 1]
    times = (acquire_a, done_a, acquire_b, done_b, ready, turn, start, end, released, epilogue)
    return Steps(*times, acquire_a - before_a, acquire_b - before_b, start - turn)
