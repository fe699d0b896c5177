"""Good sets of kernels, fast: greedy choice, then exchanges until none helps."""

from dataclasses import replace

import numpy as np

from wsjax.deadlines import Deadline
from wsjax.portfolio.set_tables import Table


def greedy(table: Table, slots: int) -> tuple[int, ...]:
    """The required kernels, and one after the other the kernel that saves the most."""
    chosen = list(table.required)
    served = _served(table, chosen)
    while len(chosen) < slots:
        totals = np.minimum(table.excess, served[:, None]).sum(axis=0)
        affordable = table.builds <= table.budget - table.build(tuple(chosen))
        affordable[chosen] = False
        if not affordable.any():
            break
        best = int(np.where(affordable, totals, np.iinfo(np.int64).max).argmin())
        if totals[best] >= served.sum():
            break
        chosen.append(best)
        served = np.minimum(served, table.excess[:, best])
    return tuple(sorted(chosen))


def improve(table: Table, slots: int, chosen: tuple[int, ...], limit: Deadline) -> tuple[int, ...]:
    """`chosen` after additions and exchanges of one kernel for another, each the one that saves
    the most, until none saves anything."""
    while not limit.passed:
        better = _add(table, slots, chosen) or _exchange(table, chosen)
        if better is None:
            break
        chosen = better
    return chosen


def _add(table: Table, slots: int, chosen: tuple[int, ...]) -> tuple[int, ...] | None:
    more = greedy(replace(table, required=chosen), min(slots, len(chosen) + 1))
    return more if len(more) > len(chosen) else None


def _exchange(table: Table, chosen: tuple[int, ...]) -> tuple[int, ...] | None:
    """The exchange that saves the most, None if none does.

    A problem whose kernel leaves gets the better of its second best and the one that comes; any
    other keeps its own or gets the one that comes.
    """
    own = table.excess[:, list(chosen)]
    if not own.shape[1]:
        return None
    order = np.argsort(own, axis=1, kind="stable")
    first = np.take_along_axis(own, order[:, :1], axis=1)
    if own.shape[1] > 1:
        second = np.take_along_axis(own, order[:, 1:2], axis=1)
    else:
        second = np.full_like(first, table.useless)
    saved = np.minimum(table.excess - first, 0)
    gain = saved.sum(axis=0)
    room = table.budget - table.build(chosen)
    best, found = 0, None
    for position, leaving in enumerate(chosen):
        if leaving in table.required:
            continue
        mine = order[:, 0] == position
        stay = np.minimum(table.excess[mine], second[mine]) - first[mine] - saved[mine]
        change = gain + stay.sum(axis=0)
        change = np.where(table.builds <= room + table.builds[leaving], change, 0)
        change[list(chosen)] = 0
        coming = int(change.argmin())
        if change[coming] < best:
            best, found = int(change[coming]), (leaving, coming)
    if found is None:
        return None
    return tuple(sorted({*chosen, found[1]} - {found[0]}))


def _served(table: Table, chosen: list[int]) -> np.ndarray:
    if not chosen:
        return np.full(len(table.excess), table.useless, dtype=np.int64)
    return np.minimum(table.excess[:, chosen].min(axis=1), table.useless)
