"""What stands in other tools' cells: numbers, times, and the field's words.

Numbers and times have units, separators and decimal marks. Of words for element types, layouts and
the like, case, separators, name spaces (`torch.`, `tl.`, `cutlass::`, `CUDA_R_`, `HIP_R_`) and the
endings `_r` of the BLAS libraries and `_t` of C++ count for nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from wsjax.schema import COLUMNS

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
_SYNONYMS = {
    "fp32": "f32 fp32 float float32 single 32f",
    "tf32": "tf32 tensorfloat32 xf32 floattf32",
    "bf16": "bf16 bfloat16 bfloat 16bf nvbfloat16",
    "fp16": "f16 fp16 half float16 16f",
    "fp8_e4m3": "e4m3 f8 fp8 float8 w8a8fp8 fp8w8a8 fp8static fp8e4nv fp8e4b8 f8fnuz",
    "fp8_e5m2": "e5m2 bf8 fp8e5 fp8e5b16 bf8fnuz",
    "int8": "s8 i8 int8 8i char",
}
_FLOAT8 = re.compile(r"(?:nv)?(?:float|fp|fe|f|8f)?8?e(4m3|5m2)(?:fn|fnuz)?")
_NAMESPACE = re.compile(
    r"^(?:(?:torch|triton|tl|jax|jnp|numpy|np|ml_dtypes|cutlass|cute)[.:]+|(?:cuda|hip|hipblas)_r_)",
    re.I,
)
_DTYPES = {word: ours for ours, words in _SYNONYMS.items() for word in words.split()}
_LOWERED = ("schedule", "scheduler", "write_back", "l2_state")
_OURS = {"flushed": "cold", "flush": "cold", "hot": "warm"}
_OURS |= {"stream_k": "streamk", "stream-k": "streamk", "split_k": "splitk"}
_ACCUMULATORS = {"fp32": "f32", "fp16": "f16", "tf32": "f32", "s32": "f32", "int32": "f32"}
BLAS_LAYOUTS = {"nn": "tt", "nt": "tn", "tn": "nt", "tt": "nn"}
"""Column-major words to ours: their t is A stored [M, K], their n is B stored [N, K]."""


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


@lru_cache(10_000)
def dtype(word: object) -> object:
    """Our word for an element type; what has none stays as it is."""
    text = str(word).strip().strip("'\"")
    key = re.sub(r"[^a-z0-9]", "", _NAMESPACE.sub("", text).lower())
    for known in (key, key[:-1] if key[-1:] in ("r", "t") else key):
        if known in _DTYPES:
            return _DTYPES[known]
        if match := _FLOAT8.fullmatch(known):
            return f"fp8_e{match[1]}"
    return word


def operands(*types: object) -> str:
    """Our word for the type of A and B; where they differ, both, which is none of ours."""
    return " and ".join(dict.fromkeys(str(dtype(word)) for word in types))


def accumulator(word: object) -> str:
    """`f32` (s32 too), `f32_fast` (sums of fp8 products at the MMA's own precision), `f32_promoted`
    (added up in f32 registers) or `f16`; of what is none of them, the word itself."""
    text = str(word).strip().lower()
    return _ACCUMULATORS.get(str(dtype(text)), text)


@lru_cache(10_000)
def ours(column: str, word: object) -> object:
    """A word of a configuration column as we spell it, or as it is if it is none of ours."""
    text = word.strip() if isinstance(word, str) else word
    if text in COLUMNS[column].choices or not isinstance(text, str):
        return text
    if column.startswith("dtype"):
        return dtype(text)
    low = text.lower()
    return _OURS.get(low, low) if column in _LOWERED else text
