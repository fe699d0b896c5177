"""When something is extrapolated, every verb says which column and why."""

from dataclasses import replace

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


def test_of_the_best_kernel(capsys):
    command = "optimize -m 512 -n 512 -k 256 --space space.toml --hardware mine.toml"
    for objective in ("time", "pareto:time,smem_bytes"):
        assert said(capsys, f"{command} --objective {objective}") == [f"extrapolated: {WHY}"]


def test_of_chosen_kernels(capsys):
    command = "choose measured.csv -k 1 --hardware mine.toml"
    assert said(capsys, command) == [f"extrapolated: {WHY}"]
    assert said(capsys, f"{command} --measured") == []


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
