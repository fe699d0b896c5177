"""Fifty measured rows adapt another family's calibration: they help, and never hurt much.

The rows are real ones (excerpts of the H200 tables) that the starting file's fit has not seen.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest
from paths import DATA

from wsjax.fit import few_problems, identify, measured, priors, rounds, shrinkage
from wsjax.fit import least_squares as fit
from wsjax.hardware.machine import Hardware, load_hardware
from wsjax.hardware.parameters import PARAMETERS

STARTS = {
    "h200-cutlass": ("h200-gluon", DATA / "h200_gemm_ws_excerpt.csv.gz"),
    "h200-gluon": ("h200-cutlass", DATA / "h200_cutlass_ws_excerpt.csv.gz"),
}
"""The file whose values a fit starts from: that of the measured kernels, for their facts (which
order of tiles, how many CTAs an SM), and their table."""


def begin(start: str) -> Hardware:
    facts = load_hardware(STARTS[start][0]).facts
    return replace(load_hardware(start), facts=facts)


def split(start: str, seed: int) -> tuple[measured.Measured, measured.Measured]:
    """(50 rows, the rows of other problems)."""
    rows = measured.read(STARTS[start][1], begin(start).facts)
    chooser = np.random.default_rng(seed)
    chosen = chooser.permutation(rows.problem.max() + 1)
    few = np.isin(rows.problem, chosen[: len(chosen) // 2])
    some = chooser.permutation(np.flatnonzero(few))[:50]
    return rows.take(np.sort(some)), rows.take(~few)


def error(rows: measured.Measured, machine: Hardware) -> float:
    return float(np.mean(np.abs(rounds.exact_times(rows, machine) / rows.time_us - 1))) * 100


@pytest.mark.parametrize("family_only", [False, True])
@pytest.mark.parametrize("start", STARTS)
def test_fifty_rows_adapt_another_familys_file(start, family_only):
    machine = begin(start)
    free = priors.choose(machine, (), (), family_only=family_only)
    changes = []
    for seed in range(2):
        few, rest = split(start, seed)
        found = rounds.fit_parameters(few, machine, free, seed)
        adapted = replace(machine, parameters=found.values)
        changes.append(error(rest, adapted) / error(rest, machine))
        before, after = np.asarray(machine.parameters), np.asarray(found.values)
        both = np.isfinite(before + after) & (before > 0) & (after > 0)
        assert np.abs(np.log(after[both] / before[both])).max() < 1.5
    assert max(changes) < 1.1
    assert np.mean(changes) < 0.95


def test_what_is_held_costs_little_all_together():
    """Each of many parameters held at its prior costs little, and all of them much."""
    machine = begin("h200-cutlass")
    few, _ = split("h200-cutlass", 0)
    prior = priors.prior_of(machine, priors.candidates(machine))
    with jax.enable_x64(True):
        sample = rounds.sample_of(few, machine, 0.05, np.zeros(len(few)))
        z = fit.solve(np.zeros(len(PARAMETERS)), prior, sample)
        before = fit.cost(z, prior, sample)
        held = priors.hold(prior.free, z, prior, sample)
        after = fit.cost(z, held, sample)
        at_prior = fit.cost(np.zeros(len(z)), prior, sample)
    assert not held.free.any()
    assert after <= before + priors.CLEARLY
    assert at_prior > before + 10
    assert np.isclose(held.held, prior.unheld(np.zeros(len(z)))).any()


def test_degrees_of_freedom_are_those_of_a_ridge_regression():
    draw = np.random.default_rng(0)
    slopes = draw.normal(size=(30, 5)) * [10, 3, 1, 0.1, 0.0]
    hat = slopes @ np.linalg.inv(slopes.T @ slopes + np.eye(5)) @ slopes.T
    assert identify.degrees(slopes) == pytest.approx(np.trace(hat))
    assert identify.degrees(np.zeros((3, 5))) == 0


@pytest.mark.parametrize(
    ("problems", "warned"), [(1, "1 problem;"), (19, "19 problems;"), (20, "")]
)
def test_a_fit_of_few_problems_is_warned_of(problems, warned):
    assert warned in few_problems(problems)
    assert bool(few_problems(problems)) == bool(warned)


def invented(machine: Hardware, noise: float) -> measured.Measured:
    """40 rows of a machine, all of a problem off by one factor."""
    rows = measured.read(STARTS["h200-gluon"][1], machine.facts)
    chooser = np.random.default_rng(1)
    rows = rows.take(np.sort(chooser.permutation(len(rows))[:40]))
    factor = np.exp(noise * chooser.standard_normal(rows.problem.max() + 1))[rows.problem]
    return replace(rows, time_us=rounds.exact_times(rows, machine) * factor)


def test_where_rows_teach_nothing_of_other_problems_nothing_is_fitted():
    machine = begin("h200-gluon")
    few = invented(machine, 0.3)
    found = rounds.fit_parameters(few, machine, priors.candidates(machine), 0)
    assert found.values == machine.parameters
    assert "fitted" not in found.status


def test_rows_that_agree_on_another_machine_are_fitted():
    machine = begin("h200-gluon")
    own = machine.parameters._replace(launch_us=2 * machine.parameters.launch_us)
    few = invented(replace(machine, parameters=own), 0.01)
    found = rounds.fit_parameters(few, machine, priors.candidates(machine), 0)
    adapted = replace(machine, parameters=found.values)
    assert error(few, adapted) < 0.3 * error(few, machine)
    assert len(few) <= shrinkage.MOST_ROWS
