"""Kernel families: how the kernels of a library or compiler are written, as one table of choices.

A machine's file names the one that its times are of (`kernels = "triton_async"`), and gets its
facts; importers give rows the columns that no table tells.
"""

from collections.abc import Mapping
from typing import NamedTuple

from wsjax.schema import WARPGROUP


class Kernels(NamedTuple):
    """One family. `columns`: configuration columns that its kernels have in common, in words;
    `facts`: of a machine that runs them."""

    meaning: str
    columns: Mapping[str, int | str]
    facts: Mapping[str, int]


KERNELS: dict[str, Kernels] = {
    "cutlass_sm90": Kernels(
        "CUTLASS 3 for Hopper: TMA by a DMA warp, its own tile order",
        {"dma_warps": 1, "mma_in_flight": 1},
        {"pipelined": 0, "cutlass_raster": 1, "ctas_per_sm_max": 32},
    ),
    "gluon_ws": Kernels(
        "Triton's Gluon, warp-specialised: TMA by a DMA warp, one CTA an SM",
        {"dma_warps": 1},
        {"pipelined": 0, "ctas_per_sm_max": 1},
    ),
    "triton_async": Kernels(
        "Triton's pipelined loops: cp.async by MATH warps, one CTA an output tile",
        {"dma_warps": 1, "mma_in_flight": 1, "schedule": "serial"},
        {"pipelined": 2, "ctas_per_sm_max": 32},
    ),
    "cutlass_sm80": Kernels(
        "CUTLASS 2: cp.async by MATH warps, a slot a stage, one CTA an output tile",
        {"dma_warps": 1, "mma_in_flight": 1, "schedule": "serial"},
        {"pipelined": 1, "ctas_per_sm_max": 32},
    ),
}


def facts_of(kernels: str, mma_warps: int) -> dict[str, int]:
    """The facts of a machine that runs these kernels. Where a warpgroup multiplies, it reads
    operands from shared memory, so that no slot of the ring can be spared."""
    facts = dict(KERNELS[kernels].facts)
    if mma_warps >= WARPGROUP:
        facts["pipelined"] = min(facts["pipelined"], 1)
    return facts
