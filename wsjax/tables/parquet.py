"""Tables in files, Parquet or CSV: reading, writing, what a Parquet file says of itself.

A mistake in a CSV file is told with its place.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from wsjax import __version__
from wsjax.errors import InputError
from wsjax.hardware import Hardware, format_hardware
from wsjax.schema import INTERVAL_COLUMNS
from wsjax.tables.files import existing, replacing, suffix

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

SCHEMA_VERSION = 1
CHECKSUM_KEY = "wsjax.checksum"
"""Of a file's schema and of our texts: pages have checksums of their own, the footer has none."""
CONTINUOUS = ("time_us", "math_wait_us", "dma_wait_us", "tflops", *INTERVAL_COLUMNS)
"""Columns whose values hardly repeat: a dictionary of them would cost time and space."""
WRITTEN_ROWS = 2**16
"""Values of a column that go to its encoder at once."""
BUFFER = 2**20
"""Bytes that are written at once: a write waits for the threads that predict."""
CSV_BLOCK_BYTES = 2**28
"""A column's type is inferred from this much of the file."""
LINE_BYTES = 2**23
MEND = "save the file as UTF-8"


def metadata(machines: Iterable[Hardware], **texts: str) -> dict[str, str]:
    """What a file says of its origin: the versions, the machines' files, further `texts`."""
    files = {machine.name: machine.text or format_hardware(machine) for machine in machines}
    held = {"schema_version": str(SCHEMA_VERSION), "version": __version__}
    held |= {"hardware": json.dumps(files, ensure_ascii=False), **texts}
    return {f"wsjax.{key}": value for key, value in held.items()}


class Footer(NamedTuple):
    """What the end of a Parquet file says: our texts, how many rows there are, and whether a
    checksum proves texts and schema."""

    texts: dict[str, str]
    rows: int
    proved: bool


def read_footer(path: Any) -> Footer | None:
    """The footer of a Parquet file, a path or open, with the texts under their full keys; None if
    it has none, or one that is not what was written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
    texts = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (footer.metadata or {}).items()
        if key.startswith(b"wsjax.")
    }
    given = texts.pop(CHECKSUM_KEY, None)
    proved = given == _checksum(schema, texts)
    return Footer(texts, footer.num_rows, proved) if proved or given is None else None


def _checksum(schema: "pa.Schema", texts: Mapping[str, str]) -> str:
    import pyarrow as pa

    def kind(of: "pa.DataType") -> str:  # lists' items have other names in files than in memory
        return f"list of {of.value_type}" if pa.types.is_list(of) else str(of)

    names_and_types = [(field.name, kind(field.type)) for field in schema]
    return sha256(json.dumps([names_and_types, sorted(texts.items())]).encode()).hexdigest()


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
    return _read_csv(
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


def write_table(table: "pa.Table", path: str | Path, texts: Mapping[str, str]) -> None:
    """Write `table` as the kind of file that `path` ends in; Parquet carries `texts`.

    InputError for what such a file can't hold: lists and the like in CSV.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if suffix(path) != ".parquet":
        _write_csv(table, path)
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
    and is called at least once; one then adds a text to the metadata, and
    their checksum."""
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
            checksum = _checksum(writer.schema, {**texts, key: text})
            writer.add_key_value_metadata({key: text, CHECKSUM_KEY: checksum})

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


def _read_csv(
    path: Path, *, compressed: bool, encoding: str, delimiter: str, skipped: int = 0
) -> "pa.Table":
    """Read a CSV file; InputError with the place of ragged rows and of what is no text.

    skipped: lines before the header.
    """
    import pyarrow as pa
    import pyarrow.csv as csv

    ragged: list[Any] = []

    def parse(*, threads: bool) -> "pa.Table":
        ragged.clear()
        with pa.input_stream(str(path), compression="gzip" if compressed else None) as stream:
            return csv.read_csv(
                pa.PythonFile(_Lines(path, stream), "r") if compressed else stream,
                read_options=csv.ReadOptions(
                    skip_rows=skipped,
                    block_size=CSV_BLOCK_BYTES,
                    encoding=encoding,
                    use_threads=threads,
                ),
                parse_options=csv.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=lambda row: ragged.append(row) or "skip",
                ),
            )

    try:
        table = parse(threads=True)
        if ragged:
            parse(threads=False)  # rows are numbered only then
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not {encoding} text: {error.reason}; {MEND}") from None
    except (pa.ArrowException, OSError) as error:
        if "Empty CSV" in str(error):
            raise InputError(f"{path}: has no rows below its header; write some") from None
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    if ragged:
        first = ragged[0]
        row = first.number - 2 - skipped
        rows = "1 row has" if len(ragged) == 1 else f"{len(ragged)} rows have"
        raise InputError(
            f"{path}: {rows} not as many values as the header, first row {row} "
            f"(from 0): {first.actual_columns} instead of {first.expected_columns}"
        )
    try:
        names = table.column_names
    except UnicodeDecodeError as error:
        name = error.object.decode(errors="replace")
        raise InputError(f"{path}: header: '{name}' is not UTF-8 text; {MEND}") from None
    problems = [
        f"{path}: column '{name}', row {_first_not_text(column)}"
        for name, column in zip(names, table.columns, strict=True)
        if pa.types.is_binary(column.type)
    ]
    if problems:
        raise InputError(problems)
    return table


class _Lines:
    """A stream that refuses a line of `LINE_BYTES` or more, before all of it is in memory: a small
    compressed file can hold a very long one."""

    def __init__(self, path: Path, stream: Any):
        self.path, self.stream, self.closed = path, stream, False

    def read(self, count: int) -> bytes:
        pieces, left = [], count
        while left > 0:
            piece = self.stream.read(min(left, LINE_BYTES))
            pieces.append(piece)
            left -= len(piece)
            if len(piece) < LINE_BYTES:
                break
            if b"\n" not in piece and b"\r" not in piece:
                raise InputError(
                    f"{self.path}: a line of more than {LINE_BYTES:,} bytes; a table's are "
                    "shorter: is it a CSV file?"
                )
        return b"".join(pieces)

    def close(self) -> None:
        self.closed = True


def _first_not_text(column: "pa.ChunkedArray") -> str:
    """The row of a column of bytes that is the first to be no UTF-8, and what is wrong."""
    for row, cell in enumerate(column.to_pylist()):
        try:
            (cell or b"").decode()
        except UnicodeDecodeError as error:
            byte = cell[error.start]
            return f"{row} (from 0): not UTF-8 text (byte 0x{byte:02x}); {MEND}"
    raise AssertionError("Arrow found text that it called none")


def _write_csv(table: "pa.Table", path: str | Path) -> None:
    """Write a table to a .csv or .csv.gz file; InputError for columns that CSV can't hold."""
    import pyarrow as pa
    import pyarrow.csv as csv

    kind = suffix(path)
    table = _plain(table, path)
    try:
        with replacing(path) as file:
            if kind == ".csv":
                csv.write_csv(table, file)
            else:
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as stream:
                    csv.write_csv(table, stream)
    except pa.ArrowException as error:
        raise InputError(f"{path}: cannot be written as {kind}: {error}") from None


def _plain(table: "pa.Table", path: str | Path) -> "pa.Table":
    """A table as CSV holds it: no dictionaries. InputError for columns that it can't hold."""
    import pyarrow as pa

    plain = {
        name: values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
        for name, values in zip(table.column_names, table.columns, strict=True)
    }
    nested = [name for name, values in plain.items() if pa.types.is_nested(values.type)]
    if nested:
        raise InputError(
            f"{path}: column '{name}' holds lists or records, which CSV does not; "
            "drop it, or write .parquet"
            for name in nested
        )
    return pa.table(plain)
