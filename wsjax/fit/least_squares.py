"""Least squares on the logarithms of times: the numeric core of calibration, in float64.

A free parameter p is fitted as z = (log p - centre) / spread, its prior N(0, 1); one that is at
most c by its log odds, log p / (c - p), in place of log p, so that it stays below. With
r = log(predicted / measured) of each row and s its standard deviation (the model's own error and
the measurement's noise), Levenberg-Marquardt minimises

    1/N sum_rows h(r / s)^2 + 1/N sum_free z^2,    h(u)^2 = 2 sqrt(1 + u^2) - 2

(pseudo-Huber: a square for small residuals, a line for outliers). Predictions are the closed form's
(`programs.predict_row`); for rows where that is not proved, `offset` = log(exact / closed form) at
the last iterate is added and renewed between rounds, so that residuals are exact where rounds end
and only the slopes of those few rows are the formula's.

One compiled program gives the logarithms of a chunk of rows and their slopes, in forward mode (few
parameters, many rows). Between its calls optimistix takes a step on an equivalent problem of a few
rows, (rho, R) with R'R = J'J and R'rho = J'h, so that no program depends on the number of rows.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from wsjax.engine import Inputs, predict_row
from wsjax.hardware import Parameters

CHUNK, FEW = 2_048, 256
"""Rows of a compiled program; of one for tables that have no more than two of the small ones."""
MAX_STEPS = 60
LEAST_GAIN = 1e-4
"""A fit ends with the step that lowers the cost by less than this part."""
MOST_REFUSED = 6
"""Or after so many steps in a row that do not lower it."""


class Sample(NamedTuple):
    """Rows to fit, in chunks. `weight` is 1/s."""

    chunks: list[Inputs]
    log_time: np.ndarray
    offset: np.ndarray
    weight: np.ndarray


class Prior(NamedTuple):
    """For each parameter the centre and spread of its logarithm, whether it is free, its value
    where it is not, and the most it can be: where that is finite, centre and spread are those of
    the log odds."""

    centre: np.ndarray
    spread: np.ndarray
    free: np.ndarray
    held: np.ndarray
    ceiling: np.ndarray

    def values(self, z: Any) -> Any:
        """The parameters' values at z."""
        return jnp.where(self.free, self.unheld(z), self.held)

    def unheld(self, z: Any) -> Any:
        """The values at z as if all were free."""
        bounded, x = jnp.isfinite(self.ceiling), self.centre + self.spread * z
        below = jnp.where(bounded, self.ceiling, 1.0) * jax.nn.sigmoid(x)
        return jnp.where(bounded, below, jnp.exp(jnp.where(bounded, 0.0, x)))

    def log_spread(self, z: Any) -> np.ndarray:
        """By how much the logarithms of the values at z grow with z."""
        share = np.where(np.isfinite(self.ceiling), np.asarray(self.unheld(z)) / self.ceiling, 0.0)
        return self.spread * (1.0 - share)


def sample(inputs: Inputs, time_us: np.ndarray, offset: np.ndarray, weight: np.ndarray) -> Sample:
    """Rows of full columns as chunks; the last one repeats its last row."""
    rows = len(time_us)
    size = FEW if rows <= 2 * FEW else CHUNK
    starts = range(0, rows, size)
    chunks = [inputs.spread(np.minimum(np.arange(s, s + size), rows - 1)) for s in starts]
    return Sample(chunks, np.log(time_us), offset, weight)


@jax.jit
def _chunk(z, prior: Prior, inputs: Inputs):
    """(log times, their slopes for z) of a chunk's rows."""

    def log_time(z, row: Inputs):
        machine = row.machine._replace(parameters=Parameters(*prior.values(z)))
        return jnp.log(predict_row(row.configuration, machine, True).prediction.time_us)

    def both(row: Inputs):
        def along(direction):
            return jax.jvp(lambda z: log_time(z, row), (z,), (direction,))

        return jax.vmap(along, out_axes=(None, 0))(jnp.eye(len(z)))

    return jax.vmap(both)(inputs)


def log_times(z: np.ndarray, prior: Prior, rows: Sample) -> tuple[np.ndarray, np.ndarray]:
    """The closed form's log times (offsets not added) and their slopes for z, row by row."""
    found = [_chunk(z, prior, chunk) for chunk in rows.chunks]
    parts = zip(*[(np.asarray(value), np.asarray(slope)) for value, slope in found], strict=True)
    value, slope = (np.concatenate(part)[: len(rows.log_time)] for part in parts)
    return value, slope


def misfit(z: np.ndarray, prior: Prior, rows: Sample) -> tuple[np.ndarray, np.ndarray]:
    """The rows' residuals in their standard deviations, and the slopes of these."""
    value, slope = log_times(z, prior, rows)
    residual = (value + rows.offset - rows.log_time) * rows.weight
    return residual, slope * rows.weight[:, None]


def cost(z: np.ndarray, prior: Prior, rows: Sample) -> float:
    """What a fit minimises, times the number of rows: comparable to a chi square."""
    u, _ = misfit(z, prior, rows)
    return float(np.sum(2 * np.sqrt(1 + u * u) - 2) + np.sum(z[prior.free] ** 2))


def _compressed(z: np.ndarray, prior: Prior, rows: Sample) -> tuple[np.ndarray, np.ndarray]:
    """(rho, R) of the robust residuals and the priors': as many rows as parameters, and one more
    for what no step can change."""
    u, slope = misfit(z, prior, rows)
    bend = np.sqrt(1 + u * u)
    robust = u * np.sqrt(2 / (bend + 1))
    slope = slope * (np.where(u == 0, 1.0, u / np.where(u == 0, 1.0, robust)) / bend)[:, None]
    prior_part = np.where(prior.free, z, 0.0)
    gram = slope.T @ slope + np.eye(len(z))
    pull = slope.T @ robust + prior_part
    total = robust @ robust + prior_part @ prior_part
    root = np.linalg.cholesky(gram)
    rho = np.linalg.solve(root, pull)
    rest = np.sqrt(max(total - rho @ rho, 0.0))
    scale = 1 / np.sqrt(len(u))
    return np.append(rho, rest) * scale, np.vstack([root.T, np.zeros(len(z))]) * scale


def _linear(z, args):
    """The compressed residuals around the point where they were taken, which is where optimistix
    looks at them."""
    at, rho, root = args
    return rho + root @ (z - at), None


def _around(z, prior: Prior, rows: Sample):
    """What `_linear` needs at z."""
    rho, root = _compressed(np.asarray(z), prior, rows)
    return z, jnp.asarray(rho), jnp.asarray(root)


_OPTIONS = {"jac": "bwd"}


@lru_cache
def _solver() -> Any:
    return optx.LevenbergMarquardt(rtol=1e-8, atol=1e-8)


@eqx.filter_jit
def _step(z, state, args):
    return _solver().step(_linear, z, args, _OPTIONS, state, frozenset())[:2]


def solve(z: np.ndarray, prior: Prior, rows: Sample, max_steps: int = MAX_STEPS) -> np.ndarray:
    """Levenberg-Marquardt from z; damping, in units of the priors, bounds its steps."""
    found = jnp.asarray(z)
    args = _around(found, prior, rows)
    shapes = jax.eval_shape(_linear, found, args)
    state = _solver().init(_linear, found, args, _OPTIONS, *shapes, frozenset())
    best, refused = np.inf, 0
    for _ in range(max_steps):
        loss = float(jnp.sum(args[1] ** 2))
        found, state = _step(found, state, args)
        lowered = loss < best
        refused = 0 if lowered else refused + 1
        done = lowered and best - loss < LEAST_GAIN * loss
        best = min(best, loss)
        if done or refused > MOST_REFUSED:
            break
        args = _around(state.y_eval, prior, rows)
    return np.asarray(found)
