"""The learned correction of times and of their bounds: `wsjax.model.residual`, compiled."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from wsjax.engine.programs import BRIEF, WIDE, Column, Inputs, Packed, floats, unpack
from wsjax.hardware import LIMIT, Head, out_of_span
from wsjax.model import Machine, closed_form, correction, exchange_us, isolated, kernel, lower_bound
from wsjax.schema import Configuration, divided

SINGLE = 1e-5
"""Relative: more than two programs may differ in a correction, which is computed in float32."""


def learned(head: Head, c: Configuration, machine: Machine, time_us: Column) -> Column:
    """The factor by which a learned correction changes the time of one configuration; 1 outside
    the span that it was fitted to."""
    outside, whole = jnp.bool_(False), divided(c)
    for name, *known in head.span:
        outside |= out_of_span(name, known, getattr(whole, name), machine.facts.sms)
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


class Bracket(NamedTuple):
    """Two times between which a row's lies; one and the same where the closed form is exact."""

    least_us: Any
    most_us: Any


def bracket(c: Configuration, machine: Machine, head: Head | None) -> Bracket:
    """Bounds of one legal configuration's time: where no formula is proved, a path that exists, and
    its tiles one after the other, as `serial` runs them, each with the most that a learned
    correction may change."""
    timed = kernel(floats(c), machine)
    p = timed.full
    outcome, exact, _ = closed_form(p)
    apart_us = isolated(p._replace(tiles=1.0))[0].end_us * p.tiles
    rest_us = timed.launch_us + exchange_us(timed.full, timed.first, timed.last)
    least_us = rest_us + jnp.where(exact, outcome.end_us, lower_bound(p))
    apart_us = apart_us if p.queue_end_us is None else jnp.maximum(apart_us, p.queue_end_us)
    most_us = rest_us + jnp.where(exact, outcome.end_us, apart_us)
    if head is None:
        return Bracket(least_us, most_us)
    factor = learned(head, c, machine, least_us)
    return Bracket(
        least_us * jnp.where(exact, factor * (1.0 - SINGLE), math.exp(-LIMIT)),
        most_us * jnp.where(exact, factor * (1.0 + SINGLE), math.exp(LIMIT)),
    )
