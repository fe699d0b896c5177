"""Workloads and kernels as tables: which problems come how often, and which kernels there are.

A workload has the columns `m n k`, where needed `batch dtype_in dtype_out layout l2_state`, and, if
it likes, `weight` (how often a problem comes; 1 without it) and `problem` (its name). Rows of one
problem are one, and their weights add up. A table that has kernels too (`block_m block_n block_k`
…), such as a measured one or a sweep's, names both: each of its problems counts once, with the
weight that its rows agree on.

A table of kernels has a kernel's columns (`schema.KERNEL`), and, if it likes, `kernel` (its name)
and a column of build costs.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import importers, schema, tables
from wsjax.errors import InputError, gather, nearest
from wsjax.hardware import Hardware, family_defaults
from wsjax.importers import TIME
from wsjax.portfolio.export import kernel_name, printable
from wsjax.schema import (
    BLOCKS,
    KERNEL,
    PREDICTION_COLUMNS,
    PROBLEM,
)
from wsjax.spec import Space

if TYPE_CHECKING:
    import pandas as pd

WEIGHT = "weight"
WEIGHTS = ("weights", "count", "counts", "calls", "frequency", "freq", "occurrences")
"""What others call it."""
NAMES = ("problem", "name")
KERNEL_NAMES = ("kernel", "name")
TYPES = ("dtype_in", "dtype_out")
"""The columns of a problem that a kernel's legality and default stages depend on."""
WEIGHT_MAX, BUILD_MAX = 1e15, 1e9
KERNELS_MAX = 100_000
"""Kernels of a space, at most."""


@dataclass(frozen=True, eq=False)
class Problems:
    """What a workload asks for. columns: numbers and codes of those of `schema.PROBLEM` that are
    given. names: "" where there is none."""

    columns: dict[str, np.ndarray]
    weights: np.ndarray
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.weights)

    def label(self, at: int) -> str:
        """A problem's name, or its sizes."""
        sizes = schema.sizes({name: self.columns[name][at] for name in "mnk"}, "mnk")
        return f"'{self.names[at]}' ({sizes})" if self.names[at] else sizes


@dataclass(frozen=True, eq=False)
class Kernels:
    """What there is to choose from. columns: numbers and codes of those of `schema.KERNEL` that are
    given. names: one of its own for each. imported: what a table calls each. builds: build costs,
    if there are any."""

    columns: dict[str, np.ndarray]
    names: tuple[str, ...]
    imported: tuple[tuple[str, ...], ...]
    builds: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Offer:
    """A workload, the kernels for it, and the times of each on each, in µs (inf: can't run).

    measured_us: where the workload is a measured table; None else.
    """

    problems: Problems
    kernels: Kernels
    predicted_us: np.ndarray
    measured_us: np.ndarray | None


def read_frame(source: Any, machine: Hardware) -> "pd.DataFrame":
    """A table of any kind in our words: a path, a pandas DataFrame, or an Arrow table.

    Of measured times, only the rows that count are in it, in column `time_us_measured`; what it
    does not tell of its kernels has the defaults of the machine's.
    """
    import pandas as pd

    usual = family_defaults(machine)
    if isinstance(source, str | Path):
        read: Any = importers.read_own(source, usual, measured=True)
        return _counting(read.to_pandas() if tables.is_arrow(read) else read, str(source))
    frame = source.to_pandas() if tables.is_arrow(source) else source
    if not isinstance(frame, pd.DataFrame):
        kind = type(source).__name__
        raise InputError(f"expected a file's name, a DataFrame or an Arrow table, not {kind}")
    frame = frame.reset_index(drop=True)
    if not importers.is_measured([str(name) for name in frame]):
        return frame
    return _counting(importers.read_frame(frame, usual), "frame")


@contextmanager
def naming(source: Any) -> Iterator[None]:
    """Put a file's name before what is said of it in the block."""
    try:
        yield
    except InputError as error:
        if not isinstance(source, str | Path):
            raise
        raise InputError(f"{source}: {problem}" for problem in error.problems) from None


def _counting(frame: "pd.DataFrame", name: str) -> "pd.DataFrame":
    """Without the rows that `wsjax import` excludes."""
    if not {"excluded", TIME} <= set(frame):
        return frame
    kept = frame.loc[frame["excluded"].astype(object) == ""].reset_index(drop=True)
    if kept.empty and len(frame):
        raise InputError(f"{name}: no row has a measured time that counts")
    return kept


def has_kernels(frame: "pd.DataFrame") -> bool:
    """Whether a table names kernels beside problems."""
    return set(BLOCKS) <= set(frame)


def read_problems(frame: "pd.DataFrame") -> tuple[Problems, np.ndarray]:
    """The problems of a workload, in order, and the problem of each row.

    Raises InputError with all mistakes.
    """
    if not len(frame):
        raise InputError("the workload has no rows; give at least one problem")
    if not has_kernels(frame):
        _warn_of_misspelling(frame)
    numbers, weights = gather(
        lambda: _numbers(frame, PROBLEM), lambda: _amounts(frame, WEIGHT, 1.0, WEIGHT_MAX)
    )
    first, codes = _distinct(numbers)
    if has_kernels(frame):
        total = _agreed(weights, first, codes, WEIGHT, "problem")
    else:
        total = np.bincount(codes, weights)
    if not total.any():
        raise InputError(f"column '{WEIGHT}': all weights are 0; give some problem a weight")
    given = {name: values[first] for name, values in numbers.items()}
    return Problems(given, total, _labels(frame, NAMES)[first]), codes


def _warn_of_misspelling(frame: "pd.DataFrame") -> None:
    names = [str(name) for name in frame]
    schema.warn_of_misspelling([*names, *KERNEL])
    if WEIGHT in names:
        return
    for name in names:
        if name.lower() in WEIGHTS or get_close_matches(name.lower(), [WEIGHT], cutoff=0.8):
            warnings.warn(
                f"column '{name}' has no effect, and each row counts once; if it says how often a "
                f"problem comes, call it '{WEIGHT}'",
                stacklevel=2,
            )


def read_kernels(frame: "pd.DataFrame", build_cost: str | None) -> tuple[Kernels, np.ndarray]:
    """The kernels of a table, in order, and the kernel of each row.

    build_cost: the column of build costs. Raises InputError with all mistakes.
    """
    if not len(frame):
        raise InputError("the table of kernels has no rows; give at least one kernel")
    if build_cost is not None and build_cost not in frame:
        hint = nearest(build_cost, map(str, frame))
        raise InputError(f"build_cost: the kernels have no column '{build_cost}'{hint}")
    numbers = _numbers(frame, KERNEL)
    first, codes = _distinct(numbers)
    given = {name: values[first] for name, values in numbers.items()}
    builds = None
    if build_cost is not None:
        amounts = _amounts(frame, build_cost, np.nan, BUILD_MAX)
        builds = _agreed(amounts, first, codes, build_cost, "kernel")
    labels: list[dict[str, None]] = [{} for _ in first]
    for code, label in zip(codes, _labels(frame, KERNEL_NAMES), strict=True):
        labels[code].update({label: None} if label else {})
    return Kernels(given, _named(given, labels), tuple(map(tuple, labels)), builds), codes


def space_kernels(
    space: Space, problems: Problems, machine: Hardware
) -> tuple[Kernels, np.ndarray]:
    """The kernels of a space that pass its filter for some problem, and for which problems each
    does: (problems, kernels)."""
    if len(space) > KERNELS_MAX:
        raise InputError(
            f"space '{space.name}': {len(space):,} kernels, at most {KERNELS_MAX:,} can be chosen "
            "from; give fewer values"
        )
    given = problems.columns
    same = np.zeros(len(problems), dtype=np.int64)
    first, codes = _distinct({name: given.get(name, same) for name in TYPES})
    passing = np.zeros((len(first), len(space)), dtype=bool)
    for at, row in enumerate(first):
        problem = {name: int(values[row]) for name, values in given.items()}
        for numbers, _ in space.blocks(problem, machine.facts):
            passing[at, numbers] = True
    numbers = np.flatnonzero(passing.any(axis=0))
    if not len(numbers):
        raise InputError(f"space '{space.name}': no kernel passes its filter; widen it")
    taken = {name: np.array(values) for name, values in space.product.take(numbers).items()}
    unnamed: list[dict[str, None]] = [{} for _ in numbers]
    kernels = Kernels(taken, _named(taken, unnamed), ((),) * len(numbers))
    return kernels, passing[codes][:, numbers]


def _numbers(frame: "pd.DataFrame", wanted: Sequence[str]) -> dict[str, np.ndarray]:
    names: list[Any] = [name for name in frame if name not in PREDICTION_COLUMNS]
    given: dict[str, Any] = {name: frame[name] for name in wanted if names.count(name) == 1}
    return schema.read_rows(given, len(frame), names, wanted).columns


def _distinct(numbers: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each kind, in order, and the kind of each row."""
    import pandas as pd

    table = pd.DataFrame(dict(numbers))
    codes = np.asarray(table.groupby(list(table), sort=False).ngroup())
    return np.unique(codes, return_index=True)[1], codes


def _amounts(frame: "pd.DataFrame", name: str, default: float, most: float) -> np.ndarray:
    """A column of numbers that are not negative; InputError that says which are none."""
    import pandas as pd

    if name not in frame:
        return np.full(len(frame), default)
    cells: Any = frame[name].astype(object)
    amounts = np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=float)
    problems = []
    for what, wrong in (
        ("no number", np.isnan(amounts)),
        ("negative", amounts < 0),
        (f"above {most:g}", amounts > most),
    ):
        if wrong.any():
            row, rows = int(wrong.argmax()), int(wrong.sum())
            many = "1 row" if rows == 1 else f"{rows} rows"
            problems.append(
                f"column '{name}': {what} in {many}, first in row {row} (from 0): "
                f"{'blank' if cells.isna().iloc[row] else cells.iloc[row]}; give numbers from 0"
            )
    if problems:
        raise InputError(problems)
    return amounts


def _agreed(
    amounts: np.ndarray, first: np.ndarray, codes: np.ndarray, name: str, what: str
) -> np.ndarray:
    """The amount of each kind, on which all its rows agree."""
    wrong = amounts != amounts[first][codes]
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"column '{name}': row {row} (from 0) says {amounts[row]:g}, row {first[codes[row]]} "
            f"{amounts[first[codes[row]]]:g} of the same {what}; make them agree"
        )
    return amounts[first]


def _labels(frame: "pd.DataFrame", choices: Sequence[str]) -> np.ndarray:
    """The texts of the first of some columns that is there, else blanks."""
    name = next((name for name in choices if name in frame), None)
    if name is None:
        return np.full(len(frame), "", dtype=object)
    cells: Any = frame[name].astype(object)
    return np.asarray(
        ["" if blank else printable(str(v)) for v, blank in zip(cells, cells.isna(), strict=True)],
        object,
    )


def _named(
    given: Mapping[str, np.ndarray], labels: Sequence[Mapping[str, None]]
) -> tuple[str, ...]:
    """For each kernel the first of its labels that no other has, else a name that says what it is;
    such names for all, if these would be mistaken for a label."""
    rows = [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
    described = [kernel_name(row) for row in rows]
    owners = Counter(label for mine in labels for label in mine)
    names = [
        next((label for label in mine if owners[label] == 1), own)
        for mine, own in zip(labels, described, strict=True)
    ]
    return tuple(names if len(set(names)) == len(names) else described)
