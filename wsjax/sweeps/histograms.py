"""Distributions of the times of a sweep's rows, counted where the times are made.

An accelerator counts the times that formulas give, and sends a histogram for each group in place of
its times. What the host makes itself it counts itself.
"""

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import engine
from wsjax.engine import UNPROVED, Source
from wsjax.sweeps.quantiles import (
    BINS,
    GRID,
    LEAST_US,
    LOWEST,
    Distribution,
    counted,
    distributions,
    joined,
)

GROUPS_MAX = 256
"""Groups that are counted at once on the device; more have few rows each."""

EDGES_US = np.exp2((LOWEST + np.arange(BINS + 1)) / GRID)
"""Lower ends of the bins, for logarithms of accelerators are not exact at powers of 2."""


def spread(source: Source, each: int, numbers: np.ndarray) -> list[Distribution]:
    """The distributions of legal rows, by ascending number, of groups of `each` candidates."""
    groups = numbers // each
    if engine.widening() > 1 and len(numbers) and groups[-1] - groups[0] < GROUPS_MAX:
        return _on_device(source, numbers, groups)
    return distributions(groups, engine.times_of_rows(source, numbers))


def _on_device(source: Source, numbers: np.ndarray, groups: np.ndarray) -> list[Distribution]:
    times_us, left = engine.times_on_device(source, numbers)
    local = np.full(len(times_us), GROUPS_MAX, np.int32)
    local[: len(groups)] = groups - groups[0]
    with jax.enable_x64(True):
        least, greatest, counts = map(np.asarray, _histograms(times_us, local))
    held = {
        int(groups[0] + i): counted(groups[0] + i, least[i], greatest[i], counts[i])
        for i in np.flatnonzero(counts.any(axis=1))
    }
    for own in distributions(groups[left], engine.times_of_rows(source, numbers[left])):
        known = held.get(own.group)
        held[own.group] = own if known is None else joined(known, own)
    return [held[group] for group in sorted(held)]


@jax.jit
def _histograms(times_us, group):
    """Each group's least and greatest time, and how many of its times each bin holds."""
    at = jnp.where(times_us == UNPROVED, GROUPS_MAX, group)
    bins = jnp.floor(GRID * jnp.log2(jnp.maximum(times_us, LEAST_US))).astype(int) - LOWEST
    edges_us = jnp.asarray(EDGES_US)
    bins += (times_us >= edges_us[bins + 1]).astype(int) - (times_us < edges_us[bins])
    bins = jnp.clip(bins, 0, BINS - 1)
    least = jnp.full(GROUPS_MAX, jnp.inf).at[at].min(times_us, mode="drop")
    greatest = jnp.zeros(GROUPS_MAX).at[at].max(times_us, mode="drop")
    counts = jnp.zeros((GROUPS_MAX, BINS), jnp.int32).at[at, bins].add(1, mode="drop")
    return least, greatest, counts
