"""Chosen kernels as other tools take them: a name filter for CUTLASS, configurations for Triton.

CUTLASS's Hopper kernels are called, such as

    cutlass3x_sm90_tensorop_gemm_bf16_bf16_f32_bf16_bf16_128x256x64_1x1x1_0_tnn_align8\
_warpspecialized_pingpong_epi_tma

with the types of A, B, sums, C and D, the tile, the cluster, the number of stages (0: as many as
fit, the only choice of its own library), layouts and schedules. A filter is a list of such names
with `*` for what may be anything, commas between them: for `cutlass_profiler --kernels=` and for
CMake's `CUTLASS_LIBRARY_KERNELS`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wsjax.schema import DTYPE_BYTES, DTYPES

Kernel = Mapping[str, Any]
"""The configuration columns of a kernel on one kind of problem, in words."""

TYPES = {"bf16": "bf16", "fp16": "f16", "fp32": "f32", "tf32": "f32"}
TYPES |= {"fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2", "int8": "s8"}
LAYOUTS = {"nn": "tt", "nt": "tn", "tn": "nt", "tt": "nn"}
"""Ours as BLAS's column-major words."""
SCHEDULES = {"serial": "", "pingpong": "_pingpong", "cooperative": "_cooperative"}
WRITES = {"tma": "tma", "direct": "nosmem"}
ALIGNMENT_BYTES = 16


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
