"""Which configurations a machine can run, as plain arithmetic; and the `stages` it gives those that
leave them open.

`checks` uses only `+ - *`, `%` and comparisons, so that the same text judges Python ints, numpy and
jax arrays and Z3 terms. It never branches on a value and never divides. Sizes are in bytes; a
configuration is anything with the attributes that are read (a `Configuration`, or a record of Z3
variables).

Shared memory holds the ring (`stages` slots of one A and one B tile), two mbarriers a slot (full
and empty, 8 bytes each) and one buffer in which the epilogue stages C. Ping-pong's two groups take
turns at the epilogue and share that buffer, as CUTLASS's sm90 kernels do. Accumulators are 32 bits
wide whatever the input (twice as many where fp8 sums are promoted), and stay in registers, beside
`OVERHEAD_REGISTERS` a thread for addresses, descriptors and loop state.

Machines of which a warpgroup issues the matrix instructions (Hopper and later) load by TMA, and
store by it where `write_back` says so. TMA takes a matrix only if its rows start a multiple of 16
bytes apart: so K = 2047 in bf16 is legal for no kernel. This depends on the problem, not on tiles.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from wsjax.schema.columns import (
    ACCUMS,
    COLUMNS,
    DTYPE_BYTES,
    DTYPES,
    LAYOUTS,
    PROMOTED,
    SCHEDULERS,
    SCHEDULES,
    STREAMK,
    Configuration,
    with_defaults,
)

REASONS = (
    "",
    "not_modelled",
    "block_multiple",
    "threads",
    "registers",
    "shared_memory",
    "incomplete",
    "row_pitch",
)
"""Why a row has no time; a row's code is the position here, 0 for a legal one."""

BARRIER_BYTES = 16
OVERHEAD_REGISTERS = 32
DEEPEST_RING = 32
NO_CAP = 2**31
WARPGROUP = 4
"""Warps of a consumer group where these issue matrix instructions together (`mma_warps`): on Hopper
and later, which load by TMA."""
TMA_BYTES = 16
"""What the rows of a matrix must be a multiple of for TMA."""


class Facts(NamedTuple):
    """What a machine is, in whole numbers; calibration never changes these.

    sms: multiprocessors (compute units). smem_bytes_per_sm: shared memory (LDS) that one CTA may
    use. warp_size: threads a warp (wavefront). max_threads_per_cta, registers_per_sm (32 bits each)
    and max_registers_per_thread: the launch limits. mma_m, mma_n: rows and columns of C that one
    matrix instruction makes at least; mma_k: its depth for 16-bit inputs (other widths keep the
    bytes: 32 for 8-bit inputs where it is 16 for 16-bit ones). mma_warps: warps that issue one such
    instruction together (4 for WGMMA). epilogue_smem_bytes_max: the most that the epilogue needs to
    stage C, 0 where it writes straight from registers; by default the whole tile of C.
    ctas_per_sm_max: CTAs of a `serial` kernel that may share an SM. cutlass_raster: 1 where kernels
    choose their own tile order, as CUTLASS's do (see `wsjax.model`). cluster_ctas_max: CTAs of a
    thread block cluster, at most; 1 where there are none. pipelined: 0 where warps of their own
    load (warp-specialised kernels); where MATH warps issue loads ahead of their work, 1, or 2 if
    the ring has a slot fewer than `stages`: operands are in registers before they are multiplied.
    """

    sms: int
    smem_bytes_per_sm: int
    warp_size: int
    max_threads_per_cta: int = 1024
    registers_per_sm: int = 65536
    max_registers_per_thread: int = 255
    mma_m: int = 16
    mma_n: int = 8
    mma_k: int = 16
    epilogue_smem_bytes_max: int = NO_CAP
    mma_warps: int = 1
    ctas_per_sm_max: int = 1
    cutlass_raster: int = 0
    cluster_ctas_max: int = 1
    pipelined: Any = 0


def compiled(facts: Facts) -> Facts:
    """Facts for a program; `pipelined` is None if no kernel is, so that one without its terms is
    compiled."""
    none = not np.ndim(facts.pipelined) and facts.pipelined == 0
    return facts._replace(pipelined=None) if none else facts


def slot_bytes(block_m: Any, block_n: Any, block_k: Any, in_bytes: Any) -> Any:
    """One slot of the ring: an A tile and a B tile."""
    return (block_m + block_n) * block_k * in_bytes


def epilogue_bytes(block_m: Any, block_n: Any, out_bytes: Any, cap: Any) -> Any:
    """The buffer that stages C: min(tile of C, cap)."""
    tile = block_m * block_n * out_bytes
    return tile - (tile - cap) * (tile > cap)


def slots(stages: Any, facts: Facts) -> Any:
    """Slots of the ring in shared memory: `stages`, or one fewer (`Facts.pipelined`)."""
    if facts.pipelined is None:
        return stages
    return stages - 1 * (facts.pipelined > 1) * (stages > 1)


def smem_bytes(c: Any, facts: Facts, in_bytes: Any, out_bytes: Any) -> Any:
    """Shared memory that one CTA needs: ring, barriers and epilogue buffer."""
    slot = slot_bytes(c.block_m, c.block_n, c.block_k, in_bytes)
    epilogue = epilogue_bytes(c.block_m, c.block_n, out_bytes, facts.epilogue_smem_bytes_max)
    return slots(c.stages, facts) * (slot + BARRIER_BYTES) + epilogue


def deepest_stages(
    block_m: Any, block_n: Any, block_k: Any, in_bytes: Any, out_bytes: Any, facts: Facts
) -> Any:
    """The deepest ring that fits beside the epilogue buffer, 0 (not even one slot) to 32.

    For ints and arrays; with Z3, `stages` is the unknown and `checks` bounds it.
    """
    epilogue = epilogue_bytes(block_m, block_n, out_bytes, facts.epilogue_smem_bytes_max)
    slot = slot_bytes(block_m, block_n, block_k, in_bytes) + BARRIER_BYTES
    depth = (facts.smem_bytes_per_sm - epilogue) // slot
    depth = depth * (depth > 0)
    if facts.pipelined is not None:
        depth = depth + 1 * (facts.pipelined > 1) * (depth > 0)
    return depth - (depth - DEEPEST_RING) * (depth > DEEPEST_RING)


def row_bytes(c: Any, in_bytes: Any, out_bytes: Any) -> tuple[Any, Any, Any]:
    """The row pitch of A, B and C in memory, in bytes; 0 for a C that TMA does not store."""
    nn, tn = LAYOUTS.index("nn"), LAYOUTS.index("tn")
    a = c.k + (c.m - c.k) * (c.layout >= tn)
    b = c.k + (c.n - c.k) * (c.layout == nn) + (c.n - c.k) * (c.layout == tn)
    return a * in_bytes, b * in_bytes, c.n * out_bytes * (1 - c.write_back)


DIVIDING = (SCHEDULES.index("persistent"), SCHEDULES.index("cooperative"))
"""Schedules whose output tiles may be divided, as CUTLASS's are; ping-pong's may not."""


def misses(number: Any, *others: int) -> Any:
    """A product that is 0 where a number is one of the others."""
    return math.prod((number - other for other in others), start=1)


def checks(
    c: Any,
    facts: Facts,
    *,
    in_bytes: Any,
    out_bytes: Any,
    math_groups: Any,
    groups_per_tile: Any,
    rate: Any,
    divides: Callable[[Any, Any], Any] = lambda by, number: number % by == 0,
) -> tuple[tuple[str, Any], ...]:
    """(reason, what must hold) in order; a configuration is legal where all hold.

    math_groups: consumer groups with a tile of their own (2 for pingpong, else 1).
    groups_per_tile: consumer groups that split one tile (2 for cooperative, else 1): its rows, or
    its columns where the rows are an odd number of instructions, as cuBLAS's 192x192 does. A tile
    has at least one instruction's rows for each group, as CUTLASS demands.
    rate: the machine's `compute_ratio` for the input dtype, 0 where it has none.
    divides: whether a number is a multiple, where `%` is not the way to tell.
    Of several that fail the first is the row's reason. Within the ranges of `COLUMNS` no product
    passes 2**42, so 64-bit arrays don't wrap round.
    """
    tile_m, tile_n, tile_k = c.block_m, c.block_n, c.block_k
    threads = (c.math_warps + c.dma_warps) * facts.warp_size
    math_threads = c.math_warps * facts.warp_size
    accumulators = tile_m * tile_n * math_groups
    accumulators = accumulators + accumulators * (c.accum == PROMOTED)
    accumulators_per_thread_max = facts.max_registers_per_thread - OVERHEAD_REGISTERS
    row_multiple = 1 + (TMA_BYTES - 1) * (facts.mma_warps >= WARPGROUP)
    pitches = row_bytes(c, in_bytes, out_bytes)
    return (
        ("not_modelled", c.cluster_m * c.cluster_n <= facts.cluster_ctas_max),
        ("not_modelled", (c.split_k - 1) * misses(c.schedule, *DIVIDING) == 0),
        ("not_modelled", (c.scheduler >= STREAMK) * misses(c.schedule, *DIVIDING) == 0),
        ("not_modelled", (c.split_k - 1) * (c.scheduler == STREAMK) == 0),
        ("not_modelled", c.accum != ACCUMS.index("f16")),
        ("not_modelled", rate > 0),
        ("block_multiple", divides(facts.mma_m, tile_m)),
        ("block_multiple", divides(facts.mma_n, tile_n)),
        ("block_multiple", tile_m >= facts.mma_m * groups_per_tile),
        ("block_multiple", divides(facts.mma_m * facts.mma_n * groups_per_tile, tile_m * tile_n)),
        ("block_multiple", divides(facts.mma_k * 2, tile_k * in_bytes)),
        ("threads", divides(math_groups * groups_per_tile * facts.mma_warps, c.math_warps)),
        ("threads", threads <= facts.max_threads_per_cta),
        ("registers", accumulators <= accumulators_per_thread_max * math_threads),
        ("registers", accumulators + OVERHEAD_REGISTERS * threads <= facts.registers_per_sm),
        ("shared_memory", smem_bytes(c, facts, in_bytes, out_bytes) <= facts.smem_bytes_per_sm),
        *(("row_pitch", divides(row_multiple, pitch)) for pitch in pitches),
    )


def complete(columns: Mapping[str, Any], facts: Facts, dtype_bytes: Any) -> Configuration:
    """The configurations that numbers make with their defaults, NumPy's or JAX's.

    `stages`, when absent, is the deepest ring that fits, or 1 where none does: such a row is then
    illegal for its shared memory. dtype_bytes: `DTYPE_BYTES` as an array of the columns' kind.
    """
    filled = with_defaults(columns)
    if "stages" not in filled:
        blocks = (filled["block_m"], filled["block_n"], filled["block_k"])
        in_bytes, out_bytes = dtype_bytes[filled["dtype_in"]], dtype_bytes[filled["dtype_out"]]
        deepest = deepest_stages(*blocks, in_bytes, out_bytes, facts)
        filled["stages"] = deepest + (deepest < 1)
    return Configuration(*(filled[name] for name in COLUMNS))


def resolve(columns: Mapping[str, Any], facts: Facts) -> Configuration:
    """`complete`, as int64 arrays."""
    completed = complete(columns, facts, np.asarray(DTYPE_BYTES))
    return Configuration(*(np.asarray(values, np.int64) for values in completed))


def resolve_one(numbers: Mapping[str, int], facts: Facts) -> Configuration:
    """One configuration with its defaults, as whole numbers."""
    return Configuration(*(int(value) for value in resolve(numbers, facts)))


def why(reason: str | int, c: Configuration, facts: Facts) -> str:
    """Why a configuration (whole numbers) is illegal, by a reason or its code: what does not fit,
    by how much, and the nearest thing that does."""
    reason = REASONS[reason] if isinstance(reason, int) else reason
    schedule = SCHEDULES[c.schedule]
    math_groups, groups_per_tile = 1 + (schedule == "pingpong"), 1 + (schedule == "cooperative")
    in_bytes, out_bytes = DTYPE_BYTES[c.dtype_in], DTYPE_BYTES[c.dtype_out]
    if reason == "not_modelled":
        if (ctas := c.cluster_m * c.cluster_n) > (most := facts.cluster_ctas_max):
            of = f"a cluster of {ctas}, at most {most}" if most > 1 else "only 1x1 is"
            return f"not modelled: cluster {c.cluster_m}x{c.cluster_n}; {of}"
        divides = f"split_k = {c.split_k}" if c.split_k > 1 else ""
        divides = divides or f"scheduler {SCHEDULERS[c.scheduler]}" * (c.scheduler >= STREAMK)
        if divides and c.schedule not in DIVIDING:
            can = " and ".join(SCHEDULES[code] for code in DIVIDING)
            return f"not modelled: {divides} in {schedule}; {can} kernels divide tiles"
        if c.split_k > 1 and c.scheduler == STREAMK:
            return f"not modelled: {divides} with scheduler streamk; it takes 1, splitk others"
        if c.accum == ACCUMS.index("f16"):
            return "not modelled: accum f16; f32, f32_fast and f32_promoted are"
        return f"not modelled: the hardware file has no compute_ratio for {DTYPES[c.dtype_in]}"
    if reason == "block_multiple":
        steps = {
            "block_m": facts.mma_m,
            "block_n": facts.mma_n,
            "block_k": 2 * facts.mma_k // math.gcd(in_bytes, 2 * facts.mma_k),
        }
        wrong = [
            f"{name} {size} is no multiple of {step}, nearest {max(1, round(size / step)) * step}"
            for name, step in steps.items()
            if (size := getattr(c, name)) % step
        ]
        share = (
            f"{groups_per_tile} groups can't share {c.block_m}x{c.block_n}: take a block_m of at "
            f"least {facts.mma_m * groups_per_tile}, and it a multiple of that or block_n one of "
            f"{facts.mma_n * groups_per_tile}"
        )
        return f"block sizes: {'; '.join(wrong) or share}"
    if reason == "threads":
        step = math_groups * groups_per_tile * facts.mma_warps
        most = (facts.max_threads_per_cta // facts.warp_size - c.dma_warps) // step * step
        threads = (c.math_warps + c.dma_warps) * facts.warp_size
        return (
            f"threads: {c.math_warps} MATH and {c.dma_warps} DMA warps are {threads:,} threads; "
            f"MATH warps come in multiples of {step}, at most {most} with "
            f"{facts.max_threads_per_cta:,} threads a CTA"
        )
    if reason == "registers":
        accumulators = c.block_m * c.block_n * math_groups * (1 + (c.accum == PROMOTED))
        math_threads = c.math_warps * facts.warp_size
        total = accumulators + OVERHEAD_REGISTERS * (math_threads + c.dma_warps * facts.warp_size)
        return (
            f"registers: {math.ceil(accumulators / math_threads):,} accumulators + "
            f"{OVERHEAD_REGISTERS} a thread, {facts.max_registers_per_thread} available; "
            f"{total:,} a CTA, {facts.registers_per_sm:,} available; "
            "take a smaller tile or more MATH warps"
        )
    if reason == "shared_memory":
        slot = slot_bytes(c.block_m, c.block_n, c.block_k, in_bytes) + BARRIER_BYTES
        epilogue = epilogue_bytes(c.block_m, c.block_n, out_bytes, facts.epilogue_smem_bytes_max)
        deepest = deepest_stages(c.block_m, c.block_n, c.block_k, in_bytes, out_bytes, facts)
        mend = f"deepest legal: {deepest} stage{'s' * (deepest != 1)}"
        return (
            f"shared memory: {c.stages} stage{'s' * (c.stages != 1)} need {c.stages * slot:,} B "
            f"+ {epilogue:,} B epilogue, {facts.smem_bytes_per_sm:,} B available; "
            + (mend if deepest else "not even one stage fits: take a smaller tile")
        )
    if reason == "row_pitch":
        return _row_pitch(c, in_bytes, out_bytes)
    return "incomplete: a value is missing or is not a whole number in range"


def _row_pitch(c: Configuration, in_bytes: int, out_bytes: int) -> str:
    """Which matrices TMA cannot take, and the nearest sizes with which it can."""
    layout = LAYOUTS[c.layout]
    along = ("m" if layout[0] == "t" else "k", "n" if layout[1] == "n" else "k", "n")
    pitches = row_bytes(c, in_bytes, out_bytes)
    rows = zip("ABC", along, pitches, (in_bytes, in_bytes, out_bytes), strict=True)
    wrong = [row for row in rows if row[2] % TMA_BYTES]
    faults = []
    for name in dict.fromkeys(name for _, name, _, _ in wrong):
        mine = [row for row in wrong if row[1] == name]
        size, step = getattr(c, name), TMA_BYTES // min(width for *_, width in mine)
        apart = " and ".join(f"{matrix} {pitch:,} B" for matrix, _, pitch, _ in mine)
        valid = max(1, round(size / step)) * step
        faults.append(f"{name} = {size} puts rows of {apart} apart, nearest {valid}")
    direct = all(matrix == "C" for matrix, *_ in wrong)
    mend = "pad the matrix" + ", or write C back directly" * direct
    return f"row pitch: {'; '.join(faults)}; TMA takes multiples of {TMA_BYTES} B: {mend}"
