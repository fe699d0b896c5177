"""A plain matrix product in Triton, which pipelines loads itself: for Ampere and later.

A CTA computes one output tile (`serial`). `stages` is what Triton calls num_stages: the steps under
way, that which is being multiplied among them.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportFunctionMemberAccess=false
# ruff: noqa: N803

from collections.abc import Callable, Mapping
from typing import Any

import triton
import triton.language as tl

from wsjax.measuring.gpu import GpuEngine, Launch
from wsjax.measuring.worker import UnsupportedError


@triton.jit(do_not_specialize=["group_m"])  # pyright: ignore[reportAttributeAccessIssue]
def gemm(
    a,
    b,
    c,
    m,
    n,
    k,
    a_m,
    a_k,
    b_k,
    b_n,
    group_m,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """C = A B; a_m, a_k, b_k, b_n: strides."""
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first = tl.program_id(0) // (group_m * tiles_n) * group_m
    rows_in_group = tl.minimum(tiles_m - first, group_m)
    inside = tl.program_id(0) % (group_m * tiles_n)
    rows = (first + inside % rows_in_group) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (inside // rows_in_group) * BLOCK_N + tl.arange(0, BLOCK_N)
    depths = tl.arange(0, BLOCK_K)
    left = a + (rows % m).to(tl.int64)[:, None] * a_m + depths[None, :] * a_k
    right = b + depths[:, None] * b_k + (columns % n).to(tl.int64)[None, :] * b_n
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for depth in range(0, k, BLOCK_K):
        x = tl.load(left, mask=depths[None, :] < k - depth, other=0.0)
        y = tl.load(right, mask=depths[:, None] < k - depth, other=0.0)
        sums = tl.dot(x, y, sums)
        left += BLOCK_K * a_k
        right += BLOCK_K * b_k
    at = c + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(at, sums.to(c.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


class Engine(GpuEngine):
    """The kernel above."""

    name = "triton"

    def prepare(self, row: Mapping[str, Any]) -> Callable[..., Launch]:
        """The compiled kernel."""
        self.check_plain(row)
        if row["schedule"] != "serial" or row["grid_ctas"]:
            raise UnsupportedError("schedule: serial, a CTA for each output tile")
        pitches = (row["k" if row["layout"][0] == "n" else "m"], row["k"])
        pitches += (row["n" if row["layout"][1] == "n" else "k"],)
        if any(pitch % 16 for pitch in pitches):
            raise UnsupportedError("Triton pipelines rows of a multiple of 16 elements only")
        tiles = -(-row["m"] // row["block_m"]) * -(-row["n"] // row["block_n"])
        strides_a = (row["k"], 1) if row["layout"][0] == "n" else (1, row["m"])
        strides_b = (row["n"], 1) if row["layout"][1] == "n" else (1, row["k"])
        sizes = (row["m"], row["n"], row["k"], *strides_a, *strides_b, row["group_m"])
        blocks = [row[f"block_{axis}"] for axis in "mnk"]
        options = {"num_stages": row["stages"], "num_warps": row["math_warps"]}
        blank = [self.blank(row, *shape) for shape in self.shapes(row)]
        self.check_fits(gemm.warmup(*blank, *sizes, *blocks, grid=(tiles,), **options))
        return lambda a, b, c: lambda: gemm[(tiles,)](a, b, c, *sizes, *blocks, **options)
