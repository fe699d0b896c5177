"""Rows from their numbers, on the device: nothing is sent there but the axes of the product.

A row's number is read in the mixed radix of the axes' lengths, the last axis fastest; each digit
picks the values of its axis' columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from wsjax.hardware import Hardware, Parameters
from wsjax.model import Machine
from wsjax.schema import (
    COLUMNS,
    DTYPE_BYTES,
    DTYPES,
    SCHEDULES,
    Configuration,
    Facts,
    Product,
    deepest_stages,
)

Columns = Mapping[str, Any]


class Steps(NamedTuple):
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
            Steps(np.int64(held.start), np.int64(held.step))
            if isinstance(held, range)
            else np.asarray(held)
            for held in axis.values
        )
        for axis in axes
    )
    with jax.enable_x64(True):
        return jax.device_put(Axes(values, tuple(np.int64(len(axis)) for axis in axes)))


def digits(lengths: Sequence[Any], numbers) -> list[Any]:
    """The position on each axis of the rows of these numbers; NumPy arrays or JAX's."""
    found = []
    for length in reversed(lengths):
        quotient = numbers // length
        found.append(numbers - quotient * length)
        numbers = quotient
    return found[::-1]


def columns_at(
    names: Sequence[tuple[str, ...]], lengths: Sequence[Any], axes: Axes, numbers
) -> dict[str, Any]:
    """The columns of the rows of these numbers, as `Product.take` gives those that vary."""
    return {
        name: held.start + held.step * digit if isinstance(held, Steps) else held[digit]
        for axis, values, digit in zip(names, axes.values, digits(lengths, numbers), strict=True)
        for name, held in zip(axis, values, strict=True)
    }


def lengthened(rows: np.ndarray, length: int) -> np.ndarray:
    """`length` rows, the last one repeated, so that programs of few sizes serve all."""
    return rows if len(rows) == length else rows[np.minimum(np.arange(length), len(rows) - 1)]


def over_devices(rows):
    """An array, its rows spread over the devices of this host if there are several and they divide
    them; then each computes its share of what depends on the array row by row."""
    devices = jax.local_devices()
    if len(devices) == 1 or len(rows) % len(devices):
        return rows
    sharding = NamedSharding(Mesh(np.asarray(devices), ("rows",)), PartitionSpec("rows"))
    return jax.device_put(rows, sharding)


def on_one_device(rows, turn: int):
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
    """What all rows share: `columns` of one value, the machine, bytes and rates of its dtypes."""

    columns: Columns
    facts: Facts
    parameters: Parameters
    sizes: Any
    rates: Any


def base_of(hardware: Hardware, constants: Columns) -> Base:
    """The `Base` of rows on a machine, on the device."""
    rates = [hardware.compute_ratio.get(name, 0.0) for name in DTYPES]
    base = Base(
        {name: np.asarray(value) for name, value in constants.items()},
        jax.tree.map(np.int64, hardware.facts),
        jax.tree.map(np.float64, hardware.parameters),
        np.asarray(DTYPE_BYTES),
        np.asarray(rates),
    )
    with jax.enable_x64(True):
        return jax.device_put(base)


def assemble(base: Base, columns: Columns) -> tuple[Configuration, Machine]:
    """One row: its configuration, defaults filled in, and the machine that it runs on.

    columns: those that vary, of the configuration and of the machine. The same as `frame.resolve`
    and `batch.columns` make on the host.
    """
    given = {**base.columns, **columns}
    facts = base.facts._replace(**{n: given[n] for n in Facts._fields if n in given})
    swept = {n: given[n] for n in Parameters._fields if n in given}
    for name, column in COLUMNS.items():
        if column.default_number is not None:
            given.setdefault(name, np.int64(column.default_number))
    two_groups = given["schedule"] >= SCHEDULES.index("pingpong")
    given.setdefault("math_warps", jnp.where(two_groups, np.int64(8), np.int64(4)))
    in_bytes, out_bytes = base.sizes[given["dtype_in"]], base.sizes[given["dtype_out"]]
    if "stages" not in given:
        blocks = (given["block_m"], given["block_n"], given["block_k"])
        given["stages"] = jnp.maximum(deepest_stages(*blocks, in_bytes, out_bytes, facts), 1)
    machine = Machine(
        facts, base.parameters._replace(**swept), in_bytes, out_bytes, base.rates[given["dtype_in"]]
    )
    return Configuration(*(given[name] for name in COLUMNS)), machine
