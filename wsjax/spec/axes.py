"""What a TOML file writes for an axis: values, a range, problems, factors of parameters.

Each reader returns what it read, or None after telling `refuse(key, complaint)` every mistake.
"""

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsjax import hardware as hardware_
from wsjax.errors import InputError, nearest
from wsjax.hardware import BASIS_KEYS, FACTS, PARAMETERS, Hardware, unused_key
from wsjax.schema import COLUMNS, Axis, problem_axis, shown

Check = Callable[[str, Any], str]
Refuse = Callable[[str, str], None]

RANGE_KEYS = ("from", "to", "step", "factor")
FLOATS_MAX = 1_000_000
COMPLAINTS_MAX = 5
DELIMITERS = ",;\t"
FACTOR_MAX = 1e9


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
    values = read_values(name, value, lambda _, item: column.complaint(item), refuse)
    if values is None or isinstance(values, range):
        return None if values is None else Axis((name,), (values,))
    return Axis((name,), (np.array([column.number(item) for item in values], dtype=np.int64),))


def read_problems(
    table: Mapping[str, Any], folder: Path, refuse: Refuse
) -> tuple[list[dict[str, Any]], Axis] | None:
    """The rows of [problems], written there or in a file beside the sweep, and their axis."""
    if ("rows" in table) == ("file" in table):
        return refuse(
            "rows, file", "give one of them: a list of problems, or the name of a file of them"
        )
    rows, source = table.get("rows"), "rows"
    if "file" in table:
        file = table["file"]
        if not isinstance(file, str) or not file.strip():
            return refuse("file", f"expected a file's name in quotes, not {shown(file)}")
        rows, source = read_problem_file(folder / file, refuse), f"file: {folder / file}"
    elif not isinstance(rows, list):
        return refuse(
            "rows", f"expected a list such as [{{ m = 16, n = 64, k = 64 }}], not {shown(rows)}"
        )
    try:
        return None if rows is None else (rows, problem_axis(rows))
    except InputError as error:
        return refuse_some(source, error.problems, refuse)


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


@dataclass(frozen=True)
class Override:
    """An axis over one hardware parameter or fact: its values, or factors of the machine's own."""

    name: str
    values: Sequence[float]
    scale: bool

    def axis(self, hardware: Hardware) -> Axis:
        """The axis on `hardware`: a float64 column, int64 for a fact."""
        values = self.applied(hardware)
        return Axis((self.name,), (values if isinstance(values, range) else np.array(values),))

    def applied(self, hardware: Hardware) -> Sequence[float]:
        """The parameter's values on `hardware`; scaled facts are whole where that is exact."""
        if isinstance(self.values, range):
            return self.values
        base = _own(hardware, self.name)
        values = [base * value if self.scale else value for value in self.values]
        if self.name in PARAMETERS:
            return [float(value) for value in values]
        return [int(value) if float(value).is_integer() else value for value in values]


def read_overrides(
    table: Mapping[str, Any], hardware: Sequence[Hardware], refuse: Refuse
) -> tuple[Override, ...]:
    """The axes of [hardware_parameters], in the order of PARAMETERS and FACTS.

    Each key holds values, or `{ scale = values }`: factors of each machine's own value.
    """
    overrides = []
    for name in (*PARAMETERS, *FACTS):
        if name not in table:
            continue
        value, fact = table[name], name in FACTS
        scale = isinstance(value, dict) and "scale" in value
        if scale:
            others = ", ".join(key for key in value if key != "scale")
            if others:
                refuse(name, f"'scale' stands alone; leave out: {others}")
            values = read_values(name, value["scale"], _factor, refuse, whole=False)
        else:
            check = hardware_.fact if fact else hardware_.parameter
            values = read_values(name, value, check, refuse, whole=fact)
        if values is None:
            continue
        override = Override(name, values, scale)
        complaints = [text for machine in hardware for text in _misfits(override, machine)]
        refuse_some(name, complaints, refuse)
        overrides.append(override)
    return tuple(overrides)


def _factor(key: str, value: Any) -> str:
    good = type(value) in (int, float) and 0 < value < FACTOR_MAX
    wanted = f"a factor above 0 and below {FACTOR_MAX:g}"
    return "" if good else f"scale: expected {wanted}, not {shown(value)}"


def _misfits(override: Override, machine: Hardware) -> list[str]:
    """Why an override makes no sense on a machine."""
    name = override.name
    if name == unused_key(machine.compute_basis):
        used = BASIS_KEYS[machine.compute_basis]
        return [f"{machine.name} does not use it (compute_basis); sweep {used} instead"]
    if not override.scale:
        return []
    own = _own(machine, name)
    if own == 0 or math.isinf(own):
        return [f"{machine.name} has {shown(own)}, which no factor changes; give values instead"]
    check = hardware_.fact if name in FACTS else hardware_.parameter
    return [
        f"{shown(factor)} times {machine.name}'s {shown(own)}: {complaint}"
        for factor, value in zip(override.values, override.applied(machine), strict=True)
        if (complaint := check(name, value))
    ]


def _own(machine: Hardware, name: str) -> float:
    return getattr(machine.facts if name in FACTS else machine.parameters, name)
