"""Tables in files and in memory: the schema, reading, writing. With `csv_files` the only user of
pyarrow.

A figure that does not exist is null: the time of an illegal row, the
number of waves of a row without m. Words that repeat are dictionary-encoded.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from wsjax import __version__
from wsjax.errors import InputError
from wsjax.hardware import Hardware, format_hardware
from wsjax.schema import COLUMNS, INTERVAL_COLUMNS, LIMITERS, METHODS, PREDICTION_COLUMNS, REASONS
from wsjax.tables import csv_files
from wsjax.tables.files import existing, replacing, suffix

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.dataset as ds

SCHEMA_VERSION = 1
CONTINUOUS = ("time_us", "math_wait_us", "dma_wait_us", "tflops", *INTERVAL_COLUMNS)
"""Columns whose values hardly repeat: a dictionary of them would cost time and space."""
WRITTEN_ROWS = 2**16
"""Values of a column that go to its encoder at once."""
BUFFER = 2**20
"""Bytes that are written at once: a write waits for the threads that predict."""


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


def metadata(machines: Iterable[Hardware], **texts: str) -> dict[str, str]:
    """What a file says of its origin: the versions, the machines' files, further `texts`."""
    files = {machine.name: machine.text or format_hardware(machine) for machine in machines}
    own = {"schema_version": str(SCHEMA_VERSION), "version": __version__}
    own |= {"hardware": json.dumps(files, ensure_ascii=False), **texts}
    return {f"wsjax.{key}": value for key, value in own.items()}


class Footer(NamedTuple):
    """What the end of a Parquet file says: our texts, and how many rows there are."""

    texts: dict[str, str]
    rows: int


def read_footer(path: Any) -> Footer | None:
    """The footer of a Parquet file, a path or open, with the texts under their full keys; None if
    it has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return None
    texts = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (found.metadata or {}).items()
        if key.startswith(b"wsjax.")
    }
    return Footer(texts, found.num_rows)


def read_metadata(path: str | Path) -> dict[str, str]:
    """The texts that `metadata` put into a Parquet file, without their prefix."""
    footer = read_footer(existing(path))
    if footer is None:
        raise InputError(f"{path}: cannot be read as Parquet; copy or write it again")
    return {key.removeprefix("wsjax."): text for key, text in footer.texts.items()}


def read_table(
    path: str | Path,
    *,
    parquet: bool | None = None,
    compressed: bool | None = None,
    encoding: str = "utf-8",
    delimiter: str = ",",
    skipped: int = 0,
) -> "pa.Table":
    """Read a CSV or Parquet file, or a directory of Parquet files.

    parquet, compressed: what the content is; by default, what the name says.

    InputError if it is absent, unreadable or not what it should be.
    """
    path = existing(path)
    kind = ".parquet" if path.is_dir() or parquet else ".csv" if parquet is False else suffix(path)
    if kind == ".parquet":
        return _read_parquet(path)
    compressed = kind == ".csv.gz" if compressed is None else compressed
    return csv_files.read(
        path, compressed=compressed, encoding=encoding, delimiter=delimiter, skipped=skipped
    )


def _read_parquet(path: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = parquet_names(path)
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise InputError(
            f"{path}: column '{name}' is there {names.count(name)} times; drop all but one"
            for name in repeated
        )
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None


def parquet_names(path: str | Path) -> list[str]:
    """The columns of a Parquet file, or of a directory of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(path).is_dir() and not any(Path(path).rglob("*.parquet")):
        raise InputError(f"{path}: a directory without .parquet files; give a table")
    try:
        return pq.ParquetDataset(path).schema.names
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None


def parquet_dataset(
    files: Sequence[str], system: Any, base: str, folders: Mapping[str, "pa.Array"]
) -> "ds.Dataset":
    """Parquet files of one schema, in a file system of pyarrow's, as one dataset.

    base: the directory above folders such as `m=16`; `folders`: the columns they stand for, each a
    value of it.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    types = {name: column.type for name, column in folders.items()}
    plain = {n: t.value_type if pa.types.is_dictionary(t) else t for n, t in types.items()}
    hive = ds.partitioning(pa.schema(list(plain.items())), flavor="hive") if types else None
    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    kind = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    return ds.dataset(
        list(files), filesystem=system, format=kind, partitioning=hive, partition_base_dir=base
    )


def from_frame(frame: "pd.DataFrame") -> "pa.Table":
    """A frame as an Arrow table, without its index."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"no column of a table: {error}") from None


def write_table(table: "pa.Table", path: str | Path, texts: Mapping[str, str]) -> None:
    """Write `table` as the kind of file that `path` ends in; Parquet carries `texts`.

    InputError for what such a file can't hold: lists and the like in CSV.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if suffix(path) != ".parquet":
        csv_files.write(table, path)
        return
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **texts})
    try:
        with replacing(path) as file:
            pq.write_table(table, file, compression="zstd")
    except pa.ArrowException as error:
        raise InputError(f"{path}: cannot be written as Parquet: {error}") from None


def shard_options(names: Iterable[str]) -> dict[str, Any]:
    """How the columns of a sweep are encoded, for pyarrow."""
    repeating = [name for name in names if name not in CONTINUOUS]
    encoding = {"use_dictionary": repeating, "write_batch_size": WRITTEN_ROWS}
    return {"compression": "snappy", "write_page_checksum": True, **encoding}


@contextmanager
def shard_writer(
    place: str | Path | AbstractContextManager[BinaryIO], texts: Mapping[str, str]
) -> Iterator[tuple[Callable[[Mapping[str, "pa.Array"]], None], Callable[[str, str], None]]]:
    """Two functions for a new Parquet file at a path, or for what `replacing` gives: one adds rows,
    and is called at least once; one then adds a text to the metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(place) if isinstance(place, str | Path) else place as file:
        writer: pq.ParquetWriter | None = None
        stream = pa.BufferedOutputStream(pa.PythonFile(file, "w"), BUFFER)

        def write(columns: Mapping[str, pa.Array]) -> None:
            nonlocal writer
            table = pa.table(dict(columns)).replace_schema_metadata(dict(texts))
            if writer is None:
                writer = pq.ParquetWriter(stream, table.schema, **shard_options(table.column_names))
            writer.write_table(table)

        def note(key: str, text: str) -> None:
            assert writer is not None
            writer.add_key_value_metadata({key: text})

        try:
            yield write, note
            if writer is not None:
                writer.close()
            stream.detach()
        except BaseException:
            for held in (writer, stream):
                with suppress(pa.ArrowException, OSError):
                    if held is not None:
                        held.close()
            raise


def read_batches(path: Any, names: Iterable[str] | None = None) -> Iterator[dict[str, "pa.Array"]]:
    """The rows of a Parquet file, a path or open, or these columns of them, a piece at a time;
    InputError if it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(columns=None if names is None else list(names)):
                yield dict(zip(batch.schema.names, batch.columns, strict=True))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None


def numbers(values: "pa.Array", choices: tuple[str, ...] = ()) -> np.ndarray:
    """A column without nulls as numbers: words as their positions in `choices`."""
    import pyarrow as pa

    if not isinstance(values, pa.DictionaryArray):
        return values.to_numpy(zero_copy_only=False)
    position = {word: code for code, word in enumerate(choices)}
    own = np.asarray([position[word] for word in values.dictionary.to_pylist()], dtype=np.int64)
    return own[values.indices.to_numpy()]


def rows(columns: Mapping[str, "pa.Array"], positions: Sequence[int]) -> list[dict[str, Any]]:
    """Rows as plain Python values."""
    return [{name: column[i].as_py() for name, column in columns.items()} for i in positions]
