"""Where a kernel's output tiles lie: waves of CTAs over the matrix C, and what they share.

CTAs take output tiles in raster order: groups of `group_m` block rows, m fastest inside a group
(`group_m` = 1: row by row, n fastest). The tiles in flight at one time, a window of `active` tiles
of that order, span `rows` block rows and `cols` block columns; they load as many different tiles of
A and of B, and CTAs of one block row share a tile of A.

Clusters of cluster_m x cluster_n CTAs take as many neighbouring tiles, so that the tile grid is
rounded up to whole clusters, and lie within a GPC: of its `SMS_PER_GPC` SMs those that make no
whole cluster stay idle.

A CUTLASS kernel that is not told otherwise chooses its own order (`Facts.cutlass_raster`): along
the shorter side of the tile grid, and always m fastest where every CTA has one tile (`serial`).
"""

from typing import NamedTuple

import jax.numpy as jnp

from wsjax.model.arithmetic import Number, floor_div, inverse, inverses
from wsjax.model.events import SERIAL
from wsjax.schema import Configuration, Facts


def ceil_div(a: Number, b: Number, per_b: Number | None = None) -> Number:
    """ceil(a / b) for whole positive numbers held as floats; exact below 2**49.

    per_b: `inverse` of b, if it is at hand.
    """
    return floor_div(a + (b - 1.0), inverse(b) if per_b is None else per_b)


SMS_PER_GPC = 18.0
"""What CUTLASS's launches reckon with on Hopper: an H200's 132 SMs are 7 GPCs and 6 SMs, which hold
116 CTAs in clusters of 4."""


class Inverses(NamedTuple):
    """1 / x of what others divide by."""

    block_m: Number
    """1 / block_m, an element."""
    block_n: Number
    """1 / block_n, an element."""
    block_k: Number
    """1 / block_k, an element."""
    edges: Number
    """1 / (block_m + block_n), an element."""
    tiles_m: Number
    """1 / block rows of C."""
    tiles_n: Number
    """1 / block columns of C."""
    k_tiles: Number
    """1 / steps an output tile."""
    group: Number
    """1 / block rows a group of the raster order."""
    active: Number
    """1 / CTAs in flight in a full wave."""


class Raster(NamedTuple):
    """One configuration's tile grid and waves, counts as floats."""

    tiles_m: Number
    """Block rows of C: ceil(m / block_m)."""
    tiles_n: Number
    """Block columns of C: ceil(n / block_n)."""
    k_tiles: Number
    """Steps an output tile: ceil(k / block_k)."""
    tiles: Number
    """Output tiles, of all matrices of the batch, and those that fill their last clusters."""
    waves: Number
    """Output tiles of the busiest CTA, or waves of CTAs of a serial kernel."""
    ctas_per_sm: Number
    """CTAs that run on an SM together."""
    active: Number
    """CTAs in flight in a full wave."""
    active_last: Number
    """CTAs in flight in the last wave."""
    group: Number
    """Block rows a group of the raster order."""
    per: Inverses


class Window(NamedTuple):
    """Block rows and columns that some neighbouring tiles of the raster order span."""

    rows: Number
    cols: Number


def raster(c: Configuration, facts: Facts, ctas_per_sm: Number) -> Raster:
    """k_tiles = ceil(k/block_k), tiles = ceil(m/block_m) ceil(n/block_n) batch, and the waves.

    `grid_ctas` run at a time, or, where it is 0, `ctas_per_sm` on each SM.
    """
    edges = c.block_m + c.block_n
    per_m, per_n, per_k, per_edges = inverses(c.block_m, c.block_n, c.block_k, edges)
    tiles_m, tiles_n = ceil_div(c.m, c.block_m, per_m), ceil_div(c.n, c.block_n, per_n)
    k_tiles = ceil_div(c.k, c.block_k, per_k)
    tiles = tile_grid(c, tiles_m, tiles_n)
    slots = resident_ctas(facts.sms, c.cluster_m * c.cluster_n) * ctas_per_sm
    slots = jnp.where(c.grid_ctas > 0, jnp.minimum(c.grid_ctas, slots), slots)
    m_fastest = (c.schedule == SERIAL) | (tiles_n > tiles_m)
    chosen = jnp.where(m_fastest, tiles_m, 1.0)
    group = jnp.where((facts.cutlass_raster > 0) & (c.group_m == 1), chosen, c.group_m)
    group = jnp.minimum(jnp.maximum(group, c.cluster_m), tiles_m)
    per_slots, per_rows, per_cols, per_steps, per_group = inverses(
        slots, tiles_m, tiles_n, k_tiles, group
    )
    waves = ceil_div(tiles, slots, per_slots)
    active = jnp.minimum(tiles, slots)
    per_tile = per_rows * per_cols * inverse(c.batch) * (tiles_m * tiles_n * c.batch / tiles)
    return Raster(
        tiles_m=tiles_m,
        tiles_n=tiles_n,
        k_tiles=k_tiles,
        tiles=tiles,
        waves=waves,
        ctas_per_sm=ctas_per_sm,
        active=active,
        active_last=jnp.maximum(tiles - (waves - 1) * active, 1.0),
        group=group,
        per=Inverses(
            block_m=per_m,
            block_n=per_n,
            block_k=per_k,
            edges=per_edges,
            tiles_m=per_rows,
            tiles_n=per_cols,
            k_tiles=per_steps,
            group=per_group,
            active=jnp.maximum(per_tile, per_slots),
        ),
    )


def tile_grid(c: Configuration, tiles_m: Number, tiles_n: Number) -> Number:
    """Output tiles of all matrices, their block rows and columns in whole clusters."""
    rows = ceil_div(tiles_m, c.cluster_m) * c.cluster_m
    cols = ceil_div(tiles_n, c.cluster_n) * c.cluster_n
    return rows * cols * c.batch


def resident_ctas(sms: Number, cluster: Number) -> Number:
    """CTAs, one an SM, that run at one time in clusters of so many (of a machine that holds no
    whole cluster, all of its SMs)."""
    per_cluster = inverse(cluster)
    gpcs = floor_div(sms, 1.0 / SMS_PER_GPC)
    whole = gpcs * floor_div(SMS_PER_GPC, per_cluster)
    clusters = whole + floor_div(sms - gpcs * SMS_PER_GPC, per_cluster)
    return jnp.minimum(jnp.maximum(clusters, 1.0) * cluster, sms)


def window(r: Raster, tiles: Number) -> Window:
    """What `tiles` neighbouring tiles span: whole groups of rows, or a part of one."""
    columns = tiles * r.per.group
    groups = jnp.maximum(1.0, columns * r.per.tiles_n)
    rows = jnp.where(tiles < r.group, tiles, jnp.minimum(r.group * groups, r.tiles_m))
    return Window(rows, jnp.minimum(jnp.maximum(1.0, columns), r.tiles_n))
