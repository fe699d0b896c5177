"""Closed forms without compilation: NumPy runs the operations that JAX traces.

Compiling the programs of a first call takes seconds, tracing them some tenths. When the time is up
before any compiled program is there, this is what times the kernels of an answer.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from wsjax import engine
from wsjax.engine import Inputs
from wsjax.hardware import Hardware
from wsjax.schema import Configuration

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
    "eq": np.equal,
    "ne": np.not_equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "not": np.invert,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "select_n": lambda which, *cases: np.where(which, cases[-1], cases[0]),
}
"""NumPy's functions for JAX's primitives, by name. Others JAX runs itself, one by one."""


def _broadcast(
    x: np.ndarray, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any
) -> np.ndarray:
    lengths = [1] * len(shape)
    for dimension, length in zip(broadcast_dimensions, x.shape, strict=True):
        lengths[dimension] = length
    return np.broadcast_to(x.reshape(lengths), shape)


SHAPED: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast,
    "bitcast_convert_type": lambda x, new_dtype: x.view(new_dtype),
    "concatenate": lambda *parts, dimension: np.concatenate(parts, axis=dimension),
    "convert_element_type": lambda x, new_dtype, **_: x.astype(new_dtype),
    "integer_pow": lambda x, y: x**y,
    "squeeze": lambda x, dimensions: np.squeeze(x, axis=dimensions),
}
"""The same of primitives with parameters."""
NESTED = ("jaxpr", "call_jaxpr")
"""Parameters of primitives that call a function."""


def closed_forms(c: Configuration, hardware: Hardware) -> dict[str, np.ndarray]:
    """Times and waits of kernels that the machine is taken to run, in µs: NaN where no closed form
    is proved."""
    inputs, rows = engine.columns(c, hardware, legal_override=np.asarray(True))
    with jax.enable_x64(True), np.errstate(all="ignore"):
        traced = _figures.trace(inputs)
        results = _run(traced.jaxpr, jax.tree.leaves(inputs))
    figures = jax.tree.unflatten(jax.tree.structure(traced.out_info), results)
    return {name: np.broadcast_to(np.asarray(x), rows) for name, x in figures.items()}


@jax.jit
def _figures(inputs: Inputs) -> dict[str, Any]:
    def one(i: Inputs) -> dict[str, Any]:
        row = engine.predict_row(i.configuration, i.machine, i.legal)
        p = row.prediction
        figures = {"time_us": p.time_us, "math_wait_us": p.math_wait_us}
        known = {name: jnp.where(row.time_exact, x, jnp.nan) for name, x in figures.items()}
        return known | {"dma_wait_us": jnp.where(row.all_exact, p.dma_wait_us, jnp.nan)}

    return jax.vmap(one, in_axes=(inputs.axes,))(inputs)


def _run(traced: core.ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
    """The results of a traced function."""
    jaxpr = traced.jaxpr
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*traced.consts, *arguments), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    for step in jaxpr.eqns:
        given = [read(atom) for atom in step.invars]
        values.update(zip(step.outvars, _step(step, given), strict=False))
    return [read(atom) for atom in jaxpr.outvars]


def _step(step: core.JaxprEqn, given: Sequence[Any]) -> list[Any]:
    primitive = step.primitive
    for name in NESTED:
        if name in step.params:
            return _run(step.params[name], given)
    if operation := OPERATIONS.get(primitive.name):
        return [operation(*given)]
    if shaped := SHAPED.get(primitive.name):
        return [shaped(*map(np.asarray, given), **step.params)]
    found = primitive.bind(*map(jnp.asarray, given), **step.params)
    return list(map(np.asarray, found if primitive.multiple_results else [found]))
