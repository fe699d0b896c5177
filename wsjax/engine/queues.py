"""Pipelines for which no formula is proved, in queues of a few sizes: their exact outcomes.

A queue goes through the recurrences by jumps (`periodic`); what these leave unfinished is scanned
step by step (`events`).
"""

from operator import itemgetter

import jax
import numpy as np

from wsjax import model
from wsjax.engine.rows import lengthened
from wsjax.model import Outcome, Pipeline, simulate_queue

FEW = 256
SIZES = (64, FEW, 4_096)
DEPTHS = (4, 8, 16, 32)


def size_of(rows: int) -> int:
    """The least size that holds so many rows, or the greatest."""
    return next((size for size in SIZES if rows <= size), SIZES[-1])


def queues(stages: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    """Rows in queues, each of rings that one depth holds and with most steps first; few rows in one
    queue, that few programs are compiled."""
    depth = np.searchsorted(DEPTHS, stages) if len(stages) > FEW else np.zeros(len(stages))
    order = np.lexsort((-steps, depth))
    return [
        piece
        for same in np.unique(depth)
        for piece in pieces(order[depth[order] == same], SIZES[-1])
    ]


def outcomes(queue: Pipeline, rows: int) -> tuple[Outcome, np.ndarray]:
    """The outcomes of a queue of one of `SIZES`, exact for its first `rows` pipelines, and which of
    them are scanned."""
    few = len(queue.stages) <= FEW
    deepest = DEPTHS[-1] if few else np.asarray(queue.stages)[:rows].max()
    depth = next(depth for depth in DEPTHS if depth >= deepest)
    outcome, finished = jax.tree.map(np.array, model.solve(queue, rows, depth))
    for left in pieces(np.flatnonzero(~finished[:rows]), FEW):
        rest = jax.tree.map(itemgetter(lengthened(left, size_of(len(left)))), queue)
        for column, exact in zip(outcome, simulate_queue(rest), strict=True):
            column[left] = exact[: len(left)]
    return outcome, ~finished


def pieces(rows: np.ndarray, length: int) -> list[np.ndarray]:
    """Rows, so many at a time."""
    return [rows[start : start + length] for start in range(0, len(rows), length)]
