"""Output tiles whose k is divided among CTAs, as CUTLASS's sm90 stream-K scheduler does it.

**Split-K.** A *unit* is what a CTA takes at a time: one share of the k-tiles of one output tile.
With S = `split_k` (at most the k-tiles, and the SMs), T output tiles and C CTAs, unit u is share
floor(u/T) of tile u mod T, and CTA i takes the units i, i + C, … The first k_tiles mod S shares
have ceil(k_tiles / S) k-tiles, the others one less. To traffic and waves, units are the output
tiles of S times as many matrices, each as deep as one share.

**Stream-K.** If the last wave is not full, all whole waves but one have whole tiles, and the rest
is cut into as many equal runs of k-tiles as there are CTAs (fewer where a run would have less than
8 k-tiles), in groups, wherever tiles end. A run that lies in two tiles has a share of each.
`heuristic` takes whole tiles where the last wave is half full, split-K where runs divide tiles
evenly, else stream-K. The cut is that of PersistentTileSchedulerSm90StreamK, in all of 19,945
measured rows; how long the longest run is, and how many shares a tile has, are near what a
simulator of all CTAs finds. CTAs that share rows of A or B are up to a run apart, and find less of
them in L2 (`traffic`).

**Reduction.** Behind its mainloop, MATH stores a tile's first share of the sums in memory, adds the
next ones there, and loads them to add the last, whose CTA runs the epilogue. Each of these is a
reduction, and takes

    r(n) = (reduction + bytes of sums / reduction_throughput
            + n bytes of sums / reductions_throughput) * slowdown

with n reductions going on at a time: one of each output tile in a queue, else one of each CTA; of
stream-K, whose runs end at different times, 1.
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

from wsjax.model.arithmetic import Number, Truth, floor_div, inverse
from wsjax.model.closed import exchange_us, isolated
from wsjax.model.costs import Costs
from wsjax.model.events import Pipeline
from wsjax.model.raster import Raster, ceil_div, resident_ctas, tile_grid
from wsjax.schema import HEURISTIC, STREAMK, Configuration, Facts

SUM_BYTES = 4.0
"""Of one sum: f32."""
MIXED = 1.5
"""How many times as long memory takes for atomics of CTAs that do not take turns, while others
load: chosen on training problems of `cutlass_splitk`."""
STREAM_K_TILES = 8.0
STREAM_GROUPS = 8
"""CUTLASS's least k-tiles of a stream-K unit, and its most groups of units."""
STREAM_SNAP = 3.0
"""By how many k-tiles runs grow where pieces that are too short go to a neighbour: chosen on
`cutlass_splitk`."""


class Units(NamedTuple):
    """How a configuration is divided."""

    configuration: Configuration
    """The units as output tiles: k is a unit's, batch counts all shares."""
    splits: Number
    """Shares of an output tile: S."""
    tiles: Number
    """Output tiles."""
    k_tiles: Number
    """k-tiles of an output tile."""
    stream: "Stream"
    """How stream-K divides it; all 0 where it does not."""


class Stream(NamedTuple):
    """Stream-K's cut: as many whole waves as there can be have whole tiles; of the rest, `units`
    take equal runs of k-tiles, wherever tiles end. All 0 where no tile is cut."""

    units: Number
    """Units that take a run, one a CTA: whole clusters."""
    tiles: Number
    """Output tiles that are cut."""
    k_tiles: Number
    """k-tiles of the longest run."""
    waves: Number
    """Waves, the cut one first."""
    apart: Number
    """k-tiles by which CTAs that share rows of A or B are apart, at most."""


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
    tiles_m, tiles_n = ceil_div(c.m, c.block_m), ceil_div(c.n, c.block_n)
    tiles = tile_grid(c, tiles_m, tiles_n)
    slots = resident_ctas(facts.sms, c.cluster_m * c.cluster_n)
    stream = _stream(c, tiles_m, tiles_n, tiles, k_tiles, slots)
    per_cut = inverse(jnp.maximum(stream.tiles, 1.0))
    each = floor_div(stream.units, per_cut)
    evenly = (c.scheduler == HEURISTIC) & (each > 1) & (each * stream.tiles == stream.units)
    splits = jnp.minimum(jnp.minimum(c.split_k, k_tiles), facts.sms)
    splits = jnp.where(evenly, each, splits)
    stream = Stream(*(jnp.where(evenly, 0.0, x) for x in stream))
    k = jnp.minimum(ceil_div(k_tiles, splits) * c.block_k, c.k)
    batch = c.batch * splits
    one_wave = stream.waves == 1
    k = jnp.where(one_wave, stream.k_tiles * c.block_k, k)
    batch = jnp.where(one_wave, c.batch * stream.units * inverse(tiles), batch)
    return Units(c._replace(k=k, batch=batch), splits, tiles, k_tiles, stream)


def _stream(
    c: Configuration,
    tiles_m: Number,
    tiles_n: Number,
    tiles: Number,
    k_tiles: Number,
    slots: Number,
) -> Stream:
    """The cut that CUTLASS's PersistentTileSchedulerSm90StreamK makes, where it makes one."""
    size = c.cluster_m * c.cluster_n
    per_size, least = inverse(size), STREAM_K_TILES
    whole_waves = floor_div(tiles, inverse(slots))
    tail = tiles - whole_waves * slots
    waves = jnp.maximum(whole_waves, 1.0)
    cut = floor_div(tiles - (waves - 1.0) * slots, per_size)
    refuses = (c.split_k > 1) | (2.0 * tail >= slots)
    never = (c.scheduler < STREAMK) | (tail == 0) | (k_tiles <= least)
    cut = jnp.where(never | ((c.scheduler == HEURISTIC) & refuses), 0.0, cut)
    fitting = floor_div(floor_div(k_tiles * cut * size, 1.0 / least), per_size)
    units = jnp.minimum(floor_div(slots, per_size), fitting)

    most = jnp.where(
        tiles_n > tiles_m, ceil_div(tiles_m, c.cluster_m), ceil_div(tiles_n, c.cluster_n)
    )
    fallback = ideal = 1.0
    for groups in range(2, STREAM_GROUPS + 1):
        per_groups = 1.0 / groups
        each, tiles_each = floor_div(units, per_groups), floor_div(cut, per_groups)
        valid = (groups <= most) & (each * groups == units)
        valid &= tiles_each * k_tiles >= least * each
        fallback = jnp.where(valid, groups, fallback)
        ideal = jnp.where(valid & (tiles_each * groups == cut), groups, ideal)
    per_groups = inverse(jnp.where(ideal > 1, ideal, fallback))
    each = jnp.maximum(floor_div(units, per_groups), 1.0)
    total = ceil_div(cut, 1.0, per_groups) * k_tiles
    run = ceil_div(total, each)
    even = (run * each == total) & (
        floor_div(k_tiles, inverse(jnp.maximum(run, 1.0))) * run == k_tiles
    )
    apart = jnp.where(even, 0.0, run)
    run = jnp.where(even, run, run + STREAM_SNAP)
    run = jnp.where(k_tiles < 2.0 * least, jnp.maximum(run, k_tiles), run)
    made = units > 0
    cut_up = (units * size, cut * size, run, waves, apart)
    return Stream(*(jnp.where(made, x, 0.0) for x in cut_up))


def of_units(r: Raster, u: Units) -> Raster:
    """The `raster` of units with the waves of stream-K."""
    streamed = u.stream.waves > 0
    last = jnp.where(u.stream.waves > 1, r.active, r.active_last)
    return r._replace(
        waves=jnp.where(streamed, u.stream.waves, r.waves),
        active_last=jnp.where(streamed, last, r.active_last),
    )


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
    per_tiles = inverse(u.tiles)
    ordered, several, streamed = c.reduction == 0, r.waves > 1, u.stream.waves > 0
    sums_bytes = SUM_BYTES * c.block_m * c.block_n
    slower = jnp.where((u.splits > 1) | streamed, slowdown, 0.0)

    def reduction_us(at_once: Number) -> Number:
        each_us = cost.reduction + at_once * cost.reductions
        return (startup_us + sums_bytes * each_us) * slower

    reducing = jnp.where(~ordered & several, MIXED, 1.0) * r.active
    between_us = reduction_us(jnp.where(streamed, 1.0, reducing))
    queued_us = reduction_us(jnp.where(streamed, 1.0, jnp.minimum(u.tiles, r.active)))
    least = floor_div(u.k_tiles, per_splits)
    longer = u.k_tiles - least * u.splits

    def share(wave: Number) -> Number:
        return floor_div(wave * r.active, per_tiles)

    def part(wave: Number, reductions_us: Number, epilogues: Number) -> _Part:
        return _Part(least + (share(wave) < longer), reductions_us, epilogues)

    def behind_us(shares: Number, with_first: Truth) -> Number:
        """The reductions of so many shares of a tile, the last one among them."""
        ends = jnp.minimum(shares, 1.0 + with_first)
        at_once_us = ends * queued_us + (shares > ends) * between_us
        return jnp.where(ordered, shares * queued_us, at_once_us)

    left = u.splits - share(r.waves - 1)
    final = jnp.maximum(r.waves * per_splits - 1.0, 0.0) * inverse(jnp.maximum(r.waves - 1.0, 1.0))
    ending = part(r.waves - 1, behind_us(left, ~several), 1.0)
    middle = part(floor_div(r.waves, 0.5), between_us, final)
    opening = part(0.0, between_us, (u.splits == 1) * 1.0)

    cut = jnp.maximum(u.stream.tiles, 1.0)
    shares = jnp.maximum(floor_div(u.stream.units, inverse(cut)), 1.0)
    shares = jnp.where(u.stream.units > cut, jnp.maximum(shares, 2.0), shares)
    shares = jnp.where(u.k_tiles < 2.0 * STREAM_K_TILES, 0.0, shares)
    tiles_each = jnp.maximum(cut * inverse(jnp.maximum(u.stream.units, 1.0)), 1.0)
    run = _Part(u.stream.k_tiles, behind_us(shares, True), tiles_each)
    uncut = _Part(u.k_tiles, 0.0, 1.0)

    def either(condition: Truth, yes: _Part, no: _Part) -> _Part:
        return _Part(*(jnp.where(condition, *pair) for pair in zip(yes, no, strict=True)))

    opening, middle = either(streamed, run, opening), either(streamed, uncut, middle)
    ending = either(streamed, either(several, uncut, run), ending)

    def with_part(pipeline: Pipeline, part: _Part) -> Pipeline:
        part = either(several, part, ending)
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
