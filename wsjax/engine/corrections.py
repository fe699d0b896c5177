"""The learned correction of many rows' times: `wsjax.model.residual`, vmapped and compiled."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from wsjax.engine.programs import BRIEF, WIDE, Column, Inputs, Packed, floats, unpack
from wsjax.hardware import Head, out_of_span
from wsjax.model import Machine, correction
from wsjax.schema import Configuration


def learned(head: Head, c: Configuration, machine: Machine, time_us: Column) -> Column:
    """The factor by which a learned correction changes the time of one configuration; 1 outside
    the span that it was fitted to."""
    outside = jnp.bool_(False)
    for name, *known in head.span:
        outside |= out_of_span(name, known, getattr(c, name), machine.facts.sms)
    good = ~outside & (time_us > 0.0) & jnp.isfinite(time_us)
    residual = head.residual
    us = jnp.where(good, time_us, 1.0)
    found = correction(residual.network, residual.inputs, floats(c), machine, us)
    return jnp.where(good, jnp.exp(found.astype(jnp.result_type(float))), 1.0)


def _factors(packed: Packed, times_us: Num[Array, " rows"], head: Head) -> Float[Array, " rows"]:
    """The `learned` factors of a chunk, of times that are alone or the first of a pair; of
    `UNPROVED` ones 1."""
    inputs = unpack(packed)
    axes = (inputs.axes, 0)

    def one(i: Inputs, time_us: Column) -> Column:
        return learned(head, i.configuration, i.machine, time_us)

    return jax.vmap(one, in_axes=axes)(inputs, jnp.real(times_us).astype(float))


factors = jax.jit(_factors, static_argnames="head", compiler_options=WIDE)
factors_of_few = jax.jit(_factors, static_argnames="head", compiler_options=BRIEF)
