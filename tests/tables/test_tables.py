import gzip
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsjax import tables
from wsjax.errors import InputError
from wsjax.hardware.machine import load_hardware
from wsjax.tables import files
from wsjax.tables.parquet import SCHEMA_VERSION

TABLE = pa.table(
    {
        "whole": pa.array([1, None, 3]),
        "real": pa.array([0.5, 1e-9, None]),
        "text": pa.array(["plain", 'with "quotes", comma', "two\nlines"]),
        "word": pa.array(["x", None, "y"]).dictionary_encode(),
        "flag": pa.array([True, False, None]),
    }
)


@pytest.mark.parametrize("suffix", files.SUFFIXES)
def test_what_is_written_reads_back(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    tables.write_table(TABLE, path, {"wsjax.note": "µs"})
    assert tables.read_table(path).to_pydict() == {
        name: ["" if v is None and suffix != ".parquet" and name == "word" else v for v in values]
        for name, values in TABLE.to_pydict().items()
    }
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == ".parquet":
        assert tables.read_metadata(path) == {"note": "µs"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "has no rows below its header"),
        (
            "a.csv",
            b"a,b\n1,2\n1\n1,2,3\n",
            r"2 rows have not as many values as the header, first row 1 \(from 0\): 1 instead of 2",
        ),
        (
            "a.csv",
            b"a,b\n1,2\n3,\xff\n",
            r"column 'b', row 1 \(from 0\): not UTF-8 text \(byte 0xff",
        ),
        ("a.csv", b"a,\xff\n1,2\n", r"header: '.*' is not UTF-8 text; save the file as UTF-8"),
        ("a.csv.gz", b"no gzip", "cannot be read as CSV"),
        ("a.parquet", b"no parquet", "cannot be read as Parquet"),
        ("a.xlsx", b"", "a table's name ends in .parquet, .csv, .csv.gz"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        tables.read_table(path)
    assert str(path) in str(error.value)


def test_a_missing_file_names_its_neighbour(tmp_path):
    (tmp_path / "measured.csv").write_text("m\n1\n")
    with pytest.raises(InputError, match=r"no such file; did you mean '.*measured\.csv'"):
        tables.read_table(tmp_path / "mesured.csv")


def test_destinations_are_checked_before_the_work(tmp_path):
    for path, message in {
        tmp_path / "p.txt": "ends in",
        tmp_path / "absent" / "p.csv": "no directory",
        tmp_path / "dir.csv": "is a directory",
    }.items():
        (tmp_path / "dir.csv").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=message):
            files.check_destination(path)


def test_nothing_half_written_stays(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"before")

    def write_and_fail():
        with tables.shard_writer(path, {}) as (write, _):
            write({"a": pa.array([1])})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_fail()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_names_the_file(tmp_path):
    def fill(file):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as error, files.replacing(tmp_path / "t"):
        fill(None)
    assert error.value.filename == str(tmp_path / "t")
    assert not list(tmp_path.iterdir())


def test_shards_are_the_same_bytes_each_time(tmp_path):
    texts = tables.metadata([load_hardware("toy")], spec="x = 1")
    for name in ("a", "b"):
        with tables.shard_writer(tmp_path / name, texts) as (write, note):
            for start in (0, 500):
                write({"m": tables.configuration_column("m", np.arange(start, start + 500))})
            note("wsjax.note", "last")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = tables.read_metadata(tmp_path / "a")
    assert found["spec"] == "x = 1"
    assert found["note"] == "last"
    assert found["schema_version"] == str(SCHEMA_VERSION)
    assert json.loads(found["hardware"]) == {"toy": load_hardware("toy").text}


def test_column_types():
    column = tables.configuration_column("schedule", np.array([2, 0, -1]))
    assert column.to_pylist() == ["pingpong", "serial", None]
    assert pa.types.is_dictionary(column.type)
    assert tables.configuration_column("m", np.array([2**31])).to_pylist() == [2**31]
    assert tables.configuration_column("stages", np.array([4])).type == pa.int32()
    words = ("cooperative", "pingpong", "persistent", "serial")
    assert tables.numbers(column[:2], words).tolist() == [1, 3]


def test_what_csv_cannot_hold(tmp_path):
    table = pa.table({"m": [1], "lists": [[1, 2]], "records": [{"a": 1}]})
    for name in ("t.csv", "t.csv.gz"):
        with pytest.raises(InputError, match="'lists' holds lists or records") as error:
            tables.write_table(table, tmp_path / name, {})
        assert len(error.value.problems) == 2
    assert not list(tmp_path.iterdir())
    tables.write_table(table, tmp_path / "t.parquet", {})
    mixed = pd.DataFrame({"m": [1, "x", b"y"]})
    with pytest.raises(InputError, match="no column of a table"):
        tables.from_frame(mixed)


def test_directories(tmp_path):
    (tmp_path / "note.txt").write_text("x")
    with pytest.raises(InputError, match=r"a directory without \.parquet files"):
        tables.read_table(tmp_path)
    (tmp_path / "note.txt").unlink()
    for number in (0, 1):
        tables.write_table(TABLE, tmp_path / f"{number}.parquet", {})
    assert tables.read_table(tmp_path).num_rows == 2 * TABLE.num_rows


def test_a_parquet_column_that_is_there_twice(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["m", "m"])
    pq.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column 'm' is there 2 times"):
        tables.read_table(tmp_path / "t.parquet")


FULL = """
import resource, signal, sys
import numpy as np, pyarrow as pa
from wsjax import tables
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = pa.table({"x": np.random.default_rng(0).random(200_000)})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    if sys.argv[2] == "shard":
        with tables.shard_writer(sys.argv[1], {}) as (write, note):
            write(dict(zip(table.column_names, table.columns)))
    else:
        tables.write_table(table, sys.argv[1], {})
except OSError as error:
    print(error.strerror, error.filename)
"""


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz", "shard"])
def test_a_disk_that_is_full_makes_no_noise(tmp_path, name):
    path = tmp_path / name
    command = [sys.executable, "-c", FULL, str(path), name]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == f"File too large {path}\n"
    assert run.stderr == ""
    assert not list(tmp_path.iterdir())


def test_what_fails_in_cleaning_up_hides_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.unlink", fail)
    with pytest.raises(ValueError, match="first"), files.replacing(tmp_path / "t"):
        raise ValueError("first")


def test_a_source_is_not_written_over(tmp_path):
    (tmp_path / "t.csv").write_text("m\n1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    for out, source in (("t.csv", "t.csv"), ("link.csv", "t.csv"), ("p.csv", ".")):
        with pytest.raises(InputError, match="is the table that is read"):
            files.check_destination(tmp_path / out, tmp_path / source)
    files.check_destination(tmp_path / "p.csv", tmp_path / "t.csv")


def test_columns_keep_a_frames_index():
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["r", "r"], name="row"))
    both = tables.append_to_frame(frame, {"b": pa.array([3.0, None])})
    assert both.index.equals(frame.index)
    assert both.columns.tolist() == ["a", "b"]
    assert both["b"].isna().tolist() == [False, True]


def test_a_killed_writer_leaves_no_table(tmp_path):
    code = (
        "import os, sys, pyarrow as pa; from wsjax import tables\n"
        "with tables.shard_writer(sys.argv[1], {}) as (write, _):\n"
        "    write({'a': pa.array([1])}); os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "part-00000.parquet"
    run = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert run.returncode == -9
    assert not path.exists()
    with tables.shard_writer(path, {}) as (write, _):
        write({"a": pa.array([2])})
    assert pq.read_table(path).to_pydict() == {"a": [2]}
    assert list(tmp_path.iterdir()) == [path]


TWO_WRITERS = """
import sys, pyarrow as pa
from wsjax import tables
table = pa.table({"x": [int(sys.argv[2])] * 200_000, "y": [sys.argv[2] * 50] * 200_000})
for _ in range(10):
    tables.write_table(table, sys.argv[1], {})
"""


def test_two_processes_that_write_one_table_leave_a_whole_one(tmp_path):
    path = tmp_path / "t.parquet"
    command = [sys.executable, "-c", TWO_WRITERS, str(path)]
    writers = [subprocess.Popen([*command, number]) for number in "12"]
    for writer in writers:
        assert writer.wait() == 0
    found = pq.read_table(path).to_pydict()
    number = found["x"][0]
    assert number in (1, 2)
    assert found == {"x": [number] * 200_000, "y": [str(number) * 50] * 200_000}
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_in_turn_do_not_meet(tmp_path):
    path = tmp_path / "t"
    with files.replacing(path) as first:
        first.write(b"first, ")
        with files.replacing(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
        first.write(b"whole")
    assert path.read_bytes() == b"first, whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_very_long_line_of_a_small_compressed_file_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.GzipFile(path, "wb", 1) as file:
        file.write(b"m,note\n" + b"1,short\n" * 3_000_000 + b"2,")
        for _ in range(200):
            file.write(bytes([120]) * 2**20)
    command = (
        "import sys; from pathlib import Path; from wsjax import tables, errors\n"
        "try: tables.read_table(sys.argv[1])\n"
        "except errors.InputError as error: print(error)\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", command, str(path)], capture_output=True, text=True, check=True
    )
    message, kibibytes = run.stdout.splitlines()
    assert message.startswith(f"{path}: a line of more than 8,388,608 bytes; ")
    assert int(kibibytes) < 600 * 2**10


def test_a_compressed_table_of_several_pieces_reads_back(tmp_path):
    rows = 3_000_000
    with gzip.GzipFile(tmp_path / "t.csv.gz", "wb", 1) as file:
        file.write(b"m,note\n" + b"1,short\n" * rows)
    table = tables.read_table(tmp_path / "t.csv.gz")
    assert table.num_rows == rows
    assert table.column("note").unique().to_pylist() == ["short"]
