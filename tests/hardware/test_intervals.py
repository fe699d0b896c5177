"""Intervals: their coverage, and which rows are extrapolated."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import wsjax
from wsjax.hardware.intervals import Errors, bounds, extrapolation, outside, spread
from wsjax.hardware.machine import Hardware, load_hardware
from wsjax.hardware.sections import REGIONS
from wsjax.schema.columns import LIMITERS, SCHEDULES, Configuration

ROW = {"m": 512, "n": 512, "k": 256, "block_m": 128, "block_n": 128, "block_k": 64, "stages": 2}
TOY = load_hardware("toy")
FITTED = replace(
    TOY,
    calibrated=True,
    span={"m": [128, 1024], "stages": [1, 4], "schedule": ["persistent", "pingpong"]},
    spread={"all": [-0.1, 0.2], "pingpong_load": [-0.2, 0.1], "pingpong_compute": [-0.2, 0.1]},
)


def errors(rng: np.random.Generator, rows: int) -> Errors:
    """Errors that scatter by region, and hang together inside a problem."""
    schedule = rng.integers(0, len(SCHEDULES), rows)
    limiter = rng.integers(0, len(LIMITERS), rows)
    problem = rng.integers(0, 200, rows)
    shared = rng.standard_normal(200)[problem]
    scale = 0.02 + 0.03 * limiter + 0.02 * schedule
    return Errors(scale * (0.5 * shared + rng.standard_t(5, rows)), schedule, limiter, problem)


def covered(rows: Errors, table: dict) -> np.ndarray:
    """Which rows lie in the intervals that a spread gives them."""
    configurations = Configuration(*[1] * len(Configuration._fields))._replace(
        schedule=rows.schedule
    )
    prediction = SimpleNamespace(time_us=np.full(len(rows.error), 7.0), limiter=rows.limiter)
    none = np.zeros(len(rows.error), dtype=bool)
    low, high = bounds(replace(TOY, spread=table), configurations, prediction, none)
    measured = 7.0 * np.exp(rows.error)
    return (low <= measured) & (measured <= high)


def test_coverage_on_rows_that_the_spread_has_not_seen():
    rng = np.random.default_rng(3)
    table = spread(errors(rng, 4000))
    assert set(table) == {"all", *REGIONS}
    fresh = errors(rng, 4000)
    inside = covered(fresh, table)
    assert 0.85 <= inside.mean() <= 0.95
    for limiter in range(len(LIMITERS)):
        assert 0.85 <= inside[fresh.limiter == limiter].mean() <= 0.95


def test_a_region_with_few_problems_leans_on_all():
    rng = np.random.default_rng(4)
    rows = errors(rng, 3000)
    lonely = (rows.schedule == 0) & (rows.limiter == 0)
    rows = rows._replace(problem=np.where(lonely, 0, rows.problem))
    rows = rows._replace(error=np.where(lonely, 0.0, rows.error))
    table = spread(rows)
    assert table["serial_load"] == pytest.approx(np.asarray(table["all"]) * 5 / 6, rel=1e-3)


def test_errors_of_parameters_come_on_top():
    rows = errors(np.random.default_rng(5), 500)
    table = spread(rows, parameter_error=0.1)
    assert table["parameters"] == 0.1
    assert covered(rows, table).mean() > covered(rows, spread(rows)).mean()


def predict(machine: Hardware, **columns) -> pd.DataFrame:
    return wsjax.predict(pd.DataFrame({**ROW, **columns}, index=[0]), machine)


@pytest.mark.parametrize(
    ("columns", "extrapolated"),
    [
        ({}, False),
        ({"m": 127}, True),
        ({"m": 1024}, False),
        ({"m": 1025}, True),
        ({"schedule": "pingpong"}, False),
        ({"schedule": "serial"}, True),
    ],
)
def test_extrapolated_outside_the_span(columns, extrapolated):
    found = predict(FITTED, **columns)
    assert found["extrapolated"].tolist() == [extrapolated]
    time_us, low, high = found[["time_us", "time_us_lo", "time_us_hi"]].to_numpy(float)[0]
    usual = (-0.2, 0.1) if columns.get("schedule") == "pingpong" else (-0.1, 0.2)
    expected = [time_us * np.exp(bound * (2 if extrapolated else 1)) for bound in usual]
    assert [low, high] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"m": 1024, "schedule": "pingpong"}, ""),
        ({"m": 1025}, "m 1025 (fitted: 128 to 1024)"),
        ({"m": [1, 128, 2048]}, "m 1 to 2048 (fitted: 128 to 1024)"),
        ({"m": range(1, 5000)}, "m 1 to 4999 (fitted: 128 to 1024)"),
        ({"schedule": 0}, "schedule serial (fitted: persistent, pingpong)"),
        (
            {"stages": 5, "schedule": ["serial", "pingpong", "cooperative"]},
            "stages 5 (fitted: 1 to 4), "
            "schedule serial, cooperative (fitted: persistent, pingpong)",
        ),
    ],
)
def test_why_rows_are_extrapolated(columns, why):
    assert extrapolation(FITTED, columns) == why
    assert extrapolation(TOY, columns) == "the machine is not fitted to measurements"


def test_without_a_calibration_all_is_extrapolated_and_nothing_known():
    found = predict(TOY)
    assert found["extrapolated"].tolist() == [True]
    assert "time_us_lo" not in found
    assert outside(TOY, Configuration(*[1] * len(Configuration._fields)), 3).tolist() == [True] * 3


def test_an_illegal_row_has_no_interval():
    found = predict(FITTED, stages=32)
    assert np.isnan(found[["time_us", "time_us_lo", "time_us_hi"]].to_numpy(float)).all()


def test_a_swept_machine_is_another(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(wsjax.format_hardware(replace(FITTED, name="mine")))
    spec = tmp_path / "s.toml"
    columns = "\n".join(f"{name} = {value}" for name, value in ROW.items())
    spec.write_text(
        f'hardware = ["mine.toml"]\n[columns]\n{columns}\n'
        "[hardware_parameters]\nlaunch_us = [2.0, 3.0]\nsms = [4]\n"
    )
    wsjax.sweep(spec, tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out").sort_values("time_us")
    assert found["extrapolated"].tolist() == [False, True]
    widths = np.log(np.asarray(found["time_us_hi"]) / np.asarray(found["time_us_lo"]))
    assert widths == pytest.approx([0.3, 0.6])
