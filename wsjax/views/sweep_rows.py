"""A sweep's table made small enough for a page: the fastest row of each kernel, problem, machine.

A *kernel* here is a tile, a number of stages and a schedule; the other configuration columns that
vary are its *settings*, of which only the fastest are kept. The table is read twice, a piece at a
time: once for what there is, once for the fastest rows (a grouped aggregation). What is more than
`CELLS` cells is left out: problems are drawn evenly, and of machines the fastest stay.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wsjax import tables
from wsjax.errors import InputError
from wsjax.schema import COLUMNS, LIMITERS, PREDICTION_COLUMNS, PROBLEM
from wsjax.spec import Spec
from wsjax.sweeps import given_numbers, shard_of

CELLS = 400_000
PROBLEMS = 2_000
MACHINES, MACHINES_READ = 32, 512
"""Machines on a page, and those that are compared to find them."""
KERNEL = ("schedule", "block_m", "block_n", "block_k", "stages")
FIGURES = (*COLUMNS, "time_us", "limiter", "extrapolated")
AT = ("machine at", "problem at", "kernel at")
"""Columns of positions; a sweep's own columns have no spaces in their names."""
Progress = Callable[[int], None]
Frame: TypeAlias = Any
"""A pandas DataFrame; its type stubs do not tell one from a Series where columns are taken."""


class Source(NamedTuple):
    """A sweep's files and what their columns mean; words are read as codes.

    paths: the files. folders: of each file, the columns that its folders stand for. words: of each
    column of text, its words in the order of their codes. problem, machine: the columns that tell
    problems and machines apart. settings: the other configuration columns that vary.
    """

    paths: tuple[Path, ...]
    folders: tuple[Mapping[str, float], ...]
    words: Mapping[str, tuple[str, ...]]
    problem: tuple[str, ...]
    machine: tuple[str, ...]
    settings: tuple[str, ...]


class Fastest(NamedTuple):
    """The fastest rows of a sweep, and what they are drawn from.

    rows, extrapolated: how many rows the table has, and how many of them are extrapolated.
    machines, problems, kernels: those that are kept, a row each. all_machines, all_problems: all of
    them. cells: a row a kept machine, problem and kernel that has any: their positions (columns
    `AT`), `time_us`, `limiter`, and the settings.
    """

    rows: int
    extrapolated: int
    machines: Frame
    problems: Frame
    kernels: Frame
    all_machines: Frame
    all_problems: Frame
    cells: Frame


def source_of(run: Spec, paths: Sequence[Path], figures: Iterable[str] = FIGURES) -> Source:
    """A sweep's files and what their columns mean; InputError if one of those, or of `figures`, is
    missing."""
    words = run.product(run.hardware[0]).words
    names = [name for axis in run.axes for name in axis.names if name not in COLUMNS]
    swept = [override.name for override in run.overrides]
    source = Source(
        paths=tuple(paths),
        folders=tuple(_folders(run, path) for path in paths),
        words=words | {"hardware": tuple(machine.name for machine in run.hardware)},
        problem=(*names, *PROBLEM),
        machine=("hardware", *(n for n in swept if n not in PREDICTION_COLUMNS)),
        settings=tuple(
            name
            for axis in run.axes
            if len(axis) > 1
            for name in axis.names
            if name in COLUMNS and name not in (*PROBLEM, *KERNEL)
        ),
    )
    wanted = {*source.problem, *source.machine, *figures}
    for path, folders in zip(paths, source.folders, strict=True):
        if missing := wanted - {*tables.parquet_names(path), *folders}:
            raise InputError(
                f"{path}: has no column {', '.join(sorted(missing))}: another version of wsjax "
                "wrote it; run the sweep again"
            )
    return source


def _folders(run: Spec, path: Path) -> dict[str, float]:
    """The columns that a file's folders stand for, as numbers; words as codes."""
    if not run.output.partition_by:
        return {}
    shard = json.loads(tables.read_metadata(path).get("shard", "{}"))
    machine = next((own for own in run.hardware if own.name == shard.get("hardware")), None)
    if machine is None:
        raise InputError(f"{path}: does not say which rows it holds; run the sweep again")
    rows = shard_of(run, machine, shard["start"], shard["stop"])
    found = given_numbers(rows, run.output.partition_by, np.array([rows.start]))
    return {name: np.ravel(value)[0] for name, value in found.items()}


def pieces(source: Source, names: Iterable[str]) -> Iterator[Frame]:
    """The table's rows as numbers, words as codes, a piece at a time."""
    import pandas as pd

    words = {name: column.choices for name, column in COLUMNS.items()} | {"limiter": LIMITERS}
    words |= source.words
    names = list(dict.fromkeys(names))
    for path, folders in zip(source.paths, source.folders, strict=True):
        own = [name for name in names if name not in folders]
        for batch in tables.read_batches(path, own):
            if len(batch[own[0]]):
                columns = {n: tables.numbers(batch[n], words.get(n, ())) for n in own}
                yield pd.DataFrame(columns).assign(**folders)[names]


def fastest_rows(source: Source, advance: Progress) -> Fastest | None:
    """The fastest row of each cell, of rows that take the same time the first; None without rows.

    `advance(rows)` is called after every piece, for each row twice.
    """
    rows, extrapolated = 0, 0
    keys = [list(source.machine), list(source.problem), list(KERNEL)]
    names = [name for key in keys for name in key]
    known: list[Frame] = [None] * len(keys)
    for piece in pieces(source, [*names, "extrapolated"]):
        rows += len(piece)
        extrapolated += int(piece["extrapolated"].sum())
        pairs = zip(known, keys, strict=True)
        known = [_together(frame, piece[key]).drop_duplicates() for frame, key in pairs]
        advance(len(piece))
    if not rows:
        return None
    all_machines, all_problems, kernels = (
        frame.sort_values(list(frame), ignore_index=True) for frame in known
    )
    count = max(min(MACHINES, len(all_machines), CELLS // len(kernels)), 1)
    machines = _drawn(all_machines, MACHINES_READ)
    problems = _drawn(all_problems, min(PROBLEMS, CELLS // (count * len(kernels))))
    cells = None
    figures = [*source.settings, "time_us", "limiter"]
    for piece in pieces(source, [*names, *figures]):
        found = piece
        for at, frame in zip(AT, (machines, problems, kernels), strict=True):
            found = found.merge(frame.assign(**{at: np.arange(len(frame))}), on=list(frame))
        cells = _together(cells, found[[*AT, *figures]])
        cells = cells.sort_values("time_us", kind="stable").drop_duplicates(list(AT))
        advance(len(piece))
    assert cells is not None
    chosen = _fastest_machines(cells, len(machines), count)
    cells = cells[cells[AT[0]].isin(chosen)]
    cells = cells.assign(**{AT[0]: np.searchsorted(chosen, cells[AT[0]])})
    kept = machines.iloc[chosen], problems, kernels
    return Fastest(rows, extrapolated, *kept, all_machines, all_problems, cells)


def _together(frame: Frame | None, more: Frame) -> Frame:
    import pandas as pd

    return more if frame is None else pd.concat([frame, more], ignore_index=True)


def _drawn(frame: Frame, most: int) -> Frame:
    """At least one, at most so many of the rows, drawn evenly and always the same."""
    count = max(most, 1)
    if len(frame) <= count:
        return frame
    chosen = np.random.default_rng(0).choice(len(frame), count, replace=False)
    return frame.iloc[np.sort(chosen)].reset_index(drop=True)


def _fastest_machines(cells: Frame, machines: int, count: int) -> np.ndarray:
    """The positions of the first machine, with which others are compared, and of those that are
    fastest: by the geometric mean, over problems, of their time over the fastest machine's."""
    machine, problem, _ = AT
    best = cells.groupby([machine, problem])["time_us"].min()
    ratio = best / best.groupby(problem).transform("min")
    mean = np.log(ratio).groupby(machine).mean().reindex(range(machines), fill_value=np.inf)
    order = mean.drop(0).sort_values(kind="stable").index.to_numpy()
    return np.sort(np.append(0, order[: count - 1]))
