"""What a step's loads move, and from where: bytes at the SM, in L2 and in DRAM, and miss shares.

**Bytes inside.** An edge tile loads only what lies in the matrix: on average
(m / tiles_m) (k / k_tiles) elements of A a step. The rest of the box is filled with zeros, at the
price of a byte inside and, with all SMs at it, `out_of_bounds_cost` times that more (0: the paper's
machine).

**Price of a byte.** A row pitch that is no multiple of 128 B costs `pitch_cost` more at odd
multiples of 16 B, 0.32 of that at 32 B, 0.16 at 64 B. Rows of less than 128 B along k cost
`short_row_cost` more. In DRAM a byte is a byte.

**Clusters.** TMA multicast brings a tile of A to the cluster_n CTAs of a cluster's row, and one of
B to the cluster_m of its column: each asks L2 for its share, and has the whole arrive at its SM. To
L2, a byte that arrives by another's request costs `multicast_cost` of one of its own.

**DRAM.** A wave loads its unique tiles once. Of what a later wave could reuse from L2, the share
miss(v) = v^3 / (v^3 + capacity^3) is gone, v being the bytes touched in between: A is needed
again by each wave of its group of rows, B by each pass over the groups. What L2 takes in while it
still holds lines of before pushes one of them out, of which `dirty_share` have to be written. A
CTA that shares its tile with s - 1 others misses 1 + sharing log s times less, for whoever comes
first fetches it for all.

Measured on one H200 (see the design's section 2.4); all effects vanish in a neutral machine.
"""

from typing import NamedTuple

import jax.numpy as jnp

from wsjax.hardware import Parameters
from wsjax.model.arithmetic import Number, Truth, inverses, is_number, logarithm, scaled
from wsjax.model.raster import Raster, window
from wsjax.schema import Configuration

COALESCING_CTAS = 16.0
"""Neighbours whose requests for one tile L2 can merge: the SMs of a GPC."""
COALESCED_SHARE = 0.5
"""The share of such requests that L2 does merge. Chosen on the measured H200 table, not fitted."""
LATE_SHARE = 0.15
"""The share of such loads that come from DRAM, of CTAs at different k: chosen on `cutlass_splitk`.
"""
TINY = 1e-30
ROUNDED = 1e-9
"""More than a share of 1 can be off by."""
TOUCHED_MAX = 1e4
PITCHES = ((128.0, 0.0), (64.0, 0.16), (32.0, 0.32))
"""The share of `pitch_cost` at multiples of so many bytes, measured on one H200; others: all."""
LAYOUT_CODES_A_ACROSS = 2
"""Layout codes from here on store A across k; odd ones store B along k (see `schema`)."""


class Traffic(NamedTuple):
    """A step's loads: bytes a step and CTA, priced as above, or shares of 1."""

    inside_bytes: Number
    """What lies in the matrices."""
    outside_bytes: Number
    """What lies outside them, filled with zeros (not priced)."""
    slices_bytes: Number
    """What L2 serves, requests of neighbours for one tile merged."""
    box_bytes: Number
    """What latency grows with: the tiles' boxes."""
    stored_bytes: Number
    """An output tile's bytes of C, spread over its steps."""
    dram_first_bytes: Number
    """From and to DRAM in the first wave, of all its CTAs together."""
    dram_later_bytes: Number
    """From and to DRAM in a later full wave, of all its CTAs together."""
    miss_first: Number
    """The share of steps whose data come from DRAM, in the first wave."""
    miss_later: Number
    """The same in later waves."""
    a_share: Number
    """The share of A in a step's bytes."""


def traffic(
    c: Configuration,
    r: Raster,
    p: Parameters,
    in_bytes: Number,
    out_bytes: Number,
    whole: Configuration | None = None,
    apart: Number = 0.0,
) -> Traffic:
    """The `Traffic` of one configuration; whole: where output tiles are divided, the one whose
    parts `c` has; apart: by how many steps CTAs that share a tile may be."""
    per, per_capacity = r.per, 1.0 / p.l2_capacity_bytes
    depth_bytes = c.k * in_bytes * per.k_tiles
    warm = c.l2_state * 1.0
    price_a, price_b, pitch_a, pitch_b = _prices(whole or c, r, p, in_bytes)
    rows, cols = c.m * per.tiles_m, c.n * per.tiles_n
    a_bytes, b_bytes = rows * depth_bytes, cols * depth_bytes
    slot_bytes = (c.block_m + c.block_n) * c.block_k * in_bytes
    row_bytes = jnp.minimum(c.k, c.block_k) * in_bytes
    box_bytes = jnp.minimum(c.m, c.block_m) * pitch_a + jnp.minimum(c.n, c.block_n) * pitch_b
    inside_a, inside_b = price_a * a_bytes, price_b * b_bytes

    some = jnp.minimum(COALESCING_CTAS, r.active)
    per_some = jnp.maximum(1.0 / COALESCING_CTAS, per.active)
    near = window(r, some)
    merged_a = jnp.minimum(jnp.clip(near.rows, 1.0, r.tiles_m), some) * per_some
    merged_b = jnp.minimum(jnp.clip(near.cols, 1.0, r.tiles_n), some) * per_some
    part_a, part_b = inverses(c.cluster_n, c.cluster_m)
    merged = inside_a * (part_a - jnp.minimum(merged_a, part_a + ROUNDED))
    merged += inside_b * (part_b - jnp.minimum(merged_b, part_b + ROUNDED))
    spared = inside_a * (1.0 - part_a) + inside_b * (1.0 - part_b)
    spared = spared - scaled(p.multicast_cost, spared)
    beyond_a = c.block_m * c.block_k * in_bytes - a_bytes
    beyond_b = c.block_n * c.block_k * in_bytes - b_bytes
    unfilled = beyond_a * (1.0 - part_a) + beyond_b * (1.0 - part_b)

    wave = _wave(c, r, depth_bytes)
    size_a, size_b = c.m * c.k * in_bytes * c.batch, c.n * c.k * in_bytes * c.batch
    touched = size_a + size_b + c.m * c.n * out_bytes * c.batch
    between_a, between_b = _between(c, r, in_bytes)
    over, over_a, over_b = (_overflow(x * per_capacity) for x in (touched, between_a, between_b))
    span_a, span_b = _spanned(wave.rows, r.tiles_m), _spanned(wave.cols, r.tiles_n)
    turns = jnp.maximum(r.tiles * per.active - 1.0, 1e-3)
    per_over, kept_a, kept_b, per_turn, per_span_a, per_span_b, per_a, per_b = inverses(
        1.0 + over, 1.0 + over_a, 1.0 + over_b, turns, span_a, span_b, wave.a_bytes, wave.b_bytes
    )
    absent = 1.0 - warm * p.warm_hit_share * per_over
    waves_of_a = jnp.maximum(r.group * r.tiles_n * per.active, 1.0)
    passes_of_b = jnp.minimum(per.group, r.tiles_n * per.active) * r.tiles_m
    passes_of_b = jnp.maximum(passes_of_b, 1.0)
    total_a = size_a * (1.0 + (waves_of_a - 1.0) * over_a * kept_a)
    total_b = size_b * (1.0 + (passes_of_b - 1.0) * over_b * kept_b)
    several = r.tiles > r.active
    again_a = jnp.where(several, jnp.maximum(total_a - wave.a_bytes * r.k_tiles, 0.0), 0.0)
    again_b = jnp.where(several, jnp.maximum(total_b - wave.b_bytes * r.k_tiles, 0.0), 0.0)
    filled = (wave.a_bytes + wave.b_bytes) * r.k_tiles * per_capacity
    left = jnp.maximum(1.0 - filled, 0.0)
    refilled = (again_a + again_b + 1.0) * per_capacity
    most = jnp.maximum(jnp.maximum(left, refilled), TINY)
    per_later = per.k_tiles * per_turn
    again_a, again_b = again_a * per_later, again_b * per_later
    first = (wave.a_bytes + wave.b_bytes) * absent
    if whole:
        late_a, late_b = (
            _overflow(apart * per_tiles * r.active * slot_bytes * per_capacity)
            for per_tiles in (per.tiles_n, per.tiles_m)
        )
        per_late_a, per_late_b = inverses(1.0 + late_a, 1.0 + late_b)
        again_first = jnp.maximum(r.active * a_bytes - wave.a_bytes, 0.0) * late_a * per_late_a
        again_first += jnp.maximum(r.active * b_bytes - wave.b_bytes, 0.0) * late_b * per_late_b
        first += LATE_SHARE * again_first * absent
    later = (again_a + again_b) * absent
    stored = rows * cols * out_bytes * per.k_tiles
    if whole:
        stored = stored * (whole.batch / c.batch)

    written = stored * r.active * (1.0 - warm)

    miss_a, miss_b = _missing(p, r.active * per_span_a, r.active * per_span_b)
    left_a = jnp.sqrt(jnp.clip(again_a * per_a, 1e-6, 1.0))
    left_b = jnp.sqrt(jnp.clip(again_b * per_b, 1e-6, 1.0))
    per_filled, per_most = inverses(jnp.maximum(1.0, filled), most)
    return Traffic(
        inside_bytes=inside_a + inside_b,
        outside_bytes=slot_bytes - a_bytes - b_bytes - unfilled,
        slices_bytes=inside_a + inside_b - spared - COALESCED_SHARE * merged,
        box_bytes=jnp.maximum(slot_bytes, box_bytes * row_bytes),
        stored_bytes=stored,
        dram_first_bytes=first * (1.0 + p.dirty_share * per_filled),
        dram_later_bytes=later * (1.0 + p.dirty_share * left * per_most) + written,
        miss_first=absent * (1.0 - (1.0 - miss_a) * (1.0 - miss_b)),
        miss_later=absent * (1.0 - (1.0 - left_a * miss_a) * (1.0 - left_b * miss_b)),
        a_share=c.block_m * per.edges,
    )


def _spanned(span: Number, most: Number) -> Number:
    """Tiles of an operand that a wave spans, a whole number."""
    return jnp.clip(jnp.ceil(span - 1e-9), 1.0, most)


def _missing(p: Parameters, sharers_a: Number, sharers_b: Number) -> tuple[Number, ...]:
    """How often a CTA that shares its tiles of A and B with so many misses."""
    if is_number(p.sharing, 0.0):
        return 1.0, 1.0

    def hits(sharers: Number) -> Number:
        return 1.0 + p.sharing * logarithm(jnp.maximum(sharers, 1.0))

    return inverses(hits(sharers_a), hits(sharers_b))


class _Wave(NamedTuple):
    """What a full wave loads a step, each tile counted once, and the block rows and columns."""

    a_bytes: Number
    b_bytes: Number
    rows: Number
    cols: Number


def _wave(c: Configuration, r: Raster, depth_bytes: Number) -> _Wave:
    one_matrix = r.tiles_m * r.tiles_n
    matrices = jnp.maximum(r.active * (r.per.tiles_m * r.per.tiles_n), 1.0)
    matrices = jnp.where(c.batch > 1, matrices, 1.0)
    rows, cols = window(r, jnp.minimum(r.active, one_matrix))
    a_bytes = jnp.minimum(rows * c.block_m, c.m) * depth_bytes * matrices
    b_bytes = jnp.minimum(cols * c.block_n, c.n) * depth_bytes * matrices
    return _Wave(a_bytes, b_bytes, rows, cols)


def _between(c: Configuration, r: Raster, in_bytes: Number) -> tuple[Number, Number]:
    """Bytes of A and B that are touched before a tile of A, or of B, is needed again."""
    rows = jnp.minimum(jnp.maximum(r.group, r.active * r.per.tiles_n), r.tiles_m)
    cols = jnp.minimum(jnp.maximum(1.0, r.active * r.per.group), r.tiles_n)
    column_bytes = c.k * in_bytes
    between_a = (rows * c.block_m + cols * c.block_n) * column_bytes
    return between_a, (c.n + jnp.minimum(rows * c.block_m, c.m)) * column_bytes


def _overflow(touched: Number) -> Number:
    """x^3 of the bytes touched, in capacities: of a tile, the share 1 / (1 + x^3) is still in L2.

    More than `TOUCHED_MAX` capacities leave as little of it.
    """
    touched = jnp.minimum(touched, TOUCHED_MAX)
    return touched * touched * touched


def _prices(
    c: Configuration, r: Raster, p: Parameters, in_bytes: Number
) -> tuple[Number, Number, Number, Number]:
    """A byte of A and of B at the SM, and in DRAM (where short rows cost nothing)."""
    a_across = c.layout >= LAYOUT_CODES_A_ACROSS
    b_across = (c.layout == 0) | (c.layout == LAYOUT_CODES_A_ACROSS)
    rows = r.per.block_k * (128.0 / in_bytes)
    short = 1.0 + p.short_row_cost * jnp.maximum(rows - 1.0, 0.0)

    def price(
        across: Truth, along_elements: Number, across_elements: Number
    ) -> tuple[Number, Number]:
        pitch = jnp.where(across, across_elements, along_elements) * in_bytes
        share = 1.0
        for multiple, part in reversed(PITCHES):
            share = jnp.where(jnp.floor(pitch * (1.0 / multiple)) * multiple == pitch, part, share)
        long_rows = 1.0 + p.pitch_cost * share
        return long_rows * jnp.where(across, 1.0, short), long_rows

    at_a, pitch_a = price(a_across, c.k, c.m)
    at_b, pitch_b = price(b_across, c.k, c.n)
    return at_a, at_b, pitch_a, pitch_b
