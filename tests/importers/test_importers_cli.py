"""`wsjax import`, and other verbs on files of other tools' formats (see test_importers_formats)."""

import pytest
from paths import DATA

import wsjax
from wsjax.cli.main import main
from wsjax.tables.parquet import read_metadata, read_table

TUNER = DATA / "kernel_tuner_rtx3090_gemm.json"
PROFILER = DATA / "cutlass_profiler_tf32_tc.txt"
WRONG = DATA / "cutlass_profiler_fp16_tc.txt"


def run(capsys, *arguments, code=0):
    assert main([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_import(capsys, tmp_path, suffix):
    out = tmp_path / f"all{suffix}"
    shown = run(capsys, "import", TUNER, PROFILER, WRONG, TUNER, "--out", out).out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines.count("read 8") == 2
    assert "incorrect 4 ran, with a wrong result" in lines
    together = lines[lines.index(f"{out}: all together") :]
    assert {"read 24", "kept 12 for a fit, of a machine with fp32, tf32"} <= set(together)
    assert any(line.startswith("fake_repeat 8 ") for line in together)
    assert read_table(out).num_rows == 24
    assert wsjax.import_table(out).report.kept == 12
    if suffix == ".parquet":
        assert "incorrect" in read_metadata(out)["imported"]


def test_import_with_a_map(capsys, tmp_path):
    source, out = tmp_path / "mine", tmp_path / "mine.parquet"
    source.write_text("M,N,K,TILE,bn,bk,lat\n512,512,256,128,128,64,0.02\n")
    options = ["--map", "time_ms=lat", "block_m=TILE", "dtype_in=fp16", "--map", "layout=nn"]
    run(capsys, "import", source, "--out", out, *options)
    table = read_table(out)
    assert table["time_us_measured"].to_pylist() == [20.0]
    assert (table["dtype_in"].to_pylist(), table["layout"].to_pylist()) == (["fp16"], ["nn"])
    shown = run(capsys, "import", source, source, "--out", out, code=2).err
    assert shown.count("column 'block_m' is missing") == 2
    assert shown.count("has times without a unit") == 0
    assert "Traceback" not in shown


def test_import_writes_nothing_when_it_fails(capsys, tmp_path):
    out = tmp_path / "x.parquet"
    shown = run(capsys, "import", DATA / "absent.csv", "--out", out, code=2).err
    assert "no such file" in shown
    run(capsys, "import", TUNER, "--out", tmp_path / "x.txt", code=2)
    assert list(tmp_path.iterdir()) == []


def test_predict_takes_other_tools_files(capsys, tmp_path):
    out = tmp_path / "p.parquet"
    run(capsys, "predict", "--table", WRONG, "--out", out)
    table = read_table(out)
    assert table["status"].to_pylist() == ["incorrect"] * 4
    assert table["block_m"].to_pylist() == [256] * 4
    assert table["time_us_measured"].null_count == 0
    assert len(set(table["reason"].to_pylist())) == 1
