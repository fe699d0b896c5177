"""A persistent warp-specialised GEMM for Hopper in Triton's Gluon: the recurrences as real code.

One or two DMA warps load tiles of A and B by TMA into a ring of `STAGES` slots; one group of MATH
warps, or two that alternate output tiles (ping-pong), multiplies them with WGMMA. A slot has two
barriers: `ready` completes when its bytes have arrived, `empty` when its MMA has finished. Steps
are counted over all output tiles of a CTA: step g uses slot g mod STAGES, in phase g div STAGES.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportFunctionMemberAccess=false
# ruff: noqa: N803, RUF005

from collections.abc import Callable, Mapping
from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from wsjax.measuring.gpu import GpuEngine, Launch
from wsjax.measuring.worker import UnsupportedError


@gluon.constexpr_function
def mma_layout(block_m, block_n, warps):
    """How a MATH group's registers hold an output tile: WGMMAs of 64 rows and of up to 256 columns,
    side by side in m first."""
    in_m = 4
    while in_m < warps and block_m > 16 * in_m:
        in_m *= 2
    width = min(block_n // (warps // in_m), 256)
    while block_n % width:
        width -= 8
    return gl.NVMMADistributedLayout([3, 0], [in_m, warps // in_m], [16, width, 16])


@gluon.jit
def _position(tile, tiles_m, tiles_n, group_m):
    """Block row and column of an output tile: groups of group_m block rows, m fastest inside."""
    first = tile // (group_m * tiles_n) * group_m
    rows = gl.minimum(tiles_m - first, group_m)
    inside = tile % (group_m * tiles_n)
    return first + inside % rows, inside // rows


@gluon.jit
def _load(a, b, ring, sizes, B_ROWS: gl.constexpr, WARPS: gl.constexpr, WARP: gl.constexpr):
    """A DMA warp, as far ahead as slots are empty: of one it loads A and B, of two A or B."""
    slots_a, slots_b, empty, ready, _ = ring
    tiles_m, tiles_n, k, group_m = sizes
    stages: gl.constexpr = slots_a.shape[0]
    block_m: gl.constexpr = a.block_shape[0]
    block_k: gl.constexpr = a.block_shape[1]
    block_n: gl.constexpr = b.block_shape[0] if B_ROWS else b.block_shape[1]
    loads_a: gl.constexpr = WARP == 0
    loads_b: gl.constexpr = WARP == WARPS - 1
    expected: gl.constexpr = a.block_type.nbytes * loads_a + b.block_type.nbytes * loads_b
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        row, column = _position(tile, tiles_m, tiles_n, group_m)
        for depth in range(0, k, block_k):
            slot = step % stages
            mbarrier.wait(empty.index(slot), (step // stages & 1) ^ 1)
            mbarrier.expect(ready.index(slot), expected)
            if loads_a:
                at = [row * block_m, depth]
                tma.async_copy_global_to_shared(a, at, ready.index(slot), slots_a.index(slot))
            if loads_b:
                at = [column * block_n, depth] if B_ROWS else [depth, column * block_n]
                tma.async_copy_global_to_shared(b, at, ready.index(slot), slots_b.index(slot))
            step += 1


@gluon.jit
def _multiply(
    c,
    result,
    ring,
    sizes,
    B_ROWS: gl.constexpr,
    IN_FLIGHT: gl.constexpr,
    GROUPS: gl.constexpr,
    GROUP: gl.constexpr,
):
    """A MATH group: every GROUPS-th output tile of its CTA, one after the other."""
    slots_a, slots_b, empty, ready, turn = ring
    c_pointer, out, m, n = result
    tiles_m, tiles_n, k, group_m = sizes
    stages: gl.constexpr = slots_a.shape[0]
    block_m: gl.constexpr = slots_a.shape[1]
    block_k: gl.constexpr = slots_a.shape[2]
    block_n: gl.constexpr = slots_b.shape[1] if B_ROWS else slots_b.shape[2]
    dtype: gl.constexpr = slots_a.dtype
    layout: gl.constexpr = mma_layout(block_m, block_n, gl.num_warps())
    k_tiles = gl.cdiv(k, block_k)
    step = GROUP * k_tiles
    turns = 0
    first = gl.program_id(0) + GROUP * gl.num_programs(0)
    for tile in range(first, tiles_m * tiles_n, GROUPS * gl.num_programs(0)):
        row, column = _position(tile, tiles_m, tiles_n, group_m)
        if GROUPS == 2:
            mbarrier.wait(turn.index(GROUP), (turns & 1) ^ (1 - GROUP))
            turns += 1
        sums = gl.zeros((block_m, block_n), gl.float32, layout)
        for index in range(k_tiles):
            slot = step % stages
            mbarrier.wait(ready.index(slot), step // stages & 1)
            right = slots_b.index(slot)
            if B_ROWS:
                right = right.permute((1, 0))
            sums = warpgroup_mma(slots_a.index(slot), right, sums, is_async=True)
            sums = warpgroup_mma_wait(IN_FLIGHT, deps=(sums,))
            gl.thread_barrier()
            freed = (step + stages - IN_FLIGHT) % stages
            mbarrier.arrive(empty.index(freed), pred=index >= IN_FLIGHT)
            step += 1
        if GROUPS == 2:
            mbarrier.arrive(turn.index(1 - GROUP))
        if IN_FLIGHT > 0:
            sums = warpgroup_mma_wait(0, deps=(sums,))
            gl.thread_barrier()
            mbarrier.arrive(empty.index((step + stages - 1) % stages))
        step += (GROUPS - 1) * k_tiles
        if c is None:
            rows = row * block_m + gl.arange(0, block_m, gl.SliceLayout(1, layout))
            columns = column * block_n + gl.arange(0, block_n, gl.SliceLayout(0, layout))
            inside = (rows < m)[:, None] & (columns < n)[None, :]
            at = rows.to(gl.int64)[:, None] * n + columns[None, :]
            gl.store(c_pointer + at, sums.to(dtype), mask=inside)
        else:
            tma.store_wait(pendings=0)
            out.index(GROUP).store(sums.to(dtype))
            fence_async_shared()
            at = [row * block_m, column * block_n]
            tma.async_copy_shared_to_global(c, at, out.index(GROUP))
    if c is not None:
        tma.store_wait(pendings=0)


@gluon.jit(do_not_specialize=["m", "n", "k", "group_m"])
def gemm(
    a,
    b,
    c,
    c_pointer,
    m,
    n,
    k,
    group_m,
    STAGES: gl.constexpr,
    IN_FLIGHT: gl.constexpr,
    B_ROWS: gl.constexpr,
    GROUPS: gl.constexpr,
    DMA_WARPS: gl.constexpr,
):
    """C = A B. B_ROWS: B is stored [N, K]. c: C's descriptor, or None for direct write-back."""
    block_m: gl.constexpr = a.block_shape[0]
    block_n: gl.constexpr = b.block_shape[0] if B_ROWS else b.block_shape[1]
    slots_a = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_shape, a.layout)
    slots_b = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    turn = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(empty.index(slot), count=1)
        mbarrier.init(ready.index(slot), count=DMA_WARPS)
    for group in gl.static_range(2):
        mbarrier.init(turn.index(group), count=1)
    out = empty
    if c is not None:
        out = gl.allocate_shared_memory(c.dtype, [GROUPS] + c.block_shape, c.layout)
    ring = (slots_a, slots_b, empty, ready, turn)
    result = (c_pointer, out, m, n)
    sizes = (gl.cdiv(m, block_m), gl.cdiv(n, block_n), k, group_m)
    if GROUPS == 1 and DMA_WARPS == 1:
        gl.warp_specialize(
            [
                (_multiply, (c, result, ring, sizes, B_ROWS, IN_FLIGHT, 1, 0)),
                (_load, (a, b, ring, sizes, B_ROWS, 1, 0)),
            ],
            [1],
            [24],
        )
    elif GROUPS == 1:
        gl.warp_specialize(
            [
                (_multiply, (c, result, ring, sizes, B_ROWS, IN_FLIGHT, 1, 0)),
                (_load, (a, b, ring, sizes, B_ROWS, 2, 0)),
                (_load, (a, b, ring, sizes, B_ROWS, 2, 1)),
            ],
            [1, 1],
            [24, 24],
        )
    elif DMA_WARPS == 1:
        gl.warp_specialize(
            [
                (_multiply, (c, result, ring, sizes, B_ROWS, IN_FLIGHT, 2, 0)),
                (_multiply, (c, result, ring, sizes, B_ROWS, IN_FLIGHT, 2, 1)),
                (_load, (a, b, ring, sizes, B_ROWS, 1, 0)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_multiply, (c, result, ring, sizes, B_ROWS, IN_FLIGHT, 2, 0)),
                (_multiply, (c, result, ring, sizes, B_ROWS, IN_FLIGHT, 2, 1)),
                (_load, (a, b, ring, sizes, B_ROWS, 2, 0)),
                (_load, (a, b, ring, sizes, B_ROWS, 2, 1)),
            ],
            [4, 1, 1],
            [240, 24, 24],
        )


class Engine(GpuEngine):
    """The kernel above: `persistent`, `cooperative` (the same with 8 MATH warps), `pingpong`, and
    `serial`, with a CTA for each output tile."""

    name = "gluon"

    def prepare(self, row: Mapping[str, Any]) -> Callable[..., Launch]:
        """The compiled kernel."""
        self.check_plain(row)
        _check(row, self.capability)
        tile = [row[f"block_{axis}"] for axis in "mnk"]
        two = row["schedule"] == "pingpong"
        b_rows = row["layout"] == "nt"
        tiles = -(-row["m"] // tile[0]) * -(-row["n"] // tile[1])
        most = tiles if row["schedule"] == "serial" else self.sms
        grid = (min(tiles, row["grid_ctas"] or most),)
        options = {
            "STAGES": row["stages"],
            "IN_FLIGHT": row["mma_in_flight"] if row["stages"] > 1 else 0,
            "B_ROWS": b_rows,
            "GROUPS": 1 + two,
            "DMA_WARPS": row["dma_warps"],
            "num_warps": row["math_warps"] // (1 + two),
        }
        sizes = (row["m"], row["n"], row["k"], row["group_m"])

        def arguments(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
            block_b = [tile[1], tile[2]] if b_rows else [tile[2], tile[1]]
            out = None if row["write_back"] == "direct" else _descriptor(c, tile[:2])
            return (_descriptor(a, [tile[0], tile[2]]), _descriptor(b, block_b), out, c, *sizes)

        blank = [self.blank(row, *shape) for shape in self.shapes(row)]
        self.check_fits(gemm.warmup(*arguments(*blank), grid=grid, **options))

        def bind(a: Any, b: Any, c: Any) -> Launch:
            given = arguments(a, b, c)
            return lambda: gemm[grid](*given, **options)

        return bind


def _descriptor(tensor: Any, block: list[int]) -> TensorDescriptor:
    layout = gl.NVMMASharedLayout.get_default_for(block, getattr(gl, str(tensor.dtype)[6:]))
    return TensorDescriptor.from_tensor(tensor, block, layout)


def _check(row: Mapping[str, Any], capability: tuple[int, int]) -> None:
    """Raise UnsupportedError for what the kernel cannot do."""
    two = row["schedule"] == "pingpong"
    pitches = [row["k"]] if row["layout"] == "nt" else [row["k"], row["n"]]
    pitches += [row["n"]] if row["write_back"] == "tma" else []
    wrong = {
        "needs Hopper (compute capability 9)": capability[0] != 9,
        "layouts are nt and nn": row["layout"] not in ("nt", "nn"),
        "rows are no multiple of 16 bytes, as TMA needs": any(x % 8 for x in pitches),
        "block_m and block_n: powers of two from 64 to 256; block_k from 16": any(
            row[f"block_{axis}"] not in (16, 32, 64, 128, 256)[2 * (axis != "k") :]
            for axis in "mnk"
        ),
        "pingpong writes back by TMA: with more registers in use, MMAs in flight are serialised": (
            two and row["write_back"] == "direct"
        ),
        "math_warps: 4 or 8; pingpong 8": row["math_warps"] not in ((8,) if two else (4, 8)),
    }
    if reasons := [reason for reason, holds in wrong.items() if holds]:
        raise UnsupportedError("; ".join(reasons))
