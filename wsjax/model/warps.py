"""Pipelined kernels, whose warps multiply and load: Triton's, and CUTLASS's for sm80.

No warp is there for loads alone (`Facts.pipelined`): MATH warps issue them `stages` - 1 steps
ahead of their own, and a slot is free as soon as its step starts (with `stages` 1, at its end):
the recurrences with one MMA in flight (`mma_in_flight`), but for the first step.

Several CTAs share an SM, and while one waits for its MMAs the others have work:

    compute of all = max(CTAs matrix / share of the matrix units, matrix + fixed)

Where the tile, or the machine, has no instructions of a warpgroup, each warp multiplies a part of
the tile by itself (mma.sync), on one of the SM's matrix units, and waits for it (`drain_us`).
Operands cross shared memory for each warp that needs them, and once more to come there:

    matrix = max(W / rate, ((block_m columns + block_n rows of warps) + block_m + block_n)
                           block_k in_bytes / smem_throughput)

Elements of rows that are no multiple of 16 bytes are loaded one by one, each by a pointer of its
own; what this needs of registers may spill.
"""

from typing import NamedTuple

import jax.numpy as jnp

from wsjax.model.arithmetic import Number, Truth, scaled
from wsjax.model.costs import Costs, Machine
from wsjax.schema import WARPGROUP, Configuration, Facts, row_bytes

PRODUCER_WARPS = 4
"""A serial kernel's producer: a warp group, of which one warp issues the loads."""
MATRIX_UNITS = 4.0
"""Of an SM; a warp multiplies on one (NVIDIA's whitepapers from Volta to Hopper)."""
WARP_RATE = 0.62
"""Of the matrix units, by instructions of one warp where a warpgroup's are faster: measured on an
H100 (arXiv 2402.13499)."""
POINTER_REGISTERS = 2.0
VECTOR_BYTES = 16.0
"""The most that a thread copies at once, and what rows must be a multiple of for that; elsewhere
each element has a pointer."""


class Warps(NamedTuple):
    """How the warps of a pipelined kernel multiply (`warps_of`)."""

    pipelined: Truth
    """Whether it is one."""
    alone: Truth
    """Whether each warp multiplies a part of the tile by itself."""
    units: Number
    """The share of an SM's matrix units that a CTA's warps can use."""
    matrix_us: Number
    """A step's matrix work, if each warp multiplies by itself."""
    pointers: Number
    """Registers of a CTA that hold pointers to elements that can't be copied 16 bytes at once."""


def producer_warps(facts: Facts) -> Number:
    """Warps of a serial kernel that only load: none of a pipelined one."""
    if facts.pipelined is None:
        return PRODUCER_WARPS
    return jnp.where(facts.pipelined > 0, 0.0, PRODUCER_WARPS)


def warps_of(c: Configuration, machine: Machine, cost: Costs) -> Warps | None:
    """How the warps of pipelined kernels multiply; None where no kernel is."""
    facts, in_bytes = machine.facts, machine.in_bytes
    if facts.pipelined is None:
        return None
    pipelined = facts.pipelined > 0
    group = facts.mma_warps >= WARPGROUP
    grouped = group & (c.block_m >= facts.mma_m) & (c.math_warps >= facts.mma_warps)
    down, across = _warp_grid(c)
    step = c.block_k * in_bytes
    read_bytes = (c.block_m * across + c.block_n * down) * step
    written_bytes = (c.block_m + c.block_n) * step
    flop_us = 2.0 * c.block_m * c.block_n * c.block_k * cost.flop
    flop_us = jnp.where(group, flop_us * (1.0 / WARP_RATE), flop_us)
    units = jnp.minimum(c.math_warps * (1.0 / MATRIX_UNITS), 1.0)
    pitch_a, pitch_b, _ = row_bytes(c, in_bytes, in_bytes)
    loose_a, loose_b = (
        jnp.floor(pitch * (1.0 / VECTOR_BYTES)) * VECTOR_BYTES != pitch
        for pitch in (pitch_a, pitch_b)
    )
    elements = (c.block_m * loose_a + c.block_n * loose_b) * c.block_k
    return Warps(
        pipelined=pipelined,
        alone=pipelined & ~grouped,
        units=units,
        matrix_us=jnp.maximum(flop_us / units, scaled(cost.smem, read_bytes + written_bytes)),
        pointers=jnp.where(pipelined, POINTER_REGISTERS * elements, 0.0),
    )


def _warp_grid(c: Configuration) -> tuple[Number, Number]:
    """(rows, columns) of a tile's warps, as Triton lays them for mma.sync: twice as many along the
    longer side of a warp's part, in its instructions of 16x8, until there are all; what has no part
    of its own repeats another's."""
    down, across = c.math_warps * 0.0 + 1.0, c.math_warps * 0.0 + 1.0
    rows, columns = c.block_m * (1.0 / 16.0), c.block_n * (1.0 / 8.0)
    for _ in range(5):
        more = down * across < c.math_warps
        along = (rows * across >= columns * down) & (down < rows)
        down = jnp.where(more & along, down * 2.0, down)
        across = jnp.where(more & ~along, across * 2.0, across)
    return jnp.minimum(down, rows), jnp.minimum(across, columns)
