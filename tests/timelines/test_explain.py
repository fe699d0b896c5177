"""Explanations: elasticities against finite differences, finite steps against predictions."""

import json

import numpy as np
import pandas as pd
import pytest

from wsjax import explain, predict
from wsjax.cli.main import main
from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import PARAMETERS
from wsjax.schema import from_keywords, resolve_one
from wsjax.schema.columns import SCHEDULES
from wsjax.timelines.explaining import (
    _times_us,
    elasticities,
    period_us,
    resources,
    variants,
)
from wsjax.timelines.timeline import timeline

SHAPE = {"m": 4096, "n": 4096, "k": 4096, "block_m": 128, "block_n": 128, "block_k": 64}
STEP = 1e-6


def configurations(count: int, seed: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    choices = {
        "m": [16, 500, 1024, 4096],
        "n": [512, 2048, 4096],
        "k": [256, 1000, 4096],
        "block_m": [128],
        "block_n": [64, 128],
        "block_k": [32, 64],
        "stages": [1, 2, 3, 4],
        "dma_warps": [1, 2],
        "mma_in_flight": [0, 1],
        "group_m": [1, 8],
    }
    return [
        {name: int(rng.choice(values)) for name, values in choices.items()}
        | {"schedule": str(rng.choice(SCHEDULES)), "math_warps": 8}
        for _ in range(count)
    ]


def test_elasticities_equal_finite_differences():
    machine = load_hardware("h200-gluon")
    own = machine.parameters._asdict()
    names = [name for name, value in own.items() if value != PARAMETERS[name].neutral]
    smooth = total = 0
    for columns in configurations(5, seed=3):
        c = resolve_one(from_keywords(columns), machine.facts)
        t = timeline(c, machine)
        found = elasticities(t, machine, names)
        moves = [{name: own[name] * (1 + side * STEP)} for side in (1, -1) for name in names]
        times = _times_us([c] * len(moves), moves, machine)
        up, down = np.split((times / t.time_us - 1) / STEP, 2)
        alike = np.abs(up + down) < 1e-4  # away from kinks both sides agree
        smooth, total = smooth + alike.sum(), total + len(names)
        gradient = np.array([found[name] for name in names])
        np.testing.assert_allclose(gradient[alike], up[alike], rtol=1e-3, atol=1e-5)
    assert smooth > 0.9 * total


@pytest.fixture(scope="module")
def shallow():
    return explain("h200-gluon", **SHAPE, stages=2, math_warps=8, mma_in_flight=1, group_m=8)


def time_us(machine: str, **columns) -> float:
    physics = load_hardware(machine).physics
    return float(predict(pd.DataFrame([columns]), physics)["time_us"].iloc[0])


def test_choices_are_predictions(shallow):
    own = {"stages": 2, "math_warps": 8, "mma_in_flight": 1, "group_m": 8}
    by_name = {step.name: step for step in shallow.steps}
    for name, change in {
        "+1 stage": {"stages": 3},
        "block_n 256": {"block_n": 256},
        "pingpong": {"schedule": "pingpong"},
        "no MMA in flight": {"mma_in_flight": 0},
        "group_m 1": {"group_m": 1},
    }.items():
        row = pd.DataFrame([SHAPE | own | change])
        expected = float(predict(row, "h200-gluon")["time_us"].iloc[0])
        assert by_name[name].time_us == pytest.approx(expected, rel=1e-9)
        change = expected / shallow.timeline.predicted_us - 1
        assert by_name[name].change == pytest.approx(change, rel=1e-9, abs=1e-12)
    assert by_name["+1 stage"].change < -0.2  # measured: 257 µs of 469


def test_steps_of_parameters_are_predictions(shallow, tmp_path):
    text = load_hardware("h200-gluon").text
    value = load_hardware("h200-gluon").parameters.dram_latency_us
    mine = tmp_path / "mine.toml"
    mine.write_text(text.replace(f"dram_latency_us = {value}", f"dram_latency_us = {1.1 * value}"))
    own = {"stages": 2, "math_warps": 8, "mma_in_flight": 1, "group_m": 8}
    expected = time_us(str(mine), **SHAPE, **own) / shallow.timeline.time_us - 1
    latency = next(one for one in shallow.elasticities if one.name == "dram_latency_us")
    assert latency.more == pytest.approx(expected, rel=1e-6)
    assert latency.more == pytest.approx(0.1 * latency.elasticity, rel=0.01)
    assert latency.without < -0.2


def test_a_shallow_ring_is_what_limits(shallow):
    ring, *others = shallow.resources
    assert ring.name == "ring"
    assert ring.step_us == pytest.approx(shallow.period_us, rel=1e-9)
    assert all(one.slack_us > 0 for one in others)
    inside = np.diff(shallow.timeline.steps.start[3 * 64 + 10 : 4 * 64 - 10])
    assert inside.mean() == pytest.approx(shallow.period_us, rel=1e-6)


@pytest.mark.parametrize("machine", ["h200", "h200-gluon"])
@pytest.mark.parametrize(
    "kernel",
    [
        {"m": 2048, "block_n": 256, "schedule": "cooperative"},
        {"m": 4096, "n": 1024, "block_n": 256, "schedule": "cooperative"},
        {"m": 512, "schedule": "serial", "stages": 3},
        {"dtype_in": "fp8_e4m3", "block_n": 256, "schedule": "cooperative"},
    ],
)
def test_no_resource_alone_takes_more_than_the_step(machine, kernel):
    given = load_hardware(machine).physics
    c = from_keywords(SHAPE | {"stages": 4, "math_warps": 8, "mma_in_flight": 1} | kernel)
    t = timeline(resolve_one(c, given.facts), given)
    found = resources(t, given)
    assert found[0].step_us > 0.8 * period_us(t.pipeline)
    assert all(one.slack_us >= -1e-6 for one in found)


def test_toy_by_hand():
    """Load and compute 1 µs a step; 16 tiles of 4 steps on 4 SMs; 2 µs to launch."""
    found = explain("toy", m=512, n=512, k=256, **dict(list(SHAPE.items())[3:]), stages=2)
    assert found.timeline.time_us == pytest.approx(19)
    assert found.period_us == pytest.approx(1)
    assert {one.name: one.step_us for one in found.resources} == pytest.approx(
        {"SM's load port": 1.0, "matrix unit": 1.0, "ring": 1.0}
    )
    assert (found.waves.waves, found.waves.slots, found.waves.last) == (4, 4, 4)
    assert found.waves.idle == 0
    assert found.roof.compute_us == pytest.approx(16)
    assert np.isnan(found.roof.dram_us)
    launch = next(one for one in found.elasticities if one.name == "launch_us")
    assert launch.elasticity == pytest.approx(2 / 19)
    assert launch.without == pytest.approx(-2 / 19)


def test_the_idle_part_of_the_last_wave():
    found = explain("toy", m=640, n=512, k=256, **dict(list(SHAPE.items())[3:]), stages=2)
    assert (found.waves.waves, found.waves.last) == (5, 4)
    found = explain("toy", m=128 * 5, n=128, k=256, **dict(list(SHAPE.items())[3:]), stages=2)
    assert (found.waves.waves, found.waves.last) == (2, 1)
    assert found.waves.idle == pytest.approx(1 - 5 / 8)


def test_variants_change_one_choice_and_fit_the_ring():
    machine = load_hardware("h200")
    c = resolve_one(from_keywords(SHAPE | {"stages": 6}), machine.facts)
    for name, other in variants(c, machine):
        changed = {key for key in c._fields if getattr(c, key) != getattr(other, key)}
        assert changed
        if "stages" in changed and "stage" not in name.split(",")[0]:
            assert name.endswith(f", {other.stages} stages")
        assert len(changed - {"stages", "math_warps"}) <= 1


def test_the_verb(capsys, monkeypatch):
    command = "explain -m 512 -n 512 -k 256 --tile 128x128x64 --stages 2 --hardware toy"
    assert main(command.split()) == 0
    shown = capsys.readouterr().out
    for words in ("19.000 µs, compute-bound", "matrix unit", "-1 stage", "waves: 4 of 4 CTAs"):
        assert words in shown
    assert "an SM's matrix unit" in shown
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(command.split()) == 0
    shown = capsys.readouterr().out
    assert "an SM's matrix unit" not in shown
    assert "too narrow for meaning" in shown
    assert main([*command.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["time_us"] == pytest.approx(19)
    assert found["roofline"]["dram_us"] is None
    assert {one["name"] for one in found["resources"]} == {"SM's load port", "matrix unit", "ring"}
    assert main(["explain", "-m", "4"]) == 2
    assert "--tile: missing; give -m, -n, -k and --tile" in capsys.readouterr().err


def test_the_dram_roof_is_the_data_sheets():
    """16 MB of A and B and 32 MB of C in bf16, at an H200's 4.8 TB/s."""
    problem = {"m": 4096, "n": 4096, "k": 1024, "block_m": 128, "block_n": 128, "block_k": 64}
    found = explain("h200", **problem, stages=4)
    moved = 2 * (4096 * 1024 + 1024 * 4096 + 4096 * 4096)
    assert found.roof.dram_us == pytest.approx(moved / 4.8e6)
