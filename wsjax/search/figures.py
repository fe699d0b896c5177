"""What each kernel takes on one problem: exact where a formula is proved, else a lower bound.

One compiled program serves both, and gives the pipelines of the kernels beside them. Those of the
kernels whose bound does not settle the matter go through the recurrences by jumps (`periodic`) and,
where these do not finish, step by step (`events`); most problems need neither.
"""

from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import engine
from wsjax.engine import (
    SIZES,
    WIDE,
    Inputs,
    counted,
    floats,
    lengthened,
    neutral_names,
    outcomes,
    pieces,
    size_of,
    without,
)
from wsjax.hardware import Hardware
from wsjax.model import (
    PINGPONG,
    Outcome,
    Pipeline,
    exchange_us,
    isolate,
    kernel,
    lower_bound,
    slopes,
)
from wsjax.model import closed_form as closed
from wsjax.schema import Configuration
from wsjax.search.objectives import ROUNDING

CHUNKS = (8_192, 65_536)
"""How many kernels a program takes at once."""


class Figures(NamedTuple):
    """Kernels' times (float64, µs, inf where there is none), and whether each kernel's are exact;
    if not, its exact ones are not below those that stand there."""

    time_us: np.ndarray
    math_wait_us: np.ndarray
    dma_wait_us: np.ndarray
    exact: np.ndarray


class _Rows(NamedTuple):
    """What the program says of kernels. timed: time_us and math_wait_us are exact; settled:
    dma_wait_us is too. The end of a kernel's `pipeline`, and `exchange_us`, follow the launch."""

    time_us: Any
    math_wait_us: Any
    dma_wait_us: Any
    timed: Any
    settled: Any
    pipeline: Pipeline
    launch_us: Any
    exchange_us: Any


def figures(
    c: Configuration, hardware: Hardware, size: int, *, waits: bool = False, solve: bool = False
) -> Figures:
    """The figures of kernels, legal or not. At least one field of `c` is an array.

    size: how many go through the program at once, of `CHUNKS`; the least has one program for all
    machines and spaces. waits: only if dma_wait_us is exact
    do figures count as exact. solve: make all of them exact.
    """
    inputs, rows = engine.columns(c, hardware)
    few = size == CHUNKS[0]
    neutral = () if few else neutral_names(inputs.machine.parameters)
    found = Figures(np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows, bool))
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        at = np.minimum(np.arange(start, start + size), stop - 1)
        part = inputs.spread(at) if few else inputs.take(at)
        with jax.enable_x64(True):
            new: _Rows = _rows(part, neutral)
            own = _figures(new, waits)
            left = np.flatnonzero(~own.exact[: stop - start] & solve)
            if len(left):
                _solve(jax.tree.map(np.asarray, new), own, left)
        for column, values in zip(found, own, strict=True):
            column[start:stop] = values[: stop - start]
    return found


def _figures(rows: _Rows, waits: bool) -> Figures:
    return Figures(
        _known(rows.time_us),
        _known(rows.math_wait_us),
        _known(rows.dma_wait_us),
        np.array(rows.settled if waits else rows.timed),
    )


def _known(values: Any) -> np.ndarray:
    return np.where(np.isnan(values), np.inf, values)


@partial(jax.jit, static_argnames="neutral", compiler_options=WIDE)
def _rows(inputs: Inputs, neutral: tuple[str, ...]) -> _Rows:
    def one(i: Inputs) -> _Rows:
        whole = kernel(floats(i.configuration), without(i.machine, neutral))
        p, exchanged_us = whole.full, exchange_us(whole.full, whole.first, whole.last)
        outcome, timed, settled = closed(p)
        least_us = lower_bound(p)
        return _Rows(
            whole.launch_us + (jnp.where(timed, outcome.end_us, least_us) + exchanged_us),
            jnp.where(timed, outcome.math_wait_us, _least_wait_us(p, least_us)),
            jnp.where(settled, outcome.dma_wait_us, 0.0),
            timed,
            settled,
            counted(p),
            whole.launch_us,
            exchanged_us,
        )

    return jax.vmap(one, in_axes=(inputs.axes,))(inputs)


def _least_wait_us(pipeline: Pipeline, end_us: jax.Array) -> jax.Array:
    """What MATH waits at least in a run that does not end before `end_us`.

    It waits when it neither computes nor stores. Ping-pong's stores hide under the other group's
    mainloops but for the last, if they are no longer than these; else the first load is waited for.
    """
    once, repeats = isolate(pipeline)
    p, steps = once, once.k_tiles * once.tiles
    pingpong = p.schedule == PINGPONG
    stores_us = p.epilogue_us * jnp.where(pingpong, 1.0, p.tiles)
    wait_us = end_us * (1.0 - ROUNDING) - (steps * p.compute_us + stores_us) * repeats
    hidden = (p.epilogue_us <= p.k_tiles * p.compute_us) | (p.tiles <= 2)
    first_us = (slopes(p).landing + p.load_latency_us) * repeats
    return jnp.maximum(jnp.where(pingpong & ~hidden, first_us, wait_us), 0.0)


def _solve(rows: _Rows, found: Figures, left: np.ndarray) -> None:
    """Put the exact figures of the rows `left` in their places."""
    for own in pieces(left, SIZES[-1]):
        queue = jax.tree.map(itemgetter(lengthened(own, size_of(len(own)))), rows.pipeline)
        outcome, _ = outcomes(queue, len(own))
        _put(rows, found, own, Outcome(*(column[: len(own)] for column in outcome)))


def _put(rows: _Rows, found: Figures, at: np.ndarray, outcome: Outcome) -> None:
    timed = rows.timed[at]
    time_us = rows.launch_us[at] + (outcome.end_us + rows.exchange_us[at])
    found.time_us[at] = np.where(timed, found.time_us[at], time_us)
    found.math_wait_us[at] = np.where(timed, found.math_wait_us[at], outcome.math_wait_us)
    found.dma_wait_us[at] = outcome.dma_wait_us
    found.exact[at] = True
