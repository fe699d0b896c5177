"""Kernels as others read them: names, a filter for CUTLASS, configurations for Triton, and a
picture of the loss. What stands in a table is data here: no name of it is code, or a formula.

A kernel that a table names as CUTLASS does keeps this name. Others get the pattern of such names on
the machine's architecture. On Hopper they are

    cutlass3x_sm90_tensorop_gemm_bf16_bf16_f32_bf16_bf16_128x256x64_1x1x1_0_tnn_align8\
_warpspecialized_pingpong_epi_tma

with the types of A, B, sums, C and D, the tile, the cluster, the number of stages (0: as many as
fit), layouts and schedules; on Ampere and Ada, where no warps are specialised,

    cutlass_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align8

A filter is a list of such names with `*` for what may be anything, commas between them: for
`cutlass_profiler --kernels=` and for CMake's `CUTLASS_LIBRARY_KERNELS`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, NamedTuple

from wsjax.schema import (
    BLOCKS,
    COLUMNS,
    DTYPE_BYTES,
    DTYPES,
    SCHEDULERS,
    SCHEDULES,
    SPLITK,
    WARPGROUP,
    Facts,
    deepest_stages,
    sizes,
    with_defaults,
)

if TYPE_CHECKING:
    import pandas as pd


Kernel = Mapping[str, Any]
"""The configuration columns of a kernel on one kind of problem, in words; `imported`: what tables
call it."""

TYPES = {"bf16": "bf16", "fp16": "f16", "fp32": "f32", "tf32": "f32"}
TYPES |= {"fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2", "int8": "s8"}
LAYOUTS = {"nn": "tt", "nt": "tn", "tn": "nt", "tt": "nn"}
"""Ours as BLAS's column-major words."""
SM90_SCHEDULES = {
    "serial": "_warpspecialized",
    "pingpong": "_warpspecialized_pingpong",
    "cooperative": "_warpspecialized_cooperative",
}
SM100_SCHEDULES = {"persistent": "*1sm*"}
WRITES = {"tma": "tma", "direct": "nosmem"}
ALIGNMENT_BYTES = 16
REGISTERS_MAX = 255
"""Of a thread; a machine that has more keeps sums in tensor memory, as Blackwell does."""
CUTLASS = re.compile(r"cutlass\w+")
FORMULA = ("=", "+", "-", "@")
"""What formulas begin with."""
LETTERS = {
    "group_m": "g",
    "dma_warps": "d",
    "math_warps": "w",
    "mma_in_flight": "f",
    "accum": "",
    "cluster_m": "cm",
    "cluster_n": "cn",
    "scheduler": "",
    "split_k": "k",
    "reduction": "",
    "grid_ctas": "grid",
    "write_back": "",
}
"""What stands before a number in a kernel's name."""
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 56, 48
TICKS = 5


def kernel_name(kernel: Mapping[str, Any]) -> str:
    """A name that tells a kernel's columns (numbers and codes); defaults go without saying.

    Such as 128x256x64_s4_pingpong, or 128x128x64_s4_persistent_g8_d2: g for `group_m`, d for
    `dma_warps`, w `math_warps`, f `mma_in_flight`, cm and cn a cluster, k `split_k`, grid
    `grid_ctas`.
    """
    usual = with_defaults({"schedule": int(kernel.get("schedule", 1))})
    words = [sizes(kernel, BLOCKS), *([f"s{kernel['stages']}"] if "stages" in kernel else [])]
    words.append(SCHEDULES[usual["schedule"]])
    for name, letter in LETTERS.items():
        if name in kernel and kernel[name] != usual[name]:
            choices = COLUMNS[name].choices
            words.append(choices[kernel[name]] if choices else f"{letter}{kernel[name]}")
    return "_".join(words)


def printable(text: str) -> str:
    """A text on one line, with escapes for what can't be seen."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A frame for a CSV file, in which no text is a formula to a spreadsheet: an apostrophe goes
    before those that could be."""

    def cell(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

    words = frame.select_dtypes(exclude="number")
    return frame.assign(**{str(name): words[name].map(cell) for name in words})


def cutlass_filter(kernels: Iterable[Kernel], facts: Facts) -> str:
    """The filter for those kernels that CUTLASS can have; "" if there is none."""
    patterns = (pattern for kernel in kernels for pattern in cutlass_patterns(kernel, facts))
    return ",".join(dict.fromkeys(patterns))


def not_in_cutlass(kernels: Iterable[tuple[str, Kernel]], facts: Facts) -> tuple[str, ...]:
    """The names of those kernels that CUTLASS can't have. kernels: with names."""
    return tuple(dict.fromkeys(n for n, own in kernels if not cutlass_patterns(own, facts)))


def cutlass_patterns(kernel: Kernel, facts: Facts) -> list[str]:
    """What matches the names of such a kernel on a machine: those that were imported, or a pattern.

    None where CUTLASS has no such kernel: of two DMA warps, fp32 inputs; on Hopper persistent with
    one consumer group; elsewhere of tiles that are divided; where no warps are specialised all but
    serial ones. How tiles are divided is no part of a name.
    """
    if imported := [name for name in kernel.get("imported", ()) if CUTLASS.fullmatch(name)]:
        return imported
    dtype = kernel["dtype_in"]
    if facts.warp_size != 32 or dtype == "fp32":
        return []
    divides = kernel["split_k"] > 1 or kernel.get("scheduler") in SCHEDULERS[SPLITK:]
    if kernel["dma_warps"] != 1 or (divides and facts.mma_warps != WARPGROUP):
        return []
    element, out = TYPES[dtype], TYPES[kernel["dtype_out"]]
    align = ALIGNMENT_BYTES // DTYPE_BYTES[DTYPES.index(dtype)]
    layout = LAYOUTS[kernel["layout"]]
    m, n, k = (kernel[name] for name in BLOCKS)
    multiply = "tf32gemm" if dtype == "tf32" else "gemm"
    if facts.mma_warps != WARPGROUP:
        if kernel["schedule"] != "serial" or kernel["cluster_m"] * kernel["cluster_n"] > 1:
            return []
        kind = f"{multiply}*" if dtype == "tf32" else f"{multiply}_{element}"
        start = "s*" if out == "f32" else f"{out}_*"
        tile = f"{m}x{n}_{k}x{kernel['stages']}"
        return [f"cutlass_tensorop_{start}{kind}_{tile}_{layout}_align{align}"]
    tensor_memory = facts.max_registers_per_thread > REGISTERS_MAX
    sm, schedules = (100, SM100_SCHEDULES) if tensor_memory else (90, SM90_SCHEDULES)
    schedule = schedules.get(kernel["schedule"])
    if schedule is None or (divides and sm != 90):
        return []
    schedule = f"_stream_k{schedule}" if divides else schedule
    total = "s32" if dtype == "int8" else "f32"
    fast = "_fp8_fastaccum" if kernel.get("accum") == "f32_fast" else ""
    in_bytes, out_bytes = (DTYPE_BYTES[DTYPES.index(kernel[x])] for x in ("dtype_in", "dtype_out"))
    deepest = deepest_stages(m, n, k, in_bytes, out_bytes, facts)
    stages = 0 if kernel["stages"] == deepest else kernel["stages"]
    cluster = f"{kernel['cluster_m']}x{kernel['cluster_n']}x1"
    return [
        f"cutlass3x_sm{sm}_tensorop_*{multiply}_{element}_{element}_{total}_*_{out}_{m}x{n}x{k}"
        f"_{cluster}_{stages}_{layout}*_align{align}{schedule}{fast}"
        f"_epi_{WRITES[kernel['write_back']]}"
    ]


def triton_configs(kernels: Sequence[tuple[str, Kernel]]) -> str:
    """A Python file with CONFIGS, for `triton.autotune(CONFIGS, key=[…])`. kernels: with names."""
    lines: dict[str, str] = {}
    for name, kernel in kernels:
        text = triton_config(kernel)
        lines[text] = f"{lines[text]}, {name}" if text in lines else name
    body = "".join(f"    {text},  # {names}\n" for text, names in lines.items())
    return f"{HEADER}import triton\n\nCONFIGS = [\n{body}]\n"


HEADER = '''"""Kernels chosen by wsjax, for @triton.autotune(CONFIGS, key=["M", "N", "K"]).

Schedules are the kernel's own code in Triton; they stand behind each configuration.
"""

'''


def triton_config(kernel: Kernel) -> str:
    """`triton.Config(…)`, with the names of Triton's matrix multiplication tutorial."""
    settings = {f"BLOCK_SIZE_{axis.upper()}": kernel[f"block_{axis}"] for axis in "mnk"}
    settings["GROUP_SIZE_M"] = kernel["group_m"]
    if kernel["split_k"] > 1:
        settings["SPLIT_K"] = kernel["split_k"]
    words = ", ".join(f'"{name}": {value}' for name, value in settings.items())
    numbers = {"num_warps": kernel["math_warps"], "num_stages": kernel["stages"]}
    ctas = kernel["cluster_m"] * kernel["cluster_n"]
    numbers |= {"num_ctas": ctas} if ctas > 1 else {}
    rest = ", ".join(f"{name}={value}" for name, value in numbers.items())
    return f"triton.Config({{{words}}}, {rest})"


class Point(NamedTuple):
    """With `k` kernels the loss is `loss_pct`, and no set has less than `bound_pct`."""

    k: int
    loss_pct: float
    bound_pct: float
    proved: bool


def loss_svg(points: Sequence[Point], title: str) -> str:
    """An SVG file's text. Full dots are proved to be the best; of others a bar shows how much
    better they could be."""
    step = round_step(max((point.loss_pct for point in points), default=0.0))
    top = step * max(1, ceil(max(point.loss_pct for point in points) / step))
    last = max(point.k for point in points)
    across = (WIDTH - LEFT - RIGHT) / max(last, 1)
    up = (HEIGHT - TOP - BOTTOM) / top

    def place(k: int, pct: float) -> tuple[float, float]:
        return LEFT + across * (k - 0.5), HEIGHT - BOTTOM - up * pct

    parts = [
        svg_text(LEFT, 22, title, "start", 15),
        svg_text(LEFT, 42, "time above that with every kernel available, %", "start"),
        svg_text(WIDTH - RIGHT, HEIGHT - 10, "kernels", "end"),
    ]
    for number in range(round(top / step) + 1):
        _, y = place(1, number * step)
        parts.append(svg_line(LEFT, y, WIDTH - RIGHT, y, "#ddd"))
        parts.append(svg_text(LEFT - 8, y + 4, f"{number * step:.6g}", "end"))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(p.k, p.loss_pct) for p in points))
    parts.append(f'<polyline points="{path}" fill="none" stroke="#1f6feb" stroke-width="2"/>')
    every = ceil(last / 20)
    for point in points:
        x, y = place(point.k, point.loss_pct)
        fill = "#1f6feb" if point.proved else "white"
        if not point.proved:
            parts.append(svg_line(x, y, x, place(point.k, point.bound_pct)[1], "#1f6feb"))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="#1f6feb"/>')
        if point.k % every == 0 or point.k == 1:
            parts.append(svg_text(x + 6, y - 6, f"{point.loss_pct:.3g}", "start"))
            parts.append(svg_text(x, HEIGHT - BOTTOM + 18, str(point.k), "middle"))
    return svg(WIDTH, HEIGHT, parts)


def svg(width: float, height: float, parts: Iterable[str]) -> str:
    """An SVG file's text, of elements on white."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" role="img">\n<rect width="100%" height="100%" fill="white"/>\n'
        f"{body}\n</svg>\n"
    )


def round_step(greatest: float) -> float:
    """A round distance between lines: 1, 2 or 5 times a power of ten."""
    if greatest <= 0:
        return 1.0
    raw = greatest / TICKS
    power = 10.0 ** floor(log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))


def svg_line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """A line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def svg_text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    """A text that starts, ends or has its middle at x."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )
