"""The neighbours of a configuration: one choice changed, the others kept as far as they fit."""

from collections.abc import Iterator
from typing import NamedTuple

from wsjax.hardware import Hardware
from wsjax.schema import DEEPEST_RING, DTYPE_BYTES, SCHEDULES, WRITES, Configuration, deepest_stages

BLOCKS = ("block_m", "block_n", "block_k")
GROUPS = (1, 4, 8, 16)
STORES = {"tma": "C stored by TMA", "direct": "C stored without TMA"}
TWO_GROUPS = SCHEDULES.index("pingpong")


class Variant(NamedTuple):
    """A neighbour, and what it is called: '+1 stage'."""

    name: str
    configuration: Configuration


def variants(c: Configuration, machine: Hardware) -> Iterator[Variant]:
    """The neighbours of a configuration (whole numbers) on a machine, legal or not."""
    for more in (1, -1):
        if 1 <= c.stages + more <= DEEPEST_RING:
            yield Variant(f"{more:+d} stage", c._replace(stages=c.stages + more))
    for name in BLOCKS:
        size = getattr(c, name)
        for other in (2 * size, size // 2):
            if other:
                yield _fitted(f"{name} {other}", c._replace(**{name: other}), machine)
    for code, word in enumerate(SCHEDULES):
        if code != c.schedule:
            warps = max(c.math_warps, 8) if code >= TWO_GROUPS else c.math_warps
            yield Variant(word, c._replace(schedule=code, math_warps=warps))
    warps = 3 - c.dma_warps
    yield Variant(f"{warps} DMA warp{'s' * (warps > 1)}", c._replace(dma_warps=warps))
    for warps in (4, 8):
        if warps != c.math_warps:
            yield Variant(f"{warps} MATH warps", c._replace(math_warps=warps))
    kept = "no MMA in flight" if c.mma_in_flight else "1 MMA in flight"
    yield Variant(kept, c._replace(mma_in_flight=1 - c.mma_in_flight))
    for group in GROUPS:
        if group != c.group_m:
            yield Variant(f"group_m {group}", c._replace(group_m=group))
    write = 1 - c.write_back
    yield Variant(STORES[WRITES[write]], c._replace(write_back=write))


def _fitted(name: str, c: Configuration, machine: Hardware) -> Variant:
    """With as many stages as fit, if those of before do not."""
    sizes = (DTYPE_BYTES[c.dtype_in], DTYPE_BYTES[c.dtype_out])
    deepest = int(deepest_stages(c.block_m, c.block_n, c.block_k, *sizes, machine.facts))
    if 1 <= deepest < c.stages:
        ring = f"{deepest} stage{'s' * (deepest > 1)}"
        return Variant(f"{name}, {ring}", c._replace(stages=deepest))
    return Variant(name, c)
