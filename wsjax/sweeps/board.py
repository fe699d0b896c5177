"""Who may still win: the running state of a contest for the k best rows of each problem."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SLACK = 1e-9
"""Relative: what rounding may do to a bound, and much more."""


def below(times_us: Any) -> Any:
    """A little less, so that rounding is no matter; of arrays of any kind."""
    return times_us - SLACK * abs(times_us)


def above(times_us: Any) -> Any:
    """A little more."""
    return times_us + SLACK * abs(times_us)


def rank_within(groups: np.ndarray) -> np.ndarray:
    """The position of each entry within its group; equal ones stand together."""
    position = np.arange(len(groups))
    new = np.ones(len(groups), bool)
    new[1:] = groups[1:] != groups[:-1]
    return position - np.maximum.accumulate(np.where(new, position, 0))


def best_of(times: np.ndarray, groups: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Positions of each group's `count` least times, in the order of group, time and row."""
    order = np.lexsort((rows, times, groups))
    return order[rank_within(groups[order]) < count]


@dataclass
class Board:
    """`most_us`: (problems, k), the k least times that rows of each problem are known not to pass.

    `problem`, `row`, `least_us`: the rows that may still be among the k best, with what their times
    are not below.
    """

    most_us: np.ndarray
    problem: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    row: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    least_us: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def reach_us(self) -> np.ndarray:
        """A time that k rows of each problem reach: who is above it has lost."""
        return above(self.most_us[:, -1])

    def admit(
        self, problem: np.ndarray, row: np.ndarray, least_us: np.ndarray, most_us: np.ndarray
    ) -> None:
        """Let rows compete whose times lie between `least_us` and `most_us`."""
        better = np.flatnonzero(most_us < self.most_us[problem, -1])
        better = better[best_of(most_us[better], problem[better], better, self.count)]
        fresh = np.full_like(self.most_us, np.inf)
        fresh[problem[better], rank_within(problem[better])] = most_us[better]
        self.most_us = np.sort(np.concatenate([self.most_us, fresh], 1), 1)[:, : self.count]
        self.problem = np.concatenate([self.problem, problem])
        self.row = np.concatenate([self.row, row])
        self.least_us = np.concatenate([self.least_us, below(least_us)])
        self._keep(self.least_us <= self.reach_us[self.problem])

    def enter(self, problem: np.ndarray, row: np.ndarray) -> None:
        """Let rows compete of whose times nothing is known here."""
        self.problem = np.concatenate([self.problem, problem])
        self.row = np.concatenate([self.row, row])
        self.least_us = np.concatenate([self.least_us, np.zeros(len(row))])

    @property
    def count(self) -> int:
        """How many rows of a problem win: k."""
        return self.most_us.shape[1]

    def settle(self, times_us: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        """Leave at most k rows of each problem: by the exact `times_us(problem, row)` of those of
        which there are more, and among equals by row."""
        crowd = np.bincount(self.problem, minlength=len(self.most_us))[self.problem]
        tied = np.flatnonzero(crowd > self.count)
        if not len(tied):
            return
        problem, row = self.problem[tied], self.row[tied]
        winners = crowd <= self.count
        winners[tied[best_of(times_us(problem, row), problem, row, self.count)]] = True
        self._keep(winners)

    def _keep(self, which: np.ndarray) -> None:
        self.problem, self.row = self.problem[which], self.row[which]
        self.least_us = self.least_us[which]
