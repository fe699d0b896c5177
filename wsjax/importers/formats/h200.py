"""The two tables measured on an H200: CUTLASS sm90 kernels, and a GEMM written in Gluon."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from wsjax.importers.formats import plain
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

CUTLASS_SCHEDULES = {"basic": "serial", "pingpong": "pingpong", "cooperative": "cooperative"}
CUTLASS_LAYOUTS = {"NN": "tt", "NT": "tn", "TN": "nt", "TT": "nn"}
"""BLAS's column-major words: T is A stored [M, K], N is B stored [N, K]."""
NEEDS = {"gpu", "kernel", "m", "n", "k", "layout", "time_us_median"}


def recognises(source: Source) -> bool:
    """Whether it has the columns of these tables, or of cuBLAS's beside them."""
    return set(plain.columns(source)) >= NEEDS


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """Its rows."""
    return plain.pieces(source)


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Our words for schedule and layout; the tables' other columns are kept under their names."""
    return {**plain.translate(theirs), **(cutlass(theirs) or gluon(theirs) or {})}


def cutlass(columns: Mapping[str, "pd.Series"]) -> dict[str, "pd.Series"] | None:
    """CUTLASS kernels (`schedule` basic, pingpong, cooperative; `layout` TN).

    `basic` (KernelTmaWarpSpecialized) launches one CTA a tile: `serial`, with one consumer warp
    group; the other two have two. All have one DMA warp and keep one MMA in flight.
    """
    import pandas as pd

    if not {"kernel", "schedule", "layout", "stages"} <= set(columns) or "dma_warps" in columns:
        return None
    schedule, layout = columns["schedule"], columns["layout"]
    if not (schedule.isin(CUTLASS_SCHEDULES).any() and layout.isin(CUTLASS_LAYOUTS).any()):
        return None
    one = pd.Series(np.ones(len(schedule), dtype=np.int64))
    warps = pd.Series(np.where(schedule == "basic", 4, 8))
    return {
        "schedule": _translated(schedule, CUTLASS_SCHEDULES),
        "layout": _translated(layout, CUTLASS_LAYOUTS),
        "dma_warps": one,
        "math_warps": warps,
        "mma_in_flight": one,
    }


def _translated(column: "pd.Series", words: Mapping[str, str]) -> "pd.Series":
    """Words as ours; a word that is none of theirs stays, to be told of."""
    own = column.astype(object)
    return own.map(words).where(own.isin(words), own)


def gluon(columns: Mapping[str, "pd.Series"]) -> dict[str, "pd.Series"] | None:
    """A persistent GEMM in Gluon: `math_org` says how MATH warps share the work.

    Its `schedule` is the order of tiles (static round robin), not ours; its `epilogue` says how C
    is written back, its `grid` how many CTAs ran, its `l2_state` flushed that L2 was cold.
    """
    import pandas as pd

    if not {"kernel", "math_org", "epilogue", "mma_in_flight"} <= set(columns):
        return None
    pingpong = columns["math_org"] == "pingpong_2x4"
    found = {"schedule": pd.Series(np.where(pingpong, "pingpong", "persistent"))}
    found["write_back"] = columns["epilogue"]
    if "grid" in columns:
        found["grid_ctas"] = columns["grid"]
    if "l2_state" in columns:
        found["l2_state"] = columns["l2_state"].map({"flushed": "cold", "warm": "warm"})
    return found
