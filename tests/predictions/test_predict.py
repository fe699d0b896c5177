"""`wsjax.predict`, on frames and on excerpts of the tables measured on an H200.

tests/data/h200_*_excerpt.csv.gz: a few hundred rows each, picked at random, as they stand in the
project's measured tables of CUTLASS 4.2 sm90 kernels and of a GEMM in Triton's Gluon 3.6.0
(NVIDIA H200, 2026-11-29).
"""

import gzip
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from paths import DATA

import wsjax
from wsjax.cli.main import main
from wsjax.errors import InputError
from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import Parameters
from wsjax.importers import convert
from wsjax.predictions import predict_table
from wsjax.schema.columns import PREDICTION_COLUMNS
from wsjax.tables.parquet import read_metadata, read_table, write_table

CUTLASS = DATA / "h200_cutlass_ws_excerpt.csv.gz"
GLUON = DATA / "h200_gemm_ws_excerpt.csv.gz"
TOY = {"m": 512, "n": 512, "k": 256, "block_m": 128, "block_n": 128, "block_k": 64, "stages": 2}


def toy(**columns) -> pd.DataFrame:
    return pd.DataFrame({**TOY, "schedule": "serial", **columns}, index=pd.Index([7], name="row"))


def columns(frame: pd.DataFrame) -> dict[str, pd.Series]:
    return {str(name): values for name, values in frame.items()}


def test_the_hand_worked_value():
    """Load 1 us, compute 1 us, 4 k-tiles, 4 waves, 2 stages, launch 2: 22 us, 4 of them waiting."""
    row = wsjax.predict(toy(), "toy").iloc[0]
    assert row["time_us"] == pytest.approx(22.0, rel=1e-12)
    assert row["math_wait_us"] == pytest.approx(4.0, rel=1e-12)
    assert (row["dma_wait_us"], row["launch_us"]) == (0.0, 2.0)
    assert (row["waves"], row["k_tiles"], row["legal"], row["reason"]) == (4, 4, True, "")
    assert row["tflops"] == pytest.approx(2 * 512 * 512 * 256 / 22e6)
    assert row["extrapolated"]


def test_input_columns_stay_and_ours_follow():
    frame = toy(note="kept", smem_bytes=5, waves=1.5)
    found = wsjax.predict(frame, "toy")
    taken = {"smem_bytes", "waves"}
    ours = [f"{name}_predicted" if name in taken else name for name in PREDICTION_COLUMNS]
    assert found.columns.tolist() == [*frame.columns, *ours]
    pd.testing.assert_frame_equal(found.loc[:, list(frame.columns)], frame)
    assert found.index.equals(frame.index)


def test_arrow_in_arrow_out():
    frame = pd.concat([toy(), toy(stages=32)])
    table = wsjax.predict(pa.Table.from_pandas(frame), "toy")
    assert isinstance(table, pa.Table)
    assert table.column_names == [*frame.columns, "row", *PREDICTION_COLUMNS]
    assert table["time_us"].to_pylist() == [pytest.approx(22.0), None]
    assert table["limiter"].null_count == 1
    assert table["reason"].to_pylist() == ["", "shared_memory"]
    from_pandas = wsjax.predict(frame, "toy")
    ours = list(PREDICTION_COLUMNS)
    pd.testing.assert_frame_equal(table.to_pandas().loc[:, ours], from_pandas.loc[:, ours])


def test_illegal_rows_get_a_reason_and_no_time():
    frame = pd.concat(
        [toy(stages=32), toy(block_k=65), toy(cluster_m=2), toy(split_k=2), toy(dtype_in="int8")]
    ).fillna({"cluster_m": 1, "split_k": 1, "dtype_in": "bf16"})
    found = wsjax.predict(frame, "toy")
    assert found["reason"].tolist() == ["shared_memory", "block_multiple", *["not_modelled"] * 3]
    assert found["time_us"].isna().tolist() == [True] * 5
    assert found["legal"].tolist() == [False] * 5


def test_largest_sizes():
    found = wsjax.predict(toy(m=2**31, n=2**31, k=2**31), "toy").iloc[0]
    assert found["waves"] == 2**24 * 2**24 // 4
    assert 0 < found["time_us"] < np.inf


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_no_rows(kind):
    frame = toy().iloc[:0]
    found = wsjax.predict(frame if kind == "pandas" else pa.Table.from_pandas(frame), "toy")
    assert len(found) == 0
    assert set(PREDICTION_COLUMNS) <= set(found.columns if kind == "pandas" else found.column_names)


def test_what_is_no_frame():
    with pytest.raises(InputError, match="not dict"):
        wsjax.predict({"m": 1}, "toy")  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_columns_that_are_there_twice():
    frame = pd.concat([toy(), toy()[["m"]]], axis=1)
    with pytest.raises(InputError, match="column 'm' is there 2 times"):
        wsjax.predict(frame, "toy")


@pytest.mark.parametrize("path", [CUTLASS, GLUON], ids=["cutlass", "gluon"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_measured_tables_as_they_are(tmp_path, path, suffix):
    out = tmp_path / f"p{suffix}"
    predict_table(path, out, "h200")
    before, after = read_table(path), read_table(out)
    assert after.column_names[: before.num_columns] == before.column_names
    assert after.select(before.column_names).to_pydict() == before.to_pydict()
    assert "smem_bytes_predicted" in after.column_names
    ok = np.array(after["status"].to_pylist()) == "ok"
    times = after["time_us"].to_pandas().to_numpy()
    assert np.isfinite(times[ok]).all()
    assert (times[ok] > 0).all()
    lost = after["m"].to_pandas().isna().to_numpy()
    assert set(after["reason"].to_pandas()[lost]) <= {"incomplete"}
    assert np.isnan(times[lost]).all()
    assert list(tmp_path.iterdir()) == [out]
    if suffix == ".parquet":
        assert read_metadata(out).keys() == {"schema_version", "version", "hardware"}


def test_how_measured_tables_are_read():
    cutlass = convert(columns(read_table(CUTLASS).to_pandas()))
    assert cutlass is not None
    assert set(cutlass["schedule"]) == {"serial", "pingpong", "cooperative"}
    assert set(cutlass["layout"]) == {"nt"}
    assert set(cutlass["math_warps"][cutlass["schedule"] == "serial"]) == {4}
    assert set(cutlass["math_warps"][cutlass["schedule"] != "serial"]) == {8}
    assert set(cutlass["mma_in_flight"]) == set(cutlass["dma_warps"]) == {1}
    source = read_table(GLUON).to_pandas()
    gluon = convert(columns(source))
    assert gluon is not None
    pingpong = source["math_org"] == "pingpong_2x4"
    assert pingpong.any()
    assert set(gluon["schedule"][pingpong]) == {"pingpong"}
    assert set(gluon["schedule"][~pingpong]) == {"persistent"}
    assert convert(columns(toy(kernel="x", status="ok", layout="nt"))) is None


def test_measured_splits_are_predicted_but_of_schedules_that_divide_no_tiles():
    """CUTLASS rows with a split k ran, but no time is promised for what the model leaves out."""
    table = read_table(CUTLASS)
    table = table.append_column("split_k", pa.array([2] * table.num_rows))
    found = wsjax.predict(table, "h200").to_pandas()
    divides = table["schedule"].to_pandas() == "cooperative"
    assert set(found["reason"][divides]) == {""}
    assert set(found["reason"][~divides]) == {"not_modelled"}


def test_mistakes_of_a_file_name_it(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "p.csv"
    path.write_text("m,n,k,block_m,block_n\n1,2,-3,64,x\n")
    with pytest.raises(InputError) as error:
        predict_table(path, out, "toy")
    assert len(error.value.problems) == 3
    assert all(problem.startswith(f"{path}: column") for problem in error.value.problems)
    assert not out.exists()


def test_a_log_before_the_header_is_no_row(tmp_path):
    header, row = "m,n,k,block_m,block_n,block_k\n", "512,512,256,128,128,64\n"
    for before in ("", "INFO: started\n", "# made by x, y\n\nINFO a\n"):
        (tmp_path / "t.csv").write_text(before + header + row)
        predict_table(tmp_path / "t.csv", tmp_path / "t.parquet", "toy")
        found = read_table(tmp_path / "t.parquet")
        assert found["m"].to_pylist() == [512]
    (tmp_path / "t.csv").write_text("INFO: started\n" + header + row + "1,2\n")
    with pytest.raises(InputError, match=r"first row 1 \(from 0\): 2 instead of 6"):
        predict_table(tmp_path / "t.csv", tmp_path / "t.parquet", "toy")


def test_status_counts_beside_measured_times_only():
    row = toy(block_k=65, status="ok")
    with pytest.warns(UserWarning, match="column 'status' has no effect"):
        found = wsjax.predict(row, "toy")
    assert found["reason"].tolist() == ["block_multiple"]
    for time in ("time_us_measured", "time_us_median", "latency (ms)"):
        found = wsjax.predict(row.assign(**{time: 3.0}), "toy")
        assert found["legal"].tolist() == [True]


def test_a_blank_needs_a_measured_table():
    frame = toy(m=np.nan, status="failed")
    with (
        pytest.warns(UserWarning, match="has no effect"),
        pytest.raises(InputError, match="column 'm': blank in 1 row"),
    ):
        wsjax.predict(frame, "toy")
    found = wsjax.predict(frame.assign(time_us_measured=np.nan), "toy")
    assert found["reason"].tolist() == ["incomplete"]


@pytest.mark.parametrize("hardware", [None, 3, ["toy"]])
def test_what_is_no_machine(hardware):
    with pytest.raises(InputError, match="expected a machine's name"):
        wsjax.predict(toy(), hardware)


def test_decimals_that_are_whole():
    table = pa.Table.from_pandas(toy(), preserve_index=False)
    position = table.column_names.index("m")
    decimals = table.set_column(position, "m", table["m"].cast(pa.decimal128(21, 2)))
    assert wsjax.predict(decimals, "toy")["time_us"].to_pylist() == [pytest.approx(22.0)]


def test_a_machine_without_rates_is_refused():
    """Its times would be 0 and its TFLOP/s infinite."""
    free = wsjax.Hardware("free", load_hardware("toy").facts, Parameters())
    missing = "free: has no rates, .*missing.*compute_throughput_flop_per_us.*load_throughput_bytes"
    kernel: Any = dict.fromkeys(("m", "n", "k", "block_m", "block_n", "block_k"), 128)
    for verb in (
        lambda: wsjax.predict(toy(), free),
        lambda: wsjax.trace(free, **kernel),
        lambda: wsjax.explain(free, **kernel),
        lambda: wsjax.optimize({"m": 512, "n": 512, "k": 256}, free),
        lambda: wsjax.choose(toy(), 1, free),
    ):
        with pytest.raises(InputError, match=missing):
            verb()


HEADER = "m,n,k,block_m,block_n,block_k,note"
ROW = "512,512,256,128,128,64,é"


@pytest.mark.parametrize(
    "content",
    [
        f"{HEADER}\n{ROW}\n".encode(),
        f"\ufeff{HEADER}\r\n{ROW}\r\n".encode(),
        f"{HEADER}\n{ROW}\n".replace(",", ";").encode(),
        f"{HEADER}\n{ROW}\n".replace(",", "\t").encode(),
        f"{HEADER}\n{ROW}\n".encode("utf-16"),
        gzip.compress(f"{HEADER}\n{ROW}\n".encode()),
    ],
    ids=["plain", "mark", "semicolons", "tabs", "utf-16", "gzip"],
)
def test_tables_are_read_by_their_content(tmp_path, content):
    source, out = tmp_path / "t.csv", tmp_path / "p.parquet"
    source.write_bytes(content)
    predict_table(source, out, "toy")
    found = read_table(out).to_pylist()
    assert [(row["m"], row["note"]) for row in found] == [(512, "é")]


def test_mistakes_of_source_destination_and_machine_come_together(tmp_path):
    with pytest.raises(InputError) as error:
        predict_table(tmp_path / "no.csv", tmp_path / "no" / "p.csv", "tyo")
    assert len(error.value.problems) == 3


def test_a_directory_is_a_table(tmp_path):
    (tmp_path / "d").mkdir()
    table = pa.Table.from_pandas(toy(), preserve_index=False)
    for name in ("a", "b"):
        write_table(table, tmp_path / "d" / f"{name}.parquet", {})
    predict_table(tmp_path / "d", tmp_path / "p.csv", "toy")
    assert read_table(tmp_path / "p.csv").num_rows == 2


FORKED = """
import os, sys, wsjax
kernel = dict(m=512, n=512, k=256, block_m=128, block_n=128, block_k=64, stages=2)
kernel["schedule"] = "serial"
frame = __import__("pandas").DataFrame([kernel])
if sys.argv[1] == "after":
    wsjax.predict(frame, "toy")
process = os.fork()
if process:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
try:
    print(wsjax.predict(frame, "toy")["time_us"][0], flush=True)
except wsjax.WsjaxError as error:
    print(error, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(("when", "shown"), [("after", "'spawn'"), ("before", "22.0")])
def test_a_forked_process_predicts_or_says_how(when, shown):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, when],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert shown in run.stdout, run.stderr


def test_a_row_that_tma_cannot_take_has_no_time_unless_it_was_measured(capsys):
    frame = pd.DataFrame({"m": 512, "n": 512, "k": [2047, 2040], "block_m": 128, "block_n": 128})
    frame["block_k"] = 64
    found = wsjax.predict(frame, hardware="h200")
    assert found["reason"].tolist() == ["row_pitch", ""]
    assert found["time_us"].isna().tolist() == [True, False]
    measured = frame.assign(status="ok", time_us_measured=20.0)
    assert all(wsjax.predict(measured, hardware="h200")["legal"])
    assert all(wsjax.predict(frame, hardware="a100-sxm")["legal"])
    options = ["-m", "512", "-n", "512", "-k", "2047", "--tile", "128x128x64"]
    assert main(["predict", *options, "--hardware", "h200"]) == 2
    assert "k = 2047 puts rows of A 4,094 B and B 4,094 B apart" in capsys.readouterr().err


@pytest.mark.parametrize("machine", ["h200", "a6000-paper"])
@pytest.mark.parametrize("stages", [2, 4, 40])
def test_a_record_is_the_first_row_of_the_columns(machine, stages):
    from wsjax import predictions, schema, tables
    from wsjax.hardware import load_hardware

    given = {"m": 4096, "n": 4096, "k": 4096, "block_m": 128, "block_n": 128, "block_k": 64}
    columns = {name: np.asarray([value]) for name, value in (given | {"stages": stages}).items()}
    row = schema.Rows(columns, np.zeros(1, dtype=bool), None)
    found = predictions.described(row, load_hardware(machine))
    assert found.record() == tables.rows(found.columns(), [0])[0]
