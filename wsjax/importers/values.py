"""Numbers and times as other tools write them: units, separators, decimal marks."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

UNITS = {
    1e6: ("s", "sec", "secs", "second", "seconds"),
    1e3: ("ms", "msec", "msecs", "msecond", "millisecond", "milliseconds"),
    1.0: ("us", "µs", "μs", "usec", "usecs", "usecond", "microsecond", "microseconds"),
    1e-3: ("ns", "nsec", "nsecs", "nsecond", "nanosecond", "nanoseconds"),
}
US_PER = {name: scale for scale, names in UNITS.items() for name in names}
"""Microseconds in one of each unit."""
_IN_HEADER = re.compile(rf"(?:^|[\s_.\-/(\[])({'|'.join(US_PER)})[)\]]?(?=$|[\s_.\-/(\[])", re.I)
_NUMBER = re.compile(
    r"\s*([-+]?)\s*(inf(?:inity)?|nan|\d[\d.,'’\u00a0\u202f ]*(?:e[-+]?\d+)?|[.,]\d+(?:e[-+]?\d+)?)"
    r"\s*([a-zµμ]*)\s*",
    re.I,
)
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")


def scalars(column: "pd.Series") -> "pd.Series":
    """A column in which lists and records, which no column of ours holds, are texts."""
    if column.dtype != object:
        return column
    nested = np.asarray([isinstance(value, list | dict | np.ndarray) for value in column], bool)
    return column.where(~nested, column.map(str)) if nested.any() else column


def everywhere(columns: Mapping[str, "pd.Series"], value: object) -> "pd.Series":
    """A column with one value in all rows of `columns`."""
    import pandas as pd

    index = next(iter(columns.values())).index
    return pd.Series([value] * len(index), index=index, dtype=object)


def each(column: "pd.Series", translate: Callable[[str], object]) -> "pd.Series":
    """A column of texts with each translated, and blanks left blank: one call a different text."""
    import pandas as pd

    codes, found = pd.factorize(scalars(column))
    told = np.asarray([*(translate(str(text)) for text in found), None], dtype=object)
    return pd.Series(told[codes], index=column.index)


def unit_in(header: str) -> float | None:
    """Microseconds in the time unit that a header names, such as `Runtime (ms)` or `time_us`."""
    found = _IN_HEADER.findall(re.sub(r"(?<=[a-z])(?=[MUN]s$)", "_", str(header)))
    return US_PER[found[-1].lower()] if found else None


def decimal_mark(texts: Iterable[str]) -> str:
    """`,` if these numbers can only be read with a decimal comma, else `.`."""
    commas = dots = 0
    for text in texts:
        match = _NUMBER.fullmatch(text)
        if not match:
            continue
        last = max(match[2].rfind(","), match[2].rfind("."))
        if last < 0:
            continue
        mark = match[2][last]
        several = match[2].count(mark) > 1
        both = "," in match[2] and "." in match[2]
        if several:
            mark = "." if mark == "," else ","
        elif not both and _GROUPED.fullmatch(match[2].lower().partition("e")[0]):
            continue
        commas += mark == ","
        dots += mark == "."
    return "," if commas > dots else "."


def parse(text: str, mark: str = ".") -> tuple[float, str]:
    """A number with its decimal mark, and the unit behind it; NaN for what is none."""
    match = _NUMBER.fullmatch(text)
    if not match:
        return np.nan, ""
    digits = re.sub(r"['’\u00a0\u202f ]", "", match[2])
    digits = digits.replace("," if mark == "." else ".", "").replace(mark, ".")
    try:
        return float(f"{match[1]}{digits}"), match[3].lower()
    except ValueError:
        return np.nan, ""


def numbers(values: "pd.Series", mark: str | None = None) -> "pd.Series":
    """A column as float64: numbers, or texts with any separators; NaN for what is no number."""
    return times_us(values, 1.0, mark, units=False)


def times_us(
    values: "pd.Series", scale: float, mark: str | None = None, *, units: bool = True
) -> "pd.Series":
    """A column of times in µs. `scale`: µs in one of the column's unit; a value's own unit wins."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return values.astype("float64") * scale
    codes, found = pd.factorize(scalars(values))
    texts = [str(value) for value in found]
    mark = mark or decimal_mark(texts)
    parsed = [
        (value, "") if isinstance(value, int | float) else parse(text, mark)
        for value, text in zip(found, texts, strict=True)
    ]
    read = [
        number * (US_PER.get(unit, np.nan) if units and unit else scale) for number, unit in parsed
    ]
    return pd.Series(np.asarray([*read, np.nan])[codes], index=values.index)


def has_units(values: "pd.Series") -> bool:
    """Whether the first of a column's texts carry a time unit of their own."""
    texts = [str(value) for value in values.dropna().head(20)]
    return bool(texts) and all(parse(text)[1] in US_PER for text in texts)
