"""What measured rows say of parameters, and which parameters they leave open."""

from typing import NamedTuple

import numpy as np


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
    """From `fit.misfit` at a fit's end. `problem`: each row's, as a code."""
    outlier = np.sqrt(1 + residual**2)
    pull = jacobian * (residual / outlier)[:, None]
    scores = np.zeros((problem.max(initial=0) + 1, jacobian.shape[1]))
    np.add.at(scores, problem, pull)
    return Information(jacobian.T @ (jacobian / outlier[:, None]), scores.T @ scores)


def degrees(slopes: np.ndarray) -> float:
    """How many degrees of freedom of the residuals a fit has used: trace of H (H + 1)^-1 for slopes
    of residuals in their standard deviations, of parameters in units of their priors."""
    known = np.linalg.eigvalsh(slopes.T @ slopes).clip(0)
    return float(np.sum(known / (known + 1)))


def undetermined(
    known: Information, free: np.ndarray, threshold: float, scale: np.ndarray | None = None
) -> np.ndarray:
    """Which free parameters to hold, so that no direction of the others keeps a spread of
    `threshold` times its prior: each time the one with the largest share in the worst direction.

    scale: of each parameter's spread, where a prior's unit means less than at its centre: close
    below a bound.
    """
    held = np.zeros_like(free)
    while (free & ~held).any():
        which = np.flatnonzero(free & ~held)
        covariance = known.only(which).covariance()
        if scale is not None:
            covariance *= np.outer(scale[which], scale[which])
        variances, directions = np.linalg.eigh(covariance)
        if variances[-1] < threshold**2:
            break
        held[which[np.argmax(np.abs(directions[:, -1]))]] = True
    return held
