"""The rounds of a fit: several starts, exact predictions in between, and what stays undetermined.

1. Levenberg-Marquardt from several starts on a small sample; the best goes on.
2. Rounds on the whole sample: between them the exact predictions (`fit`'s offsets) and the model's
   own error, from the median residual, are renewed.
3. Parameters that the rows do not determine are held, and the others fitted again: at the start's
   value, or at the neutral one where that fits clearly better.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from wsjax import batch, fit
from wsjax.hardware import Hardware
from wsjax.hardware.sections import unused_key
from wsjax.measured import Measured
from wsjax.parameters import PARAMETERS, Parameters

SIZES = (2_048, 20_480)
"""Samples are filled up to one of these numbers of rows, so that few programs are compiled."""
STARTS = 8
ROUNDS = 3
FIRST_ERROR, LEAST_ERROR = 0.15, 0.003
"""The model's own error (of a logarithm): before the first round, and at least."""
THRESHOLD = 0.5
"""A parameter is held where its spread stays above this part of its prior's."""
CLEARLY = 4.0
"""By how much the cost (a chi square) must fall to leave the start's value for the neutral one."""
ADAPTED_SPREAD = 0.3
"""How far the logarithm of a parameter may lie from that of another machine's calibration."""
NO_EFFECT = 1e-9


class Fit(NamedTuple):
    """Parameters in the order of `PARAMETERS`.

    status: fitted, undetermined or no effect (held), fixed. errors: standard errors of logarithms,
    as if held parameters could be anything that their prior allows, so that one which is only known
    together with a held one says so; `correlation` is theirs. covariance: of the logarithms of the
    fitted ones, the others held. singular_values: of the Jacobian of all free parameters, in units
    of their priors. error: the model's own, of a time's logarithm.
    """

    values: Parameters
    errors: np.ndarray
    correlation: np.ndarray
    covariance: np.ndarray
    status: tuple[str, ...]
    singular_values: np.ndarray
    error: float


def fit_parameters(rows: Measured, start: Hardware, free: Collection[str], seed: int) -> Fit:
    """Fit the parameters `free` of a machine to all of `rows`; the others stay."""
    with jax.enable_x64(True):
        return _fit_parameters(rows, start, free, seed)


def prior_of(start: Hardware, free: Collection[str]) -> fit.Prior:
    """A file's values, or the registry's typical ones where it is neutral.

    A value that a calibration of another machine (or of this one, earlier) is sure of may move by
    `ADAPTED_SPREAD`, whatever its standard error; the others by the registry's spread.
    """
    values = np.asarray(start.parameters, float)
    known = (values > 0) & np.isfinite(values)
    typical = np.asarray([p.typical for p in PARAMETERS.values()])
    spread = np.asarray([p.spread for p in PARAMETERS.values()])
    for position, name in enumerate(PARAMETERS):
        if known[position] and name in start.standard_errors:
            own = np.hypot(start.standard_errors[name], ADAPTED_SPREAD)
            spread[position] = min(spread[position], own)
    chosen = np.asarray([name in free for name in PARAMETERS])
    centre = np.log(np.where(known, np.where(known, values, 1.0), typical))
    return fit.Prior(centre, spread, chosen, values)


def candidates(start: Hardware) -> tuple[str, ...]:
    """All parameters that may be fitted: not the throughput of the basis that is not in use."""
    return tuple(name for name in PARAMETERS if name != unused_key(start.compute_basis))


def _fit_parameters(rows: Measured, start: Hardware, free: Collection[str], seed: int) -> Fit:
    prior = prior_of(start, free)
    z = _best_start(rows, start, prior, seed)
    exact = partial(_exact, rows, start)
    error = FIRST_ERROR
    sample = _sample(rows, start, error)
    offset = np.zeros(len(rows))
    for number in range(ROUNDS):
        if number:
            offset, error = exact(sample, prior, z)
        sample = _sample(rows, start, error, offset)
        z, _ = fit.solve(z, prior, sample)
    status = np.where(prior.free, "fitted", "fixed").astype(object)
    known, silent = _information(rows, prior, sample, z)
    loose = _covariance(known, prior)
    which = np.flatnonzero(prior.free)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(known.only(which).curvature)[::-1], 0))
    for _ in range(ROUNDS):
        held = fit.undetermined(known, np.asarray(prior.free), THRESHOLD)
        if not held.any():
            break
        status[held] = np.where(silent, "no effect", "undetermined")[held]
        prior = _hold(held, z, prior, start, sample)
        z, _ = fit.solve(np.where(prior.free, z, 0.0), prior, sample)
        offset, error = exact(sample, prior, z)
        sample = _sample(rows, start, error, offset)
        z, _ = fit.solve(z, prior, sample)
        known, silent = _information(rows, prior, sample, z)
    covariance = _covariance(known, prior)
    errors = np.sqrt(np.maximum(np.diag(loose), np.diag(covariance)))
    values = Parameters(*np.asarray(prior.values(z)).tolist())
    return Fit(
        values=values,
        errors=np.where(prior.free, errors, 0.0),
        correlation=loose / np.sqrt(np.outer(np.diag(loose), np.diag(loose)).clip(1e-300)),
        covariance=covariance,
        status=tuple(status),
        singular_values=singular,
        error=error,
    )


def _information(
    rows: Measured, prior: fit.Prior, sample: fit.Sample, z: np.ndarray
) -> tuple[fit.Information, np.ndarray]:
    """(what the rows say of parameters at z, which of them have no effect on any row)."""
    residual, jacobian = (np.asarray(x)[: len(rows)] for x in fit.slopes(z, prior, sample))
    silent = np.abs(jacobian).max(axis=0, initial=0) < NO_EFFECT
    return fit.information(residual, jacobian, rows.problem), silent


def _covariance(known: fit.Information, prior: fit.Prior) -> np.ndarray:
    """Of the free parameters' logarithms; 0 for the others."""
    which = np.flatnonzero(prior.free)
    scale = np.asarray(prior.spread)[which]
    covariance = np.zeros_like(known.curvature)
    covariance[np.ix_(which, which)] = known.only(which).covariance() * np.outer(scale, scale)
    return covariance


def _best_start(rows: Measured, start: Hardware, prior: fit.Prior, seed: int) -> np.ndarray:
    """The best of several fits to a few rows, from the prior's centre and around it."""
    chooser = np.random.default_rng(seed)
    few = rows.take(np.sort(chooser.permutation(len(rows))[: SIZES[0]]))
    sample = _sample(few, start, FIRST_ERROR)
    count = len(PARAMETERS)
    starts = [np.zeros(count), *(0.5 * chooser.standard_normal((STARTS - 1, count)))]
    found = [fit.solve(np.where(prior.free, z, 0.0), prior, sample)[0] for z in starts]
    costs = [float(fit.cost(z, prior, sample)) for z in found]
    return found[int(np.nanargmin(costs))]


def _hold(
    held: np.ndarray, z: np.ndarray, prior: fit.Prior, start: Hardware, sample: fit.Sample
) -> fit.Prior:
    """The prior with parameters held at the start's value, or where that contradicts the rows, at
    the neutral one."""
    neutral = np.asarray([p.neutral for p in PARAMETERS.values()])
    own = np.asarray(start.parameters, float)
    for position in np.flatnonzero(held):
        free = np.asarray(prior.free).copy()
        free[position] = False
        trials = []
        for value in dict.fromkeys((own[position], neutral[position])):
            values = np.asarray(prior.held).copy()
            values[position] = value
            trial = prior._replace(free=free, held=values)
            trials.append((float(fit.cost(z, trial, sample)), trial))
        better = len(trials) > 1 and trials[1][0] < trials[0][0] - CLEARLY
        prior = trials[better][1]
    return prior


def _sample(
    rows: Measured, start: Hardware, error: float, offset: np.ndarray | None = None
) -> fit.Sample:
    """Rows as programs take them, filled up with rows of no weight."""
    legal = np.ones(len(rows), dtype=bool)
    inputs, count = batch.columns(rows.configurations, start, legal_override=legal)
    size = next((size for size in SIZES if count <= size), count)
    at = np.minimum(np.arange(size), count - 1)
    weight = 1 / np.hypot(error, rows.noise)
    offset = np.zeros(count) if offset is None else offset
    full = inputs.spread(at)
    used = np.where(np.arange(size) < count, weight[at], 0.0)
    return fit.Sample(full, np.log(rows.time_us)[at], offset[at], used)


def _exact(
    rows: Measured, start: Hardware, sample: fit.Sample, prior: fit.Prior, z: np.ndarray
) -> tuple[np.ndarray, float]:
    """(what exact predictions add to the closed form's logarithms, the model's own error)."""
    values = Parameters(*np.asarray(prior.values(z)).tolist())
    found = exact_times(rows, replace(start, parameters=values))
    formula = np.asarray(fit.log_times(z, prior, sample.inputs))[: len(rows)]
    residual = np.log(found / rows.time_us)
    error = 1.4826 * np.median(np.abs(residual - np.median(residual)))
    return np.log(found) - formula, max(float(error), LEAST_ERROR)


def exact_times(rows: Measured, machine: Hardware) -> np.ndarray:
    """Predicted times of rows that ran, in µs; NaN where the model does not cover them."""
    legal = np.ones(len(rows), dtype=bool)
    return batch.evaluate(rows.configurations, machine, legal_override=legal).time_us
