"""How far measured times may lie from predicted ones, and where no measurement backs a prediction.

A calibration compares predictions with measured times of problems that its fit did not see. The
interval of a row is

    time * exp(low) .. time * exp(high)

with the 5th and 95th percentile of log(measured / predicted) of the rows of its region: those of
its schedule and limiter, drawn towards those of all rows where a region has few problems. Errors of
the parameters are part of that. Where a table is too small to keep problems out, they come on top:
`parameters`, added in squares. Outside the span of the table, intervals are `WIDER` times as wide.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from wsjax import schema
from wsjax.hardware.machine import Hardware
from wsjax.hardware.sections import REGIONS
from wsjax.schema import COLUMNS, DEFAULTS, KERNEL, LIMITERS, Configuration

COVERAGE = 0.9
Z = 1.645
"""Half of a normal distribution's 90 % interval, in standard deviations."""
WIDER = 2.0
SHRINKAGE = 5.0
"""How many problems in a region count as much as all rows."""
FEWEST_ROWS = 20
"""A region with fewer rows has the interval of all."""


class Errors(NamedTuple):
    """What a spread is made of: log(measured / predicted) of rows, their schedule and limiter, and
    the codes of their problems."""

    error: np.ndarray
    schedule: np.ndarray
    limiter: np.ndarray
    problem: np.ndarray


def backing(
    hardware: Hardware,
    configurations: Configuration,
    prediction: Any,
    altered: np.ndarray | None = None,
) -> dict[str, Any]:
    """What `tables.prediction_columns` says of measurements: `extrapolated`, and the `interval` of
    a machine that has a spread. altered: rows on another machine than the one that was measured."""
    beyond = outside(hardware, configurations, len(prediction.reason))
    if altered is not None:
        beyond = beyond | altered
    interval = bounds(hardware, configurations, prediction, beyond) if hardware.spread else None
    return {"extrapolated": beyond, "interval": interval}


def bounds(
    hardware: Hardware, configurations: Configuration, prediction: Any, outside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The 90 % interval of each row's time, in µs; NaN for a machine without a spread.

    prediction: a `batch.Prediction`. outside: rows that are extrapolated.
    """
    time_us, spread = prediction.time_us, hardware.spread
    if not spread:
        none = np.full(np.shape(time_us), np.nan)
        return none, none
    table = np.asarray([spread.get(region, spread["all"]) for region in REGIONS])
    own = Z * spread.get("parameters", 0.0)
    below = np.hypot(np.minimum(table[:, 0], 0.0), own)
    above = np.hypot(np.maximum(table[:, 1], 0.0), own)
    region = _region(configurations.schedule, prediction.limiter)
    which = region + len(REGIONS) * np.asarray(outside)
    low = np.exp(-np.append(below, below * WIDER))
    high = np.exp(np.append(above, above * WIDER))
    return time_us * low[which], time_us * high[which]


def outside(hardware: Hardware, configurations: Configuration, rows: int) -> np.ndarray:
    """Rows that no measurement backs: beyond the least or greatest value of a column, a word that
    the table did not have; all rows of a machine that is not calibrated."""
    if not hardware.calibrated:
        return np.ones(rows, dtype=bool)
    found = np.zeros(rows, dtype=bool)
    for name in hardware.span:
        found |= _beyond(hardware, name, getattr(configurations, name))
    return found


def extrapolation(hardware: Hardware, columns: Mapping[str, Any]) -> str:
    """Why rows are extrapolated, in words: each column whose values are beyond those of the fitted
    table, and how far that went; "" if none is.

    columns: configuration columns, one value or many of each, words or their codes; of those that
    are absent nothing is said.
    """
    if not hardware.calibrated:
        return "the machine is not fitted to measurements"
    found = []
    for name, known in hardware.span.items():
        if name not in columns:
            continue
        choices, values = COLUMNS[name].choices, columns[name]
        values = np.ravel([values[0], values[-1]] if isinstance(values, range) else values)
        if choices and values.dtype.kind in "OUT":
            values = np.asarray([choices.index(word) for word in values])
        values = np.unique(values[_beyond(hardware, name, values)])
        if not len(values):
            continue
        if choices:
            here, fitted = ", ".join(choices[value] for value in values), ", ".join(known)
        else:
            here, fitted = _from_to(values), _from_to(known)
        found.append(f"{name} {here} (fitted: {fitted})")
    return ", ".join(found)


def _beyond(hardware: Hardware, name: str, values: Any) -> np.ndarray:
    known = hardware.span_numbers[name]
    return np.asarray(out_of_span(name, known, np.asarray(values), hardware.facts.sms))


def out_of_span(name: str, known: Sequence[int], values: Any, sms: Any) -> Any:
    """Numbers beyond the least or greatest of the fitted table, codes of words that it lacks, in
    arrays of any kind. A grid of 0 CTAs has one on each SM."""
    if COLUMNS[name].choices:
        return ~reduce(or_, (values == code for code in known))
    outer = (values < known[0]) | (values > known[1])
    if name == "grid_ctas":
        outer &= (values != 0) | (sms < known[0]) | (sms > known[1])
    return outer


def family_defaults(hardware: Hardware) -> dict[str, int]:
    """The defaults of a machine's kernels that differ from the usual ones: where its measured
    kernels never had a column's usual value, the measured one that is nearest to it."""
    found = {}
    for name in KERNEL:
        if name not in hardware.span or name not in DEFAULTS or name == "grid_ctas":
            continue
        usual = int(DEFAULTS[name])
        if _beyond(hardware, name, usual):
            measured = hardware.span_numbers[name]
            found[name] = min(measured, key=lambda value: (abs(value - usual), -value))
    return found


def resolve(columns: Mapping[str, Any], hardware: Hardware) -> Configuration:
    """The configurations that numbers make on a machine, with the defaults of its kernels."""
    return schema.resolve({**family_defaults(hardware), **columns}, hardware.facts)


def resolve_one(numbers: Mapping[str, int], hardware: Hardware) -> Configuration:
    """`resolve` of one configuration, as whole numbers."""
    return schema.resolve_one({**family_defaults(hardware), **numbers}, hardware.facts)


def _from_to(ends: Any) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[-1] else f"{ends[0]:g} to {ends[-1]:g}"


def spread(rows: Errors, parameter_error: float = 0.0) -> dict[str, Any]:
    """The [spread] table of a hardware file, from rows that its fit did not see.

    parameter_error: the share of the parameters' errors that is not in the rows' own.
    """
    every = _quantiles(rows.error)
    found: dict[str, Any] = {"all": _written(every)}
    region = _region(rows.schedule, rows.limiter)
    for code, name in enumerate(REGIONS):
        here = region == code
        if here.sum() >= FEWEST_ROWS:
            problems = len(np.unique(rows.problem[here]))
            weight = problems / (problems + SHRINKAGE)
            own = _quantiles(rows.error[here])
            found[name] = _written(weight * own + (1 - weight) * every)
    return found | ({"parameters": parameter_error} if parameter_error else {})


def _region(schedule: Any, limiter: Any) -> np.ndarray:
    """Positions in `REGIONS`; that of any region where there is no limiter."""
    return np.asarray(schedule) * len(LIMITERS) + np.maximum(limiter, 0)


def _quantiles(error: np.ndarray) -> np.ndarray:
    outer = (1 - COVERAGE) / 2
    return np.quantile(error, [outer, 1 - outer])


def _written(pair: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in pair]
