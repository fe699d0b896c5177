"""Where a kernel's output tiles lie: waves of CTAs over the matrix C, and what they share.

CTAs take output tiles in raster order: groups of `group_m` block rows, m fastest inside a group
(`group_m` = 1: row by row, n fastest). The tiles in flight at one time, a window of `active` tiles
of that order, span `rows` block rows and `cols` block columns; they load as many different tiles of
A and of B, and CTAs of one block row share a tile of A.

A CUTLASS kernel that is not told otherwise chooses its own order (`Facts.cutlass_raster`): along
the shorter side of the tile grid, and always m fastest where every CTA has one tile (`serial`).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from wsjax.events import SERIAL
from wsjax.limits import Facts
from wsjax.space import Configuration


def ceil_div(a, b):
    """ceil(a / b) for whole positive numbers held as floats; exact below 2**53."""
    return jnp.floor((a + (b - 1)) / b)


class Raster(NamedTuple):
    """One configuration's tile grid and waves, counts as floats.

    ctas_per_sm: CTAs that run on an SM together. active, active_last: CTAs in flight in a full
    wave and in the last one. group: rows of tiles a group of the raster order has.
    """

    tiles_m: Any
    tiles_n: Any
    k_tiles: Any
    tiles: Any
    waves: Any
    ctas_per_sm: Any
    active: Any
    active_last: Any
    group: Any


class Window(NamedTuple):
    """Block rows and columns that some neighbouring tiles of the raster order span."""

    rows: Any
    cols: Any


def raster(c: Configuration, facts: Facts, ctas_per_sm) -> Raster:
    """k_tiles = ceil(k/block_k), tiles = ceil(m/block_m) ceil(n/block_n) batch, and the waves.

    `grid_ctas` run at a time, or, where it is 0, `ctas_per_sm` on each SM.
    """
    tiles_m, tiles_n = ceil_div(c.m, c.block_m), ceil_div(c.n, c.block_n)
    tiles = tiles_m * tiles_n * c.batch
    slots = facts.sms * ctas_per_sm
    slots = jnp.where(c.grid_ctas > 0, jnp.minimum(c.grid_ctas, slots), slots)
    waves = ceil_div(tiles, slots)
    active = jnp.minimum(tiles, slots)
    m_fastest = (c.schedule == SERIAL) | (tiles_n > tiles_m)
    chosen = jnp.where(m_fastest, tiles_m, 1.0)
    group = jnp.where((facts.cutlass_raster > 0) & (c.group_m == 1), chosen, c.group_m)
    return Raster(
        tiles_m=tiles_m,
        tiles_n=tiles_n,
        k_tiles=ceil_div(c.k, c.block_k),
        tiles=tiles,
        waves=waves,
        ctas_per_sm=ctas_per_sm,
        active=active,
        active_last=tiles - (waves - 1) * active,
        group=jnp.minimum(group, tiles_m),
    )


def window(r: Raster, tiles) -> Window:
    """What `tiles` neighbouring tiles span: whole groups of rows, or a part of one."""
    groups = jnp.maximum(1.0, tiles / (r.group * r.tiles_n))
    rows = jnp.where(tiles < r.group, tiles, jnp.minimum(r.group * groups, r.tiles_m))
    cols = jnp.minimum(jnp.maximum(1.0, tiles / r.group), r.tiles_n)
    return Window(rows, cols)
