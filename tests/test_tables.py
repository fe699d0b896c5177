import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsjax import files, tables
from wsjax.errors import InputError
from wsjax.hardware import load_hardware

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
        ("a.csv", b"", "cannot be read as .csv: Empty CSV file"),
        ("a.csv", b"a,b\n1,2,3\n", "Expected 2 columns, got 3"),
        ("a.csv", b"a\n\xff\xfe\xfa\n", None),
        ("a.csv.gz", b"no gzip", "cannot be read as .csv.gz"),
        ("a.parquet", b"no parquet", "cannot be read as .parquet"),
        ("a.xlsx", b"", "a table's name ends in .parquet, .csv, .csv.gz"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    if message is None:
        assert tables.read_table(path).num_rows == 1
        return
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
        with tables.shard_writer(path, {}) as write:
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
        with tables.shard_writer(tmp_path / name, texts) as write:
            for start in (0, 500):
                write({"m": tables.configuration_column("m", np.arange(start, start + 500))})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = tables.read_metadata(tmp_path / "a")
    assert found["spec"] == "x = 1"
    assert found["schema_version"] == str(tables.SCHEMA_VERSION)
    assert json.loads(found["hardware"]) == {"toy": load_hardware("toy").text}


def test_column_types():
    column = tables.configuration_column("schedule", np.array([2, 0, -1]))
    assert column.to_pylist() == ["pingpong", "serial", None]
    assert pa.types.is_dictionary(column.type)
    assert tables.configuration_column("m", np.array([2**31])).to_pylist() == [2**31]
    assert tables.configuration_column("stages", np.array([4])).type == pa.int32()
    words = ("cooperative", "pingpong", "persistent", "serial")
    assert tables.numbers(column[:2], words).tolist() == [1, 3]


def test_columns_keep_a_frames_index():
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["r", "r"], name="row"))
    both = tables.append_to_frame(frame, {"b": pa.array([3.0, None])})
    assert both.index.equals(frame.index)
    assert both.columns.tolist() == ["a", "b"]
    assert both["b"].isna().tolist() == [False, True]


def test_a_killed_writer_leaves_no_table(tmp_path):
    code = (
        "import os, sys, pyarrow as pa; from wsjax import tables\n"
        "with tables.shard_writer(sys.argv[1], {}) as write:\n"
        "    write({'a': pa.array([1])}); os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "part-00000.parquet"
    run = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert run.returncode == -9
    assert not path.exists()
    with tables.shard_writer(path, {}) as write:
        write({"a": pa.array([2])})
    assert pq.read_table(path).to_pydict() == {"a": [2]}
    assert list(tmp_path.iterdir()) == [path]
