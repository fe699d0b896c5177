"""Spaces: which kernels to choose from, in TOML that looks as a sweep file does.

    [columns]                                   # a kernel's: all but the problem's
    block_m = [64, 128, 256]
    block_n = { from = 64, to = 256, step = 64 }
    block_k = { from = 32, to = 128, factor = 2 }       # powers of two
    schedule = ["persistent", "pingpong"]
    [filter]                                    # over a kernel's columns and the machine's facts
    where = "block_n % (2 * mma_n) == 0 and power_of_two(block_m * block_n)"

A kernel is a configuration without its problem. The kernels are all combinations that pass the
filter, in the order of `schema.COLUMNS`, the last column fastest. What is left out has its default,
`stages` the deepest ring that fits the machine and the problem's types.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from wsjax import schema
from wsjax.errors import InputError, nearest
from wsjax.schema import (
    COLUMNS,
    KERNEL,
    PROBLEM,
    REQUIRED,
    Axis,
    Column,
    Configuration,
    Facts,
    Product,
)
from wsjax.spec.axes import Refuse, column_axis
from wsjax.spec.sweep_files import parse_toml, read_section, read_text, read_where, refuse_in
from wsjax.spec.where import Predicate, parse

MAY_BE_ZERO = ("epilogue_smem_bytes_max", "cutlass_raster")
FACTS = {
    name: Column(name, "a fact of the machine", minimum=int(name not in MAY_BE_ZERO))
    for name in Facts._fields
}
FILTER = {name: COLUMNS[name] for name in KERNEL} | FACTS
"""What a space's filter may read."""
SECTIONS = ("columns", "filter")
KIND = "space file"
DEFAULT: dict[str, list[Any]] = {
    "block_m": [16, 32, 64, 128, 256],
    "block_n": [8, 16, 32, 64, 128, 256],
    "block_k": [32, 64, 128],
    "stages": [*range(1, 13)],
    "dma_warps": [1, 2],
    "schedule": ["persistent", "pingpong", "cooperative"],
}
DEFAULT_WHERE = "block_m % mma_m == 0 and block_n % mma_n == 0"
"""The space that is taken where none is given: tiles as narrow as the machine's MMA. Of a machine
that was fitted to measured kernels it has the values that these had, and all their schedules; and
narrower tiles for problems that are narrower than each of these."""
BLOCK_ROWS = 2**18
"""Kernels that are held in memory at once."""


@dataclass(frozen=True, eq=False)
class Space:
    """Kernels to choose from. `product`: their columns, lazily; `where`: the filter as written.

    A number of a kernel is its row in `product`, which the filter does not change.
    """

    name: str
    product: Product
    where: str | None = None

    def __len__(self) -> int:
        return len(self.product)

    @cached_property
    def predicate(self) -> Predicate | None:
        """The filter over a kernel's columns and the machine's facts."""
        return None if self.where is None else parse(self.where, FILTER)

    def configurations(
        self, numbers: np.ndarray, problem: Mapping[str, Any], facts: Facts
    ) -> Configuration:
        """The kernels of these numbers, applied to one problem.

        problem: numbers and codes of its columns; those left out have their defaults. They stay
        scalars, a kernel's columns are arrays, so that one compiled program serves every space.
        """
        c = schema.resolve({**problem, **self.product.take(numbers)}, facts)
        shape = numbers.shape
        return c._replace(**{name: np.broadcast_to(getattr(c, name), shape) for name in KERNEL})

    def blocks(
        self, problem: Mapping[str, Any], facts: Facts
    ) -> Iterator[tuple[np.ndarray, Configuration]]:
        """All kernels that pass the filter, applied to one problem, a block at a time ->
        (their numbers, configurations as of `configurations`)."""
        for start in range(0, len(self), BLOCK_ROWS):
            numbers = np.arange(start, min(start + BLOCK_ROWS, len(self)))
            c = self.configurations(numbers, problem, facts)
            if self.predicate is not None:
                passes = self.predicate.mask({**c._asdict(), **facts._asdict()}, len(numbers))
                numbers = numbers[passes]
                c = c._replace(**{name: getattr(c, name)[passes] for name in KERNEL})
            if len(numbers):
                yield numbers, c


def load_space(
    source: "str | Path | Space | None" = None,
    span: Mapping[str, Sequence[Any]] | None = None,
    narrowest: Mapping[str, int] | None = None,
) -> Space:
    """A space from its file, or the default one: `DEFAULT`.

    span: what was measured of each column, the least and the greatest number or all words
    (`Hardware.span`), which the default space keeps to. narrowest: the least `m` and `n` that it
    is for, where tiles may be narrower than the measured ones.

    Raises InputError with all the file's mistakes, each with file, key and value.
    """
    if isinstance(source, Space):
        return source
    if source is None:
        widths = {f"block_{axis}": size for axis, size in (narrowest or {}).items()}
        columns = {name: _measured(name, span or {}, widths) for name in DEFAULT}
        return _space(
            "default", {"columns": columns, "filter": {"where": DEFAULT_WHERE}}, Path("default")
        )
    if not isinstance(source, str | Path):
        raise InputError(f"a space is a file's name or a Space, not {type(source).__name__}")
    path = Path(source)
    return _space(path.stem, parse_toml(read_text(path, KIND), path, KIND), path)


def _measured(name: str, span: Mapping[str, Sequence[Any]], widths: Mapping[str, int]) -> list[Any]:
    """The default values of a column that are in a span; all that are not above it, where a
    problem's width is below it."""
    if name not in span:
        return DEFAULT[name]
    if COLUMNS[name].choices:
        return [*span[name]]
    least, greatest = span[name]
    least = 1 if widths.get(name, least) < least else least
    return [x for x in DEFAULT[name] if least <= x <= greatest] or [span[name][0]]


def _space(name: str, table: Mapping[str, Any], path: Path) -> Space:
    problems: list[str] = []
    refuse = partial(refuse_in, path, problems)
    for key in [key for key in table if key not in SECTIONS]:
        refuse()(key, f"unknown key here{_place(key)}")
    sections = {section: read_section(table, section, refuse()) for section in SECTIONS}
    axes = _axes(sections["columns"], refuse("columns"))
    where = read_where(sections["filter"], FILTER, refuse("filter"))
    if problems:
        raise InputError(dict.fromkeys(problems))
    return Space(name, Product(tuple(axes)), where)


def _axes(table: Mapping[str, Any], refuse: Refuse) -> list[Axis]:
    for key in [key for key in table if key not in KERNEL]:
        refuse(key, f"unknown key here{_place(key)}")
    for name in REQUIRED:
        if name in KERNEL and name not in table:
            refuse(name, f"missing; give it here, such as {name} = 128")
    axes = [column_axis(name, table[name], refuse) for name in KERNEL if name in table]
    return [axis for axis in axes if axis is not None]


def _place(key: str) -> str:
    """Where a key belongs that a space has no place for, or the nearest that it has."""
    if key in ("hardware", "problems", "hardware_parameters", "output"):
        return "; a space holds kernels only: keep [columns] of a kernel, and [filter]"
    if key in PROBLEM:
        return "; it belongs to the problem: give it where the problem is given"
    if key in KERNEL:
        return "; it belongs in [columns]"
    if key == "where":
        return "; it belongs in [filter]"
    return nearest(key, (*SECTIONS, *KERNEL))
