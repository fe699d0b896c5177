"""The event recurrences by jumps: exact for every configuration, in blocks of one turn of the ring.

With constant durations the map from one carry to the next is max-plus linear, so it commutes with
adding a constant: **once a carry repeats up to an added constant, everything after it repeats
too**, and whole periods may be added at once. Nothing is extrapolated without that proof (carries
compared to 2e-13 relative). It is looked for twice:

- inside a tile, after each block of B steps, B = D, or D - 1 with an MMA in flight: the length of
  the ring's own cycle. Two successive blocks that differ by a constant: jump all full blocks left;
- over tiles, against a checkpoint that is renewed at tile 1, 2, 4, 8, … (Brent's cycle search):
  jump whole periods of tiles.

A row typically takes some 5 blocks whatever its k_tiles and tiles. Near ties transients are long;
a row that has not finished after `MAX_BLOCKS` blocks is left to the scan of `events`. `solve` runs
a queue of rows through slots: a slot whose row is done takes the next one.

The carry is normalised, so that equal futures compare equal: a release before `done_a` frees a slot
that no one waits for, and a ping-pong group's epilogue that ends before the next mainloop can is
over for good.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from wsjax import kept
from wsjax.model.arithmetic import Number, Truth
from wsjax.model.events import (
    PINGPONG,
    Outcome,
    Pipeline,
    isolate,
    keeps_one_in_flight,
    load,
    queued,
)

MAX_BLOCKS = 256
RTOL = 2e-13
SLOTS = 512


class Snapshot(NamedTuple):
    """A carry to compare with later: normalised times, summed waits, and its tile (0: none)."""

    times: Number
    waits: Number
    tile: Number


class State(NamedTuple):
    """One row in flight, before its next step. Times in µs since the CTA began."""

    tile: Number
    """The output tile of the next step, from 0."""
    in_tile: Number
    """The next step's k-tile in it, from 0."""
    done_a: Number
    """The DMA warp that loads A is done with its last load (one DMA warp: the only one)."""
    done_b: Number
    """The same of the DMA warp that loads B."""
    released: Float[Array, " depth"]
    """Entry i, i < B, is the release of the step D - i before the next one; others are unused."""
    newest_end: Number
    """The last compute's end, not before done_a."""
    turn: Number
    """When MATH could compute the next step if its data were there."""
    epilogue_end: Number
    """Ping-pong: the other group's last epilogue's end; else the same as `turn`."""
    last_end: Number
    """The end of the last epilogue so far."""
    waits: tuple[Number, Number]
    """The waits of MATH and of the DMA warps so far, summed."""
    block: Snapshot
    """The carry after the last full block of this tile."""
    checkpoint: Snapshot
    """The carry at a tile's end, which later tiles are compared with."""
    blocks: Number
    """How many blocks were run."""


def begin(depth: int) -> State:
    """A row that has not started, for rings of at most `depth` slots."""
    zero, none = jnp.zeros(()), jnp.zeros((), int)
    waits = (zero, zero)
    empty = Snapshot(jnp.zeros(depth + 5), waits, none)
    ring = jnp.zeros(depth)
    return State(none, none, zero, zero, ring, zero, zero, zero, zero, waits, empty, empty, none)


def _steps(p: Pipeline, s: State, length: Number, count: Number) -> State:
    """`count` <= `length` = B steps of the current tile: one turn of the ring, or what is left."""
    in_flight = keeps_one_in_flight(p)

    def step(carry, slot):
        done_a, done_b, newest_end, turn, math_wait, dma_wait = carry
        i, free = slot
        active = i < count
        loads = load(p, done_a, done_b, free)
        ready = loads.done_b + p.load_latency_us
        start = jnp.maximum(ready, turn)
        end = start + p.compute_us
        first = s.in_tile + i == 0
        drained = jnp.where(first, newest_end, jnp.maximum(newest_end, ready))
        waits = math_wait + (start - turn), dma_wait + loads.wait
        after = (loads.done_a, loads.done_b, end, end, *waits)
        carry = jax.tree.map(lambda new, old: jnp.where(active, new, old), after, carry)
        return carry, jnp.where(active, jnp.where(in_flight, drained, end), free)

    depth = s.released.shape[0]
    carry = (s.done_a, s.done_b, s.newest_end, s.turn, *s.waits)
    carry, ring = lax.scan(step, carry, (jnp.arange(depth), s.released))
    turned = jnp.arange(depth) + count
    ring = ring[jnp.where(turned >= length, turned - length, turned) % depth]
    done_a, done_b, newest_end, turn, *waits = carry
    return s._replace(
        in_tile=s.in_tile + count,
        done_a=done_a,
        done_b=done_b,
        released=jnp.where(jnp.arange(depth) < length, jnp.maximum(ring, done_a), 0.0),
        newest_end=jnp.maximum(newest_end, done_a),
        turn=turn,
        waits=tuple(waits),
        blocks=s.blocks + 1,
    )


def _times(s: State, length: Number) -> Float[Array, " times"]:
    """The carry's times relative to `turn`, as one vector (unused ring entries 0)."""
    used = jnp.arange(s.released.shape[0]) < length
    ring = jnp.where(used, s.released - s.turn, 0.0)
    rest = jnp.stack([s.done_a, s.done_b, s.newest_end, s.epilogue_end]) - s.turn
    return jnp.concatenate([ring, rest, s.turn[None]])


def _repeats(now: Float[Array, " times"], before: Float[Array, " times"], scale: Number) -> Truth:
    """Whether two carries agree but for a constant (the last entry is absolute time)."""
    return jnp.all(jnp.abs(now[:-1] - before[:-1]) <= RTOL * scale)


def _shift(s: State, periods: Number, same: Truth, since: Snapshot) -> State:
    """Move the carry by `periods` times what has passed since a snapshot, where it is the same."""
    periods = jnp.where(same, periods, 0)
    ahead = periods * (s.turn - since.times[-1])
    return s._replace(
        done_a=s.done_a + ahead,
        done_b=s.done_b + ahead,
        released=s.released + ahead,
        newest_end=s.newest_end + ahead,
        turn=s.turn + ahead,
        epilogue_end=s.epilogue_end + ahead,
        last_end=s.last_end + ahead,
        waits=tuple(w + periods * (w - x) for w, x in zip(s.waits, since.waits, strict=True)),
    )


def _jump_in_tile(p: Pipeline, s: State, length: Number, full: Truth) -> State:
    """If this block repeats the one before, add all full blocks that the tile still holds."""
    times = _times(s, length)
    inside = times.at[-2].set(0.0)  # the other group's epilogue does not matter inside a tile
    known = s.block
    same = full & (known.tile > 0) & _repeats(inside, known.times, s.turn)
    left = jnp.where(same, (p.k_tiles - s.in_tile) // length, 0)
    snapshot = Snapshot(inside, s.waits, full.astype(int))
    moved = _shift(s, left, same, known)
    return moved._replace(
        in_tile=s.in_tile + left * length,
        epilogue_end=s.epilogue_end,
        last_end=s.last_end,
        block=snapshot,
    )


def _finish_tile(p: Pipeline, s: State, length: Number) -> State:
    """At a tile's end: epilogue, next turn, and a jump over tiles if the checkpoint repeats."""
    epilogue_end = s.turn + p.epilogue_us
    alternates = p.schedule == PINGPONG
    turn = jnp.where(alternates, jnp.maximum(s.turn, s.epilogue_end), epilogue_end)
    over = jnp.where(alternates, jnp.maximum(epilogue_end, turn + p.k_tiles * p.compute_us), turn)
    s = s._replace(
        tile=s.tile + 1,
        in_tile=jnp.zeros_like(s.in_tile),
        turn=turn,
        epilogue_end=over,
        last_end=epilogue_end,
        block=s.block._replace(tile=jnp.zeros_like(s.tile)),
    )
    known = s.checkpoint
    times = _times(s, length)
    same = (known.tile > 0) & (s.tile < p.tiles) & _repeats(times, known.times, s.turn)
    period = jnp.maximum(s.tile - known.tile, 1)
    left = jnp.where(same, (p.tiles - s.tile) // period, 0)
    renew = (s.tile >= 2 * known.tile) & ~same
    fresh = Snapshot(times, s.waits, s.tile)
    s = _shift(s, left, same, known)
    checkpoint = jax.tree.map(lambda new, old: jnp.where(renew, new, old), fresh, known)
    used = jnp.where(same, 2**28, checkpoint.tile)
    return s._replace(tile=s.tile + left * period, checkpoint=checkpoint._replace(tile=used))


def _choose(condition: Truth, new: State, old: State) -> State:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def block(p: Pipeline, s: State) -> State:
    """One block of at most B steps, with the jumps that its carry allows; a done row stays."""
    length = jnp.where(keeps_one_in_flight(p), p.stages - 1, p.stages)
    count = jnp.minimum(length, p.k_tiles - s.in_tile)
    after = _steps(p, s, length, count)
    after = _jump_in_tile(p, after, length, count == length)
    after = _choose(after.in_tile == p.k_tiles, _finish_tile(p, after, length), after)
    return _choose(s.tile < p.tiles, after, s)


def _finished(p: Pipeline, s: State) -> Truth:
    return s.tile >= p.tiles


class _Slots(NamedTuple):
    """The queue in flight."""

    pipeline: Pipeline
    """Each slot's pipeline, arrays (slots,)."""
    state: State
    """Each slot's state, arrays (slots, …)."""
    row: Int[Array, " slots"]
    """The row of the queue that each slot runs."""
    next_row: Number
    """The first row that no slot has taken."""
    end_us: Float[Array, " queue"]
    """The end of the last epilogue of rows that have left."""
    waits: tuple[Float[Array, " queue"], Float[Array, " queue"]]
    """The waits of MATH and of the DMA warps of rows that have left."""
    finished: Bool[Array, " queue"]
    """Which rows left because they were done."""


@partial(kept.jit, static_argnames=("depth",))
def solve(queue: Pipeline, rows: Number, depth: int) -> tuple[Outcome, Bool[Array, " queue"]]:
    """The first `rows` pipelines of a queue (arrays of one length, rings of at most `depth` slots).

    Returns (outcome in µs, whether the row finished within MAX_BLOCKS blocks), in queue order.
    """
    once, repeats = jax.vmap(isolate)(queue)
    capacity = queue.k_tiles.shape[0]
    slots = min(SLOTS, capacity)
    advance = jax.vmap(lambda p, s: lax.fori_loop(0, 2, lambda _, s: block(p, s), s))
    fresh = jax.vmap(lambda _: begin(depth))(jnp.arange(slots))

    def take(row: Int[Array, " slots"]) -> Pipeline:
        return jax.tree.map(lambda column: column[jnp.minimum(row, capacity - 1)], once)

    def unfinished(q: _Slots) -> Truth:
        return jnp.any(q.row < rows)

    def turn(q: _Slots) -> _Slots:
        state = advance(q.pipeline, q.state)
        finished = _finished(q.pipeline, state)
        leaves = (finished | (state.blocks >= MAX_BLOCKS)) & (q.row < rows)
        at = jnp.where(leaves, q.row, capacity)
        row = jnp.where(leaves, q.next_row + jnp.cumsum(leaves) - 1, q.row)

        def renew(new, old):
            return jnp.where(leaves.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        return _Slots(
            jax.tree.map(renew, take(row), q.pipeline),
            jax.tree.map(renew, fresh, state),
            row,
            q.next_row + jnp.sum(leaves),
            q.end_us.at[at].set(state.last_end, mode="drop"),
            (
                q.waits[0].at[at].set(state.waits[0], mode="drop"),
                q.waits[1].at[at].set(state.waits[1], mode="drop"),
            ),
            q.finished.at[at].set(finished, mode="drop"),
        )

    first = jnp.arange(slots)
    zeros = jnp.zeros(capacity)
    q = _Slots(
        take(first),
        fresh,
        first,
        jnp.asarray(slots),
        zeros,
        (zeros, zeros),
        jnp.zeros(capacity, bool),
    )
    q = lax.while_loop(unfinished, turn, q)
    outcome = Outcome(*(x * repeats for x in (q.end_us, *q.waits)))
    return queued(queue, outcome), q.finished
