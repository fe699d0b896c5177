"""The rounds of a fit: several starts, exact predictions in between, and what stays undetermined.

0. Of few rows: how far priors let parameters go, or that nothing is fitted (`shrinkage`).
1. Levenberg-Marquardt from several starts on a small sample; the best goes on.
2. Rounds on the whole sample: between them the exact predictions (`fit`'s offsets) and the model's
   own error, from the median residual, are renewed.
3. Parameters that the rows do not determine are held (`priors.hold`), and the others fitted again.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from wsjax import engine
from wsjax.fit import identify, priors, shrinkage
from wsjax.fit import least_squares as fit
from wsjax.fit.measured import Measured
from wsjax.hardware import PARAMETERS, Hardware, Parameters

START_ROWS = 2_048
STARTS = 4
ROUNDS = 3
FIRST_ERROR, LEAST_ERROR = 0.15, 0.003
"""The model's own error (of a logarithm): before the first round, and at least."""
THRESHOLD = 0.5
"""A parameter is held where its spread stays above this part of its prior's."""
NO_EFFECT = 1e-9
NEARBY, NEIGHBOURS = 2.0, 2
"""Where else a parameter must be determined: so many standard errors away, in so many directions
and their opposites."""


class Fit(NamedTuple):
    """Parameters in the order of `PARAMETERS`.

    status: fitted, undetermined or no effect (held), fixed. errors: standard errors of logarithms,
    as if held parameters could be anything that their prior allows, so that one which is only known
    together with a held one says so; `correlation` is theirs. covariance: of the logarithms of the
    fitted ones, the others held. singular_values: of the Jacobian of all free parameters, in units
    of their priors. error: the model's own, of a time's logarithm. predicted_error: what errors of
    parameters add, in the median. degrees: how many of freedom the fit has used.
    """

    values: Parameters
    errors: np.ndarray
    correlation: np.ndarray
    covariance: np.ndarray
    status: tuple[str, ...]
    singular_values: np.ndarray
    error: float
    predicted_error: float
    degrees: float


def fit_parameters(rows: Measured, start: Hardware, free: Collection[str], seed: int) -> Fit:
    """Fit the parameters `free` of a machine to all of `rows`; the others stay."""
    with jax.enable_x64(True):
        return _fit_parameters(rows, start, free, seed)


def _fit_parameters(rows: Measured, start: Hardware, free: Collection[str], seed: int) -> Fit:
    prior = priors.prior_of(start, free)
    centre = np.zeros(len(PARAMETERS))
    sample = sample_of(rows, start, FIRST_ERROR, np.zeros(len(rows)))
    if len(rows) <= shrinkage.MOST_ROWS:
        sample, _ = renewed(rows, start, sample, prior, centre)
        sample = sample._replace(weight=1 / np.hypot(FIRST_ERROR, rows.noise))
        started_us = exact_times(rows, start)
        scale = shrinkage.scale_of(rows, prior, sample, started_us, calibrated=start.calibrated)
        if not scale:
            return _unfitted(rows, start, prior)
        prior = prior._replace(spread=prior.spread * scale)
    z = _best_start(rows, start, prior, seed)
    error, offset = FIRST_ERROR, np.zeros(len(rows))
    sample = sample_of(rows, start, error, offset)
    for number in range(ROUNDS):
        if number:
            sample, error = renewed(rows, start, sample, prior, z)
        z = fit.solve(z, prior, sample)
    status = np.where(prior.free, "fitted", "fixed").astype(object)
    known, slopes = _information(rows, prior, sample, z)
    loose, degrees = _covariance(known, prior, z), identify.degrees(slopes * sample.weight[:, None])
    which = np.flatnonzero(prior.free)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(known.only(which).curvature)[::-1], 0))
    for _ in range(ROUNDS):
        held = _open(rows, prior, sample, z, known, seed)
        if not held.any():
            break
        silent = np.abs(slopes).max(axis=0, initial=0) < NO_EFFECT
        status[held] = np.where(silent, "no effect", "undetermined")[held]
        prior = priors.hold(held, z, prior, sample)
        z = fit.solve(np.where(prior.free, z, 0.0), prior, sample)
        sample, error = renewed(rows, start, sample, prior, z)
        z = fit.solve(z, prior, sample)
        known, slopes = _information(rows, prior, sample, z)
    covariance = _covariance(known, prior, z)
    errors = np.sqrt(np.maximum(np.diag(loose), np.diag(covariance)))
    slopes = slopes / prior.log_spread(z)
    predicted = np.sqrt(np.einsum("ri,ij,rj->r", slopes, covariance, slopes))
    values = Parameters(*np.asarray(prior.values(z)).tolist())
    return Fit(
        values=values,
        errors=np.where(prior.free, errors, 0.0),
        correlation=loose / np.sqrt(np.outer(np.diag(loose), np.diag(loose)).clip(1e-300)),
        covariance=covariance,
        status=tuple(status),
        singular_values=singular,
        error=error,
        predicted_error=float(np.median(predicted)),
        degrees=degrees,
    )


def _unfitted(rows: Measured, start: Hardware, prior: fit.Prior) -> Fit:
    """The start as it is: no fit predicts problems that it has not seen better."""
    count = len(PARAMETERS)
    error = np.log(exact_times(rows, start) / rows.time_us)
    return Fit(
        values=start.parameters,
        errors=np.zeros(count),
        correlation=np.zeros((count, count)),
        covariance=np.zeros((count, count)),
        status=tuple("undetermined" if free else "fixed" for free in prior.free),
        singular_values=np.zeros(int(prior.free.sum())),
        error=max(float(1.4826 * np.median(np.abs(error))), LEAST_ERROR),
        predicted_error=0.0,
        degrees=0.0,
    )


def _open(
    rows: Measured,
    prior: fit.Prior,
    sample: fit.Sample,
    z: np.ndarray,
    known: identify.Information,
    seed: int,
) -> np.ndarray:
    """Which parameters the rows do not determine, at z or near it.

    A model of maxima has kinks: a rate that must only be fast enough not to bind may end where it
    just begins to, and seem to be known. Within two standard errors it no longer is.
    """
    held = identify.undetermined(known, prior.free, THRESHOLD, _narrowed(prior, z))
    which = np.flatnonzero(prior.free & ~held)
    reach = np.zeros_like(z)
    reach[which] = NEARBY * np.sqrt(np.diag(known.only(which).covariance()))
    chooser = np.random.default_rng(seed)
    for _ in range(NEIGHBOURS):
        step = reach * chooser.choice([-1.0, 1.0], len(z))
        for near in (z - step, z + step):
            there, _ = _information(rows, prior, sample, near)
            scale = _narrowed(prior, near)
            held |= identify.undetermined(there, prior.free & ~held, THRESHOLD, scale)
    return held


def _narrowed(prior: fit.Prior, z: np.ndarray) -> np.ndarray:
    """How much less a prior's unit moves the logarithms of parameters at z than at its centre:
    close below its bound a parameter is known, though its log odds are not."""
    return np.minimum(prior.log_spread(z) / prior.log_spread(np.zeros_like(z)), 1.0)


def _information(
    rows: Measured, prior: fit.Prior, sample: fit.Sample, z: np.ndarray
) -> tuple[identify.Information, np.ndarray]:
    """(what the rows say of parameters at z, the slopes of the rows' log times for z)."""
    residual, slope = fit.misfit(z, prior, sample)
    known = identify.information(residual, slope, rows.problem)
    return known, slope / sample.weight[:, None]


def _covariance(known: identify.Information, prior: fit.Prior, z: np.ndarray) -> np.ndarray:
    """Of the free parameters' logarithms; 0 for the others."""
    which = np.flatnonzero(prior.free)
    scale = prior.log_spread(z)[which]
    covariance = np.zeros_like(known.curvature)
    covariance[np.ix_(which, which)] = known.only(which).covariance() * np.outer(scale, scale)
    return covariance


def _best_start(rows: Measured, start: Hardware, prior: fit.Prior, seed: int) -> np.ndarray:
    """The best of several fits to a few rows, from the prior's centre and around it."""
    chooser = np.random.default_rng(seed)
    few = rows.take(np.sort(chooser.permutation(len(rows))[:START_ROWS]))
    sample = sample_of(few, start, FIRST_ERROR, np.zeros(len(few)))
    count = len(PARAMETERS)
    starts = [np.zeros(count), *(0.5 * chooser.standard_normal((STARTS - 1, count)))]
    found = [fit.solve(np.where(prior.free, z, 0.0), prior, sample) for z in starts]
    costs = [fit.cost(z, prior, sample) for z in found]
    return found[int(np.nanargmin(costs))]


def sample_of(rows: Measured, start: Hardware, error: float, offset: np.ndarray) -> fit.Sample:
    """Rows as `fit` takes them. `error`: the model's own, of a logarithm."""
    legal = np.ones(len(rows), dtype=bool)
    inputs, _ = engine.columns(rows.configurations, start, legal_override=legal)
    return fit.sample(inputs, rows.time_us, offset, 1 / np.hypot(error, rows.noise))


def renewed(
    rows: Measured, start: Hardware, sample: fit.Sample, prior: fit.Prior, z: np.ndarray
) -> tuple[fit.Sample, float]:
    """The sample with what exact predictions at z add to the closed form's logarithms, and the
    model's own error there: of few rows, a fit leaves less than that."""
    values = Parameters(*np.asarray(prior.values(z)).tolist())
    found = exact_times(rows, replace(start, parameters=values))
    closed, slope = fit.log_times(z, prior, sample)
    residual = np.log(found / rows.time_us)
    error = 1.4826 * np.median(np.abs(residual - np.median(residual)))
    error = max(float(error), LEAST_ERROR)
    slope = slope[:, prior.free] / np.hypot(error, rows.noise)[:, None]
    error *= np.sqrt(len(rows) / (len(rows) - identify.degrees(slope)))
    weight = 1 / np.hypot(error, rows.noise)
    return sample._replace(offset=np.log(found) - closed, weight=weight), error


def modelled(rows: Measured, start: Hardware) -> np.ndarray:
    """Rows that the model covers, whatever the values of parameters."""
    prior = priors.prior_of(start, priors.candidates(start))
    values = Parameters(*np.asarray(prior.values(np.zeros(len(PARAMETERS)))).tolist())
    return np.isfinite(exact_times(rows, replace(start, parameters=values)))


def exact_times(rows: Measured, machine: Hardware) -> np.ndarray:
    """Predicted times of rows that ran, in µs; NaN where the model does not cover them.

    Parameters go in as columns, so that one program serves all values, neutral ones too.
    """
    count = len(rows)
    columns = {name: np.full(count, x) for name, x in machine.parameters._asdict().items()}
    legal = np.ones(count, dtype=bool)
    return engine.evaluate(rows.configurations, machine, columns, legal).time_us
