"""What users get wrong with measured tables: one bad cell, a wrong name, the wrong kind of file."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from test_calibration import GLUON

import wsjax
from wsjax.cli import terminal
from wsjax.cli.main import main
from wsjax.errors import InputError
from wsjax.importers import import_table

CUTLASS = "gpu,kernel,m,n,k,layout,schedule,block_m,block_n,block_k,stages,time_us_median"
ROW = "H200,one,512,1024,256,TN,basic,128,128,64,4,12.5"
OTHER = ROW.replace("512", "640")
OWN = "M,N,K,TILE_M,TILE_N,TILE_K,depth,latency\n512,1024,256,128,128,64,4,0.0125\n"
EVENTS = "config_id,m,n,k,group_m,cta,role,wave,kstep,slot,event,t_ns\na,1,1,1,1,0,dma0,0,0,0,x,1\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write_(text, name="a.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write_


def complaint(capsys, command: str) -> str:
    assert main(command.split()) == 2
    shown = capsys.readouterr()
    assert not shown.out
    return shown.err


@pytest.mark.parametrize(("good", "bad"), [("basic", "basics"), ("TN", "xx")])
def test_a_wrong_word_spoils_its_own_row_only(write, good, bad):
    found = import_table(write(f"{CUTLASS}\n{ROW}\n{OTHER.replace(good, bad)}\n"))
    assert found.table["excluded"].tolist() == ["", "unsupported"]
    assert (found.table["schedule"][0], found.table["layout"][0]) == ("serial", "nt")
    assert any(f"first '{bad}': 1; " in note for note in found.report.notes)


def test_a_number_out_of_range_is_told(write):
    (note, *_) = import_table(write(f"{CUTLASS}\n{OTHER.replace(',4,', ',99,')}\n")).report.notes
    assert note == (
        "rows whose stages is no word or number of ours, first '99': 1; whole numbers from 1 to 32"
    )


def test_a_tile_under_a_wrong_name(write, capsys):
    path = write(f"{CUTLASS}\n{ROW}\n".replace("block_m", "blok_m"))
    notes = import_table(path).report.notes
    assert any("column 'blok_m' is not read; is it block_m?" in note for note in notes)
    shown = complaint(capsys, "validate a.csv")
    assert "1 no_tile: no block_m" in shown
    assert "`wsjax import` says more" in shown


def test_what_is_assumed_of_kernels_is_told(write):
    notes = " ".join(import_table(write(OWN), mapping={"time_ms": "latency"}).report.notes)
    assert "stages as many as fit, schedule persistent" in notes
    mapping = {"time_ms": "latency", "stages": "depth", "schedule": "serial"}
    assert "stages" not in " ".join(import_table(write(OWN), mapping=mapping).report.notes)


def test_what_the_model_has_no_terms_for_is_told(write, capsys):
    """A cluster where there are none; fp32, which tensor cores do not multiply."""
    header, row = f"{CUTLASS},cluster_m,cluster_n", f"{ROW},2,1"
    command = f"validate {write(f'{header}{chr(10)}{row}{chr(10)}')} --hardware a100-sxm"
    said = complaint(capsys, command)
    assert (
        "covers none of the 1 measured rows on a100-sxm; the first: not modelled: cluster" in said
    )
    rows = f"{CUTLASS},dtype_in\n{ROW},fp32\n{OTHER},bf16\n"
    assert main(["validate", str(write(rows)), "--hardware", "a100-sxm"]) == 0
    assert "warning: 1 of 2 rows are fp32, which is multiplied outside" in capsys.readouterr().out
    assert main(["validate", str(write(f"{CUTLASS}\n{ROW}\n"))]) == 0
    assert "fp32" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("schedule=pingpog", ["'pingpog'", "did you mean 'pingpong'"]),
        ("layout=k", ["latency, nn, nt, tn, tt"]),
        ("time_ms=latency time_us=latency", ["time_ms=latency, time_us=latency: one time, given"]),
    ],
)
def test_maps(write, capsys, words, parts):
    write(OWN)
    shown = complaint(capsys, f"import a.csv --out b.csv --map {words}")
    assert all(part in shown for part in parts)
    assert "\0" not in shown


def test_the_table_that_is_read_is_not_written_over(write, capsys):
    path = write(f"{CUTLASS}\n{ROW}\n")
    assert "is the table that is read" in complaint(capsys, "import a.csv --out ./a.csv")
    assert path.read_text() == f"{CUTLASS}\n{ROW}\n"


@pytest.mark.parametrize(
    "command", ["import a.csv --out b.csv", "validate a.csv", "calibrate a.csv --out b.toml"]
)
def test_traced_events_given_as_a_table(write, capsys, command):
    write(EVENTS)
    shown = complaint(capsys, command)
    assert "`wsjax validate --trace`" in shown
    assert "block_m" not in shown


def test_a_table_given_as_traced_events(write, capsys):
    write(OWN)
    assert "give tables without --trace" in complaint(capsys, "validate --trace a.csv")


def test_lists_where_numbers_are_expected(write):
    key = [[512, 1024, 256, "torch.float16"], {"of": []}]
    kwargs = {"BLOCK_M": 128, "BLOCK_N": [128], "BLOCK_K": 64}
    timings = [[{"kwargs": kwargs, "num_warps": 8, "num_stages": 3}, [[0.1], 0.1, 0.1]]]
    path = write(json.dumps({"key": key, "configs_timings": timings}), "x.autotune.json")
    assert import_table(path).report.read == 1
    path = write(json.dumps({"key": key[:1], "configs_timings": timings}), "x.autotune.json")
    assert import_table(path).table["k"].tolist() == [256]


def test_a_directory_of_other_files(write, capsys, tmp_path):
    (tmp_path / "d").mkdir()
    write("{}", "d/b.parquet")
    shown = complaint(capsys, "import d --out c.csv")
    assert shown.count("\n") == 1
    assert "d: " in shown


def frame() -> pd.DataFrame:
    return pd.read_csv(GLUON).query("status == 'ok'").head(4)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: wsjax.validate(None), "not NoneType None"),
        (lambda: wsjax.validate([]), "not list []"),
        (lambda: wsjax.validate([3, frame()]), "not int, DataFrame"),
        (lambda: wsjax.calibrate(frame(), fix="launch_us"), "expected a list of names"),
        (lambda: wsjax.calibrate(frame(), free=3), "expected a list of names"),  # type: ignore[arg-type]
        (lambda: wsjax.calibrate(frame(), seed=-1), "--seed -1: give a whole number from 0"),
        (lambda: wsjax.calibrate(frame(), seed=1.5), "--seed 1.5"),  # type: ignore[arg-type]
        (lambda: wsjax.calibrate(frame(), held_out="x"), "--held-out x"),  # type: ignore[arg-type]
        (lambda: wsjax.import_table(frame()), "expected a file's path, not DataFrame"),  # type: ignore[arg-type]
        (lambda: wsjax.import_table("a.csv", mapping=["m=M"]), "mapping: expected"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments(call, part):
    with pytest.raises(InputError) as error:
        call()
    assert part in str(error.value)


def test_a_validation_is_shown_in_a_few_words():
    found = wsjax.validate(frame(), "toy")
    assert f"rows={len(found.rows.rows)}" in repr(found)
    assert len(repr(found)) < 1000


def test_names_of_the_package_stand_alone():
    for name in ("ablate", "replay_trace"):
        assert "InputError" in getattr(wsjax, name).__doc__
        assert name in dir(wsjax)


@pytest.mark.parametrize(("columns", "shown"), [(30, "a c"), (14, "a"), (200, "a b c")])
def test_a_narrow_terminal_shows_fewer_columns(capsys, monkeypatch, columns, shown):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    words = [str(10**9 + i) for i in range(3)]
    terminal.show_table(["a", "b", "c"], [words], left=(0,), spare=(1, 2))
    lines = re.sub("\x1b.*?m", "", capsys.readouterr().out).splitlines()
    told = {name: word for name, word in zip("abc", words, strict=True) if name in shown.split()}
    assert next(line for line in lines if "a" in line).split() == list(told)
    assert next(line for line in lines if "1000" in line).split() == list(told.values())
    hidden = ", ".join(name for name in "bc" if name not in told)
    assert ("too narrow for " + hidden in lines[-1]) == bool(hidden)


def test_wide_numbers_are_not_cut_in_a_pipe(capsys):
    terminal.show_table(["x" * 30] * 5, np.full((1, 5), "y" * 30).tolist())
    assert "…" not in capsys.readouterr().out
