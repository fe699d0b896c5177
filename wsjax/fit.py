"""Least squares on the logarithms of times: the numeric core of calibration, in float64.

A free parameter p is fitted as z = (log p - centre) / spread, its prior N(0, 1). With
r = log(predicted / measured) of each row and s its standard deviation (the model's own error and
the measurement's noise), Levenberg-Marquardt minimises

    1/N sum_rows h(r / s)^2 + 1/N sum_free z^2,    h(u)^2 = 2 sqrt(1 + u^2) - 2

(pseudo-Huber: a square for small residuals, a line for outliers). Predictions are the closed form's
(`programs.predict_row`); for rows where that is not proved, `offset` = log(exact / closed form) at
the last iterate is added and renewed between rounds, so that residuals are exact where rounds end
and only the slopes of those few rows are the formula's.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from wsjax.parameters import Parameters
from wsjax.programs import Inputs, predict_row

TOLERANCE = 1e-5
"""Relative, and absolute in units of priors' spreads: where a fit ends."""
MAX_STEPS = 60


class Sample(NamedTuple):
    """Rows to fit, as full columns. `weight` is 1/s, 0 for rows that only fill up."""

    inputs: Inputs
    log_time: Any
    offset: Any
    weight: Any


class Prior(NamedTuple):
    """For each parameter the centre and spread of its logarithm, whether it is free, and its
    value where it is not."""

    centre: Any
    spread: Any
    free: Any
    held: Any

    def values(self, z) -> Any:
        """The parameters' values at z."""
        return jnp.where(self.free, jnp.exp(self.centre + self.spread * z), self.held)


def _log_time(z, prior: Prior, row: Inputs):
    """log(µs) of one row by the closed form."""
    machine = row.machine._replace(parameters=Parameters(*prior.values(z)))
    prediction = predict_row(row.configuration, machine, True).prediction
    return jnp.log(prediction.time_us)


@jax.custom_jvp
def _log_times(z, prior: Prior, inputs: Inputs):
    return jax.vmap(lambda row: _log_time(z, prior, row))(inputs)


@_log_times.defjvp
def _(primals, tangents):
    """The whole Jacobian at once: few parameters, many rows, one fused pass."""
    z, prior, inputs = primals

    def slopes(row):
        return jax.jacfwd(_log_time)(z, prior, row)

    return _log_times(z, prior, inputs), jax.vmap(slopes)(inputs) @ tangents[0]


def _misfit(z, prior: Prior, sample: Sample):
    """The rows' residuals in their standard deviations."""
    found = _log_times(z, prior, sample.inputs) + sample.offset
    return (found - sample.log_time) * sample.weight


def _residuals(z, problem: tuple[Prior, Sample]):
    prior, sample = problem
    u = _misfit(z, prior, sample)
    rows = jnp.sum(sample.weight > 0)
    robust = u * jnp.sqrt(2 / (jnp.sqrt(1 + u * u) + 1))
    return jnp.concatenate([robust, jnp.where(prior.free, z, 0.0)]) / jnp.sqrt(rows)


@jax.jit
def cost(z, prior: Prior, sample: Sample):
    """What a fit minimises, times the number of rows."""
    rows = jnp.sum(sample.weight > 0)
    return jnp.sum(_residuals(z, (prior, sample)) ** 2) * rows


@partial(jax.jit, static_argnames="max_steps")
def solve(z, prior: Prior, sample: Sample, max_steps: int = MAX_STEPS):
    """Levenberg-Marquardt from z -> (z, steps). Steps are bounded by damping in prior's units."""
    solver = optx.LevenbergMarquardt(rtol=TOLERANCE, atol=TOLERANCE, norm=optx.rms_norm)
    found = optx.least_squares(
        _residuals, solver, z, (prior, sample), max_steps=max_steps, throw=False
    )
    return found.value, found.stats["num_steps"]


log_times = jax.jit(_log_times)
"""log(µs) of rows by the closed form."""


@jax.jit
def slopes(z, prior: Prior, sample: Sample):
    """(residuals in their standard deviations, their Jacobian for z: one column a parameter)."""
    basis = jnp.eye(len(z))
    residual, push = jax.linearize(lambda z: _misfit(z, prior, sample), z)
    return residual, jax.vmap(push, out_axes=1)(basis)


class Information(NamedTuple):
    """What rows say of parameters in units of their priors: curvature and scores' covariance."""

    curvature: np.ndarray
    scores: np.ndarray

    def only(self, which: np.ndarray) -> "Information":
        """Of these parameters, the others held."""
        return Information(*(x[np.ix_(which, which)] for x in self))

    def covariance(self) -> np.ndarray:
        """The posterior covariance, prior included, in units of the priors' variances.

        The sandwich H^-1 (scores + 1) H^-1 with H = curvature + 1. Rows of one problem are not
        independent of each other, so scores are summed over a problem first.
        """
        one = np.eye(len(self.curvature))
        inverse = np.linalg.inv(self.curvature + one)
        robust = inverse @ (self.scores + one) @ inverse
        floor = np.sqrt(np.maximum(np.diag(inverse) / np.diag(robust), 1.0))
        return robust * floor[:, None] * floor[None, :]


def information(residual: np.ndarray, jacobian: np.ndarray, problem: np.ndarray) -> Information:
    """From `slopes` at a fit's end. `problem`: each row's, as a code."""
    outlier = np.sqrt(1 + residual**2)
    pull = jacobian * (residual / outlier)[:, None]
    scores = np.zeros((problem.max(initial=0) + 1, jacobian.shape[1]))
    np.add.at(scores, problem, pull)
    return Information(jacobian.T @ (jacobian / outlier[:, None]), scores.T @ scores)


def undetermined(known: Information, free: np.ndarray, threshold: float) -> np.ndarray:
    """Which free parameters to hold, so that no direction of the others keeps a spread of
    `threshold` times its prior: each time the one with the largest share in the worst direction.
    """
    held = np.zeros_like(free)
    while (free & ~held).any():
        which = np.flatnonzero(free & ~held)
        variances, directions = np.linalg.eigh(known.only(which).covariance())
        if variances[-1] < threshold**2:
            break
        held[which[np.argmax(np.abs(directions[:, -1]))]] = True
    return held
