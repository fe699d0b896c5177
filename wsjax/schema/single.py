"""One configuration: from options or keywords to numbers, and why it is illegal."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.schema import frame as frames
from wsjax.schema.columns import (
    COLUMNS,
    DTYPE_BYTES,
    DTYPES,
    LAYOUTS,
    REQUIRED,
    SCHEDULES,
    Configuration,
)
from wsjax.schema.limits import REASONS, Facts, explain

BLOCKS = ("block_m", "block_n", "block_k")
COLUMNS_OF = {"--dtype": ("dtype_in", "dtype_out")}
TILE = re.compile(r"([0-9]{1,20})[xX]([0-9]{1,20})[xX]([0-9]{1,20})")


def from_options(options: Mapping[str, Any], missing: str | None = "") -> dict[str, int]:
    """The command line's options that were given, by name, as numbers of configuration columns.

    missing: what to add to the message that one is missing; None: any may.

    Raises InputError with all that is wrong.
    """
    problems = [
        f"{option}: missing; give -m, -n, -k and --tile{missing}"
        for option in ("-m", "-n", "-k", "--tile")
        if option not in options and missing is not None
    ]
    given: dict[str, tuple[str, int | str]] = {}
    for option, value in options.items():
        if option == "--tile":
            match = TILE.fullmatch(value)
            sizes = match.groups() if match else ()
            given |= {name: (option, int(size)) for name, size in zip(BLOCKS, sizes, strict=False)}
            if not match:
                problems.append(f"--tile: '{value}' is no tile; write it as 128x128x64")
        else:
            given |= dict.fromkeys(COLUMNS_OF.get(option, (_name(option),)), (option, value))
    return _numbers(given, problems)


def from_keywords(columns: Mapping[str, Any]) -> dict[str, int]:
    """Configuration columns, words as words, as numbers. InputError with all that is wrong."""
    problems = [
        f"{name}: missing: {COLUMNS[name].meaning}" for name in REQUIRED if name not in columns
    ]
    problems += [
        f"{name}: no configuration column{nearest(name, COLUMNS)}"
        for name in columns
        if name not in COLUMNS
    ]
    known = {name: (name, value) for name, value in columns.items() if name in COLUMNS}
    return _numbers(known, problems)


def _numbers(given: Mapping[str, tuple[str, Any]], problems: list[str]) -> dict[str, int]:
    """The numbers of columns that are spelled in some way; `problems` are raised with theirs."""
    numbers = {}
    for name, (spelled, value) in given.items():
        problem, numbers[name] = frames.read_value(COLUMNS[name], value)
        problems += [f"{spelled}: {problem}"] if problem else []
    if problems:
        raise InputError(dict.fromkeys(problems))
    return numbers


def _name(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def resolve(numbers: Mapping[str, int], facts: Facts) -> Configuration:
    """The configuration, defaults filled in, as whole numbers."""
    columns = {name: np.asarray([value]) for name, value in numbers.items()}
    return Configuration(*(int(x.flat[0]) for x in frames.resolve(columns, facts)))


def why(reason: str | int, c: Configuration, facts: Facts) -> str:
    """Why a configuration is illegal on a machine; a reason or its code."""
    schedule = SCHEDULES[c.schedule]
    return explain(
        REASONS[reason] if isinstance(reason, int) else reason,
        c,
        facts,
        in_bytes=DTYPE_BYTES[c.dtype_in],
        out_bytes=DTYPE_BYTES[c.dtype_out],
        math_groups=2 if schedule == "pingpong" else 1,
        groups_per_tile=2 if schedule == "cooperative" else 1,
        dtype=DTYPES[c.dtype_in],
    )


def problem(c: Configuration) -> str:
    """The GEMM, in words."""
    out = "" if c.dtype_out == c.dtype_in else f" to {DTYPES[c.dtype_out]}"
    batch = f" x{c.batch}" if c.batch > 1 else ""
    return f"{c.m}x{c.n}x{c.k}{batch} {DTYPES[c.dtype_in]}{out} {LAYOUTS[c.layout]}"


def kernel(c: Configuration) -> str:
    """How the kernel computes it, in words."""
    kept = ", 1 MMA in flight" if c.mma_in_flight else ""
    return (
        f"tile {c.block_m}x{c.block_n}x{c.block_k}, {SCHEDULES[c.schedule]}, "
        f"{c.stages} stage{'s' * (c.stages != 1)}, {c.dma_warps} DMA and {c.math_warps} MATH warps"
        f"{kept}"
    )
