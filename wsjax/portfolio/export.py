"""Kernels as others read them: names, a filter for CUTLASS, configurations for Triton, and a
picture of the loss.

CUTLASS's Hopper kernels are called, such as

    cutlass3x_sm90_tensorop_gemm_bf16_bf16_f32_bf16_bf16_128x256x64_1x1x1_0_tnn_align8\
_warpspecialized_pingpong_epi_tma

with the types of A, B, sums, C and D, the tile, the cluster, the number of stages (0: as many as
fit, the only choice of its own library), layouts and schedules. A filter is a list of such names
with `*` for what may be anything, commas between them: for `cutlass_profiler --kernels=` and for
CMake's `CUTLASS_LIBRARY_KERNELS`.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any, NamedTuple

from wsjax.schema import BLOCKS, COLUMNS, DTYPE_BYTES, DTYPES, with_defaults
from wsjax.schema import SCHEDULES as SCHEDULE_WORDS

Kernel = Mapping[str, Any]
"""The configuration columns of a kernel on one kind of problem, in words."""

TYPES = {"bf16": "bf16", "fp16": "f16", "fp32": "f32", "tf32": "f32"}
TYPES |= {"fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2", "int8": "s8"}
LAYOUTS = {"nn": "tt", "nt": "tn", "tn": "nt", "tt": "nn"}
"""Ours as BLAS's column-major words."""
SCHEDULES = {"serial": "", "pingpong": "_pingpong", "cooperative": "_cooperative"}
WRITES = {"tma": "tma", "direct": "nosmem"}
ALIGNMENT_BYTES = 16
LETTERS = {
    "group_m": "g",
    "dma_warps": "d",
    "math_warps": "w",
    "mma_in_flight": "f",
    "cluster_m": "cm",
    "cluster_n": "cn",
    "split_k": "k",
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
    tile = "x".join(str(kernel[name]) for name in BLOCKS)
    words = [tile, *([f"s{kernel['stages']}"] if "stages" in kernel else [])]
    words.append(SCHEDULE_WORDS[usual["schedule"]])
    for name, letter in LETTERS.items():
        if name in kernel and kernel[name] != usual[name]:
            choices = COLUMNS[name].choices
            words.append(choices[kernel[name]] if choices else f"{letter}{kernel[name]}")
    return "_".join(words)


def cutlass_filter(kernels: Iterable[Kernel]) -> str:
    """The filter for those kernels that CUTLASS can have; "" if there is none."""
    patterns = (cutlass_pattern(kernel) for kernel in kernels)
    return ",".join(dict.fromkeys(pattern for pattern in patterns if pattern is not None))


def not_in_cutlass(kernels: Iterable[tuple[str, Kernel]]) -> tuple[str, ...]:
    """The names of those kernels that CUTLASS can't have. kernels: with names."""
    return tuple(dict.fromkeys(name for name, own in kernels if cutlass_pattern(own) is None))


def cutlass_pattern(kernel: Kernel) -> str | None:
    """What the names of such a kernel match, whatever its number of stages.

    None where CUTLASS has no such kernel: persistent with one consumer group, two DMA warps,
    split-K, fp32 inputs.
    """
    schedule = SCHEDULES.get(kernel["schedule"])
    dtype = kernel["dtype_in"]
    if schedule is None or kernel["dma_warps"] != 1 or kernel["split_k"] != 1 or dtype == "fp32":
        return None
    multiply = "tf32gemm" if dtype == "tf32" else "gemm"
    element, out = TYPES[dtype], TYPES[kernel["dtype_out"]]
    total = "s32" if dtype == "int8" else "f32"
    tile = f"{kernel['block_m']}x{kernel['block_n']}x{kernel['block_k']}"
    cluster = f"{kernel['cluster_m']}x{kernel['cluster_n']}x1"
    align = ALIGNMENT_BYTES // DTYPE_BYTES[DTYPES.index(dtype)]
    return (
        f"cutlass3x_sm90_tensorop_*{multiply}_{element}_{element}_{total}_*_{out}_{tile}_{cluster}"
        f"_*_{LAYOUTS[kernel['layout']]}*_align{align}_warpspecialized{schedule}"
        f"_epi_{WRITES[kernel['write_back']]}"
    )


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
    step = _step(max((point.loss_pct for point in points), default=0.0))
    top = step * max(1, ceil(max(point.loss_pct for point in points) / step))
    last = max(point.k for point in points)
    across = (WIDTH - LEFT - RIGHT) / max(last, 1)
    up = (HEIGHT - TOP - BOTTOM) / top

    def place(k: int, pct: float) -> tuple[float, float]:
        return LEFT + across * (k - 0.5), HEIGHT - BOTTOM - up * pct

    parts = [
        _text(LEFT, 22, title, "start", 15),
        _text(LEFT, 42, "time above that with every kernel available, %", "start"),
        _text(WIDTH - RIGHT, HEIGHT - 10, "kernels", "end"),
    ]
    for number in range(round(top / step) + 1):
        _, y = place(1, number * step)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "#ddd"))
        parts.append(_text(LEFT - 8, y + 4, f"{number * step:.6g}", "end"))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(p.k, p.loss_pct) for p in points))
    parts.append(f'<polyline points="{path}" fill="none" stroke="#1f6feb" stroke-width="2"/>')
    every = ceil(last / 20)
    for point in points:
        x, y = place(point.k, point.loss_pct)
        fill = "#1f6feb" if point.proved else "white"
        if not point.proved:
            parts.append(_line(x, y, x, place(point.k, point.bound_pct)[1], "#1f6feb"))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="#1f6feb"/>')
        if point.k % every == 0 or point.k == 1:
            parts.append(_text(x + 6, y - 6, f"{point.loss_pct:.3g}", "start"))
            parts.append(_text(x, HEIGHT - BOTTOM + 18, str(point.k), "middle"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" role="img">\n<rect width="100%" height="100%" fill="white"/>\n'
        f"{body}\n</svg>\n"
    )


def _step(greatest: float) -> float:
    """A round distance between lines: 1, 2 or 5 times a power of ten."""
    if greatest <= 0:
        return 1.0
    raw = greatest / TICKS
    power = 10.0 ** floor(log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )
