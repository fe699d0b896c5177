"""How far measured times may lie from predicted ones, and where no measurement backs a prediction.

A calibration compares predictions with measured times of problems that its fit did not see. With
e = log(measured / predicted), the interval of a row is

    time * exp(s * low) .. time * exp(s * high),     s = product over REGIONS of a factor

`low` and `high` are quantiles of e / s; the factors say how much more or less e scatters in a
region than it does on the whole: by waves, and by the height of a tile. Errors of parameters are
part of e. Where a table is too small to keep problems out, `parameters` is their share, added in
squares. Outside the span of the table, intervals are `WIDER` times as wide.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wsjax.hardware import Hardware
from wsjax.hardware.checks import REGIONS
from wsjax.space import COLUMNS, Configuration

COVERAGE = 0.9
Z = 1.645
"""Half a 90 % interval in standard deviations, where it is a normal distribution's."""
WIDER = 2.0
LEAST = 0.005
"""Added to |e| before its logarithm is taken: no row is sure to be hit better than this."""
SHRINKAGE = 3.0
"""How many problems in a region count as much as the rule that its factor is 1."""


class Errors(NamedTuple):
    """What a spread is fitted to: log(measured / predicted) of rows, their configurations and waves,
    and the codes of their problems."""

    configurations: Configuration
    waves: np.ndarray
    problem: np.ndarray
    error: np.ndarray


def bounds(
    hardware: Hardware, configurations: Configuration, prediction: Any, outside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The 90 % interval of each row's time, in µs; NaN for a machine without a spread.

    prediction: a `batch.Prediction`. outside: rows that are extrapolated.
    """
    spread, time_us = hardware.spread, prediction.time_us
    if not spread:
        none = np.full(np.shape(time_us), np.nan)
        return none, none
    scale = np.where(outside, WIDER, 1.0) * _scale(spread, configurations, prediction.waves)
    own = Z * spread.get("parameters", 0.0)
    low = np.hypot(np.minimum(spread["low"], 0.0) * scale, own)
    high = np.hypot(np.maximum(spread["high"], 0.0) * scale, own)
    return time_us * np.exp(-low), time_us * np.exp(high)


def outside(hardware: Hardware, configurations: Configuration, rows: int) -> np.ndarray:
    """Rows that no measurement backs: beyond the least or greatest value of a column, a word that
    the table did not have; all rows of a machine that is not calibrated."""
    if not hardware.calibrated:
        return np.ones(rows, dtype=bool)
    found = np.zeros(rows, dtype=bool)
    for name, known in hardware.span.items():
        values, choices = getattr(configurations, name), COLUMNS[name].choices
        if choices:
            found |= ~np.isin(values, [choices.index(word) for word in known])
        else:
            found |= (values < known[0]) | (values > known[1])
    return found


def fit_spread(rows: Errors, parameter_error: float = 0.0) -> dict[str, Any]:
    """The [spread] table of a hardware file, from rows that its fit did not see.

    parameter_error: the share of the parameters' errors that is not in the rows' own.
    """
    factors = _factors(rows)
    spread: dict[str, Any] = {"low": 0.0, "high": 0.0, **factors}
    scaled = rows.error / _scale(spread, rows.configurations, rows.waves)
    outer = (1 - COVERAGE) / 2
    low, high = np.quantile(scaled, [outer, 1 - outer])
    spread |= {"low": _rounded(low), "high": _rounded(high)}
    return spread | ({"parameters": _rounded(parameter_error)} if parameter_error else {})


def _factors(rows: Errors) -> dict[str, list[float]]:
    """A factor for each region of each observable, by ridge regression of log |e|, in which a
    problem counts as one row."""
    columns, widths = [], []
    for name, edges in REGIONS.items():
        region = _region(name, edges, rows.configurations, rows.waves)
        columns.append(region[:, None] == np.arange(len(edges) + 1))
        widths.append(len(edges) + 1)
    design = np.concatenate(columns, axis=1).astype(float)
    size = np.log(np.abs(rows.error) + LEAST)
    per_problem = len(size) / len(np.unique(rows.problem))
    square = design.T @ design / per_problem + SHRINKAGE * np.eye(design.shape[1])
    weights = np.linalg.solve(square, design.T @ (size - size.mean()) / per_problem)
    parts = np.split(np.exp(weights), np.cumsum(widths)[:-1])
    return {name: [_rounded(x) for x in part] for name, part in zip(REGIONS, parts, strict=True)}


def _scale(spread: Mapping[str, Any], configurations: Configuration, waves: Any) -> np.ndarray:
    """The product of the factors of each row's regions."""
    scale = np.ones(np.shape(waves))
    for name, edges in REGIONS.items():
        if name in spread:
            scale = scale * np.asarray(spread[name])[_region(name, edges, configurations, waves)]
    return scale


def _region(
    name: str, edges: tuple[int, ...], configurations: Configuration, waves: Any
) -> np.ndarray:
    values = waves if name == "waves" else getattr(configurations, name)
    return np.searchsorted(edges, values)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
