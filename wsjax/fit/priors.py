"""What a fit believes before it sees a row, and where a parameter stays that rows leave open."""

from collections.abc import Collection

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.fit import least_squares as fit
from wsjax.hardware import PARAMETERS, Hardware, unused_key

CLEARLY = 1.0
"""By how much the cost (a chi square) may rise where parameters are held."""
ADAPTED_SPREAD = 0.3
"""How far the logarithm of a parameter may lie from that of another machine's calibration."""


def prior_of(start: Hardware, free: Collection[str]) -> fit.Prior:
    """A file's values, or the registry's typical ones where it is neutral.

    A value that a calibration of another machine (or of this one, earlier) is sure of may move by
    `ADAPTED_SPREAD`, whatever its standard error; the others by the registry's spread.
    """
    values = np.asarray(start.parameters, float)
    neutral = np.asarray([p.neutral for p in PARAMETERS.values()])
    known = (values > 0) & np.isfinite(values) & (values != neutral)
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


def choose(
    start: Hardware, fix: Collection[str], free: Collection[str], *, family_only: bool
) -> list[str]:
    """The parameters to fit; InputError for names that are none, or none left."""
    possible = candidates(start)
    for option, names in (("fix", fix), ("free", free)):
        if isinstance(names, str) or not isinstance(names, Collection):
            raise InputError(f"{option}: expected a list of names, such as ['{possible[0]}']")
    problems = [
        f"{option} {name}: no parameter that can be fitted{nearest(name, possible)}"
        for option, names in (("--fix", fix), ("--free", free))
        for name in names
        if name not in possible
    ]
    chosen = [
        name
        for name in possible
        if (not free or name in free)
        and name not in fix
        and (not family_only or PARAMETERS[name].family)
    ]
    if not (problems or chosen):
        problems.append("no parameter is left to fit; fix fewer")
    if problems:
        raise InputError(problems)
    return chosen


def hold(held: np.ndarray, z: np.ndarray, prior: fit.Prior, sample: fit.Sample) -> fit.Prior:
    """The prior with parameters held at its centre; where that contradicts the rows, which may know
    that a term is small without knowing how small, at the neutral value; else where they are.

    All that are held together may raise the cost by `CLEARLY`: each of many could do so unnoticed.
    """
    centre, fitted = np.exp(prior.centre), np.asarray(prior.values(z))
    neutral = np.asarray([p.neutral for p in PARAMETERS.values()])
    least = np.inf
    for position in np.flatnonzero(held):
        free = prior.free.copy()
        free[position] = False
        trials = []
        for value in (centre, neutral, fitted):
            values = prior.held.copy()
            values[position] = value[position]
            trial = prior._replace(free=free, held=values)
            trials.append((fit.cost(z, trial, sample), trial))
        stays, _ = trials[-1]
        least = min(least, stays)
        prior = next(trial for cost, trial in trials if cost <= max(least + CLEARLY, stays))
    return prior
