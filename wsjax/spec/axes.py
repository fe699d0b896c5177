"""What a sweep file writes for an axis: one value, a list, a range, or a list of problems.

Each reader returns the axis' values, or None after telling `refuse(key, complaint)` every mistake.
"""

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wsjax.errors import nearest
from wsjax.schema import COLUMNS, REQUIRED, Axis, shown

Check = Callable[[str, Any], str]
Refuse = Callable[[str, str], None]

PROBLEM_COLUMNS = ("m", "n", "k", "batch", "dtype_in", "dtype_out", "layout")
RANGE_KEYS = ("from", "to", "step", "factor")
FLOATS_MAX = 1_000_000
COMPLAINTS_MAX = 5
DELIMITERS = ",;\t"


def read_values(
    key: str, value: Any, check: Check, refuse: Refuse, whole: bool = True
) -> Sequence[Any] | None:
    """The values that `value` stands for; `check` judges each.

    A scalar is one value; a list holds them; `{ from, to, step }` counts up and
    `{ from, to, factor }` multiplies, both from `from` to the last that does not pass `to`.
    `whole`: values are whole numbers, and a range of them a `range` of any length.
    """
    if isinstance(value, Mapping):
        return _read_range(key, value, check, refuse, whole)
    values = value if isinstance(value, list) else [value]
    if not values:
        return refuse(key, "the list is empty; give a value, or leave the key out")
    complaints = [complaint for item in values if (complaint := check(key, item))]
    if not complaints:
        seen: dict[Any, int] = {}
        for item in values:
            seen[item] = seen.get(item, 0) + 1
        repeated = [item for item, count in seen.items() if count > 1]
        complaints = [f"{shown(item)} is in the list twice; leave one out" for item in repeated]
    return refuse_some(key, complaints, refuse) if complaints else values


def refuse_some(key: str, complaints: Sequence[str], refuse: Refuse) -> None:
    """Tell the first few complaints about one key, and how many more there are."""
    for complaint in complaints[:COMPLAINTS_MAX]:
        refuse(key, complaint)
    if len(complaints) > COMPLAINTS_MAX:
        refuse(key, f"and {len(complaints) - COMPLAINTS_MAX} more mistakes like these")


def _read_range(
    key: str, table: Mapping[str, Any], check: Check, refuse: Refuse, whole: bool
) -> Sequence[Any] | None:
    unknown = [name for name in table if name not in RANGE_KEYS]
    complaints = [f"unknown key '{name}'{nearest(name, RANGE_KEYS)}" for name in unknown]
    complaints += [f"'{name}' is missing" for name in ("from", "to") if name not in table]
    if not unknown and ("step" in table) == ("factor" in table):
        complaints.append("a range has either 'step' or 'factor'; give one of them")
    for name in ("from", "to"):
        if name in table:
            complaint = check(key, table[name])
            if not complaint and not _is_finite(table[name]):
                complaint = f"{shown(table[name])} can't bound a range; write the values as a list"
            complaints += [f"{name}: {complaint}"] if complaint else []
    for name, above in (("step", 0), ("factor", 1)):
        step = table.get(name, above + 1)
        kind = "a whole number" if whole else "a finite number"
        if not _is_finite(step) or step <= above or (whole and type(step) is not int):
            complaints.append(f"{name}: expected {kind} above {above}, not {shown(step)}")
    if complaints:
        return refuse_some(key, [f"{complaint}; {_EXAMPLE}" for complaint in complaints], refuse)
    first, last = table["from"], table["to"]
    if first > last:
        return refuse(key, f"'from' {shown(first)} is above 'to' {shown(last)}; swap them")
    if whole and "step" in table:
        return range(first, last + 1, table["step"])
    if "factor" in table and first == 0:
        return refuse(key, "a range by 'factor' can't start at 0; start above it")
    return _float_range(key, first, last, table, whole, refuse)


_EXAMPLE = "a range is { from = 64, to = 256, step = 64 } or { from = 64, to = 256, factor = 2 }"


def _float_range(
    key: str, first: float, last: float, table: Mapping[str, Any], whole: bool, refuse: Refuse
) -> Sequence[Any] | None:
    """Values by `factor`, or by a `step` with a fraction; rounding never loses the last one."""
    if "factor" in table:
        steps = (math.log(last) - math.log(first)) / math.log(table["factor"])
    else:
        steps = (last - first) / table["step"]
    if not steps < FLOATS_MAX:
        return refuse(key, f"more than {FLOATS_MAX:,} values; take a larger 'step' or 'factor'")
    indices = range(math.floor(steps + 1e-9) + 1)
    if "factor" in table:
        values = [first * table["factor"] ** index for index in indices]
    else:
        values = [first + table["step"] * index for index in indices]
    return values if whole else [min(float(value), float(last)) for value in values]


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63 and math.isfinite(value)


def column_axis(name: str, value: Any, refuse: Refuse) -> Axis | None:
    """The axis of the configuration column `name`."""
    column = COLUMNS[name]
    if column.choices and isinstance(value, Mapping):
        words = ", ".join(column.choices)
        return refuse(name, f"a column of words has no range; write a list of: {words}")
    values = read_values(name, value, lambda key, item: column.complaint(item), refuse)
    return None if values is None else Axis((name,), (_numbers(name, values),))


def _numbers(name: str, values: Sequence[Any]) -> np.ndarray | range:
    if isinstance(values, range):
        return values
    choices = COLUMNS[name].choices
    return np.array([choices.index(v) if choices else v for v in values], dtype=np.int64)


def problem_axis(rows: Sequence[Any], refuse: Refuse, source: str) -> Axis | None:
    """The axis of a list of problems, tables that all have the same keys.

    Keys are those of `PROBLEM_COLUMNS`, and `name`, which becomes the text column `problem`.
    `source` says where the rows are from: the key that messages name.
    """
    if not rows:
        return refuse(source, "no problems; give at least one, such as { m = 16, n = 64, k = 64 }")
    if not all(isinstance(row, Mapping) for row in rows):
        wrong = next(row for row in rows if not isinstance(row, Mapping))
        return refuse(source, f"expected tables such as {{ m = 16, … }}, not {shown(wrong)}")
    keys = list(rows[0])
    complaints = [f"unknown key '{key}'{nearest(key, _KEYS)}" for key in keys if key not in _KEYS]
    known = [key for key in keys if key in _KEYS]
    if not set(known) & set(REQUIRED):
        complaints.append(f"none of m, n, k is given; the keys are: {', '.join(keys)}")
    for number, row in enumerate(rows, 1):
        if row.keys() != rows[0].keys():
            odd = ", ".join(sorted(set(row) ^ set(keys)))
            complaints.append(f"row {number}: not the keys of row 1 ({odd}); all must match")
            continue
        for key in known:
            complaint = _name(row[key]) if key == "name" else COLUMNS[key].complaint(row[key])
            complaints += [f"row {number}: {key}: {complaint}"] if complaint else []
    if not complaints:
        first: dict[tuple, int] = {}
        for number, row in enumerate(rows, 1):
            earlier = first.setdefault(tuple(row[key] for key in keys), number)
            if earlier != number:
                complaints.append(f"row {number}: the same as row {earlier}; leave one out")
    if complaints:
        return refuse_some(source, complaints, refuse)
    columns = [key for key in PROBLEM_COLUMNS if key in keys]
    values: list[np.ndarray | range] = [
        _numbers(key, [row[key] for row in rows]) for key in columns
    ]
    if "name" not in keys:
        return Axis(tuple(columns), tuple(values))
    names = tuple(dict.fromkeys(row["name"] for row in rows))
    codes = {name: code for code, name in enumerate(names)}
    values.append(np.array([codes[row["name"]] for row in rows], dtype=np.int64))
    return Axis((*columns, "problem"), tuple(values), {"problem": names})


_KEYS = ("name", *PROBLEM_COLUMNS)


def _name(value: Any) -> str:
    good = isinstance(value, str) and value.strip()
    return "" if good else f"expected a name in quotes, not {shown(value)}"


def read_problem_file(path: Path, refuse: Refuse) -> list[dict[str, Any]] | None:
    """The rows of a problem list in a CSV (also .csv.gz) or Parquet file, whole numbers as int."""
    try:
        if path.suffix == ".parquet":
            import pandas as pd

            return pd.read_parquet(path).astype(object).to_dict("records")
        if not path.name.endswith((".csv", ".csv.gz")):
            return refuse("file", f"{path}: expected a .csv, .csv.gz or .parquet file")
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            mark = max(DELIMITERS, key=file.readline().count)
            file.seek(0)
            reader = csv.DictReader(file, skipinitialspace=True, strict=True, delimiter=mark)
            rows = [{key: _cell(key, value) for key, value in row.items()} for row in reader]
            header = reader.fieldnames
    except UnicodeDecodeError:
        return refuse("file", f"{path}: not UTF-8 text; save it as UTF-8")
    except OSError as error:
        return refuse("file", f"{path}: can't read it: {error.strerror or error}")
    except (ValueError, NotImplementedError, csv.Error, EOFError, zlib.error) as error:
        return refuse("file", f"{path}: can't read it: {error}")
    if not header:
        return refuse("file", f"{path}: the file is empty; its first line names the columns")
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        return refuse("file", f"{path}: two columns are called '{repeated[0]}'; leave one out")
    ragged = [number for number, row in enumerate(rows, 1) if None in row or None in row.values()]
    complaints = [
        f"{path}: row {number}: not as many values as the {len(header)} columns"
        for number in ragged
    ]
    return refuse_some("file", complaints, refuse) if complaints else rows


def _cell(key: str | None, text: Any) -> Any:
    """A cell of a column of whole numbers as such where it spells one, else as its text."""
    if key not in COLUMNS or COLUMNS[key].choices or not isinstance(text, str):
        return text.strip() if isinstance(text, str) else text
    stripped = text.strip()
    digits = stripped.lstrip("+-")
    return int(stripped) if digits.isdecimal() and len(stripped) - len(digits) < 2 else stripped
