"""What a kernel's name says of its configuration: CUTLASS's own names and C++ template names.

Names of other libraries hold numbers too, but not ones whose meaning is documented.
"""

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from wsjax.importers import values
from wsjax.importers.values import BLAS_LAYOUTS, scalars
from wsjax.schema import DTYPE_BYTES, DTYPES, WARPGROUP, Facts, deepest_stages

if TYPE_CHECKING:
    import pandas as pd

_CUTLASS_3 = re.compile(
    r"cutlass3x_sm(?P<sm>\d+)_(?P<op>[a-z]+)_(?P<instruction>[a-z0-9]*gemm)(?P<types>_\w*?)?"
    r"_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<cluster_m>\d+)x(?P<cluster_n>\d+)x\d+"
    r"_(?P<stages>\d+)_(?P<layout>[nt]{2})[nt]?(?P<rest>_\w*)?"
)
_CUTLASS_2 = re.compile(
    r"cutlass_(?P<types>\w*?gemm\w*?)_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)"
    r"_(?P<layout>[nt](?:k?\d\d)?[nt](?:k?\d\d)?)(?:_|\b)"
)
_NUMBER = r"(?:cute::)?(?:C<\s*(?:\(int\))?(\d+)\s*>|_(\d+))"
_TRIPLE = rf"(?:cute::)?(?:tuple|Shape)<\s*{_NUMBER}\s*,\s*{_NUMBER}\s*,\s*{_NUMBER}\s*>"
_TEMPLATE = re.compile(
    r"MainloopSm90TmaGmma\w*<\s*(?:\(int\))?(\d+)\s*,\s*"
    rf"{_TRIPLE}\s*,\s*(?:[\w:]*::)?(KernelTma\w+)\s*>\s*,\s*{_TRIPLE}"
)
_SM90_STREAM_K = re.compile(r"cutlass3x_sm90_\w*_stream_?k_warpspecialized_cooperative", re.I)
_CORE = re.compile(r"(?P<accumulator>[shdi])(?P<instruction>\d*)(?P<math>[a-z]*\d*)gemm")
_LETTERS = {"s": "f32", "h": "f16", "d": "f64", "i": "s32"}
_TYPE = re.compile(r"(?:b?f|tf|s|u|fe|e)\d+(?:m\d)?")


@lru_cache(maxsize=100_000)
def parse(name: str) -> dict[str, int | str]:
    """The configuration columns that a kernel's name tells; {} for a name that tells none.

    CUTLASS 3 (`cutlass3x_sm90_…_128x128x64_2x1x1_0_tnn_align8_warpspecialized_pingpong_epi_tma`):
    tile, cluster, stages (0 is automatic: the deepest that fits), layout, schedule, write-back,
    and for `_stream_k_` the scheduler.
    CUTLASS 2 (`cutlass_…_256x128_32x3_tn_align8`): tile, stages, layout; one CTA a tile, no DMA
    warp apart. Template names of sm90 mainloops: stages, cluster, schedule, tile.
    """
    if match := _CUTLASS_3.search(name):
        return _cutlass_3(match)
    if match := _CUTLASS_2.search(name):
        sizes = {f"block_{axis}": int(match[axis]) for axis in "mnk"}
        layout = BLAS_LAYOUTS.get(match["layout"])
        told = {**sizes, "stages": int(match["stages"]), "schedule": "serial"}
        return {**told, "layout": layout} if layout else told
    if match := _TEMPLATE.search(name):
        numbers = [int(group) for group in match.groups() if group and group.isdecimal()]
        found = dict(
            zip(
                ("stages", "cluster_m", "cluster_n", "", "block_m", "block_n", "block_k"),
                numbers,
                strict=False,
            )
        )
        found.pop("")
        return {**found, **_sm90(match[8].removeprefix("KernelTma").lower())}
    return {}


def _cutlass_3(match: re.Match[str]) -> dict[str, int | str]:
    rest = match["rest"] or ""
    told = _types_3(match)
    found: dict[str, int | str] = {f"block_{axis}": int(match[axis]) for axis in "mnk"}
    found |= {name: int(match[name]) for name in ("cluster_m", "cluster_n")}
    found |= {"layout": BLAS_LAYOUTS[match["layout"]]}
    if "2sm" in rest.split("_"):  # two CTAs share the tile that the name gives
        found["block_m"] = int(match["m"]) // 2
    found |= _sm90(rest) if match["sm"] == "90" else {"schedule": "persistent"}
    if is_sm90_stream_k(match[0]):
        found["scheduler"] = "heuristic"
    stages = int(match["stages"])
    if not stages and match["sm"] == "90" and told.get("dtype_in") in DTYPES:
        types = [told["dtype_in"], told["dtype_out"]]
        types = [word if word in DTYPES else types[0] for word in types]
        sizes = [DTYPE_BYTES[DTYPES.index(word)] for word in types]
        blocks = [found[f"block_{axis}"] for axis in "mnk"]
        stages = int(deepest_stages(*blocks, *sizes, facts=_hopper()))
    if "_epi_" in rest:
        found["write_back"] = "direct" if "epi_nosmem" in rest else "tma"
    return {**found, **({"stages": stages} if stages else {})}


@lru_cache(maxsize=100_000)
def operands(name: str) -> dict[str, str]:
    """`dtype_in`, `dtype_out` and `accum` that a CUTLASS kernel's name tells; {} for other names.

    CUTLASS 3 lists A, B, accumulator, C and D. CUTLASS 2 writes the accumulator as a letter before
    the instruction, and where they differ from it the type of C in front and of A and B behind.
    fp32 data whose name has `tf32gemm` are multiplied as tf32.
    """
    if match := _CUTLASS_3.search(name):
        return _types_3(match)
    if match := _CUTLASS_2.search(name):
        return _types_2(match["types"])
    return {}


def _types_3(match: re.Match[str]) -> dict[str, str]:
    types = [word for word in (match["types"] or "").split("_") if word]
    if len(types) < 5:
        return {}
    a, b, accumulator, _, out = types[-5:]
    dtype_in = values.operands(a, b)
    if dtype_in == "fp32" and "tf32gemm" in match["instruction"]:
        dtype_in = "tf32"
    accum = values.accumulator(accumulator)
    if dtype_in.startswith("fp8") and match["sm"] == "90":
        accum = "f32_fast" if "fastaccum" in (match["rest"] or "") else "f32_promoted"
    return {"dtype_in": dtype_in, "dtype_out": str(values.dtype(out)), "accum": accum}


def _types_2(text: str) -> dict[str, str]:
    tokens = text.split("_")
    at = next(i for i, token in enumerate(tokens) if "gemm" in token)
    core = _CORE.fullmatch(tokens[at])
    if not core:
        return {}
    own = _LETTERS[core["accumulator"]]
    before = tokens[at - 1] if at else ""
    out = before if _TYPE.fullmatch(before) else own
    behind = [token for token in tokens[at + 1 :] if _TYPE.fullmatch(token)] or [own]
    dtype_in = values.operands(behind[0], behind[-1])
    if dtype_in == "fp32" and core["math"] == "tf32":
        dtype_in = "tf32"
    accum = f"{own}_fast" if core["math"] == "fastaccum" else own
    return {"dtype_in": dtype_in, "dtype_out": str(values.dtype(out)), "accum": accum}


def is_sm90_stream_k(name: str) -> bool:
    """Whether a name is that of a CUTLASS kernel for Hopper which divides tiles by its stream-K
    scheduler. Its profiler leaves it to the scheduler's heuristic how (`split_k_slices` 1), or
    splits k."""
    return bool(_SM90_STREAM_K.search(name))


def _sm90(words: str) -> dict[str, int | str]:
    """Hopper's kernels: the DMA warp is apart, and one MMA step stays in flight."""
    if "pingpong" in words:
        return {"schedule": "pingpong", "math_warps": 2 * WARPGROUP, "mma_in_flight": 1}
    if "cooperative" in words:
        return {"schedule": "cooperative", "math_warps": 2 * WARPGROUP, "mma_in_flight": 1}
    return {"schedule": "serial", "math_warps": WARPGROUP, "mma_in_flight": 1}


@cache
def _hopper() -> Facts:
    from wsjax.hardware import load_hardware

    return load_hardware("h200").facts


def columns(names: "pd.Series") -> dict[str, "pd.Series"]:
    """The configuration columns that a column of names tells, blank where a name does not."""
    import pandas as pd

    codes, found = pd.factorize(scalars(names))
    told = [*({**parse(str(name)), **operands(str(name))} for name in found), {}]
    columns = {}
    for key in dict.fromkeys(key for one in told for key in one):
        cells = [one.get(key) for one in told]
        kind = object if any(isinstance(cell, str) for cell in cells) else float
        columns[key] = pd.Series(np.asarray(cells, dtype=kind)[codes], index=names.index)
    return columns
