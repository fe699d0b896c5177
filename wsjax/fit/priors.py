"""What a fit believes before it sees a row, and where a parameter stays that rows leave open."""

from collections.abc import Collection

import jax
import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.fit import least_squares as fit
from wsjax.hardware import PARAMETERS, Hardware, unused_key

CLEARLY = 1.0
"""By how much the cost (a chi square) may rise where parameters are held."""
ADAPTED_SPREAD = 0.3
"""How far the logarithm of a parameter may lie from that of another machine's calibration."""
TYPED_RATE, TYPED_TIME = 0.15, float(np.log(1.5))
"""And from a value that a file gives: rates of a data sheet to 15 %, times to a factor of 1.5."""
ODDS_SPREAD, SHARE_MAX = 1.5, 0.98
"""The greatest spread of the log odds of a parameter that is bounded, and where fits start below
the bound."""


def prior_of(start: Hardware, free: Collection[str]) -> fit.Prior:
    """A file's values, or the registry's typical ones where it is neutral.

    A value that a calibration of another machine (or of this one, earlier) is sure of may move by
    `ADAPTED_SPREAD`, whatever its standard error; one that was typed by `TYPED_RATE` or
    `TYPED_TIME`; the others by the registry's spread.
    """
    known_parameters = PARAMETERS.values()
    values = np.asarray(start.parameters, float)
    neutral = np.asarray([p.neutral for p in known_parameters])
    given = (values > 0) & np.isfinite(values) & (values != neutral)
    spread = np.asarray([p.spread for p in known_parameters])
    for position, (name, p) in enumerate(PARAMETERS.items()):
        if not given[position]:
            continue
        if name in start.standard_errors:
            moves = np.hypot(start.standard_errors[name], ADAPTED_SPREAD)
        elif start.calibrated:
            continue
        else:
            moves = TYPED_RATE if p.is_rate else TYPED_TIME
        spread[position] = min(spread[position], moves)
    typical = np.asarray([p.typical for p in known_parameters])
    centre = np.where(given, np.where(given, values, 1.0), typical)
    ceiling = np.asarray([start.ceilings.get(name, np.inf) for name in PARAMETERS])
    bounded = np.isfinite(ceiling)
    share = np.where(bounded, np.minimum(centre / ceiling, SHARE_MAX), 0.5)
    centre = np.where(bounded, np.log(share / (1.0 - share)), np.log(centre))
    spread = np.where(bounded, np.minimum(spread / (1.0 - share), ODDS_SPREAD), spread)
    chosen = np.asarray([name in free for name in PARAMETERS])
    return fit.Prior(centre, spread, chosen, values, ceiling)


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
    centre, fitted = np.asarray(prior.unheld(np.zeros_like(z))), np.asarray(prior.values(z))
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


PRIOR_HEADINGS = ("parameter", "value", "of its fact", "prior, 68 %", "unit", "meaning")


def prior_cells(machine: Hardware) -> list[tuple[str, ...]]:
    """A machine's parameters and what a fit that starts there believes of them, as text."""
    names = candidates(machine)
    with jax.enable_x64(True):
        prior = prior_of(machine, names)
        low, high = (np.asarray(prior.unheld(np.full(len(PARAMETERS), z))) for z in (-1.0, 1.0))
    return [
        (
            name,
            f"{value:.5g}",
            f"{value / most:.0%}" if np.isfinite(most) and np.isfinite(value) else "",
            f"{least:.3g} .. {greatest:.3g}",
            PARAMETERS[name].unit,
            PARAMETERS[name].meaning + (" (family)" if PARAMETERS[name].family else ""),
        )
        for name, value, most, least, greatest in zip(
            PARAMETERS, machine.parameters, prior.ceiling, low, high, strict=True
        )
        if name in names
    ]
