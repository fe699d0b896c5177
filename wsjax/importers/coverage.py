"""Which measured rows can't count: kernels that do what the model has no terms for, by their names
and by columns.

When the model learns one of them, its line here goes, and its rows count.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from wsjax.importers import kernel_names, values

if TYPE_CHECKING:
    import pandas as pd

REASONS = {
    "stream_k": "not modelled: stream-K, or a heuristic that may choose it, divides output tiles",
    "block_scaled": "not modelled: scale factors along k (block-scaled, blockwise, mx, nvf4)",
    "interleaved": "not modelled: operands stored in interleaved blocks of 32 or 64",
    "sparse": "not modelled: structured sparsity skips half of the products",
    "grouped": "not modelled: several problems in one launch",
    "emulated": "not modelled: products of fp32 data by one or more MMAs of a narrower type",
    "f16_accum": "not modelled: sums in 16 bits, not in fp32",
    "beta": "not modelled: C is read too (beta is not 0)",
    "contradicts": "its time and the table's own TFLOP/s differ by more than 3x",
}
COLUMN = "uncovered"
"""A reader's own column of these reasons."""
_NAMES = {
    "stream_k": r"stream_?k|^\w*cijk_.*_sk[1-9]",
    "block_scaled": r"block_?scal|block_?wise|group_?wise|bs(?:sp)?tensorop|ue8m0|ue4m3|\dx\d+f32x"
    r"|mxf?p?[468]|nvf?p?4|_vs(?:16|32)_",
    "interleaved": r"interleaved|_[nt]k?(?:32|64)[nt]k?(?:32|64)(?:_|$)",
    "sparse": r"spgemm|sptensorop|sparse",
    "grouped": r"grouped|moe_gemm|ptr_?array|groupproblemshape",
    "emulated": r"(?<!cutlass)3x_?tf32|tf32_?(?:x3|3x)|bf16_?x[369]|[369]xbf16|fast_?fp?32"
    r"|\db?f16gemm",
}
_PATTERNS = {reason: re.compile(pattern) for reason, pattern in _NAMES.items()}
_SCHEDULERS = ("streamk", "stream_k", "stream-k", "heuristic")


@lru_cache(100_000)
def of_name(name: str) -> str:
    """The reason that a kernel's name gives, "" if none."""
    low = name.lower()
    if reason := next((reason for reason, known in _PATTERNS.items() if known.search(low)), ""):
        return reason
    fp32 = kernel_names.operands(name).get("dtype_in") == "fp32"
    return "emulated" if fp32 and "tensorop" in low else ""


def uncovered(given: Mapping[str, "pd.Series"], rows: int) -> dict[str, np.ndarray]:
    """Rows by reason: what a reader, the kernel's name, and columns that are named as tools name
    them say."""
    found = np.full(rows, "", dtype=object)

    def tell(reasons: np.ndarray) -> None:
        found[:] = np.where(found == "", reasons, found)

    def where(reason: str, holds: np.ndarray) -> None:
        tell(np.where(holds, reason, "").astype(object))

    def texts(name: str) -> np.ndarray:
        return given[name].astype(object).astype(str).str.strip().str.lower().to_numpy(object)

    if COLUMN in given:
        tell(given[COLUMN].astype(object).fillna("").to_numpy(dtype=object))
    if "kernel" in given:
        tell(values.each(given["kernel"], of_name).fillna("").to_numpy(dtype=object))
        kernels = kernel_names.columns(given["kernel"])
        if "accum" in kernels and "accum" not in given:
            where("f16_accum", (kernels["accum"] == "f16").to_numpy(bool))
    if "scheduler" in given:
        where("stream_k", np.isin(texts("scheduler"), _SCHEDULERS))
    if "accum" in given:
        where("f16_accum", np.isin(texts("accum"), ("f16", "fp16", "half", "float16")))
    if "beta" in given:
        beta = values.numbers(given["beta"]).to_numpy()
        where("beta", (beta != 0) & ~np.isnan(beta))
    return {reason: found == reason for reason in REASONS}


def modelled(table: "pd.DataFrame") -> np.ndarray:
    """Rows of an imported table that a machine may cover: no cluster, no split k."""
    ones = [table[name].to_numpy() == 1 for name in ("cluster_m", "cluster_n", "split_k")]
    return np.all(ones, axis=0)
