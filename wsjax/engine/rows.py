"""Rows of a product from their numbers, on the device: nothing is sent there but the axes.

A row's number is read in the mixed radix of the axes' lengths, the last axis fastest; each digit
picks the values of its axis' columns. `Candidates` holds a product and a machine, and makes what
the programs take (`programs.Packed`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, Int8

from wsjax import kept
from wsjax.engine.programs import Inputs, Packed, neutral_names, pack, reason_of, unpack
from wsjax.hardware import Hardware, Head, Parameters
from wsjax.model import Machine
from wsjax.schema import (
    COLUMNS,
    DEFAULTS,
    DTYPE_BYTES,
    LAYOUTS,
    TMA_BYTES,
    WARPGROUP,
    Configuration,
    Facts,
    Product,
    compiled,
    complete,
)
from wsjax.spec import split

DIVIDING = ("split_k", "scheduler")
"""Columns that may divide output tiles: rows of which neither is given divide none."""
UNSHAPING = ("sms", "cutlass_raster")
SHAPING = ("dtype_in", "dtype_out", *(fact for fact in Facts._fields if fact not in UNSHAPING))
"""What of a problem and its machine decides about legality, but for the alignment of its rows in
memory (`Candidates.deciding`)."""
TRIED_ROWS = 2**20
"""Rows that are tried on a problem whose legality is found once for all problems."""
Numbers = Any
"""Rows' numbers: whole, NumPy's or JAX's, one or an array."""
Columns = Mapping[str, Any]
"""Columns by name: arrays over rows, or numbers that all rows have."""


class Range(NamedTuple):
    """The values of a `range`: start, start + step, …"""

    start: Any
    step: Any


@dataclass(frozen=True)
class Shape:
    """What of a product a program is compiled for: the names and length of each axis that varies.

    Axes of one value are left out; theirs are the product's `constants`.
    """

    names: tuple[tuple[str, ...], ...]
    lengths: tuple[int, ...]


class Axes(NamedTuple):
    """The values of each axis that varies, as programs take them; and the lengths once more, for
    programs that are not compiled for them."""

    values: tuple[tuple[Any, ...], ...]
    lengths: Any


def shape_of(product: Product) -> Shape:
    """The `Shape` of a product."""
    axes = [axis for axis in product.axes if len(axis) > 1]
    return Shape(tuple(axis.names for axis in axes), tuple(map(len, axes)))


def axes_of(product: Product) -> Axes:
    """The `Axes` of a product, on the device."""
    axes = [axis for axis in product.axes if len(axis) > 1]
    values = tuple(
        tuple(
            Range(np.int64(held.start), np.int64(held.step))
            if isinstance(held, range)
            else np.asarray(held)
            for held in axis.values
        )
        for axis in axes
    )
    with jax.enable_x64(True):
        return jax.device_put(Axes(values, tuple(np.int64(len(axis)) for axis in axes)))


def digits(lengths: Sequence[Any], numbers: Numbers) -> list[Numbers]:
    """The position on each axis of the rows of these numbers; NumPy arrays or JAX's."""
    positions = []
    for length in reversed(lengths):
        quotient = numbers // length
        positions.append(numbers - quotient * length)
        numbers = quotient
    return positions[::-1]


def columns_at(
    names: Sequence[tuple[str, ...]], lengths: Sequence[Any], axes: Axes, numbers: Numbers
) -> dict[str, Any]:
    """The columns of the rows of these numbers, as `Product.take` gives those that vary."""
    return {
        name: held.start + held.step * digit if isinstance(held, Range) else held[digit]
        for axis, values, digit in zip(names, axes.values, digits(lengths, numbers), strict=True)
        for name, held in zip(axis, values, strict=True)
    }


def alignment(sizes: np.ndarray) -> np.ndarray:
    """The greatest power of 2 that divides sizes, up to `TMA_BYTES`: all that TMA asks of them."""
    return np.minimum(sizes & -sizes, TMA_BYTES)


def _values(product: Product, name: str) -> np.ndarray:
    """The values of a column; of a range so many that every alignment is among them."""
    for axis in product.axes:
        if name in axis.names:
            values = axis.values[axis.names.index(name)]
            return np.asarray(values[:TMA_BYTES] if isinstance(values, range) else values)
    return np.atleast_1d(DEFAULTS[name])


def lengthened(rows: np.ndarray, length: int) -> np.ndarray:
    """`length` rows, the last one repeated, so that programs of few sizes serve all."""
    return rows if len(rows) == length else rows[np.minimum(np.arange(length), len(rows) - 1)]


def over_devices(rows: Any) -> Any:
    """An array, its rows spread over the devices of this host if there are several and they divide
    them; then each computes its share of what depends on the array row by row."""
    devices = jax.local_devices()
    if len(devices) == 1 or len(rows) % len(devices):
        return rows
    sharding = NamedSharding(Mesh(np.asarray(devices), ("rows",)), PartitionSpec("rows"))
    return jax.device_put(rows, sharding)


def on_one_device(rows: Any, turn: int) -> Any:
    """An array on one of the devices of this host, which take turns."""
    devices = jax.local_devices()
    return rows if len(devices) == 1 else jax.device_put(rows, devices[turn % len(devices)])


@cache
def host() -> Any:
    """The host's processors, for short programs of many small steps, which take an accelerator
    longer; None where JAX was told not to use them."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


class Base(NamedTuple):
    """What all rows share: `columns` of one value, the machine, and of each dtype (an array by its
    code) the bytes of an element and the machine's relative compute throughput."""

    columns: Columns
    facts: Facts
    parameters: Parameters
    sizes: Any
    rates: Any


def base_of(hardware: Hardware, constants: Columns) -> Base:
    """The `Base` of rows on a machine, on the device."""
    whole = {name for name in DIVIDING if constants.get(name) == DEFAULTS[name]}
    base = Base(
        {name: np.asarray(value) for name, value in constants.items() if name not in whole},
        jax.tree.map(np.int64, compiled(hardware.facts)),
        jax.tree.map(np.float64, hardware.parameters),
        np.asarray(DTYPE_BYTES),
        np.asarray(hardware.rates),
    )
    with jax.enable_x64(True):
        return jax.device_put(base)


def assemble(base: Base, columns: Columns) -> tuple[Configuration, Machine]:
    """One row: its configuration, defaults filled in, and the machine that it runs on.

    columns: those that vary, of the configuration and of the machine. The same as
    `schema.resolve` and `batch.columns` make on the host.
    """
    given = {**base.columns, **columns}
    facts = base.facts._replace(**{n: given[n] for n in Facts._fields if n in given})
    swept = {n: given[n] for n in Parameters._fields if n in given}
    c = complete(given, facts, base.sizes)
    if not {*DIVIDING} & {*given}:
        c = c._replace(split_k=None)
    in_bytes, out_bytes = base.sizes[c.dtype_in], base.sizes[c.dtype_out]
    parameters = base.parameters._replace(**swept)
    return c, Machine(facts, parameters, in_bytes, out_bytes, base.rates[c.dtype_in])


@partial(kept.jit, static_argnames=("shape",))
def _packed(base: Base, shape: Shape, axes: Axes, numbers: Int[Array, " rows"]) -> Packed:
    """What all rows share stays a scalar, but for m, which says how many rows there are."""
    c, machine = assemble(base, columns_at(shape.names, shape.lengths, axes, numbers))
    c = c._replace(m=jnp.broadcast_to(c.m, numbers.shape))
    return pack(Inputs(c, machine, None))


@partial(kept.jit, static_argnames=("shape",))
def _reasons(
    base: Base, shape: Shape, axes: Axes, numbers: Int[Array, " rows"]
) -> Int8[Array, " rows"]:
    row = columns_at(shape.names, shape.lengths, axes, numbers)
    return jnp.broadcast_to(reason_of(*assemble(base, row)), numbers.shape)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rows of a product of configuration columns, and of what is swept of a machine; `single`:
    closed forms are to be in float32."""

    hardware: Hardware
    product: Product
    single: bool = False

    @cached_property
    def base(self) -> Base:
        """What all rows share."""
        return base_of(self.hardware, self.product.constants)

    @cached_property
    def neutral(self) -> tuple[str, ...]:
        """Parameters whose terms no row has."""
        parameters = self.hardware.parameters
        swept = {name: np.zeros(1) for name in parameters._fields if name in self.product.names}
        return neutral_names(parameters._replace(**swept))

    @cached_property
    def head(self) -> Head | None:
        """What corrects the times of rows; nothing where the machine is swept."""
        swept = {*Facts._fields, *Parameters._fields} & {*self.product.names}
        return None if swept else self.hardware.head

    @cached_property
    def schedule(self) -> int | None:
        """The schedule of all rows, if they have but one."""
        if "schedule" not in self.product.names:
            return COLUMNS["schedule"].default_number
        constant = self.product.constants.get("schedule")
        return None if constant is None else int(constant)

    def packed(self, numbers: np.ndarray) -> Packed:
        """Rows of these numbers that are legal, on the device."""
        with jax.enable_x64(True):
            return _packed(self.base, self._shape, self._axes, over_devices(numbers))

    def few(self, numbers: np.ndarray) -> Inputs:
        """The same as columns in memory, made by the host."""
        base, axes = self._on_host
        with jax.enable_x64(True):
            return unpack(jax.tree.map(np.asarray, _packed(base, self._shape, axes, numbers)))

    def reasons(self, numbers: np.ndarray) -> np.ndarray:
        """Codes into limits.REASONS, 0 for rows that are legal."""
        if self._same is not None:
            return self._same[numbers % len(self._same)]
        return self._reasons(numbers)

    def deciding(self, given: Columns) -> dict[str, np.ndarray]:
        """What of problems, and of what is swept of the machine, decides about legality, by column:
        where they agree in it, the same rows are legal. Sizes count as far as they are aligned."""
        sizes = {name: alignment(given[name]) for name in self._aligned if name in given}
        layout = ("layout",) if self._aligned else ()
        return {name: given[name] for name in (*SHAPING, *layout) if name in given} | sizes

    @cached_property
    def uniform(self) -> bool:
        """Whether the same of what is tried is legal on every problem, on every machine swept."""
        outer, _ = split(self.product)
        columns = ("layout", *self._aligned) if self._aligned else ()
        decisive = self.deciding({x: _values(outer, x) for x in columns if x in outer.names})
        varying = {*outer.names} - {*outer.constants}
        return not varying & {*SHAPING} and all(np.ptp(x) == 0 for x in decisive.values())

    @cached_property
    def _aligned(self) -> tuple[str, ...]:
        """The sizes on whose alignment legality depends; none where TMA takes all of them."""
        if self.hardware.facts.mma_warps < WARPGROUP and "mma_warps" not in self.product.names:
            return ()
        a_across = np.any(_values(self.product, "layout") >= LAYOUTS.index("tn"))
        names = ("m", "n", "k") if a_across else ("n", "k")
        sizes = [alignment(_values(self.product, name)) for name in names]
        return names if any(np.any(x < TMA_BYTES) for x in sizes) else ()

    @cached_property
    def _same(self) -> np.ndarray | None:
        """The reasons of what is tried on any problem, if they are the same on all."""
        _, inner = split(self.product)
        few = len(inner) <= TRIED_ROWS
        return self._reasons(np.arange(len(inner))) if self.uniform and few else None

    def _reasons(self, numbers: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(_reasons(self.base, self._shape, self._axes, numbers))

    @cached_property
    def _on_host(self) -> tuple[Base, Axes]:
        with jax.enable_x64(True):
            return jax.device_put((self.base, self._axes), host())

    @cached_property
    def _shape(self) -> Shape:
        return shape_of(self.product)

    @cached_property
    def _axes(self) -> Axes:
        return axes_of(self.product)
