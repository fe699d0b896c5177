"""When something is extrapolated, every verb says which column and why."""

import pandas as pd
import pytest

from wsjax.cli.main import main

ONE = "-m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4"
WHY = "schedule persistent (fitted: serial, pingpong, cooperative)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = {"m": 4096, "n": 4096, "k": 4096, "block_m": 128, "block_n": 128, "block_k": 64}
    measured = pd.DataFrame({**row, "stages": [3, 4], "time_us_measured": [250.0, 240.0]})
    measured.to_csv(tmp_path / "measured.csv", index=False)
    columns = "\n".join(f"{name} = {value}" for name, value in row.items())
    (tmp_path / "s.toml").write_text(f'hardware = ["h200", "toy"]\n[columns]\n{columns}\n')
    (tmp_path / "space.toml").write_text(
        "[columns]\nblock_m = 128\nblock_n = 128\nblock_k = 64\nstages = 4\n"
        'schedule = "persistent"\nmma_in_flight = 1\n'
    )


def said(capsys, command: str) -> list[str]:
    assert main(command.split()) == 0
    return [line for line in capsys.readouterr().out.splitlines() if "extrapolated" in line]


@pytest.mark.parametrize("verb", ["predict", "explain", "trace"])
def test_of_one_configuration(capsys, verb):
    expected = f"extrapolated: mma_in_flight 0 (fitted: 1), {WHY}"
    assert said(capsys, f"{verb} {ONE}") == [expected]
    assert said(capsys, f"{verb} {ONE} --schedule pingpong --mma-in-flight 1") == []
    assert said(capsys, f"{verb} {ONE} --stages 2 --hardware toy") == []


def test_of_the_best_kernel(folder, capsys):
    command = "optimize -m 4096 -n 4096 -k 4096 --space space.toml"
    assert said(capsys, command) == [f"extrapolated: {WHY}"]
    assert said(capsys, f"{command} --objective pareto:time,smem_bytes") == [f"extrapolated: {WHY}"]


def test_of_chosen_kernels(folder, capsys):
    assert said(capsys, "choose measured.csv -k 1")[0].endswith(WHY)
    assert said(capsys, "choose measured.csv -k 1 --measured") == []


def test_of_measured_rows(folder, capsys):
    (why,) = [line for line in said(capsys, "validate measured.csv") if line.endswith(WHY)]
    assert why.startswith("extrapolated: mma_in_flight 0")


def test_of_sweeps(folder, capsys):
    assert said(capsys, "sweep s.toml --out out") == [
        f"extrapolated on h200: mma_in_flight 0 (fitted: 1), {WHY}",
        "extrapolated on toy: the machine is not fitted to measurements",
    ]


def test_of_tables(folder, capsys):
    assert said(capsys, "predict --table measured.csv --out p.csv") == [
        f"2 of 2 rows are extrapolated: mma_in_flight 0 (fitted: 1), {WHY}"
    ]
