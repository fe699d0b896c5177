"""The best kernel of each problem on each of many machines, by one exact top-k search.

Machines are an axis of a product, before those of problems and kernels: all their parameters and
the facts that vary are columns. So the search's programs (`wsjax.sweeps.topk`) take any machines as
data, and few are compiled: axes are lengthened to a few lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wsjax import engine, schema
from wsjax.engine import Candidates, lengthened
from wsjax.hardware import FACTS, PARAMETERS, Hardware, family_defaults
from wsjax.portfolio import Problems
from wsjax.schema import COLUMNS, DEFAULTS, PROBLEM, Axis, Configuration, Facts, Product
from wsjax.spec import Space
from wsjax.sweeps import TopK, in_order, least_of

FEW = 8_191
"""Rows that take the program of few rows, which is there for all workloads."""
LENGTHS = tuple(4**i for i in range(1, 9))
ALWAYS = ("sms", "smem_bytes_per_sm", *PARAMETERS)
"""What programs take of every machine as data, whether it varies or not."""
THREADS = 2
FIGURES = ("time_us", "waves", "limiter")


class Timed(NamedTuple):
    """Kernels of problems on machines: arrays (machines, problems).

    time_us: inf where the kernel is illegal. number: the kernel's, in the space. waves, limiter: as
    of a prediction. c: all columns.
    """

    time_us: np.ndarray
    number: np.ndarray
    waves: np.ndarray
    limiter: np.ndarray
    c: Configuration


def best_kernels(space: Space, problems: Problems, machines: Sequence[Hardware]) -> Timed:
    """The best kernel of each problem on each machine, of kernels of the same time the first."""
    number = np.full((len(machines), len(problems)), -1)
    for mine in _alike(machines):
        search = _Search(space, problems, [machines[i] for i in mine])
        machine, problem, found = search.best()
        number[mine[machine], problem] = found
    return timed(space, problems, machines, number)


def timed(
    space: Space, problems: Problems, machines: Sequence[Hardware], number: np.ndarray
) -> Timed:
    """Kernels by their numbers, (machines, problems); -1: none. On another machine than a kernel
    was the best of, its open columns are that machine's."""
    figures = {name: np.full(number.shape, np.nan) for name in FIGURES}
    columns = {name: np.zeros(number.shape, np.int64) for name in COLUMNS}
    for mine in _alike(machines):
        at = np.nonzero(number[mine] >= 0)
        search = _Search(space, problems, [machines[i] for i in mine])
        c = search.configurations(at[0], at[1], number[mine][at])
        where = mine[at[0]], at[1]
        for name, values in search.predicted(at[0], c).items():
            figures[name][where] = values
        for name in COLUMNS:
            columns[name][where] = getattr(c, name)
    time_us, waves, limiter = figures.values()
    time_us = np.where(np.isnan(time_us), np.inf, time_us)
    return Timed(time_us, number, waves, limiter, Configuration(**columns))


def _alike(machines: Sequence[Hardware]) -> list[np.ndarray]:
    """The positions of machines that differ in facts and parameters only."""
    keys = [(one.rates, *family_defaults(one).items()) for one in machines]
    return [np.flatnonzero([key == one for one in keys]) for key in dict.fromkeys(keys)]


@dataclass(frozen=True, eq=False)
class _Search:
    """A space's kernels on problems, on machines that differ in facts and parameters only."""

    space: Space
    problems: Problems
    machines: Sequence[Hardware]

    def best(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(machine, problem, kernel), a row each where any kernel is legal."""
        search = TopK(self._candidates, 1, self.space.predicate, self._times_us)
        all_pairs = np.arange(len(self.machines))[:, None] * self._width
        pairs = (all_pairs + np.arange(len(self.problems))).ravel()
        chunks = (pairs[at : at + search.chunk] for at in range(0, len(pairs), search.chunk))
        rows = [best.rows for _, best in in_order(search.best_of, chunks, THREADS)]
        all_rows = np.concatenate(rows)
        pair, number = np.divmod(all_rows, len(self.space))
        first = least_of(self._times_us(all_rows), pair, all_rows, 1)
        return *np.divmod(pair[first], self._width), number[first]

    def configurations(
        self, machine: np.ndarray, problem: np.ndarray, number: np.ndarray
    ) -> Configuration:
        """Kernels on problems, as some of the machines complete them."""
        given = {x: values[problem] for x, values in self.problems.columns.items()}
        facts = Facts._make(np.transpose([m.facts for m in self.machines])[:, machine])
        columns = family_defaults(self.machines[0]) | self.space.product.take(number) | given
        c = schema.resolve(columns, facts)
        return Configuration(*(np.ascontiguousarray(np.broadcast_to(x, number.shape)) for x in c))

    def predicted(self, machine: np.ndarray, c: Configuration) -> dict[str, np.ndarray]:
        """`FIGURES` of configurations on some of the machines."""
        values = {name: x[machine] for name, x in self._values.items()}
        parts = [[np.zeros(0)] * len(FIGURES)]
        for start in range(0, len(machine), FEW):
            some = np.s_[start : start + FEW]
            prediction = engine.evaluate(
                Configuration(*(x[some] for x in c)),
                self.machines[0],
                {name: x[some] for name, x in values.items()},
                fields=FIGURES,
            )
            parts.append([getattr(prediction, name) for name in FIGURES])
        return {
            name: np.concatenate(x)
            for name, x in zip(FIGURES, zip(*parts, strict=True), strict=True)
        }

    def _times_us(self, rows: np.ndarray) -> np.ndarray:
        pair, number = np.divmod(rows, len(self.space))
        machine, problem = np.divmod(pair, self._width)
        times = self.predicted(machine, self.configurations(machine, problem, number))["time_us"]
        return np.where(np.isnan(times), np.inf, times)

    @property
    def _width(self) -> int:
        """Problems of a machine, with those that only lengthen the axis."""
        return _length(len(self.problems))

    @cached_property
    def _values(self) -> dict[str, np.ndarray]:
        """What varies between machines, and what programs always take as data, a value each."""
        owners = [{**m.facts._asdict(), **m.parameters._asdict()} for m in self.machines]
        columns = {x: np.array([own[x] for own in owners]) for x in (*FACTS, *PARAMETERS)}
        return {x: v for x, v in columns.items() if x in ALWAYS or len({*v.tolist()}) > 1}

    @cached_property
    def _candidates(self) -> Candidates:
        first, space = self.machines[0], self.space.product
        fixed = {x: v for x, v in first.facts._asdict().items() if x not in self._values}
        fixed_kernel = {x: v for x, v in family_defaults(first).items() if x not in space.names}
        given: dict[str, Any] = {
            x: np.broadcast_to(self.problems.columns.get(x, DEFAULTS.get(x, 0)), len(self.problems))
            for x in PROBLEM
        }
        return Candidates(
            first,
            Product(
                (
                    *_constants(fixed),
                    _axis(self._values),
                    _axis(given),
                    *_constants(fixed_kernel),
                    *space.axes,
                )
            ),
        )


def _axis(columns: dict[str, np.ndarray]) -> Axis:
    """An axis of columns that vary together, lengthened."""
    values = columns.values()
    return Axis(tuple(columns), tuple(lengthened(x, _length(len(x))) for x in values))


def _constants(columns: dict[str, int]) -> list[Axis]:
    return [Axis((name,), (np.array([value]),)) for name, value in columns.items()]


def _length(count: int) -> int:
    """The least of `LENGTHS` that holds so many."""
    return next((length for length in LENGTHS if length >= count), count)
