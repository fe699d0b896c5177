"""From a frame's columns to configurations: checks, defaults, and the names of what comes back.

Rows count from 0 in messages. A blank in a configuration column is a mistake, except in a row
whose `status` says that it was not measured: that row is `incomplete`.
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
    COLUMNS,
    DTYPE_BYTES,
    INTERVAL_COLUMNS,
    PREDICTION_COLUMNS,
    REQUIRED,
    Column,
    Configuration,
    with_defaults,
)
from wsjax.schema.limits import Facts, deepest_stages

if TYPE_CHECKING:
    import pandas as pd

SHOWN_WORDS = 3
"""How many unknown words of one column a message lists."""
NEUTRAL = "no parameter of this machine costs time, so that times are 0; give it rates and times"
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


def resolve(columns: Mapping[str, Any], facts: Facts) -> Configuration:
    """The configurations that numbers (codes for words) and their defaults make on a machine.

    `stages`, when absent, is the deepest ring that fits, or 1 where none does: such a row is then
    illegal for its shared memory.
    """
    filled = with_defaults(columns)
    if "stages" not in filled:
        sizes = np.asarray(DTYPE_BYTES)
        blocks = (filled["block_m"], filled["block_n"], filled["block_k"])
        in_bytes, out_bytes = sizes[filled["dtype_in"]], sizes[filled["dtype_out"]]
        deepest = deepest_stages(*blocks, in_bytes, out_bytes, facts)
        filled["stages"] = np.maximum(deepest, 1)
    return Configuration(**{name: np.asarray(filled[name], np.int64) for name in COLUMNS})


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
        column = COLUMNS[name]
        read = _codes if column.choices else _whole_numbers
        numbers[name], missing = read(column, columns[name], problems)
        blank = missing if measured_ok is None else missing & measured_ok
        problems += _complaint(name, "blank", columns[name], blank, "fill or drop those rows")
        incomplete |= missing
    if problems:
        raise InputError(problems)
    return Rows(numbers, incomplete, measured_ok)


def read_value(column: Column, value: int | str) -> tuple[str, int]:
    """What is wrong with one value ("" if nothing), and its number or code."""
    if column.choices:
        known = value in column.choices
        hint = nearest(value, column.choices)
        return ("", column.choices.index(value)) if known else (f"unknown word '{value}'{hint}", 0)
    if type(value) is int and column.minimum <= value <= column.maximum:
        return "", value
    return f"{value} is not a whole number from {column.minimum} to {column.maximum}", 1


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


def _whole_numbers(
    column: Column, values: "pd.Series", problems: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """A column as int64, and where it is blank (1 there); what is wrong goes to `problems`.

    Text that spells a whole number is one, and blank text is blank.
    """
    import pandas as pd

    missing = values.isna().to_numpy(dtype=bool)
    kept = np.asarray(values) if isinstance(values.dtype, pd.CategoricalDtype) else values
    types = pd.api.types
    floats = np.full(len(values), float(column.minimum))
    if types.is_integer_dtype(kept) or types.is_float_dtype(kept):
        floats[~missing] = np.asarray(kept[~missing], dtype=np.float64)
    else:
        missing = missing | np.fromiter(map(_is_blank, kept), bool, len(values))
        floats[~missing] = [_number(value) for value in kept[~missing]]
    unread = np.isnan(floats)
    floats[unread] = column.minimum
    outside = (floats < column.minimum) | (floats > column.maximum) | (floats != np.floor(floats))
    span = f"a whole number from {column.minimum} to {column.maximum}"
    problems += _complaint(column.name, f"not {span}", values, outside)
    problems += _complaint(column.name, "not a number", values, unread, "write whole numbers")
    return np.where(outside, 1, floats).astype(np.int64), missing


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


def _codes(
    column: Column, values: "pd.Series", problems: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """A text column as codes, and where it is blank (0 there)."""
    import pandas as pd

    try:
        positions, found = pd.factorize(values)
    except TypeError:  # lists and the like
        positions, found = pd.factorize(values.astype(str))
    blank = np.asarray([*map(_is_blank, found), True])
    missing = blank[positions]
    words = [word if isinstance(word, str) else None for word in found]
    known = [column.choices.index(word) if word in column.choices else -1 for word in words]
    codes = np.asarray([*known, 0], dtype=np.int64)[positions]
    unknown = [index for index, code in enumerate(known) if code < 0 and not blank[index]]
    for index in unknown[:SHOWN_WORDS]:
        hint = nearest(found[index], column.choices).removeprefix("; ")
        problems += _complaint(column.name, "unknown word", values, positions == index, hint)
    if len(unknown) > SHOWN_WORDS:
        problems.append(
            f"column '{column.name}': {len(unknown) - SHOWN_WORDS} more unknown words; "
            f"valid: {', '.join(column.choices)}"
        )
    return np.maximum(codes, 0), missing
