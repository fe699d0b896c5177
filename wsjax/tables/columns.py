"""Tables in memory: columns of Arrow from numbers, and back.

A figure that does not exist is null: the time of an illegal row, the
number of waves of a row without m. Words that repeat are dictionary-encoded.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax.errors import InputError
from wsjax.schema import COLUMNS, INTERVAL_COLUMNS, LIMITERS, METHODS, PREDICTION_COLUMNS, REASONS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def is_arrow(frame: object) -> bool:
    """Whether `frame` is an Arrow table."""
    import pyarrow as pa

    return isinstance(frame, pa.Table)


def series(table: "pa.Table", name: str) -> "pd.Series":
    """One column for pandas."""
    return table.column(name).to_pandas()


def words(codes: np.ndarray, choices: tuple[str, ...], rows: int = 1) -> "pa.Array":
    """A dictionary-encoded column of the words that `codes` stand for; null where negative.

    A scalar, here and below, is the value of `rows` rows.
    """
    import pyarrow as pa

    held = _held(codes, np.int8 if len(choices) <= 127 else np.int32, rows)
    absent = held < 0
    indices = pa.array(held, mask=absent if absent.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(choices, pa.string()), safe=False)


def configuration_column(name: str, values: np.ndarray, rows: int = 1) -> "pa.Array":
    """A configuration column as tables hold it: words, int64 where sizes need it, else int32."""
    import pyarrow as pa

    column = COLUMNS[name]
    if column.choices:
        return words(values, column.choices, rows)
    return pa.array(_held(values, kind_of(name), rows))


def kind_of(name: str) -> type:
    """The kind of number of which tables make a configuration column."""
    column = COLUMNS[name]
    return np.int8 if column.choices else np.int64 if column.maximum >= 2**31 else np.int32


def number_column(values: np.ndarray, rows: int = 1) -> "pa.Array":
    """Numbers of any kind as a column of their own type."""
    import pyarrow as pa

    return pa.array(_held(values, np.asarray(values).dtype, rows))


def list_column(values: Sequence[np.ndarray], kind: type) -> "pa.Array":
    """A column of lists of numbers."""
    import pyarrow as pa

    ends = np.cumsum([0, *map(len, values)])
    items = np.concatenate([np.zeros(0, kind), *values])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(items))


def _held(values: np.ndarray, kind: Any, rows: int) -> np.ndarray:
    if np.ndim(values):
        return np.asarray(values, kind)
    return _constant(np.asarray(values).item(), kind, rows)


@lru_cache(64)
def _constant(value: Any, kind: Any, rows: int) -> np.ndarray:
    return np.full(rows, value, kind)


def prediction_columns(
    prediction: Any,
    *,
    extrapolated: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray] | None = None,
    incomplete: np.ndarray | None = None,
) -> dict[str, "pa.Array"]:
    """The prediction columns of a `batch.Prediction`.

    `extrapolated`: rows that no measurement backs. `interval`: the least and greatest times to
    expect, if the machine's file says how sure they are. `incomplete`: rows that lack a value that
    counts depend on.
    """
    import pyarrow as pa

    illegal = prediction.reason != 0
    none = illegal if illegal.any() else None
    choices = {"limiter": LIMITERS, "method": METHODS, "reason": REASONS}
    columns: dict[str, pa.Array] = {}
    for name in PREDICTION_COLUMNS:
        if name == "extrapolated":
            columns[name] = pa.array(extrapolated)
        elif name == "legal":
            columns[name] = pa.array(~illegal)
        elif name in choices:
            columns[name] = words(getattr(prediction, name), choices[name])
        elif name in ("waves", "k_tiles", "smem_bytes"):
            columns[name] = pa.array(getattr(prediction, name), pa.int64(), mask=incomplete)
        else:
            columns[name] = pa.array(getattr(prediction, name), pa.float64(), mask=none)
    for name, values in zip(INTERVAL_COLUMNS, interval or (), strict=False):
        columns[name] = pa.array(values, pa.float64(), mask=none)
    return columns


def record(
    prediction: Any,
    *,
    extrapolated: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, Any]:
    """The first row of `prediction_columns` as plain values, without Arrow."""
    legal = not prediction.reason[0]
    choices = {"limiter": LIMITERS, "method": METHODS, "reason": REASONS}
    found: dict[str, Any] = {}
    for name in PREDICTION_COLUMNS:
        if name in ("extrapolated", "legal"):
            found[name] = legal if name == "legal" else bool(extrapolated[0])
            continue
        value = getattr(prediction, name)[0].item()
        if name in choices:
            found[name] = choices[name][value] if value >= 0 else None
        else:
            found[name] = value if legal or isinstance(value, int) else None
    for name, values in zip(INTERVAL_COLUMNS, interval or (), strict=False):
        found[name] = float(values[0]) if legal else None
    return found


def with_interval(columns: Mapping[str, "pa.Array"]) -> dict[str, "pa.Array"]:
    """Prediction columns with those of an interval, empty where the machine has none."""
    import pyarrow as pa

    empty = pa.nulls(len(columns["time_us"]), pa.float64())
    return {**columns, **{name: columns.get(name, empty) for name in INTERVAL_COLUMNS}}


def append(table: "pa.Table", columns: Mapping[str, "pa.Array"]) -> "pa.Table":
    """`table` with `columns` behind its own."""
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table


def append_to_frame(frame: "pd.DataFrame", columns: Mapping[str, "pa.Array"]) -> "pd.DataFrame":
    """`frame` with `columns` behind its own; its index is kept."""
    import pandas as pd
    import pyarrow as pa

    right = pa.table(dict(columns)).to_pandas().set_axis(frame.index, axis=0)
    return pd.concat([frame, right], axis=1)


def from_frame(frame: "pd.DataFrame") -> "pa.Table":
    """A frame as an Arrow table, without its index."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"no column of a table: {error}") from None


def numbers(values: "pa.Array", choices: tuple[str, ...] = ()) -> np.ndarray:
    """A column without nulls as numbers: words as their positions in `choices`."""
    import pyarrow as pa

    if not isinstance(values, pa.DictionaryArray):
        return values.to_numpy(zero_copy_only=False)
    position = {word: code for code, word in enumerate(choices)}
    codes = np.asarray([position[word] for word in values.dictionary.to_pylist()], dtype=np.int64)
    return codes[values.indices.to_numpy()]


def rows(columns: Mapping[str, "pa.Array"], positions: Sequence[int]) -> list[dict[str, Any]]:
    """Rows as plain Python values."""
    return [{name: column[i].as_py() for name, column in columns.items()} for i in positions]


def finite(value: Any) -> Any:
    """A value as JSON can hold it: None for numbers that are not finite, NumPy's as Python's."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
