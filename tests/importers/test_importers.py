"""Reading measurements: tables by a column map, what is wrong with files, what is counted."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsjax.errors import InputError
from wsjax.importers import FORMATS, Imported, parse_mapping, read, values

HEADER = "m,n,k,block_m,block_n,block_k,stages,schedule,dtype_in,layout,time_us"
ROW = "512,1024,256,128,128,64,4,pingpong,bf16,nt,12.5"


def imported(tmp_path, text, name="table", **options) -> Imported:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read(path, **options)
    assert found.report.read == found.report.kept + sum(found.report.excluded.values())
    assert found.report.read == len(found.table)
    return found


def problems(tmp_path, text, **options) -> str:
    with pytest.raises(InputError) as error:
        imported(tmp_path, text, **options)
    assert all(str(tmp_path / "table") in problem for problem in error.value.problems)
    return str(error.value)


def test_a_plain_table(tmp_path):
    found = imported(tmp_path, f"{HEADER},reps,note\n{ROW},7,first\n")
    row = found.table.iloc[0].to_dict()
    assert (found.report.format, found.report.kept, found.report.notes) == ("plain", 1, ())
    assert (row["m"], row["schedule"], row["math_warps"], row["batch"]) == (512, "pingpong", 8, 1)
    assert (row["time_us_measured"], row["reps"], row["status"]) == (12.5, 7, "ok")
    assert (row["note"], row["source"]) == ("first", "table")


def test_stages_that_no_row_tells_are_no_column(tmp_path):
    text = f"{HEADER}\n{ROW}\n".replace("stages,", "").replace("64,4,", "64,")
    assert "stages" not in imported(tmp_path, text).table
    text = f"{HEADER}\n{ROW}\n{ROW.replace('512', '640').replace('64,4,', '64,,')}\n"
    assert imported(tmp_path, text).table["excluded"].tolist() == ["", "no_stages"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_byte_order_marks(tmp_path, ending, encoding):
    text = ending.join([HEADER, ROW, ""]).encode(encoding)
    assert imported(tmp_path, text).table["time_us_measured"].tolist() == [12.5]
    assert imported(tmp_path, gzip.compress(text)).report.kept == 1


def test_extensions_count_for_nothing(tmp_path):
    row = imported(tmp_path, f"{HEADER}\n{ROW}\n").table
    row.to_parquet(tmp_path / "table.csv")
    assert read(tmp_path / "table.csv").report.kept == 1
    imported(tmp_path, f"{HEADER}\n{ROW}\n", name="table.parquet")
    imported(tmp_path, gzip.compress(f"{HEADER}\n{ROW}\n".encode()), name="table.json")


def test_a_table_of_ours_reads_back_as_it_is(tmp_path):
    rows = [ROW, ROW, ROW.replace("12.5", "13"), ROW.replace("12.5", "0"), ROW.replace("128", "")]
    first = imported(tmp_path, "\n".join([f"{HEADER}", *rows]))
    assert list(first.report.excluded.values()) == [1, 1, 1, 1]
    first.table.to_parquet(tmp_path / "again")
    again = read(tmp_path / "again")
    assert (again.report.kept, again.report.excluded) == (first.report.kept, first.report.excluded)
    pd.testing.assert_frame_equal(
        again.table, first.table, check_dtype=False, check_categorical=False
    )


@pytest.mark.parametrize(
    ("header", "cell", "us"),
    [
        ("time_ms", "0.0125", 12.5),
        ("Runtime (ms)", "0.0125", 12.5),
        ("latency [s]", "1.25e-5", 12.5),
        ("duration_ns", "12500", 12.5),
        ("median time us", "12.5", 12.5),
        ("time", "12.5 us", 12.5),
        ("time", "12500ns", 12.5),
        ("elapsed", "12.5µs", 12.5),
        ("time_us", '"12,500.25"', 12500.25),
        ("time_us", '"12.500,25"', 12500.25),
        ("time_us", "12 500.25", 12500.25),
        ("time_us", "12'500.25", 12500.25),
        ("time_us", '"1,234"', 1234.0),
        ("time_us", '"12,5"', 12.5),
    ],
)
def test_units_and_separators(tmp_path, header, cell, us):
    text = f"{HEADER.replace('time_us', header)}\n{ROW.replace('12.5', cell)}\n"
    assert imported(tmp_path, text).table["time_us_measured"].tolist() == [pytest.approx(us)]


def test_a_semicolon_table_with_decimal_commas(tmp_path):
    text = f"{HEADER}\n{ROW}\n".replace(",", ";").replace("12.5", "1.234,5")
    assert imported(tmp_path, text).table["time_us_measured"].tolist() == [1234.5]


def test_other_names_and_a_map(tmp_path):
    text = "M,N,K,BLOCK_SIZE_M,tile_n,BK,num_stages,num_warps,gpu,lat\n" \
           "512,1024,256,128,128,64,4,8,H100,0.0125\n"  # fmt: skip
    found = imported(tmp_path, text, mapping=parse_mapping(["time_ms=lat", "dtype_in=fp16"]))
    row = found.table.iloc[0].to_dict()
    assert (row["block_m"], row["block_n"], row["block_k"], row["stages"]) == (128, 128, 64, 4)
    assert (row["math_warps"], row["dtype_in"], row["device"]) == (8, "fp16", "H100")
    assert row["time_us_measured"] == 12.5
    swapped = imported(tmp_path, text, mapping={"time_us": "lat", "n": "K", "k": "N"})
    assert (swapped.table["n"][0], swapped.table["k"][0]) == (256, 1024)


def test_what_is_wrong_with_a_map(tmp_path):
    text = f"{HEADER}\n{ROW}\n"
    found = problems(tmp_path, text, mapping={"block_x": "m", "n": "blok_n", "k": "many"})
    assert "'block_x' is no column of ours; did you mean 'block_" in found
    assert "--map n=blok_n: 'blok_n' is no column of the file and no value of 'n'; did you" in found
    assert len(found.splitlines()) == 3
    with pytest.raises(InputError, match="write ours=theirs"):
        parse_mapping(["m"])


def test_log_lines_before_and_among_the_rows(tmp_path):
    text = f"Using GPU 0\n\nwarm-up, 3 runs\n{HEADER}\n{ROW}\nclocks changed\n{ROW}\n"
    found = imported(tmp_path, text)
    assert found.report.excluded == {"fake_repeat": 1}
    assert found.report.notes == (
        "lines before the header, which are no rows: 2",
        "lines among the rows, which are no rows: 1",
    )


def test_every_row_has_its_outcome(tmp_path):
    cells = {
        "": "12.5", "duplicate": "12.6", "fake_repeat": "12.5", "no_time": "", "infinite": "inf",
        "zero": "0",
    }  # fmt: skip
    rows = [(reason, ROW.replace("12.5", cell)) for reason, cell in cells.items()]
    rows += [
        ("zero", ROW.replace("12.5", "-1")),
        ("no_time", ROW.replace("12.5", "OOM")),
        ("infinite", ROW.replace("12.5", "Infinity")),
        ("no_problem", ROW.replace("512", "0")),
        ("no_problem", ROW.replace("512", "")),
        ("no_problem", ROW.replace("512", "12.5", 1)),
        ("unsupported", ROW.replace("bf16", "fp4")),
        ("unsupported", ROW.replace("pingpong", "spiral")),
        ("out_of_range", ROW.replace(",4,", ",99,")),
        ("no_tile", ROW.replace("128,128,64", ",,")),
        ("malformed", "512,1024,256,128,128,64,4"),
        ("malformed", f"{ROW},extra"),
    ]
    found = imported(tmp_path, "\n".join([HEADER, *(row for _, row in rows)]))
    assert found.table["excluded"].tolist() == [reason for reason, _ in rows]
    ok = found.table["status"] == "ok"
    assert found.table["excluded"][ok].tolist() == ["", "duplicate", "fake_repeat"]


def test_statuses_of_the_file_are_kept(tmp_path):
    rows = [f"{ROW},OK", f"{ROW},out_of_shared_memory", f"{ROW.replace('512', '8')},passed"]
    found = imported(tmp_path, "\n".join([f"{HEADER},status", *rows]))
    assert found.table["status"].tolist() == ["ok", "out_of_shared_memory", "ok"]
    assert found.report.excluded == {"out_of_shared_memory": 1}


def test_an_option_that_differs_is_no_repeat(tmp_path):
    rows = [f"{ROW},tma,1,a,0.1", f"{ROW},direct,1,a,0.2", f"{ROW},tma,2,b,0.3"]
    found = imported(tmp_path, "\n".join([f"{HEADER},epilogue,run,group,rel_err", *rows]))
    assert found.table["excluded"].tolist() == ["", "", "fake_repeat"]


def test_n_and_k_in_each_others_place(tmp_path):
    head, rows = f"{HEADER},tiles", []
    for m in (512, 1024):
        rows.append(f"{m},1024,256,128,128,64,4,pingpong,bf16,nt,12.5,{m // 128 * 2}")
    text = "\n".join([head, *rows])
    assert "n and k look swapped: column 'tiles'" in imported(tmp_path, text).report.notes[0]
    right = imported(tmp_path, text, mapping={"n": "k", "k": "n"})
    assert right.report.notes == ()
    assert right.table["n"].tolist() == [256, 256]


def test_a_unit_that_cannot_be(tmp_path):
    (note,) = imported(tmp_path, f"{HEADER}\n{ROW.replace('12.5', '0.0000125')}\n").report.notes
    assert "make a rate of no machine" in note
    assert "is the unit of the time right?" in note


LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345678\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        (LFS, "is a Git-LFS pointer to 12,345,678 bytes, not the table; run `git lfs pull`"),
        (b"\x00\x01\x02" * 99, "is neither text nor Parquet"),
        (b"PAR1 and then nothing", "cannot be read as Parquet"),
        (b"\x1f\x8bnothing", "is damaged (gzip)"),
        (HEADER, "has no rows"),
        (f"{HEADER[:-8]}\n{ROW[:-5]}\n", "no column of measured times"),
        (f"{HEADER.replace('time_us', 'time')}\n{ROW}\n", "'time' has times without a unit"),
        (f"{HEADER.replace('n,k', 'nn,k')}\n{ROW}\n", "'n' is missing; did you mean 'nn'?"),
        (f"{HEADER.replace('block_n', 'x')}\n{ROW}\n", "--map block_n=NAME"),
        ("some words\nand others\n", "column 'm' is missing"),
        ('{"cache": {"a": {"time" 3}}, "tune_params_keys": []}', "1: is broken JSON: Expecting"),
        ('{"key": [1],\n"configs_timings": [[{},[1]]\n[{},[1]]]}', "3: is broken JSON: Expecting"),
        ('{"some": "json"}', "is JSON of no known format"),
    ],
    ids=lambda value: str(value)[:25],
)  # fmt: skip
def test_files_that_are_no_table(tmp_path, text, message):
    assert message in problems(tmp_path, text)


def test_a_gzip_that_ends_early(tmp_path):
    rows = [f"{i},{ROW[4:]}" for i in np.random.default_rng(0).integers(1, 2**30, 4000)]
    data = gzip.compress("\n".join([HEADER, *rows]).encode())
    found = imported(tmp_path, data[: len(data) // 2])
    assert 0 < found.report.read < 4000
    assert "the compressed file ends early" in found.report.notes[0]


def test_absent_files_and_formats(tmp_path):
    (tmp_path / "table.csv").write_text(f"{HEADER}\n{ROW}\n")
    with pytest.raises(InputError, match=r"no such file; did you mean '.*table\.csv'"):
        read(tmp_path / "tabel.csv")
    with pytest.raises(InputError, match="format 'tritn' is unknown; did you mean 'triton'"):
        read(tmp_path / "table.csv", format="tritn")
    with pytest.raises(InputError, match="is not triton, but plain; leave --format out"):
        read(tmp_path / "table.csv", format="triton")
    assert read(tmp_path / "table.csv", format="plain").report.kept == 1
    assert set(FORMATS) >= {"plain", "h200", "nsight", "inductor"}


@given(st.floats(1e-6, 1e12), st.sampled_from(["", ",", ".", "'", " ", "\u202f"]))
def test_numbers_read_back(number, group):
    text = f"{number:,.3f}"
    mark = "," if group == "." else "."
    text = text.replace(".", "*").replace(",", group).replace("*", mark)
    assert values.parse(text, mark)[0] == pytest.approx(number, abs=5.1e-4)
    if number >= 1e6 and group:
        assert values.decimal_mark([text]) == mark


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_none(text):
    number, unit = values.parse(text)
    low = text.strip().lower()
    assert low.endswith(unit)
    if np.isfinite(number):
        assert any(letter.isdigit() for letter in text)
        assert (number < 0) <= ("-" in text)
        assert values.parse(f"{number!r} {unit}") == (number, unit)
    elif np.isinf(number):
        assert "inf" in low or "e" in low
    else:
        assert unit == "" or low.startswith(("nan", "+nan", "-nan"))


@given(text=st.text(alphabet='{}[]",:0123456789.abcemnkt \n', max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_text(text, encoding="utf-8")
    try:
        found = read(path)
    except InputError:
        return
    kept = found.table.loc[(found.table["excluded"] == "").to_numpy()]
    assert found.report.kept == len(kept)
    assert (kept["time_us_measured"] > 0).all()
    assert (kept[["m", "n", "k", "block_m", "block_n", "block_k"]] >= 1).to_numpy().all()


BIG = """
import sys, time
from pathlib import Path
from wsjax.importers import read
found = read(sys.argv[1])
status = Path("/proc/self/status").read_text().split()  # ru_maxrss would count the parent's
print(found.report.kept, time.process_time(), status[status.index("VmHWM:") + 1])
"""


def test_a_large_table_in_bounded_time_and_memory(tmp_path):
    """A fifth of a million rows, in a fifth of the 30 s (of the processor, imports included);
    pieces keep memory near the table's."""
    rows, path = 200_000, tmp_path / "big.csv"
    with path.open("w") as file:
        file.write(f"{HEADER}\n")
        for i in range(rows):
            file.write(
                f"{64 + i % 500},{128 + i // 500},256,128,128,64,4,pingpong,bf16,nt,{i + 1}\n"
            )
    run = [sys.executable, "-c", BIG, str(path)]
    out = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    assert int(out[0]) == rows
    assert float(out[1]) < 6
    assert int(out[2]) < 700 * 1024


def test_columns_that_a_format_cannot_lack(tmp_path):
    head = "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k"
    text = f"{head}\n1,CUTLASS,gemm,x,passed,success,1,2,3\n"
    assert "column 'Runtime' is missing, which cutlass_profiler has" in problems(tmp_path, text)
