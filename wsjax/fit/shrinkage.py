"""How far a fit of few rows may go from its prior: by what predicts problems that it has not seen.

The spreads of all priors are multiplied by the one of `SCALES` whose fits predict the left-out
problems best, with the least mean |log(predicted / measured)|. Each fold leaves out whole problems.
A scale of 0 is the start as it is: where no fit predicts left-out problems better than that, by
more than a standard error of the difference over problems, nothing is fitted. A scale above 1 lets
200 rows of another machine overrule a data sheet, but not another calibration.
"""

import numpy as np

from wsjax.fit import least_squares as fit
from wsjax.fit.measured import Measured

SCALES = (0.5, 1.0, 2.0)
FOLDS = 5
MOST_ROWS = 2 * fit.FEW
"""Rows beyond which priors say little, and keep their spread."""
STEPS = 12


def scale_of(
    rows: Measured,
    prior: fit.Prior,
    sample: fit.Sample,
    started_us: np.ndarray,
    *,
    calibrated: bool,
) -> float:
    """The scale of a prior's spreads; 0 for no fit at all.

    sample: of all rows, with the offsets at the prior's centre. started_us: by the start as it is.
    calibrated: whether the start is.
    """
    problems = np.unique(rows.problem)
    if len(rows) > MOST_ROWS or len(problems) < 2:
        return 1.0
    fold = np.searchsorted(problems, rows.problem) % FOLDS
    scales = [scale for scale in SCALES if scale <= 1 or not calibrated]
    errors = {
        scale: _left_out(fold, prior._replace(spread=prior.spread * scale), sample)
        for scale in scales
    }
    best = min(scales, key=lambda scale: float(np.mean(errors[scale])))
    gained = np.abs(np.log(started_us / rows.time_us)) - errors[best]
    gains = np.asarray([gained[rows.problem == problem].mean() for problem in problems])
    return best if gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)) else 0.0


def _left_out(fold: np.ndarray, prior: fit.Prior, sample: fit.Sample) -> np.ndarray:
    """|log(predicted / measured)| of each row, by a fit of the other folds' rows."""
    errors = np.empty(len(fold))
    for out in np.unique(fold):
        rows = fold == out
        weight = np.where(rows, 0.0, sample.weight)
        z = fit.solve(np.zeros(len(prior.centre)), prior, sample._replace(weight=weight), STEPS)
        value, _ = fit.log_times(z, prior, sample)
        errors[rows] = np.abs(value + sample.offset - sample.log_time)[rows]
    return errors
