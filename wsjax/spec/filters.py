"""A sweep's filter, applied to problems, to what is tried on each, or to both together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsjax.schema import COLUMNS, DERIVED, Product
from wsjax.spec.where import Predicate

Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Sieve:
    """`fixed`: columns of one value. `outer`, `inner`: those that the filter reads and that vary
    with the problem, or with what is tried on it."""

    predicate: Predicate | None
    fixed: Columns
    outer: tuple[str, ...]
    inner: tuple[str, ...]

    def problems(self, given: Columns, count: int) -> np.ndarray:
        """Which of `count` problems pass, as far as the filter reads nothing else."""
        if self.predicate is None or self.inner or not self.outer:
            return np.ones(count, bool)
        return self.predicate.mask({**self.fixed, **given}, count)

    def rows(self, columns: Columns, count: int) -> np.ndarray:
        """Which of `count` inner rows pass, as far as the filter reads nothing else."""
        if self.predicate is None or self.outer:
            return np.ones(count, bool)
        return self.predicate.mask({**self.fixed, **columns}, count)

    def both(self, given: Columns, columns: Columns, count: int) -> np.ndarray | None:
        """(problems, inner rows) that pass, where the filter reads both; else None."""
        if self.predicate is None or not (self.inner and self.outer):
            return None
        mine = {name: np.asarray(columns[name])[:count] for name in self.inner}
        problems = zip(*(given[name] for name in self.outer), strict=True)
        return np.stack(
            [
                self.predicate.mask(
                    {**self.fixed, **mine, **dict(zip(self.outer, values, strict=True))}, count
                )
                for values in problems
            ]
        )


def sieve_of(predicate: Predicate | None, outer: Product, inner: Product) -> Sieve:
    """The sieve of a filter over the product of two, the defaults filled in."""
    names = () if predicate is None else predicate.names
    defaults = {n: c.default_number for n, c in COLUMNS.items() if c.default_number is not None}
    fixed = defaults | outer.constants | inner.constants
    varies = {name for name in outer.names if name not in outer.constants}
    derived = {name for name in DERIVED if name not in fixed}
    tried = {name for name in inner.names if name not in inner.constants} | derived
    return Sieve(
        predicate,
        fixed,
        tuple(name for name in names if name in varies),
        tuple(name for name in names if name in tried),
    )
