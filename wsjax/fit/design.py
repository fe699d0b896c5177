"""Which rows to measure: those after which a workload is predicted best.

What is not known of a row's log time has four parts: parameters, with slopes j = d log time / dz
and z ~ N(0, 1) in units of their priors; the model's own error, which rows of similar slopes share;
an error that all rows of a problem share; and the row's own noise. So the log times of a pool of
rows have the covariance

    K[a, b] = share^2 j_a . j_b + model^2 exp(-|j_a - j_b|^2 / (2 length^2))
              + problem^2 [same problem]

and measuring row r turns it into K - K[:, r] K[r, :] / (K[r, r] + noise^2). Rows are taken
greedily, each the one that lowers the workload's mean variance most (of a budget: most per second).
Without the second part a plan asks for the rows that move most, and trusts the model there.

Slopes depend on z: a limit that does not bind at the prior's centre may bind elsewhere. So j holds
the slopes at several draws of z, and j_a . j_b is the mean over them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from wsjax import engine
from wsjax.fit import least_squares as fit
from wsjax.fit import priors
from wsjax.hardware import PARAMETERS, Hardware
from wsjax.schema import Configuration

DRAWS, DRAWN_SPREAD = 8, 0.7
SHARE = 0.25
"""How far parameters are expected to lie from the priors' centres, in the priors' spreads: these
are wide. With it, a data sheet's expected error on the measured H200 kernels is its true one."""
MODEL_ERROR, PROBLEM_ERROR, NOISE = 0.1, 0.03, 0.03
"""Of a logarithm."""
LENGTH = 0.5
"""Over which rows share the model's error: in median distances of two rows of the pool.

SHARE and LENGTH by errors on held-out problems of the Gluon table after 25 to 100 planned rows
(`make plan-curve`), which are then lower than after random ones by 0.8 to 0.2 points; from 200 rows
on, and on the CUTLASS table, planned and random rows come to the same."""
OPEN = 0.7
"""A parameter is not told where it keeps more than this share of its prior's spread."""
TOGETHER = 0.95


class Design(NamedTuple):
    """Rows to measure, and what they tell.

    chosen: positions in the pool, best first. error: the workload's expected error (of a logarithm)
    before any row and after each. before, after: standard errors of parameters' logarithms, in the
    order of `PARAMETERS`; 0 where not free. untold: parameters that no row of the pool tells.
    together: pairs that all of its rows only tell together. seconds: of each chosen row, on the
    GPU.
    """

    chosen: np.ndarray
    error: np.ndarray
    before: np.ndarray
    after: np.ndarray
    untold: tuple[str, ...]
    together: tuple[tuple[str, str], ...]
    seconds: np.ndarray


def design(
    pool: Configuration,
    problem: np.ndarray,
    weight: np.ndarray,
    machine: Hardware,
    *,
    rows: int,
    budget_s: float = np.inf,
    overhead_s: float = 0.0,
    known: np.ndarray | None = None,
    seed: int = 0,
) -> Design:
    """At most `rows` rows of a pool that take at most `budget_s` in all.

    problem: a code of each row's. weight: how much each counts in the workload. overhead_s: what a
    row takes beside its kernel's runs. known: rows that have been measured. seed: of the draws.
    """
    known = np.zeros(len(problem), dtype=bool) if known is None else known
    with jax.enable_x64(True):
        prior = priors.prior_of(machine, priors.candidates(machine))
        slopes, spreads, time_us = _slopes(pool, machine, prior, seed)
        seconds = measuring_s(time_us) + overhead_s
        own, common = _covariances(slopes, problem)
        every = _known(own + common, np.flatnonzero(known))
        share = jnp.asarray(weight / weight.sum())
        per = seconds if np.isfinite(budget_s) else np.ones(len(seconds))
        found = _greedy(every, share, jnp.asarray(~known), seconds, per, budget_s, rows)
        chosen, error = (np.asarray(x) for x in found)
    taken = int((chosen >= 0).sum())
    chosen, error = chosen[:taken], error[: taken + 1]
    already = np.flatnonzero(known)
    free = np.flatnonzero(prior.free)
    names = np.asarray(tuple(PARAMETERS))[free]
    before, after, best = (
        _posterior(slopes, np.asarray(common), at)
        for at in (already, np.append(already, chosen), np.arange(len(problem)))
    )

    def errors(covariance: np.ndarray) -> np.ndarray:
        found = np.zeros(len(PARAMETERS))
        deviations = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        found[free] = (deviations * spreads[:, free]).mean(axis=0)
        return found

    left = np.sqrt(np.diagonal(best, axis1=1, axis2=2))
    correlation = np.mean(best / (left[:, :, None] * left[:, None, :]), axis=0)
    return Design(
        chosen=chosen,
        error=error,
        before=errors(before),
        after=errors(after),
        untold=tuple(names[left.mean(axis=0) > OPEN].tolist()),
        together=tuple(
            (str(names[i]), str(names[j]))
            for i, j in np.argwhere(np.triu(np.abs(correlation) > TOGETHER, 1))
        ),
        seconds=seconds[chosen],
    )


def measuring_s(time_us: np.ndarray) -> np.ndarray:
    """How long a kernel runs while it is measured: 15 to 60 runs, 20 ms where that lies between."""
    return np.clip(20_000 / time_us, 15, 60) * time_us * 1e-6


def _slopes(
    pool: Configuration, machine: Hardware, prior: fit.Prior, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """([draw, row, free parameter], parameters' log spreads at each draw, times at the centre)."""
    count = len(pool.m)
    inputs, _ = engine.columns(pool, machine, legal_override=np.ones(count, dtype=bool))
    sample = fit.sample(inputs, np.ones(count), np.zeros(count), np.ones(count))
    chooser = np.random.default_rng(seed)
    draws = DRAWN_SPREAD * chooser.standard_normal((DRAWS, len(PARAMETERS)))
    draws[0] = 0.0
    found = [fit.log_times(np.where(prior.free, z, 0.0), prior, sample) for z in draws]
    slopes = np.stack([slope[:, prior.free] for _, slope in found])
    return slopes, np.stack([prior.log_spread(z) for z in draws]), np.exp(found[0][0])


def _covariances(slopes: np.ndarray, problem: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """K of the module's docstring in two parts: of the parameters, and what else rows share."""
    flat = jnp.asarray(np.concatenate(list(slopes), axis=1) / np.sqrt(len(slopes)))
    own = flat @ flat.T
    square = jnp.diag(own)
    apart = jnp.maximum(square[:, None] + square[None, :] - 2 * own, 0.0)
    alike = jnp.exp(-apart / (2 * LENGTH**2 * jnp.median(apart).clip(1e-12)))
    same = problem[:, None] == problem[None, :]
    return SHARE**2 * own, MODEL_ERROR**2 * alike + PROBLEM_ERROR**2 * same


def _known(covariance: jax.Array, rows: np.ndarray) -> jax.Array:
    """The covariance after these rows."""
    if not len(rows):
        return covariance
    across = covariance[rows]
    inside = across[:, rows] + NOISE**2 * jnp.eye(len(rows))
    return covariance - across.T @ jnp.linalg.solve(inside, across)


@jax.jit
def _greedy(covariance, weight, possible, seconds, per, budget_s, rows):
    """(positions, -1 behind the last; the workload's error before and after each)."""
    count = len(weight)

    def error(covariance):
        return jnp.sqrt(jnp.sum(weight * jnp.diag(covariance)))

    def take(number, state):
        covariance, possible, left_s, chosen, errors = state
        variance = jnp.diag(covariance) + NOISE**2
        gain = (covariance**2 @ weight) / variance
        allowed = possible & (seconds <= left_s)
        best = jnp.argmax(jnp.where(allowed, gain / per, -1.0))

        def measure(_):
            column = covariance[best]
            lower = covariance - column[:, None] * (column / variance[best])[None, :]
            return (
                lower,
                possible.at[best].set(False),
                left_s - seconds[best],
                chosen.at[number].set(best),
                errors.at[number + 1].set(error(lower)),
            )

        return lax.cond(allowed[best], measure, lambda _: state, None)

    start = (
        covariance,
        possible,
        jnp.asarray(budget_s, float),
        jnp.full(count, -1),
        jnp.zeros(count + 1).at[0].set(error(covariance)),
    )
    found = lax.fori_loop(0, jnp.minimum(rows, count), take, start)
    return found[3], found[4]


def _posterior(slopes: np.ndarray, common: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The covariance of the free parameters at each draw, after these rows."""
    inside = common[np.ix_(rows, rows)] + NOISE**2 * np.eye(len(rows))
    known = slopes[:, rows]
    information = np.swapaxes(known, 1, 2) @ np.linalg.solve(inside, known)
    return np.linalg.inv(information + np.eye(slopes.shape[2]))
