"""Exact Pareto fronts: of a space's kernels those that no other beats in one score without losing
in another. Of kernels with the same scores the first in the fixed order stands for all."""

import numpy as np

from wsjax.deadlines import Deadline
from wsjax.search.candidates import (
    FIRST_ROWS,
    MORE_ROWS,
    Candidate,
    Index,
    Task,
    candidates,
    keys,
    settle,
)


def front_of(task: Task, found: Index, limit: Deadline) -> tuple[list[Candidate], bool]:
    """The front of the kernels that meet all constraints, by the first score, and whether it is
    proved: no kernel was left out for lack of time.

    A kernel is not evaluated once a score of the front is not above its bounds and below one.
    """
    left = np.flatnonzero(found.broken == 0)
    rows = FIRST_ROWS
    while True:
        left = left[found.broken[left] == 0]
        known = left[found.exact[left]]
        known = known[np.lexsort(found.scores[::-1, known])]
        for front in known[undominated(found.scores[:, known])]:
            own, open_ = found.scores[:, front, None], found.scores[:, left]
            left = left[~(np.all(own <= open_, axis=0) & np.any(own < open_, axis=0))]
        pending = left[~found.exact[left]]
        if not len(pending) or (limit.passed and (len(known) or rows > FIRST_ROWS)):
            break
        order = np.argsort(found.scores[0, pending], kind="stable")
        settle(task, found, pending[order[:rows]])
        rows = MORE_ROWS
    exact = left[found.exact[left]]
    exact = exact[np.lexsort(keys(task, found, exact)[::-1])] if len(exact) else exact
    front = exact[undominated(found.scores[:, exact])]
    return candidates(task, found, front), found.complete and not len(pending)


def undominated(scores: np.ndarray) -> list[int]:
    """Positions of the front of scores (parts, rows) that are in lexicographic order, of equal ones
    the first."""
    left = np.arange(scores.shape[1])
    front: list[int] = []
    while len(left):
        front.append(int(left[0]))
        left = left[np.any(scores[:, left] < scores[:, front[-1]][:, None], axis=0)]
    return front
