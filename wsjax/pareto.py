"""Exact Pareto fronts: of a space's kernels those that no other beats in one score without losing
in another. Of kernels with the same scores the first in the fixed order stands for all."""

import numpy as np

from wsjax.candidates import FIRST_ROWS, MORE_ROWS, Candidate, Index, Task, evaluate
from wsjax.deadlines import Deadline


def front_of(task: Task, found: Index, limit: Deadline) -> tuple[list[Candidate], bool]:
    """The front of the kernels that meet all constraints, by the first score, and whether it is
    proved: no kernel was left out for lack of time.

    A kernel is not evaluated once a score of the front is not above its bounds and below one.
    """
    numbers, bounds = (x[..., found.broken == 0] for x in (found.numbers, found.bounds))
    order = np.argsort(bounds[0], kind="stable")
    front: list[Candidate] = []
    rows = FIRST_ROWS
    while True:
        for candidate in front:
            own = np.asarray(candidate.key[: len(bounds)])[:, None]
            open_ = bounds[:, order]
            order = order[~(np.all(own <= open_, axis=0) & np.any(own < open_, axis=0))]
        if not len(order) or (front and limit.passed):
            break
        chosen, order = order[:rows], order[rows:]
        new = evaluate(task, numbers[chosen], np.zeros(len(chosen), dtype=np.int64))
        meets = np.flatnonzero(new.broken == 0)
        kept = meets[undominated(new.keys[: len(bounds), meets])]
        front = _front([*front, *map(new.candidate, kept)], len(bounds))
        rows = MORE_ROWS
    return front, found.complete and not len(order)


def undominated(scores: np.ndarray) -> list[int]:
    """Positions of the front of scores (parts, rows) that are in lexicographic order, of equal ones
    the first."""
    left = np.arange(scores.shape[1])
    front: list[int] = []
    while len(left):
        front.append(int(left[0]))
        left = left[np.any(scores[:, left] < scores[:, front[-1]][:, None], axis=0)]
    return front


def _front(candidates: list[Candidate], parts: int) -> list[Candidate]:
    if not candidates:
        return []
    ordered = sorted(candidates)
    keys = np.asarray([candidate.key for candidate in ordered]).T
    return [ordered[at] for at in undominated(keys[:parts])]
