"""What terms earn: one that times depend on, one that they do not, and no program for each."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from test_calibration import GLUON, NOISE, START, timed, true_machine

from wsjax.cli.main import main
from wsjax.engine import programs
from wsjax.errors import InputError
from wsjax.fit import ablation, measured, priors, rounds, validation
from wsjax.fit import least_squares as fit
from wsjax.fit.calibration import Calibration, Fitted
from wsjax.hardware.parameters import PARAMETERS

SPLIT = {"held_out": 0.3, "seed": 0}
SILENT = "launch_saved_us"
"""Serial kernels only, of which the table has none."""
FITTED = ("launch_us", SILENT, "pitch_cost", "softness", "dram_softness")


def calibration(hardware, names) -> Calibration:
    """As if these parameters had been fitted, and had come out as they are."""
    status = {name: "fitted" if name in names else "fixed" for name in PARAMETERS}
    values = hardware.parameters._asdict()
    parameters = tuple(
        Fitted(name, PARAMETERS[name].unit, values[name], values[name], 0.1, status[name])
        for name in PARAMETERS
    )
    hardware = replace(hardware, standard_errors=dict.fromkeys(names, 0.1))
    nothing = {"correlated": (), "singular_values": (), "training": None, "held_out": None}
    nothing |= {"physics": None, "before": None}
    counts = {"fitted_rows": 0, "excluded": {}, "seconds": 0.0}
    nothing |= {"rows": None, "is_training": None, "correlation": None}
    return Calibration(hardware, parameters, **nothing, **counts)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def truth():
    return true_machine(3)


@pytest.fixture(scope="module")
def table(truth) -> pd.DataFrame:
    return timed(truth, 3)


@pytest.fixture(scope="module")
def found(truth, table):
    return ablation.ablate(calibration(truth, FITTED), table, **SPLIT)


def test_every_term_is_left_out_once_and_the_best_earner_comes_first(found):
    whole, *terms = found
    assert (whole.term, whole.earned_pct) == ("", 0.0)
    assert {term.term for term in terms} == {*FITTED, "softness of both"}
    assert next(x for x in terms if x.term == "softness of both").parameters == FITTED[3:5]
    earned = [term.earned_pct for term in terms]
    assert earned == sorted(earned, reverse=True)
    assert terms[0].term == "launch_us"
    assert earned[0] > 5
    assert abs(next(x.earned_pct for x in terms if x.term == SILENT)) < 0.2


def test_every_neutral_value_gives_finite_times_and_slopes(truth, table):
    rows = measured.read(table, truth.facts)
    prior = priors.prior_of(truth, priors.candidates(truth))
    sample = rounds.sample_of(rows, truth, 0.1, np.zeros(len(rows)))
    for position, parameter in enumerate(PARAMETERS.values()):
        free, held = prior.free.copy(), prior.held.copy()
        free[position], held[position] = False, parameter.neutral
        with jax.enable_x64(True):
            value, slope = fit.log_times(
                np.zeros(len(free)), prior._replace(free=free, held=held), sample
            )
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()


def test_the_whole_model_is_the_machine_as_it_is(found, truth, table):
    rows = measured.read(table, truth.facts)
    held_out = validation.evaluate(rows.take(rows.share < SPLIT["held_out"]), truth)
    figures = validation.metrics_of(held_out)
    assert found[0].mape_pct == pytest.approx(figures.mape_pct)
    assert found[0].p95_ape_pct == pytest.approx(figures.p95_ape_pct)
    assert found[0].mape_pct < 100 * NOISE


def test_the_others_take_over_what_they_can(found, truth, table):
    rows = measured.read(table, truth.facts)
    unseen = rows.take(rows.share < SPLIT["held_out"])
    for term in (x for x in found if x.earned_pct > 1 and len(x.parameters) == 1):
        neutral = {name: PARAMETERS[name].neutral for name in term.parameters}
        machine = replace(truth, parameters=truth.parameters._replace(**neutral))
        without = np.abs(rounds.exact_times(unseen, machine) / unseen.time_us - 1).mean() * 100
        assert term.mape_pct < without


def test_no_program_is_compiled_for_a_term(found, truth, table):
    compiled: Any = (fit._chunk, programs._fields)
    before = [program._cache_size() for program in compiled]
    names = ("mma_queue", "short_row_cost")
    again = ablation.ablate(calibration(truth, names), table, **SPLIT)
    assert [program._cache_size() for program in compiled] == before
    assert len(again) == 1 + len(names)


def test_a_term_needs_held_out_problems(truth, table):
    with pytest.raises(InputError, match="no problem is held out"):
        ablation.ablate(calibration(truth, ["launch_us"]), table, held_out=0.0, seed=0)


def test_groups_are_of_parameters():
    assert {name for members in ablation.GROUPS.values() for name in members} <= {*PARAMETERS}
    assert ablation.terms(["softness", "launch_us"]) == {
        "softness": ("softness",),
        "launch_us": ("launch_us",),
    }


def test_the_verb(tmp_path, capsys):
    out, report = tmp_path / "a.toml", tmp_path / "report"
    command = ["calibrate", str(GLUON), "--start", START.name, "--out", str(out), "--ablate"]
    assert main([*command, "--held-out", "0"]) == 2
    assert "raise --held-out" in capsys.readouterr().err
    free = ["--free", "launch_us,load_throughput_bytes_per_us", "--report", str(report)]
    assert main([*command, *free]) == 0
    shown = capsys.readouterr().out
    assert "held-out problems without a term" in shown
    table = pd.read_csv(report / "ablation.csv")
    assert table["parameters"].fillna("").tolist()[0] == ""
    assert "launch_us" in table["term"].tolist()
    assert "| nothing |" in (report / "report.md").read_text(encoding="utf-8")
