"""A sweep's table made small enough for a page: the fastest row of each kernel, problem, machine.

A *kernel* here is a tile, a number of stages and a schedule; the other configuration columns that
vary are its *settings*, of which only the fastest are kept. Two passes read the table a piece at a
time: the first finds what there is, the second the fastest rows. Memory holds one piece, the
distinct problems, and at most `CELLS` cells, however many rows there are: what would be more is
left out problem by problem (and machine by machine), drawn evenly.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsjax import tables
from wsjax.schema import COLUMNS, LIMITERS

CELLS = 400_000
PROBLEMS = 2_000
MACHINES = 32
PROBLEM = ("m", "n", "k", "batch", "dtype_in", "dtype_out", "layout", "l2_state")
KERNEL = ("schedule", "block_m", "block_n", "block_k", "stages")
WIDTHS = {"schedule": 2, "block_m": 17, "block_n": 17, "block_k": 17, "stages": 6}
"""Bits of each part of a kernel's code."""
assert sum(WIDTHS.values()) < 63
PILE = 2**18
Columns = Mapping[str, np.ndarray]
Progress = Callable[[int], None]


class Source(NamedTuple):
    """A sweep's files, the columns that the folders of each stand for, as numbers; its text
    columns' words, the columns that tell problems and machines apart, and those that are
    settings."""

    paths: tuple[Path, ...]
    folders: tuple[Mapping[str, float], ...]
    words: Mapping[str, tuple[str, ...]]
    problem: tuple[str, ...]
    machine: tuple[str, ...]
    settings: tuple[str, ...]


class Survey(NamedTuple):
    """What a sweep's table holds: distinct machines and problems (a row each, the columns in the
    source's order), kernels (a row each, columns `KERNEL`), the values of each setting."""

    rows: int
    extrapolated: int
    machines: np.ndarray
    problems: np.ndarray
    kernels: np.ndarray
    settings: dict[str, np.ndarray]


class Cube(NamedTuple):
    """The fastest rows. `time_us`, `limiter`, `setting` have the axes machine, problem, kernel;
    where there is no row the time is infinite. `setting` is a position in `settings`, a row a
    combination of the source's settings."""

    machines: np.ndarray
    problems: np.ndarray
    kernels: np.ndarray
    settings: np.ndarray
    time_us: np.ndarray
    limiter: np.ndarray
    setting: np.ndarray


def survey(source: Source, advance: Progress) -> Survey:
    """What there is in a sweep's table; `advance(rows)` is called after every piece."""
    machines = _Distinct(len(source.machine), np.float64)
    problems = _Distinct(len(source.problem), np.int64)
    kernels = _Distinct(1, np.int64)
    settings = {name: np.empty(0, np.int64) for name in source.settings}
    rows = extrapolated = 0
    names = (*source.machine, *source.problem, *KERNEL, *source.settings, "extrapolated")
    for columns in pieces(source, names):
        count = len(columns["m"])
        machines.add(_heads(columns, source.machine)[1])
        problems.add(_heads(columns, source.problem)[1])
        kernels.add(np.unique(_packed(columns))[:, None])
        for name, known in settings.items():
            settings[name] = np.union1d(known, columns[name])
        rows += count
        extrapolated += int(columns["extrapolated"].sum())
        advance(count)
    return Survey(
        rows, extrapolated, machines.all(), problems.all(), _unpacked(kernels.all()[:, 0]), settings
    )


def cube(source: Source, found: Survey, advance: Progress) -> Cube:
    """The fastest rows of a sweep's table, of as many problems and machines as there is room for;
    of rows that take the same time, the first."""
    machines = _drawn(found.machines, min(MACHINES, CELLS // len(found.kernels)))
    room = CELLS // (len(machines) * len(found.kernels))
    problems = _drawn(found.problems, min(PROBLEMS, room))
    shape = (len(machines), len(problems), len(found.kernels))
    best = _Fastest(math.prod(shape))
    kernels = _packed(dict(zip(KERNEL, found.kernels.T, strict=True)))
    names = (*source.machine, *source.problem, *KERNEL, *source.settings, "time_us", "limiter")
    for columns in pieces(source, names):
        at = _positions(columns, source.machine, machines)
        which = _positions(columns, source.problem, problems)
        kernel = np.searchsorted(kernels, _packed(columns))
        cell = (at * shape[1] + which) * shape[2] + kernel
        code = np.zeros(len(cell), np.int64)
        for name in source.settings:
            values = found.settings[name]
            code = code * len(values) + np.searchsorted(values, columns[name])
        kept = (at >= 0) & (which >= 0)
        best.take(cell[kept], *(x[kept] for x in (columns["time_us"], columns["limiter"], code)))
        advance(len(cell))
    codes, setting = np.unique(best.setting, return_inverse=True)
    return Cube(
        machines=machines,
        problems=problems,
        kernels=found.kernels,
        settings=_settings(codes, found.settings),
        time_us=best.time_us.reshape(shape),
        limiter=best.limiter.reshape(shape),
        setting=setting.reshape(shape),
    )


def _settings(codes: np.ndarray, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The combinations of settings that codes stand for, a row each."""
    rows = np.empty((len(codes), len(values)), np.int64)
    for column, own in reversed([*enumerate(values.values())]):
        codes, digit = np.divmod(codes, len(own))
        rows[:, column] = own[digit]
    return rows


class _Fastest:
    """The fastest row of each cell, so far."""

    def __init__(self, cells: int):
        self.time_us = np.full(cells, np.inf)
        self.limiter = np.zeros(cells, np.int64)
        self.setting = np.zeros(cells, np.int64)

    def take(
        self, cell: np.ndarray, time_us: np.ndarray, limiter: np.ndarray, setting: np.ndarray
    ) -> None:
        """Let rows compete for their cells."""
        order = np.lexsort((time_us, cell))
        first = order[np.flatnonzero(np.diff(cell[order], prepend=-1))]
        first = first[time_us[first] < self.time_us[cell[first]]]
        at = cell[first]
        self.time_us[at] = time_us[first]
        self.limiter[at] = limiter[first]
        self.setting[at] = setting[first]


class _Distinct:
    """The distinct rows of a table that comes in pieces, in ascending order."""

    def __init__(self, width: int, kind: type):
        self._known = np.empty((0, width), kind)
        self._pile: list[np.ndarray] = []

    def add(self, rows: np.ndarray) -> None:
        """Take in rows."""
        self._pile.append(rows)
        if sum(map(len, self._pile)) > PILE + len(self._known):
            self.all()

    def all(self) -> np.ndarray:
        """What there is so far."""
        self._known = np.unique(np.concatenate([self._known, *self._pile]), axis=0)
        self._pile = []
        return self._known


def pieces(source: Source, names: Iterable[str]) -> Iterator[dict[str, np.ndarray]]:
    """The table's rows as numbers, words as codes, a piece at a time."""
    words = {name: column.choices for name, column in COLUMNS.items()} | {"limiter": LIMITERS}
    words |= source.words
    names = list(dict.fromkeys(names))
    for path, folders in zip(source.paths, source.folders, strict=True):
        own = [name for name in names if name not in folders]
        for batch in tables.read_batches(path, own):
            if rows := len(batch[own[0]]):
                yield {
                    name: np.full(rows, folders[name])
                    if name in folders
                    else tables.numbers(batch[name], words.get(name, ()))
                    for name in names
                }


def _heads(columns: Columns, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Where in a piece each run of equal rows begins, and those rows."""
    rows = np.stack([columns[name] for name in names], axis=1)
    changes = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.flatnonzero(np.append(True, changes))
    return starts, rows[starts]


def _positions(columns: Columns, names: Sequence[str], known: np.ndarray) -> np.ndarray:
    """The position in `known` of each of a piece's rows, -1 where it is not there."""
    starts, rows = _heads(columns, names)
    position = {tuple(row): number for number, row in enumerate(known.tolist())}
    found = np.asarray([position.get(tuple(row), -1) for row in rows.tolist()], np.int64)
    lengths = np.diff(np.append(starts, len(columns[names[0]])))
    return np.repeat(found, lengths)


def _packed(columns: Columns) -> np.ndarray:
    """A kernel's columns as one number, in the same order."""
    code = np.zeros(len(columns[KERNEL[0]]), np.int64)
    for name, bits in WIDTHS.items():
        code = (code << bits) | columns[name]
    return code


def _unpacked(codes: np.ndarray) -> np.ndarray:
    columns = []
    for bits in reversed(WIDTHS.values()):
        columns.append(codes & ((1 << bits) - 1))
        codes = codes >> bits
    return np.stack(columns[::-1], axis=1)


def _drawn(rows: np.ndarray, most: int) -> np.ndarray:
    """At least one, at most so many of the rows, drawn evenly and always the same."""
    count = max(most, 1)
    if len(rows) <= count:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), count, replace=False))]
