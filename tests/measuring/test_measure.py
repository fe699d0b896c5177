"""Measuring with an engine that needs no GPU: faults, resuming, noise, and what a fit reads."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from wsjax import InputError, importers, validate
from wsjax.cli import main
from wsjax.hardware import load_hardware
from wsjax.measuring import measure

ENGINE = "standin:StandIn"
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(autouse=True)
def engine(monkeypatch, tmp_path):
    path = f"{SUPPORT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("STANDIN_LOG", str(tmp_path / "log"))


def rows(**columns) -> pd.DataFrame:
    plain = {"m": [512, 1024, 2048], "n": 512, "k": 512, "block_m": 64, "block_n": 64}
    return pd.DataFrame({**plain, "block_k": 32, "stages": 2, **columns})


def logged(tmp_path, what="measured") -> Counter:
    return Counter((tmp_path / f"log.{what}").read_text().splitlines())


def test_faults_cost_their_rows_only(tmp_path, monkeypatch):
    faults = {"16": "hang", "64": "crash", "128": "wrong", "8": "raise"}
    monkeypatch.setenv("STANDIN_FAULTS", json.dumps(faults))
    frame = rows(m=[512] * 6 + [1024], block_k=[32, 16, 64, 128, 8, 48, 32])
    out = tmp_path / "out.csv"
    began = time.monotonic()
    measured = measure(frame, out, engine=ENGINE, hardware="toy", timeout_s=8, repeats=0)
    assert time.monotonic() - began < 100
    table = pd.read_csv(out).set_index(["m", "block_k"])
    statuses = table["status"].to_dict()
    assert statuses[512, 16] == "timeout"
    assert statuses[512, 64] == "failed"
    assert statuses[512, 128] == "incorrect"
    assert statuses[512, 8] == "not_compiled"
    assert table["error"].to_dict()[512, 8] == "ValueError: ptxas: too many registers"
    words = ("timeout", "failed", "incorrect", "not_compiled")
    assert measured.statuses == {"ok": 3} | dict.fromkeys(words, 1)
    found = validate(out, "toy")
    assert found.metrics.rows == 3
    assert found.metrics.mape_pct < 0.5
    assert sum(found.excluded.values()) == 4


def test_repeats_tell_the_noise_and_are_left_out_of_fits(tmp_path):
    out = tmp_path / "out.csv"
    measured = measure(rows(), out, engine=ENGINE, hardware="toy", repeats=1.0)
    assert measured.rows == 6
    assert 0 < measured.noise < 0.01
    assert importers.counts(importers.read(out).table) == {"duplicate": 3}


def test_kill_and_resume_measure_nothing_twice_and_lose_nothing(tmp_path):
    plan, out = tmp_path / "plan.csv", tmp_path / "out.csv"
    frame = rows(m=list(range(64, 64 * 41, 64)))
    frame.to_csv(plan, index=False)
    code = (
        "from wsjax.measuring import measure; "
        f"measure({str(plan)!r}, {str(out)!r}, engine={ENGINE!r}, hardware='toy')"
    )
    for least in (3, 12):
        process = subprocess.Popen([sys.executable, "-c", code])
        while not out.exists() or out.read_bytes().count(b"\n") <= least:
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with out.open("ab") as file:
            file.write(b"640,512,51")  # a line that a crash tore
    before = out.read_text().splitlines()[:-1]
    measured = measure(plan, out, engine=ENGINE, hardware="toy")
    assert measured.rows == 42
    assert measured.resumed == len(before) - 1
    lines = out.read_text().splitlines()
    assert lines[: len(before)] == before
    table = pd.read_csv(out)
    assert set(table["m"]) == set(frame["m"])
    assert not table.duplicated(["m", "run"]).any()
    again = [line for line, count in logged(tmp_path).items() if count > 1]
    assert len(again) <= 2, "only what was under way when it was killed"


def test_a_run_that_is_done_measures_nothing(tmp_path):
    out = tmp_path / "out.csv"
    measure(rows(), out, engine=ENGINE, hardware="toy")
    before, log = out.read_bytes(), logged(tmp_path)
    assert measure(rows(), out, engine=ENGINE, hardware="toy").resumed == 3
    assert out.read_bytes() == before
    assert logged(tmp_path) == log


def test_several_processes_compile_ahead(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setenv("STANDIN_FAULTS", json.dumps({"24": "raise"}))
    frame = rows(m=64, block_k=list(range(8, 72, 8)))
    measured = measure(frame, tmp_path / "out.csv", engine=ENGINE, hardware="toy", repeats=0)
    assert measured.statuses == {"ok": 7, "not_compiled": 1}
    prepared = logged(tmp_path, "prepared")
    assert len(prepared) == 8
    assert set(prepared.values()) == {2}


def test_mistakes_are_told(tmp_path):
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"--engine gluonn: valid: gluon"):
        measure(rows(), out, engine="gluonn")
    with pytest.raises(InputError, match=r"ends in \.csv"):
        measure(rows(), tmp_path / "out.parquet", engine=ENGINE)
    with pytest.raises(InputError, match="column 'block_m': blank in 3 rows"):
        measure(rows(block_m=None), out, engine=ENGINE, hardware="toy")
    out.write_text("m,n,k\n1,2,3\n")
    with pytest.raises(InputError, match="no table that `wsjax measure` wrote"):
        measure(rows(), out, engine=ENGINE, hardware="toy")
    assert out.read_text() == "m,n,k\n1,2,3\n"


def test_without_a_gpu_it_says_so(tmp_path):
    with pytest.raises(InputError, match=r"cannot measure here: .*NVIDIA GPU"):
        measure(rows(), tmp_path / "out.csv")


def test_the_verb(tmp_path, capsys):
    plan, out = tmp_path / "plan.csv", tmp_path / "out.csv"
    rows().to_csv(plan, index=False)
    given = ["measure", str(plan), "--out", str(out), "--engine", ENGINE, "--hardware", "toy"]
    machine = tmp_path / "mine.toml"
    assert main([*given, "--repeats", "0.4"]) == 0
    said = capsys.readouterr().out
    assert "4 rows on toy: 4 ok\nrows measured twice differ by 0." in said
    like = ["--hardware", "h200-datasheet", "--machine", str(machine)]
    assert main([*given[:6], *like, "--repeats", "0.4"]) == 0
    assert load_hardware(machine).facts.sms == 4
    assert load_hardware(machine).peaks.clock_max_mhz == 1500
    assert capsys.readouterr().out.startswith("4 rows on toy, 4 of them before: 4 ok")
    assert main([*given[:4], "--hardware", "toy"]) == 2
    assert "engine gluon cannot measure here" in capsys.readouterr().err


PROFILER = """#!{python}
import sys
given = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:] if "=" in word)
header = "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,Runtime"
if "output" in given and given["m"] != "2048":
    name = given["kernels"].replace("*", "x")
    right = "incorrect" if given["m"] == "1024" else "passed"
    sizes = ",".join(given[axis] for axis in "mnk")
    with open(given["output"] + ".gemm.csv", "w") as file:
        for runtime in ("0.25", "0.125"):
            print(header, file=file) if runtime == "0.25" else None
            print(f"1,CUTLASS,gemm,{{name}},{{right}},success,{{sizes}},{{runtime}}", file=file)
"""


def test_cutlass_profiler_is_run_and_read(tmp_path, monkeypatch, capsys):
    for name, text in (
        ("profiler", PROFILER.format(python=sys.executable)),
        ("nvidia-smi", "#!/bin/sh\necho NVIDIA H200\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    plan, out = tmp_path / "plan.csv", tmp_path / "out.csv"
    kernel = {"block_k": 64, "block_m": 128, "block_n": 128, "stages": 4, "schedule": "pingpong"}
    frame = rows(m=[512, 1024, 2048, 64], dma_warps=[1, 1, 1, 2], **kernel)
    frame.to_csv(plan, index=False)
    given = ["measure", str(plan), "--out", str(out), "--engine", "cutlass_profiler"]
    assert main([*given, "--profiler", str(tmp_path / "profiler"), "--repeats", "0"]) == 0
    table = pd.read_csv(out)
    assert table.drop_duplicates("m").set_index("m")["status"].to_dict() == {
        512: "ok",
        1024: "incorrect",
        2048: "not_compiled",
        64: "not_compiled",
    }
    assert table.set_index("m")["time_us_measured"].to_dict()[512] == 125.0
    capsys.readouterr()
    assert main(given) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 3
    assert "'--kernels=cutlass3x_sm90_tensorop_*gemm_bf16" in said.out
    assert said.err == "rows that CUTLASS has no kernel for: 1\n"
