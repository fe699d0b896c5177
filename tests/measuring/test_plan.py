"""Plans: the greedy choice against direct conditioning, budgets, what is known, and the verb."""

import json
import os
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from wsjax import InputError
from wsjax.cli import main
from wsjax.fit import design as fit_design
from wsjax.fit.design import NOISE, _covariances, _slopes, priors
from wsjax.hardware import PARAMETERS, load_hardware
from wsjax.measuring import plan
from wsjax.measuring.runner import read_rows

SPACE = """[columns]
block_m = [64, 128]
block_n = [64, 128]
block_k = 32
stages = [1, 2, 4]
schedule = ["persistent", "pingpong"]
"""
WORKLOAD = pd.DataFrame(
    {"m": [16, 512, 1000, 4096], "n": [4096, 512, 1000, 4096], "k": [4096, 512, 200, 64]}
)
ROWS = 8


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("space") / "space.toml"
    path.write_text(SPACE)
    return path


@pytest.fixture(scope="module")
def planned(space):
    return plan(WORKLOAD, "h200-datasheet", space=space, rows=ROWS)


def pool(rows: int = 40):
    """A random pool with its problems."""
    chooser = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "m": chooser.permutation(4096)[:rows] + 1,
            "n": 8 * chooser.integers(1, 512, rows),
            "k": 8 * chooser.integers(1, 512, rows),
            "block_m": chooser.choice([64, 128], rows),
            "block_n": 128,
            "block_k": 32,
            "stages": chooser.choice([1, 2, 4], rows),
        }
    )
    half = rows // 2
    frame.loc[half:, ["m", "n", "k"]] = frame.loc[: half - 1, ["m", "n", "k"]].to_numpy()
    frame["group_m"] = 1 + np.arange(rows) // half
    return read_rows(frame, load_hardware("h200-datasheet")), np.tile(np.arange(half), 2)


def test_errors_are_those_of_direct_conditioning():
    machine = load_hardware("h200-datasheet")
    configurations, problem = pool()
    weight = np.linspace(1.0, 2.0, len(problem))
    found = fit_design(configurations, problem, weight, machine, rows=6)
    with jax.enable_x64(True):
        prior = priors.prior_of(machine, priors.candidates(machine))
        slopes, *_ = _slopes(configurations, machine, prior, 0)
        covariance = np.asarray(sum(_covariances(slopes, problem)))

    def left(rows):
        inside = covariance[np.ix_(rows, rows)] + NOISE**2 * np.eye(len(rows))
        lower = covariance[:, rows] @ np.linalg.solve(inside, covariance[rows])
        return np.sqrt(np.average(np.diag(covariance - lower), weights=weight))

    for count in range(1, 7):
        assert found.error[count] == pytest.approx(left(found.chosen[:count]), rel=1e-9)
        others = [[*found.chosen[: count - 1], row] for row in range(len(problem))]
        assert found.error[count] == pytest.approx(min(map(left, others)), rel=1e-9)
    assert (found.after <= found.before + 1e-12).all()
    free = found.before > 0
    assert (found.after[free] < 0.7 * found.before[free]).any()


def test_rows_that_are_known_change_what_is_asked_for():
    machine = load_hardware("h200-datasheet")
    configurations, problem = pool()
    weight = np.ones(len(problem))
    first = fit_design(configurations, problem, weight, machine, rows=4)
    known = np.zeros(len(problem), bool)
    known[first.chosen[:2]] = True
    rest = fit_design(configurations, problem, weight, machine, rows=2, known=known)
    assert rest.chosen.tolist() == first.chosen[2:].tolist()
    assert rest.error == pytest.approx(first.error[2:], rel=1e-9)


def test_a_budget_is_kept_and_buys_more_rows_of_short_kernels():
    machine = load_hardware("h200-datasheet")
    configurations, problem = pool()
    weight = np.ones(len(problem))
    every = fit_design(configurations, problem, weight, machine, rows=40)
    assert sorted(every.chosen) == list(range(40))
    budget = every.seconds.sum() / 4
    some = fit_design(configurations, problem, weight, machine, rows=40, budget_s=budget)
    assert 0 < some.seconds.sum() <= budget
    assert np.median(some.seconds) < np.median(every.seconds)


def test_what_no_row_tells_is_named(planned):
    assert {"launch_cluster_us", "multicast_cost"} <= set(planned.untold)
    assert "launch_us" not in planned.untold
    assert {name for name, *_ in planned.parameters} <= set(PARAMETERS)
    assert planned.error_pct[1] < 0.8 * planned.error_pct[0]
    assert (np.diff(planned.frame["expected_error_pct"]) < 0).all()


def test_the_verbs_together(tmp_path, capsys, space, monkeypatch):
    support = Path(__file__).parents[1] / "support"
    monkeypatch.setenv("PYTHONPATH", f"{support}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("STANDIN_LOG", str(tmp_path / "log"))
    workload, rows, out = tmp_path / "w.csv", tmp_path / "plan.csv", tmp_path / "measured.csv"
    WORKLOAD.to_csv(workload, index=False)
    given = ["plan", str(workload), "--space", str(space), "--rows", str(ROWS), "--out", str(rows)]
    assert main([*given, "--budget", "1m"]) == 0
    said = capsys.readouterr().out
    assert "no row tells more of " in said
    assert f"{ROWS} rows of 4 problems" in said
    engine = ["--engine", "standin:StandIn", "--hardware", "toy", "--repeats", "0"]
    assert main(["measure", str(rows), "--out", str(out), *engine]) == 0
    capsys.readouterr()
    assert main([*given, "--measured", str(out), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["rows"] == ROWS
    assert main([*given, "--budget", "soon"]) == 2
    assert "'soon' is no duration; write it as 60s or 2m" in capsys.readouterr().err


def test_mistakes_are_told(space):
    with pytest.raises(InputError, match="--rows 0: give a whole number from 1"):
        plan(WORKLOAD, space=space, rows=0)
    with pytest.raises(InputError, match="--budget 0: give seconds above 0"):
        plan(WORKLOAD, space=space, budget_s=0.0)
