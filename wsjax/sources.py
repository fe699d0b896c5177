"""The rows of a sweep as the programs take them, made on the device from the rows' numbers."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.hardware import Hardware
from wsjax.programs import Inputs, neutral_names, reason_of
from wsjax.rows import Base, Shape, assemble, base_of, columns_at, shape_of, values_of
from wsjax.space import COLUMNS, Product


@partial(jax.jit, static_argnames=("shape",))
def _inputs(base: Base, shape: Shape, values, numbers) -> Inputs:
    """What all rows share stays a scalar, but for m, which says how many rows there are."""
    c, machine = assemble(base, columns_at(shape, values, numbers))
    c = c._replace(m=jnp.broadcast_to(c.m, numbers.shape))
    return Inputs(c, machine, False)


@partial(jax.jit, static_argnames=("shape",))
def _reasons(base: Base, shape: Shape, values, numbers):
    return jnp.broadcast_to(
        reason_of(*assemble(base, columns_at(shape, values, numbers))), numbers.shape
    )


@dataclass(frozen=True, eq=False)
class Source:
    """The rows of a product of configuration columns, and of what is swept of a machine."""

    hardware: Hardware
    product: Product

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

    def inputs(self, numbers: np.ndarray) -> Inputs:
        """The rows of these numbers, on the device."""
        with jax.enable_x64(True):
            return _inputs(self.base, self._shape, self._values, numbers)

    def reasons(self, numbers: np.ndarray) -> np.ndarray:
        """Codes into limits.REASONS, 0 for rows that are legal."""
        with jax.enable_x64(True):
            return np.asarray(_reasons(self.base, self._shape, self._values, numbers))

    @cached_property
    def _shape(self) -> Shape:
        return shape_of(self.product)

    @cached_property
    def _values(self) -> Any:
        with jax.enable_x64(True):
            return jax.device_put(values_of(self.product))
