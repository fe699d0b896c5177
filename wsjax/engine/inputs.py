"""What rows' predictions depend on, and the same as the few arrays that a program is called with.

A column that is constant stays a scalar and costs nothing a row; the set of such columns, never the
number of rows, makes a program. But a call takes as long as its arrays are many, and a machine
alone has fifty numbers: so programs take their scalars in two arrays.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Int

from wsjax.model import Machine
from wsjax.schema import Configuration


class Inputs(NamedTuple):
    """What a row's prediction depends on; each leaf an array over the rows or a scalar.

    legal: whether the row is legal whatever `limits` says; None where it was found to be.
    """

    configuration: Configuration
    machine: Machine
    legal: Any

    @property
    def axes(self) -> "Inputs":
        """vmap's in_axes: 0 for the columns that vary."""
        return jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, self)

    def take(self, rows: Any) -> "Inputs":
        """The columns at `rows` (a slice or an index array); scalars stay."""
        return jax.tree.map(lambda x: x[rows] if np.ndim(x) else x, self)

    def spread(self, rows: Int[np.ndarray, " rows"]) -> "Inputs":
        """The columns at `rows`, scalars repeated, so that every queue has one form."""
        return jax.tree.map(lambda x: x[rows] if np.ndim(x) else np.full(len(rows), x), self)


class Layout(NamedTuple):
    """How `Inputs` lie in arrays: their tree, and each leaf's type if it is a scalar."""

    tree: Any
    scalars: tuple[np.dtype | None, ...]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("columns", "floats", "whole"),
    meta_fields=("layout",),
)
@dataclass(frozen=True)
class Packed:
    """`Inputs` as columns and two arrays of scalars: float64, and whole numbers as int64."""

    columns: tuple[Any, ...]
    floats: Any
    whole: Any
    layout: Layout


def pack(inputs: Inputs) -> Packed:
    """The inputs as few arrays, in a program or as numpy's."""
    leaves, tree = jax.tree.flatten(inputs)
    types = tuple(None if np.ndim(x) else np.dtype(getattr(x, "dtype", type(x))) for x in leaves)
    kinds = [None if dtype is None else dtype.kind == "f" for dtype in types]
    columns, floats, whole = (
        [x for x, kind in zip(leaves, kinds, strict=True) if kind is wanted]
        for wanted in (None, True, False)
    )
    array = jnp.asarray if any(isinstance(x, Tracer) for x in floats + whole) else np.asarray
    return Packed(
        tuple(columns),
        array(floats, dtype=np.float64),
        array(whole, dtype=np.int64),
        Layout(tree, types),
    )


def unpack(packed: Packed) -> Inputs:
    """The inputs again."""
    columns, floats, whole = iter(packed.columns), iter(packed.floats), iter(packed.whole)
    leaves = [
        next(columns)
        if dtype is None
        else next(floats if dtype.kind == "f" else whole).astype(dtype)
        for dtype in packed.layout.scalars
    ]
    return jax.tree.unflatten(packed.layout.tree, leaves)
