"""The learned correction of times and of their bounds: `wsjax.model.residual`, compiled."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from wsjax import kept
from wsjax.engine.programs import WIDE, Column, Inputs, Packed, floats, in_single, unpack
from wsjax.hardware import Head, out_of_span
from wsjax.model import (
    Machine,
    closed_form,
    correction,
    exchange_us,
    isolated,
    kernel,
    lower_bound,
    queued,
)
from wsjax.schema import Configuration, divided

SINGLE = 1e-4
"""Relative: more than two programs may differ in a correction, which is computed in float32."""
BLOCK = 8_192
"""Rows whose hidden layers a CPU's cache holds."""


def learned(head: Head, c: Configuration, machine: Machine, time_us: Column) -> Column:
    """The factor by which a learned correction changes the time of one configuration; 1 outside
    the span that it was fitted to."""
    outside, whole = jnp.bool_(False), divided(c)
    for name, *known in head.span:
        outside |= out_of_span(name, known, getattr(whole, name), machine.facts.sms)
    good = ~outside & (time_us > 0.0) & jnp.isfinite(time_us)
    residual = head.residual
    us = jnp.where(good, time_us, 1.0)
    seen = in_single((floats(c), machine, us))
    found = correction(residual.network, residual.inputs, *seen)
    return jnp.where(good, jnp.exp(found.astype(jnp.result_type(float))), 1.0)


def factor_of(i: Inputs, time_us: Column, head: Head) -> Column:
    """The `learned` factor of one row; of an `UNPROVED` time 1."""
    return learned(head, i.configuration, i.machine, time_us)


@partial(kept.jit, static_argnames=("head",), compiler_options=WIDE)
def factors(packed: Packed, times_us: Num[Array, " rows"], head: Head) -> Float[Array, " rows"]:
    """The `learned` factors of a chunk, of times that are alone or the first of a pair; of
    `UNPROVED` ones 1."""

    def one(row: Any) -> Column:
        columns, time_us = row
        return factor_of(unpack(replace(packed, columns=columns)), time_us, head)

    rows = packed.columns, jnp.real(times_us).astype(float)
    if jax.default_backend() == "cpu":
        return jax.lax.map(one, rows, batch_size=min(BLOCK, len(times_us)))
    return jax.vmap(one)(rows)


class Bracket(NamedTuple):
    """Two times between which a row's lies before its learned correction; one and the same where
    the closed form is exact."""

    least_us: Any
    most_us: Any
    exact: Any


def bracket(c: Configuration, machine: Machine) -> Bracket:
    """Bounds of one legal configuration's time: where no formula is proved, a path that exists, and
    its tiles one after the other, as `serial` runs them."""
    timed = kernel(floats(c), machine)
    p = timed.full
    outcome, exact, _ = closed_form(p)
    tile = isolated(p._replace(tiles=1.0))[0]
    apart = queued(p, tile._replace(end_us=tile.end_us * p.tiles))
    rest_us = timed.launch_us + exchange_us(timed.full, timed.first, timed.last)
    return Bracket(
        rest_us + jnp.where(exact, outcome.end_us, lower_bound(p)),
        rest_us + jnp.where(exact, outcome.end_us, apart.end_us),
        exact,
    )
