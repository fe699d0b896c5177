"""The reader of values: from what a user gives to numbers, with every mistake said at once.

Values come one by one (`from_keywords`, `from_options`), as a list of problems (`problem_axis`), or
as a frame's columns (`read_rows`); `Column.complaint` judges a single value, `_cells` a column of
them. Rows of frames count from 0 in messages. A blank in a configuration column is a mistake,
except in a row whose `status` says that it was not measured: that row is `incomplete`.
"""

import math
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.schema.columns import (
    BLOCKS,
    COLUMNS,
    GEMM,
    INTERVAL_COLUMNS,
    PREDICTION_COLUMNS,
    REQUIRED,
    Axis,
    Column,
    shown,
)

if TYPE_CHECKING:
    import pandas as pd

COLUMNS_OF = {"--dtype": ("dtype_in", "dtype_out")}
TILE = re.compile(r"([0-9]{1,20})[xX]([0-9]{1,20})[xX]([0-9]{1,20})")
SHOWN_WORDS = 3
"""How many unknown words of one column a message lists."""
SHOWN_LETTERS = 60
WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")


class Rows(NamedTuple):
    """A frame's rows as the model takes them.

    `columns`: the configuration columns that were given, as numbers. `incomplete`: rows that lack
    a value. `measured_ok`: rows that ran, which are legal by definition; None without a `status`.
    """

    columns: dict[str, np.ndarray]
    incomplete: np.ndarray
    measured_ok: np.ndarray | None


class Cells(NamedTuple):
    """A column as int64. Cells without a value have a valid number: those that are `blank`,
    `unread` (no number, or no known word), or `outside` of the column's range."""

    numbers: np.ndarray
    blank: np.ndarray
    unread: np.ndarray
    outside: np.ndarray


def from_keywords(
    columns: Mapping[str, Any], wanted: Collection[str] = tuple(COLUMNS)
) -> dict[str, int]:
    """Columns by name, words as words, as numbers. `wanted`: those that may be given, all or only a
    problem's; of these the `REQUIRED` ones must be.

    Raises InputError with all that is wrong.
    """
    problems = [
        f"{name}: missing: {COLUMNS[name].meaning}"
        for name in REQUIRED
        if name in wanted and name not in columns
    ]
    problems += [
        f"{name}: unknown name{nearest(name, wanted)}" for name in columns if name not in wanted
    ]
    return _numbers({name: (name, columns[name]) for name in wanted if name in columns}, problems)


def from_options(options: Mapping[str, Any], missing: str | None = "") -> dict[str, int]:
    """The command line's options that were given, by name, as numbers of configuration columns.

    missing: what to add to the message that one is missing; None: any may.

    Raises InputError with all that is wrong.
    """
    problems = [
        f"{option}: missing; give -m, -n, -k and --tile{missing}"
        for option in ("-m", "-n", "-k", "--tile")
        if option not in options and missing is not None
    ]
    given: dict[str, tuple[str, int | str]] = {}
    for option, value in options.items():
        if option == "--tile":
            match = TILE.fullmatch(value)
            sizes = match.groups() if match else ()
            given |= {name: (option, int(size)) for name, size in zip(BLOCKS, sizes, strict=False)}
            if not match:
                problems.append(f"--tile: '{value}' is no tile; write it as 128x128x64")
        else:
            names = COLUMNS_OF.get(option, (option.lstrip("-").replace("-", "_"),))
            given |= dict.fromkeys(names, (option, value))
    return _numbers(given, problems)


def _numbers(given: Mapping[str, tuple[str, Any]], problems: list[str]) -> dict[str, int]:
    """The numbers of columns, each with what the user calls it; `problems` are raised too."""
    problems += [
        f"{called}: {complaint}"
        for name, (called, value) in given.items()
        if (complaint := COLUMNS[name].complaint(value))
    ]
    if problems:
        raise InputError(dict.fromkeys(problems))
    return {name: COLUMNS[name].number(value) for name, (_, value) in given.items()}


def problem_axis(rows: Sequence[Any]) -> Axis:
    """The axis of a list of problems, tables that all have the same keys: those of `GEMM`, and
    `name`, which becomes the text column `problem`.

    Raises InputError with all that is wrong; rows count from 1.
    """
    if not rows:
        raise InputError("no problems; give at least one, such as { m = 16, n = 64, k = 64 }")
    if not all(isinstance(row, Mapping) for row in rows):
        wrong = next(row for row in rows if not isinstance(row, Mapping))
        raise InputError(f"expected tables such as {{ m = 16, … }}, not {shown(wrong)}")
    keys, valid = list(rows[0]), ("name", *GEMM)
    complaints = [f"unknown key '{key}'{nearest(key, valid)}" for key in keys if key not in valid]
    known = [key for key in keys if key in valid]
    if not set(known) & set(REQUIRED):
        complaints.append(f"none of m, n, k is given; the keys are: {', '.join(keys)}")
    first: dict[tuple, int] = {}
    for number, row in enumerate(rows, 1):
        if row.keys() != rows[0].keys():
            odd = ", ".join(sorted(set(row) ^ set(keys)))
            complaints.append(f"row {number}: not the keys of row 1 ({odd}); all must match")
            continue
        said = {key: _complaint_of_key(key, row[key]) for key in known}
        complaints += [f"row {number}: {key}: {text}" for key, text in said.items() if text]
        if not complaints:
            earlier = first.setdefault(tuple(row[key] for key in keys), number)
            same = earlier != number
            complaints += [f"row {number}: the same as row {earlier}; leave one out"] * same
    if complaints:
        raise InputError(complaints)
    numbers = {
        key: np.array([COLUMNS[key].number(row[key]) for row in rows], np.int64)
        for key in GEMM
        if key in keys
    }
    if "name" not in keys:
        return Axis(tuple(numbers), tuple(numbers.values()))
    codes = {name: code for code, name in enumerate(dict.fromkeys(row["name"] for row in rows))}
    numbers["problem"] = np.array([codes[row["name"]] for row in rows], np.int64)
    return Axis(tuple(numbers), tuple(numbers.values()), {"problem": tuple(codes)})


def _complaint_of_key(key: str, value: Any) -> str:
    if key != "name":
        return COLUMNS[key].complaint(value)
    good = isinstance(value, str) and value.strip()
    return "" if good else f"expected a name in quotes, not {shown(value)}"


def read_rows(
    columns: Mapping[str, "pd.Series"],
    count: int,
    names: Sequence[Any],
    wanted: Sequence[str] = tuple(COLUMNS),
) -> Rows:
    """Check the configuration columns (and `status`) of a frame of `count` rows.

    `names`: what all of the frame's columns are called. `wanted`: the configuration columns to
    read, all or only a problem's.

    Raises InputError with every mistake: absent columns, names that are taken, and for each column
    how many values are wrong, the first of them and its row.
    """
    problems = _taken(names) + _absent(names, wanted)
    incomplete = np.zeros(count, dtype=bool)
    measured_ok = None
    if "status" in columns:
        measured_ok = (columns["status"] == "ok").fillna(False).to_numpy(dtype=bool)
    numbers: dict[str, np.ndarray] = {}
    for name in wanted:
        if name not in columns:
            continue
        cells = _cells(COLUMNS[name], columns[name])
        problems += _complaints(COLUMNS[name], columns[name], cells)
        blank = cells.blank if measured_ok is None else cells.blank & measured_ok
        problems += _complaint(name, "blank", columns[name], blank, "fill or drop those rows")
        incomplete |= cells.blank
        numbers[name] = cells.numbers
    if problems:
        raise InputError(problems)
    return Rows(numbers, incomplete, measured_ok)


def prediction_name(name: str, names: Collection[Any]) -> str:
    """What a prediction column is called beside the columns `names` of a frame."""
    return f"{name}_predicted" if name in names else name


def warn_of_misspelling(names: Iterable[Any]) -> None:
    """Warn of columns that look like a configuration column which takes its default."""
    names = [name for name in names if isinstance(name, str)]
    for name in COLUMNS:
        if name not in REQUIRED and name not in names and (meant := _near(name, names)):
            warnings.warn(
                f"column '{meant}' has no effect, and '{name}' takes its default; "
                f"if '{name}' is meant, rename it",
                stacklevel=3,
            )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _near(name: str, names: Iterable[str]) -> str | None:
    """A column that was probably meant to be `name`. `group` is no misspelt `group_m`."""
    taken = {*COLUMNS, name.rpartition("_")[0]}
    free = {_plain(other): other for other in reversed(list(names)) if other not in taken}
    close = get_close_matches(_plain(name), free, n=1, cutoff=0.87)
    return free[close[0]] if close else None


def _absent(names: Sequence[Any], wanted: Sequence[str]) -> list[str]:
    problems = []
    for name in REQUIRED:
        if name in wanted and name not in names:
            meant = _near(name, [other for other in names if isinstance(other, str)])
            hint = f"; did you mean '{meant}'? rename it" if meant else f": {COLUMNS[name].meaning}"
            problems.append(f"column '{name}' is missing{hint}")
    return problems


def _taken(names: Sequence[Any]) -> list[str]:
    """What is wrong with the names of a frame's columns."""
    problems = [
        f"column '{name}' is there {names.count(name)} times; rename or drop all but one"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if "time_us" in names:
        problems.append(
            "column 'time_us' is the name of the prediction; if it holds measured times, "
            "rename it to 'time_us_measured', otherwise drop it"
        )
    return problems + [
        f"columns '{name}' and '{name}_predicted' are both taken; rename or drop one of them"
        for name in (*PREDICTION_COLUMNS, *INTERVAL_COLUMNS)
        if name in names and f"{name}_predicted" in names
    ]


def _complaint(
    name: str, what: str, values: "pd.Series", wrong: np.ndarray, mend: str = ""
) -> list[str]:
    """One message for the rows `wrong` of a column, none if there are none."""
    count = int(wrong.sum())
    if not count:
        return []
    row = int(wrong.argmax())
    rows = "1 row" if count == 1 else f"{count} rows"
    hint = f"; {mend}" if mend else ""
    where = f"first in row {row} (from 0): {_shown(values.iloc[row])}"
    return [f"column '{name}': {what} in {rows}, {where}{hint}"]


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN_LETTERS else f"{value[:SHOWN_LETTERS]}…")
    try:
        return str(value)[:SHOWN_LETTERS]
    except ValueError:
        return "a number of thousands of digits"


def _complaints(column: Column, values: "pd.Series", cells: Cells) -> list[str]:
    """What is wrong with the cells of a column, blanks aside."""
    if not column.choices:
        span = f"a whole number from {column.minimum} to {column.maximum}"
        return [
            *_complaint(column.name, f"not {span}", values, cells.outside),
            *_complaint(column.name, "not a number", values, cells.unread, "write whole numbers"),
        ]
    positions, words = _factorized(values)
    unknown = list(dict.fromkeys(positions[cells.unread].tolist()))
    problems = []
    for position in unknown[:SHOWN_WORDS]:
        hint = nearest(words[position], column.choices).removeprefix("; ")
        same = positions == position
        problems += _complaint(column.name, "unknown word", values, same, hint)
    if len(unknown) > SHOWN_WORDS:
        problems.append(
            f"column '{column.name}': {len(unknown) - SHOWN_WORDS} more unknown words; "
            f"valid: {', '.join(column.choices)}"
        )
    return problems


def _cells(column: Column, values: "pd.Series") -> Cells:
    """The cells of a column of words, or of numbers: text that spells a whole number is one, and
    blank text is blank."""
    import pandas as pd

    if column.choices:
        positions, words = _factorized(values)
        codes = {word: code for code, word in enumerate(column.choices)}
        known = [codes.get(word, -1) if isinstance(word, str) else -1 for word in words]
        blank = np.asarray([*map(_is_blank, words), True])[positions]
        numbers = np.asarray([*known, -1], dtype=np.int64)[positions]
        return Cells(np.maximum(numbers, 0), blank, (numbers < 0) & ~blank, np.zeros_like(blank))
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        whole, none = values.to_numpy(), np.zeros(len(values), dtype=bool)
        outside = (whole < column.minimum) | (whole > column.maximum)
        return Cells(np.where(outside, 1, whole).astype(np.int64), none, none, outside)
    blank = values.isna().to_numpy(dtype=bool)
    kept = np.asarray(values) if isinstance(values.dtype, pd.CategoricalDtype) else values
    types = pd.api.types
    floats = np.full(len(values), float(column.minimum))
    if types.is_integer_dtype(kept) or types.is_float_dtype(kept):
        floats[~blank] = np.asarray(kept[~blank], dtype=np.float64)
    else:
        blank = blank | np.fromiter(map(_is_blank, kept), bool, len(values))
        floats[~blank] = [_number(value) for value in kept[~blank]]
    unread = np.isnan(floats)
    floats[unread] = column.minimum
    outside = (floats < column.minimum) | (floats > column.maximum) | (floats != np.floor(floats))
    return Cells(np.where(outside, 1, floats).astype(np.int64), blank, unread, outside)


def _factorized(values: "pd.Series") -> tuple[np.ndarray, Any]:
    """The position of each cell among the distinct ones, -1 for nothing, and those."""
    import pandas as pd

    try:
        return pd.factorize(values)
    except TypeError:  # lists and the like
        return pd.factorize(values.astype(str))


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _number(value: object) -> float:
    """A number of any kind, or text that spells a whole one; NaN for what is none."""
    if isinstance(value, str):
        return float(value) if WHOLE.fullmatch(value := value.strip()) else math.nan
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan
