"""How well predicted times agree with measured ones: errors, ranks, and what a choice costs.

Percentages run from 0 to 100. A problem is a code of `Measured.problem`, a kernel one of its
configuration: where choices are judged, rows of one kernel (measured twice, or the same code under
two names) are one, of their mean time.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

NEAR = 1.02
"""A choice is good if it takes at most this many times the best measured time."""


class Metrics(NamedTuple):
    """Figures of one set of rows.

    Absolute percentage errors |predicted/measured - 1| (`ape`): mean, median, 95th percentile,
    greatest; `bias_pct`: the mean with its sign. `spearman`: rank correlation of predicted and
    measured times inside a problem, mean over the problems where both differ. Regret of a problem:
    the measured time of the row that is predicted fastest, over the best measured: mean, 95th
    percentile, greatest, and the share of problems within 2 %. `coverage_90_pct`: rows whose
    measured time lies in the interval. NaN where there is nothing to average.
    """

    rows: int
    problems: int
    mape_pct: float
    median_ape_pct: float
    p95_ape_pct: float
    max_ape_pct: float
    bias_pct: float
    spearman: float
    regret_mean: float
    regret_p95: float
    regret_max: float
    within_2pct: float
    coverage_90_pct: float
    extrapolated_rows: int

    def record(self) -> dict[str, Any]:
        """For JSON: None where a figure does not exist."""
        figures = self._asdict().items()
        return {name: None if math.isnan(value) else value for name, value in figures}


def metrics(columns: Mapping[str, np.ndarray]) -> Metrics:
    """Of rows with the columns `measured predicted low high extrapolated problem kernel`."""
    measured, predicted = columns["measured"], columns["predicted"]
    error = predicted / measured - 1
    ape = np.abs(error) * 100
    ranks, regrets = _by_problem(columns["problem"], columns["kernel"], measured, predicted)
    low, high = columns["low"], columns["high"]
    known = np.isfinite(low) & np.isfinite(high)
    inside = (low <= measured) & (measured <= high)
    return Metrics(
        rows=len(measured),
        problems=len(regrets),
        mape_pct=_mean(ape),
        median_ape_pct=_quantile(ape, 0.5),
        p95_ape_pct=_quantile(ape, 0.95),
        max_ape_pct=_quantile(ape, 1.0),
        bias_pct=_mean(error * 100),
        spearman=_mean(ranks),
        regret_mean=_mean(regrets),
        regret_p95=_quantile(regrets, 0.95),
        regret_max=_quantile(regrets, 1.0),
        within_2pct=_mean((regrets <= NEAR) * 100.0),
        coverage_90_pct=_mean(inside[known] * 100.0),
        extrapolated_rows=int(columns["extrapolated"].sum()),
    )


def _by_problem(
    problem: np.ndarray, kernel: np.ndarray, measured: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rank correlations (of the problems that have one), and regrets of all problems."""
    problem, measured, predicted = _kernels(problem, kernel, measured, predicted)
    order = np.argsort(problem, kind="stable")
    starts = np.flatnonzero(np.diff(problem[order], prepend=-1))
    ranks, regrets = [], []
    for rows in np.split(order, starts[1:]) if len(order) else []:
        ours, theirs = predicted[rows], measured[rows]
        regrets.append(theirs[np.argmin(ours)] / theirs.min())
        x, y = _ranks(ours), _ranks(theirs)
        if np.ptp(x) and np.ptp(y):
            ranks.append(np.corrcoef(x, y)[0, 1])
    return np.asarray(ranks), np.asarray(regrets)


def _kernels(
    problem: np.ndarray, kernel: np.ndarray, measured: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row for each kernel of a problem: its mean measured time."""
    pairs = np.stack([problem, kernel], axis=1)
    _, first, code, counts = np.unique(
        pairs, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    mean = np.bincount(code.reshape(-1), measured, len(first)) / counts
    return problem[first], mean, predicted[first]


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0; equal values share their mean rank."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1
    return (last - (counts - 1) / 2)[codes]


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan


def _quantile(values: np.ndarray, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else math.nan
