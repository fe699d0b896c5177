"""When something is extrapolated, every verb says which column and why."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import wsjax
from wsjax.cli.main import main

ROW = {"m": 512, "n": 512, "k": 256, "block_m": 128, "block_n": 128, "block_k": 64, "stages": 2}
ONE = "-m 512 -n 512 -k 256 --tile 128x128x64 --stages 2 --hardware mine.toml"
SPAN = {"k": [512, 1024], "schedule": ["persistent", "pingpong"], "stages": [2, 4]}
WHY = "k 256 (fitted: 512 to 1024)"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A machine that is fitted to a span, and a measured table, a sweep and a space beyond it."""
    monkeypatch.chdir(tmp_path)
    spread = {"all": [-0.1, 0.2]}
    toy = wsjax.load_hardware("toy")
    mine = replace(toy, name="mine", calibrated=True, span=SPAN, spread=spread)
    (tmp_path / "mine.toml").write_text(wsjax.format_hardware(mine))
    measured = pd.DataFrame({**ROW, "k": [256, 512], "time_us_measured": [25.0, 42.0]})
    measured.to_csv(tmp_path / "measured.csv", index=False)
    columns = "\n".join(f"{name} = {value}" for name, value in ROW.items())
    text = f'hardware = ["mine.toml", "toy"]\n[columns]\n{columns}\n'
    (tmp_path / "s.toml").write_text(text)
    (tmp_path / "swept.toml").write_text(
        text.replace("256", "512") + "[hardware_parameters]\nlaunch_us = [2.0, 3.0]\n"
    )
    (tmp_path / "space.toml").write_text(
        "[columns]\nblock_m = 128\nblock_n = 128\nblock_k = 64\nstages = 2\n"
    )


def said(capsys, command: str) -> list[str]:
    assert main(command.split()) == 0
    return [line for line in capsys.readouterr().out.splitlines() if "extrapolated" in line]


@pytest.mark.parametrize("verb", ["predict", "explain", "trace"])
def test_of_one_configuration(capsys, verb):
    assert said(capsys, f"{verb} {ONE}") == [f"extrapolated: {WHY}"]
    both = f"extrapolated: {WHY}, schedule serial (fitted: persistent, pingpong)"
    assert said(capsys, f"{verb} {ONE} --schedule serial") == [both]
    assert said(capsys, f"{verb} {ONE.replace('256', '512')}") == []
    assert said(capsys, f"{verb} {ONE.replace('mine.toml', 'toy')}") == []


@pytest.mark.parametrize("machine", ["h200", "h200-gluon", "h200-cutlass"])
def test_default_kernels_of_calibrated_machines_are_inside(capsys, machine):
    """The measured CUTLASS kernels all keep an MMA in flight, and none is `persistent`."""
    tile = "-m 4096 -n 4096 -k 4096 --tile 128x128x64"
    for more in ("", " --stages 4 --schedule pingpong"):
        assert said(capsys, f"predict {tile}{more} --hardware {machine}") == []
    frame = pd.DataFrame([ROW]).drop(columns="stages").assign(k=512)
    found = wsjax.predict(frame, machine)
    assert found["extrapolated"].tolist() == [False]
    explicit = {"schedule": "persistent", "mma_in_flight": 0, "math_warps": 4}
    if machine != "h200-gluon":
        explicit = {"schedule": "pingpong", "mma_in_flight": 1, "math_warps": 8}
    again = wsjax.predict(frame.assign(**explicit), machine)
    assert again["time_us"].tolist() == found["time_us"].tolist()


def test_defaults_of_a_sweep_and_of_a_space_follow_the_machine(capsys, tmp_path):
    text = (tmp_path / "s.toml").read_text().replace('"mine.toml", "toy"', '"h200-cutlass", "toy"')
    (tmp_path / "both.toml").write_text(text)
    assert said(capsys, "sweep both.toml --out both") == [
        "extrapolated on toy: the machine is not fitted to measurements"
    ]
    rows = wsjax.open("both").to_table().to_pandas().set_index("hardware")
    columns = ["schedule", "mma_in_flight", "math_warps", "extrapolated"]
    assert rows.loc["h200-cutlass", columns].tolist() == ["pingpong", 1, 8, False]
    assert rows.loc["toy", columns].tolist() == ["persistent", 0, 4, True]
    command = "optimize -m 512 -n 512 -k 256 --space space.toml --hardware h200-cutlass"
    assert said(capsys, command) == []
    assert wsjax.optimize({"m": 512, "n": 512, "k": 256}, "h200-cutlass", space="space.toml")[
        "time_us"
    ].tolist() == pytest.approx([rows.loc["h200-cutlass", "time_us"]], rel=1e-6)


def test_of_the_best_kernel(capsys):
    command = "optimize -m 512 -n 512 -k 256 --space space.toml --hardware mine.toml"
    for objective in ("time", "pareto:time,smem_bytes"):
        assert said(capsys, f"{command} --objective {objective}") == [f"extrapolated: {WHY}"]


def test_of_chosen_kernels(capsys):
    command = "choose measured.csv -k 1 --hardware mine.toml"
    assert said(capsys, command) == [f"extrapolated: {WHY}"]
    assert said(capsys, f"{command} --measured") == []


def test_of_a_table(capsys, tmp_path):
    command = "predict --table measured.csv --out out.parquet --hardware"
    assert said(capsys, f"{command} mine.toml") == [f"extrapolated: 1 of 2 rows: {WHY}"]
    assert said(capsys, f"{command} toy") == [
        "extrapolated: 2 of 2 rows: the machine is not fitted to measurements"
    ]
    pd.DataFrame([{**ROW, "k": 512}]).to_csv(tmp_path / "inside.csv", index=False)
    assert said(capsys, f"{command} mine.toml".replace("measured", "inside")) == []


def test_columns_that_a_measured_table_leaves_out_are_its_machines(capsys):
    """`validate` takes the defaults that `predict` takes: those of the machine's kernels."""
    left_out = pd.DataFrame([{**ROW, "k": 512, "time_us_measured": 42.0}])
    explicit = left_out.assign(schedule="pingpong", mma_in_flight=1, math_warps=8)
    times = [
        wsjax.validate(frame, "h200-cutlass").frame()["time_us"].tolist()
        for frame in (left_out, explicit)
    ]
    assert times[0] == times[1] == wsjax.predict(left_out, "h200-cutlass")["time_us"].tolist()
    left_out.to_csv("left_out.csv", index=False)
    shown = said(capsys, "validate left_out.csv --hardware h200-cutlass")
    assert not [line for line in shown if line.startswith("extrapolated")]


def test_kernels_of_other_tools_have_the_machines_defaults(capsys):
    """`predict --table` and `choose` of what tells neither schedule nor MMAs in flight."""
    source = Path(__file__).parents[1] / "data" / "kernel_tuner_rtx3090_gemm.json"
    command = f"predict --table {source} --out out.parquet --hardware h200-cutlass"
    assert "mma_in_flight" not in "".join(said(capsys, command))
    assert set(pd.read_parquet("out.parquet")["mma_in_flight"]) == {1}
    measured = pd.DataFrame([{**ROW, "k": 512, "time_us_measured": 42.0}])
    chosen = wsjax.choose(measured, 1, "h200-cutlass")
    predicted = wsjax.predict(measured, "h200-cutlass")
    assert chosen.time_us == predicted["time_us"][0]
    assert predicted["extrapolated"].tolist()[0] is False


def test_of_measured_rows(capsys):
    shown = said(capsys, "validate measured.csv --hardware mine.toml")
    assert f"extrapolated: {WHY}" in shown


def test_of_sweeps(capsys):
    assert said(capsys, "sweep s.toml --out out") == [
        f"extrapolated on mine: {WHY}",
        "extrapolated on toy: the machine is not fitted to measurements",
    ]
    assert said(capsys, "sweep swept.toml --out swept")[0] == (
        "extrapolated on mine: the machine's parameters are swept"
    )
