"""The columns of a configuration: their words, ranges and defaults; products of their values.

Rows are numbers throughout: a text column (`schedule`, `dtype_in`, …) holds codes, the positions
in its tuple of words. Row i of a product is computed from i, so that a sweep of 10**15 rows costs
no more memory than its axes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wsjax.errors import InputError, nearest

SCHEDULES = ("serial", "persistent", "pingpong", "cooperative")
DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int8")
DTYPE_BYTES = (4, 4, 2, 2, 1, 1, 1)
ACCUMS = ("f32", "f32_fast", "f32_promoted", "f16")
"""Sums of products: in 32 bits (s32 of int8); of fp8 at the MMA's own precision; of fp8 added up in
further f32 registers each 128 of k; in 16 bits."""
SCHEDULERS = ("persistent", "none", "splitk", "streamk", "heuristic")
"""How output tiles come to CTAs, in CUTLASS's words: one after the other; a CTA each (`serial`); k
split over `split_k` CTAs; tiles cut where CTAs run out (stream-K); either, as CUTLASS chooses."""
REDUCTIONS = ("deterministic", "nondeterministic")
"""How the CTAs that share an output tile add up: in the order of k, or as they come."""
PROMOTED = ACCUMS.index("f32_promoted")
SPLITK, STREAMK, HEURISTIC = (SCHEDULERS.index(x) for x in ("splitk", "streamk", "heuristic"))
LAYOUTS = ("nn", "nt", "tn", "tt")
"""First letter: A stored [M,K] (n) or [K,M] (t); second: B stored [K,N] (n) or [N,K] (t)."""
WRITES = ("tma", "direct")
L2_STATES = ("cold", "warm")
LIMITERS = ("load", "compute", "latency")
METHODS = ("closed", "periodic", "scan")
PREDICTION_COLUMNS = (
    "time_us",
    "math_wait_us",
    "dma_wait_us",
    "launch_us",
    "waves",
    "k_tiles",
    "smem_bytes",
    "tflops",
    "limiter",
    "method",
    "extrapolated",
    "legal",
    "reason",
)
INTERVAL_COLUMNS = ("time_us_lo", "time_us_hi")
"""Behind the others, of machines that are calibrated."""

SIZE_MAX = 2**31
BLOCK_MAX = 2**16


def shown(value: object) -> str:
    """A value for a message, as a TOML file spells it, shortened when it is long."""
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except ValueError:
        text = "a number of thousands of digits"
    for name, spelling in (("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf")):
        text = spelling if text == name else text
    return text if len(text) <= 60 else f"{text[:57]}..."


def toml_value(value: Any) -> str:
    """A value as a TOML file spells it, on one line."""
    if isinstance(value, Mapping):
        items = ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {items} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _plainly(value: object) -> str:
    """The hint for a whole number that is spelled as text or with a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return f"; write {value:.0f}"
    if isinstance(value, str) and value.isdecimal():
        return f"; write {value}"
    return ""


@dataclass(frozen=True)
class Column:
    """A configuration column: whole numbers `minimum`..`maximum`, or one of `choices`.

    `default` None: the column must be given (`REQUIRED`) or follows from others (`DERIVED`).
    """

    name: str
    meaning: str
    default: int | str | None = None
    choices: tuple[str, ...] = ()
    minimum: int = 1
    maximum: int = SIZE_MAX

    @property
    def default_number(self) -> int | None:
        """The default as rows hold it: the code of a word, else the number itself."""
        return None if self.default is None else self.number(self.default)

    def number(self, value: Any) -> int:
        """A value that is right as rows hold it: the code of a word, else the number itself."""
        return self.choices.index(value) if self.choices else int(value)

    def complaint(self, value: object) -> str:
        """What is wrong with a value that a user gave, and how to mend it; "" when nothing is."""
        value = value.item() if isinstance(value, np.generic) else value
        if self.choices:
            if value in self.choices:
                return ""
            return f"unknown word {shown(value)}{nearest(value, self.choices)}"
        if type(value) is not int:
            return f"expected a whole number, not {shown(value)}{_plainly(value)}"
        if self.minimum <= value <= self.maximum:
            return ""
        valid = max(self.minimum, min(value, self.maximum))
        return f"{shown(value)} is out of range; nearest valid: {valid}"


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("m", "rows of A and C"),
        Column("n", "columns of B and C"),
        Column("k", "columns of A, rows of B: the depth of the sum"),
        Column("batch", "independent GEMMs of one launch", 1),
        Column("dtype_in", "element type of A and B", "bf16", DTYPES),
        Column("dtype_out", "element type of C", "bf16", DTYPES),
        Column("layout", "how A and B are stored, see LAYOUTS", "nt", LAYOUTS),
        Column("block_m", "rows of C a CTA computes", maximum=BLOCK_MAX),
        Column("block_n", "columns of C a CTA computes", maximum=BLOCK_MAX),
        Column("block_k", "depth of one step", maximum=BLOCK_MAX),
        Column("stages", "slots of the circular buffer; default: the deepest legal", maximum=32),
        Column("dma_warps", "1 loads A and B, 2 load one each", 1, maximum=2),
        Column("math_warps", "default 4; pingpong and cooperative 8", maximum=1024),
        Column("mma_in_flight", "MMA steps left running behind", 0, minimum=0, maximum=1),
        Column("accum", "how sums are kept, see ACCUMS", "f32", ACCUMS),
        Column("schedule", "how a CTA's output tiles follow each other", "persistent", SCHEDULES),
        Column("cluster_m", "CTAs of a cluster along m", 1),
        Column("cluster_n", "CTAs of a cluster along n", 1),
        Column("scheduler", "how tiles come to CTAs, see SCHEDULERS", "persistent", SCHEDULERS),
        Column("split_k", "CTAs that share one output tile's k", 1),
        Column("reduction", "how these add up, see REDUCTIONS", "deterministic", REDUCTIONS),
        Column("group_m", "rows of tiles that the raster order groups", 1),
        Column("grid_ctas", "CTAs launched; 0: as many as the SMs hold", 0, minimum=0),
        Column("write_back", "C by asynchronous TMA or straight from registers", "tma", WRITES),
        Column("l2_state", "whether L2 holds A and B before the launch", "cold", L2_STATES),
    )
}
REQUIRED = ("m", "n", "k", "block_m", "block_n", "block_k")
BLOCKS = ("block_m", "block_n", "block_k")
DERIVED = ("stages", "math_warps")
GEMM = ("m", "n", "k", "batch", "dtype_in", "dtype_out", "layout")
"""The columns that say what is computed."""
PROBLEM = (*GEMM, "l2_state")
"""The columns that belong to a problem: what is computed, and what L2 holds before it."""
KERNEL = tuple(name for name in COLUMNS if name not in PROBLEM)
"""The columns that belong to a kernel: what a compiled library ships."""


class Configuration(NamedTuple):
    """One configuration, or many: each field a whole number, or an array of one a row.

    Fields are the columns of `COLUMNS`, in order, where their meanings are; text columns hold
    codes. In a batch, a field that is the same in every row may stay a scalar.
    """

    m: Any
    n: Any
    k: Any
    batch: Any
    dtype_in: Any
    dtype_out: Any
    layout: Any
    block_m: Any
    block_n: Any
    block_k: Any
    stages: Any
    dma_warps: Any
    math_warps: Any
    mma_in_flight: Any
    accum: Any
    schedule: Any
    cluster_m: Any
    cluster_n: Any
    scheduler: Any
    split_k: Any
    reduction: Any
    group_m: Any
    grid_ctas: Any
    write_back: Any
    l2_state: Any


DEFAULTS = {
    name: np.int64(column.default_number)
    for name, column in COLUMNS.items()
    if column.default_number is not None
}
"""The constant defaults, as numbers; `REQUIRED` and `DERIVED` columns have none."""


def with_defaults(columns: Mapping[str, Any]) -> dict[str, Any]:
    """`columns` and the defaults of those they lack, as scalars where they are constant.

    `REQUIRED` columns stay absent when they are, and so does `stages`: the deepest legal depends
    on the machine (`limits.resolve`). Values are numbers (codes for words), or arrays of them,
    NumPy's or JAX's.
    """
    filled = {**DEFAULTS, **columns}
    if "math_warps" not in filled:
        two_groups = filled["schedule"] >= SCHEDULES.index("pingpong")
        filled["math_warps"] = np.int64(4) + np.int64(4) * two_groups
    return filled


def undivided(c: Configuration) -> Configuration:
    """Rows for a program; `split_k` is None if none of them divides its output tiles, so that one
    without the terms of those that do is compiled. NumPy arrays or numbers."""
    if np.all(c.split_k == 1) and np.all(c.scheduler < SPLITK):
        return c._replace(split_k=None)
    return c


def divided(c: Configuration) -> Configuration:
    """Rows of a program with a number for a `split_k` of None."""
    return c._replace(split_k=1) if c.split_k is None else c


def spelled(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration columns, numbers or arrays of them, with words for codes."""
    return {
        name: np.asarray(COLUMNS[name].choices, dtype=object)[values]
        if COLUMNS[name].choices
        else values
        for name, values in columns.items()
    }


def sizes(columns: Mapping[str, Any], names: Sequence[str]) -> str:
    """Sizes in words, such as 128x128x64 for the `BLOCKS` of a kernel's columns."""
    return "x".join(str(columns[name]) for name in names)


def problem_words(c: Configuration) -> str:
    """One problem: its size, batch, dtypes and layout."""
    out = "" if c.dtype_out == c.dtype_in else f" to {DTYPES[c.dtype_out]}"
    batch = f" x{c.batch}" if c.batch > 1 else ""
    return f"{sizes(c._asdict(), 'mnk')}{batch} {DTYPES[c.dtype_in]}{out} {LAYOUTS[c.layout]}"


def kernel_words(c: Configuration) -> str:
    """One kernel: its tile, schedule, ring and warps."""
    kept = ", 1 MMA in flight" if c.mma_in_flight else ""
    ring = f"{c.stages} stage{'s' * (c.stages != 1)}"
    kept += f", sums in {ACCUMS[c.accum]}" if c.accum else ""
    warps = f"{c.dma_warps} DMA and {c.math_warps} MATH warps"
    return f"tile {sizes(c._asdict(), BLOCKS)}, {SCHEDULES[c.schedule]}, {ring}, {warps}{kept}"


@dataclass(frozen=True, eq=False)
class Axis:
    """Columns that vary together: value i of each belongs to value i of the others.

    `values` holds one array or `range` a name, all of one length. `words` names the codes of a
    text column that is no configuration column, such as the names of a problem list.
    """

    names: tuple[str, ...]
    values: tuple[np.ndarray | range, ...]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self.values}
        if len(self.names) != len(self.values) or len(lengths) != 1:
            raise ValueError(f"axis {self.names}: {lengths} values for {len(self.names)} names")

    def __len__(self) -> int:
        return len(self.values[0])

    def take(self, index: np.ndarray | int) -> dict[str, np.ndarray]:
        """The columns' values at `index` along this axis."""
        return {
            name: np.asarray(values.start + values.step * index)
            if isinstance(values, range)
            else np.asarray(values[index])
            for name, values in zip(self.names, self.values, strict=True)
        }


@dataclass(frozen=True, eq=False)
class Product:
    """All combinations of the axes' values, in order, the last axis fastest; never materialised.

    Raises InputError for a column on two axes, or for 2**63 rows and more.
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        names = [name for axis in self.axes for name in axis.names]
        problems = [
            f"{name}: given twice; leave one out"
            for name in sorted({name for name in names if names.count(name) > 1})
        ]
        count = math.prod(len(axis) for axis in self.axes)
        if count >= 2**63:
            problems.append(f"{count:.3g} rows are more than 2**63 - 1; give fewer values")
        if problems:
            raise InputError(problems)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in the axes' order."""
        return tuple(name for axis in self.axes for name in axis.names)

    @cached_property
    def words(self) -> dict[str, tuple[str, ...]]:
        """The words that the codes of each text column stand for."""
        given = {name: words for axis in self.axes for name, words in axis.words.items()}
        columns = {name: COLUMNS[name].choices for name in self.names if name in COLUMNS}
        return {name: words for name, words in (columns | given).items() if words}

    @cached_property
    def constants(self) -> dict[str, int | float]:
        """The columns that have one value, and it."""
        return {
            name: value.item()
            for axis in self.axes
            if len(axis) == 1
            for name, value in axis.take(0).items()
        }

    def __len__(self) -> int:
        return math.prod(len(axis) for axis in self.axes)

    def rows(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Rows `start` up to, not including, `stop`, clipped to the product: one array a column.

        int64 (float64 where an axis holds floats). An axis of one value costs no memory: its
        arrays are read-only views of it.
        """
        start = max(start, 0)
        return self.take(np.arange(start, max(start, min(stop, len(self))), dtype=np.int64))

    def take(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The rows of these numbers, as `rows` gives them."""
        remaining = numbers
        columns: dict[str, np.ndarray] = {}
        for axis in reversed(self.axes):
            if len(axis) <= 1:
                values = {
                    name: np.broadcast_to(values, remaining.shape)
                    for name, values in axis.take(np.arange(len(axis))).items()
                }
            else:
                quotient = remaining // len(axis)
                values = axis.take(remaining - quotient * len(axis))
                remaining = quotient
            columns.update(values)
        return {name: columns[name] for name in self.names}
