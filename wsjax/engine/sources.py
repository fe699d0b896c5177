"""The rows of a sweep as the programs take them, made on the device from the rows' numbers."""

from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.engine.inputs import Inputs, Packed, pack, unpack
from wsjax.engine.programs import neutral_names, reason_of
from wsjax.engine.rows import (
    Axes,
    Base,
    Shape,
    assemble,
    axes_of,
    base_of,
    columns_at,
    host,
    over_devices,
    shape_of,
)
from wsjax.hardware import Hardware
from wsjax.schema import COLUMNS, Facts, Product
from wsjax.spec import split

UNSHAPING = ("sms", "cutlass_raster")
SHAPING = ("dtype_in", "dtype_out", *(fact for fact in Facts._fields if fact not in UNSHAPING))
"""What of a problem and its machine decides about legality."""
TRIED_ROWS = 2**20
"""Rows that are tried on a problem whose legality is found once for all problems."""


@partial(jax.jit, static_argnames=("shape",))
def _packed(base: Base, shape: Shape, axes: Axes, numbers) -> Packed:
    """What all rows share stays a scalar, but for m, which says how many rows there are."""
    c, machine = assemble(base, columns_at(shape.names, shape.lengths, axes, numbers))
    c = c._replace(m=jnp.broadcast_to(c.m, numbers.shape))
    return pack(Inputs(c, machine, None))


@partial(jax.jit, static_argnames=("shape",))
def _reasons(base: Base, shape: Shape, axes: Axes, numbers):
    row = columns_at(shape.names, shape.lengths, axes, numbers)
    return jnp.broadcast_to(reason_of(*assemble(base, row)), numbers.shape)


@dataclass(frozen=True, eq=False)
class Source:
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
        own = self.hardware.parameters
        swept = {name: np.zeros(1) for name in own._fields if name in self.product.names}
        return neutral_names(own._replace(**swept))

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

    @cached_property
    def _same(self) -> np.ndarray | None:
        """The reasons of what is tried on any problem, if they are the same on all."""
        outer, inner = split(self.product)
        same = not {*SHAPING} & {*outer.names} - {*outer.constants}
        few = len(inner) <= TRIED_ROWS
        return self._reasons(np.arange(len(inner))) if same and few else None

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
