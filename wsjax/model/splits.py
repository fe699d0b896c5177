"""Output tiles whose k is divided among CTAs, as CUTLASS's stream-K scheduler does it: split-K.

A *unit* is what a CTA takes at a time: one share of the k-tiles of one output tile. With S =
`split_k` (at most the k-tiles, and the SMs), T output tiles and C CTAs, unit u is share floor(u/T)
of tile u mod T, and CTA i takes the units i, i + C, … The first k_tiles mod S shares have
ceil(k_tiles / S) k-tiles, the others one less. To traffic and waves, units are the output tiles of
S times as many matrices, each as deep as one share.

**Reduction.** Behind its mainloop, MATH stores a tile's first share of the sums in memory, adds the
next ones there, and loads them to add the last, whose CTA runs the epilogue. Each of these is a
reduction, and takes

    r(n) = (reduction + bytes of sums / reduction_throughput
            + n bytes of sums / reductions_throughput) * slowdown

with n reductions going on at a time: one of each output tile in a queue, else one of each CTA.
`deterministic`: a share waits for the one before it, so that a tile's reductions form a queue.
`nondeterministic`: only for the first; the last waits for all, so that of one wave's reductions
all but the first and the last take place at once.

**Time.** All CTAs take their units in step. The busiest computes a unit a wave, with a reduction
behind each (a tile's last share has an epilogue, too), and behind the last wave's mainloop come the
reductions that the last tile still has there. Or its queue has never been empty since the first
wave's mainloop: `Pipeline.queue_end_us`. The later of the two is the end.
"""

from typing import NamedTuple

import jax.numpy as jnp

from wsjax.model.arithmetic import Number, floor_div, inverse
from wsjax.model.closed import exchange_us, isolated
from wsjax.model.costs import Costs
from wsjax.model.events import Pipeline
from wsjax.model.raster import Raster, ceil_div
from wsjax.schema import Configuration, Facts

SUM_BYTES = 4.0
"""Of one sum: f32."""


class Units(NamedTuple):
    """How a configuration is divided."""

    configuration: Configuration
    """The units as output tiles: k is a unit's, batch counts all shares."""
    splits: Number
    """Shares of an output tile: S."""
    k_tiles: Number
    """k-tiles of an output tile."""


class _Part(NamedTuple):
    """One wave's unit of the busiest CTA: its k-tiles, and what comes behind its mainloop."""

    k_tiles: Number
    reductions_us: Number
    """Its reduction; behind the last wave, those for which the tile's last share waits, too."""
    epilogues: Number
    """How many of an output tile's; of middle waves the mean."""


def units(c: Configuration, facts: Facts) -> Units:
    """The units of a configuration (numbers as floats)."""
    k_tiles = ceil_div(c.k, c.block_k)
    splits = jnp.minimum(jnp.minimum(c.split_k, k_tiles), facts.sms)
    k = jnp.minimum(ceil_div(k_tiles, splits) * c.block_k, c.k)
    return Units(c._replace(k=k, batch=c.batch * splits), splits, k_tiles)


def reduced(
    u: Units,
    r: Raster,
    full: Pipeline,
    first: Pipeline,
    last: Pipeline,
    *,
    cost: Costs,
    startup_us: Number,
    slowdown: Number,
) -> tuple[Pipeline, Pipeline, Pipeline]:
    """The waves of a kernel of units with their reductions; r: the `raster` of the units."""
    c = u.configuration
    per_splits = inverse(u.splits)
    tiles = floor_div(r.tiles, per_splits)
    per_tiles = inverse(tiles)
    ordered, several = c.reduction == 0, r.waves > 1
    sums_bytes = SUM_BYTES * c.block_m * c.block_n
    slower = jnp.where(u.splits > 1, slowdown, 0.0)

    def reduction_us(at_once: Number) -> Number:
        each_us = cost.reduction + at_once * cost.reductions
        return (startup_us + sums_bytes * each_us) * slower

    between_us = reduction_us(r.active)
    queued_us = reduction_us(jnp.where(ordered, jnp.minimum(tiles, r.active), r.active))
    least = floor_div(u.k_tiles, per_splits)
    longer = u.k_tiles - least * u.splits

    def share(wave: Number) -> Number:
        return floor_div(wave * r.active, per_tiles)

    def part(wave: Number, reductions_us: Number, epilogues: Number) -> _Part:
        return _Part(least + (share(wave) < longer), reductions_us, epilogues)

    left = u.splits - share(r.waves - 1)
    at_once = jnp.minimum(left, jnp.where(several, 2.0, 3.0))
    final = jnp.maximum(r.waves * per_splits - 1.0, 0.0) * inverse(jnp.maximum(r.waves - 1.0, 1.0))
    ending = part(r.waves - 1, jnp.where(ordered, left, at_once) * queued_us, 1.0)
    middle = part(floor_div(r.waves, 0.5), between_us, final)
    opening = part(0.0, between_us, (u.splits == 1) * 1.0)

    def with_part(pipeline: Pipeline, part: _Part) -> Pipeline:
        part = _Part(*(jnp.where(several, x, y) for x, y in zip(part, ending, strict=True)))
        behind_us = part.reductions_us + part.epilogues * pipeline.epilogue_us
        return pipeline._replace(k_tiles=part.k_tiles, epilogue_us=behind_us)

    mainloop_us = isolated(with_part(first, opening)._replace(tiles=1.0, epilogue_us=0.0))[0].end_us
    queue_us = mainloop_us + u.splits * queued_us + last.epilogue_us
    full, first, last = (
        with_part(pipeline, part)
        for pipeline, part in ((full, middle), (first, opening), (last, ending))
    )
    queue_us = jnp.where(ordered & several & (u.splits > 1), queue_us, 0.0)
    return full._replace(queue_end_us=queue_us - exchange_us(full, first, last)), first, last
