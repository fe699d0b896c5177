"""Gradients of time and waits: against finite differences away from ties, finite everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import random_cases
from test_exact import pipelines

from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import PARAMETERS, Parameters
from wsjax.model import events
from wsjax.model.closed import closed, exchange_us
from wsjax.model.durations import Machine, kernel
from wsjax.model.events import Pipeline
from wsjax.schema.columns import COLUMNS, SPLITK, Configuration
from wsjax.schema.limits import Facts

DURATIONS = (
    "load_a_us",
    "load_b_us",
    "load_startup_us",
    "load_latency_us",
    "compute_us",
    "epilogue_us",
)
ROWS, STEPS, STEP_US = 512, 256, 1e-6


def scanned(p: Pipeline):
    return events.simulate(p, STEPS, 32)


def formula(p: Pipeline):
    return closed(p)[0]


def with_durations(p: Pipeline, values) -> Pipeline:
    return p._replace(**dict(zip(DURATIONS, values, strict=True)))


def durations(p: Pipeline):
    return jnp.stack([getattr(p, name) for name in DURATIONS])


def slopes_both_sides(way, p: Pipeline):
    """(gradient, left and right difference quotient) of the end for each duration."""

    def end(values):
        return way(with_durations(p, values)).end_us

    at = durations(p)
    moves = jnp.eye(len(DURATIONS)) * STEP_US
    right = jax.vmap(lambda move: (end(at + move) - end(at)) / STEP_US)(moves)
    left = jax.vmap(lambda move: (end(at) - end(at - move)) / STEP_US)(moves)
    return jax.grad(end)(at), left, right


@pytest.mark.parametrize("way", [scanned, formula])
@pytest.mark.parametrize("kind", ["realistic", "wild"])
def test_gradient_equals_finite_differences_away_from_ties(way, kind):
    columns = pipelines(random_cases(5, ROWS, kind, max_steps=STEPS), ROWS)
    proved = np.asarray(jax.jit(jax.vmap(closed))(columns)[1])
    found, left, right = (
        np.asarray(x)[proved]
        for x in jax.jit(jax.vmap(lambda p: slopes_both_sides(way, p)))(columns)
    )
    smooth = np.abs(left - right) < 1e-3
    positive = np.stack(
        [np.asarray(getattr(columns, name))[proved] > 1e-3 for name in DURATIONS], 1
    )
    compared = smooth & positive
    assert compared.mean() > 0.8
    np.testing.assert_allclose(found[compared], right[compared], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("way", [scanned, formula])
def test_gradients_are_finite_at_ties_and_zeros(way):
    columns = pipelines(random_cases(6, ROWS, "ties", max_steps=STEPS), ROWS)
    total = lambda values, p: sum(way(with_durations(p, values)))  # noqa: E731
    found = jax.jit(jax.vmap(lambda p: jax.grad(total)(durations(p), p)))(columns)
    assert np.isfinite(np.asarray(found)).all()


def test_scan_and_formula_have_the_same_gradient_away_from_ties():
    columns = pipelines(random_cases(7, ROWS, "realistic", max_steps=STEPS), ROWS)
    proved = np.asarray(jax.jit(jax.vmap(closed))(columns)[1])

    def gradient(way):
        end = lambda values, p: way(with_durations(p, values)).end_us  # noqa: E731
        found = jax.jit(jax.vmap(lambda p: jax.grad(end)(durations(p), p)))(columns)
        return np.asarray(found)[proved]

    one, other = gradient(scanned), gradient(formula)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def random_configurations(rows: int) -> Configuration:
    rng = np.random.default_rng(8)
    numbers = {
        name: np.full(rows, column.default_number)
        for name, column in COLUMNS.items()
        if column.default_number is not None
    }
    numbers |= {
        name: rng.integers(64, 8192, rows) * 8 // rng.choice([1, 8], rows) for name in "mnk"
    }
    numbers |= {name: rng.choice([64, 128, 256], rows) for name in ("block_m", "block_n")}
    numbers |= {"block_k": rng.choice([32, 64], rows), "stages": rng.integers(1, 8, rows)}
    for name in ("layout", "schedule"):
        numbers[name] = rng.integers(0, 4, rows)
    for name in ("mma_in_flight", "write_back", "l2_state"):
        numbers[name] = rng.integers(0, 2, rows)
    numbers |= {name: rng.choice([1, 2], rows) for name in ("cluster_m", "cluster_n")}
    numbers |= {"accum": rng.integers(0, 3, rows)}
    numbers |= {"dma_warps": rng.integers(1, 3, rows), "math_warps": rng.choice([4, 8], rows)}
    numbers |= {"reduction": rng.integers(0, 2, rows)}
    splits = rng.choice([1, 2, 5, 16], rows)
    numbers |= {"split_k": np.where(numbers["schedule"] % 2, splits, 1)}
    numbers |= {"scheduler": np.where(splits == 5, SPLITK, 0)}
    return Configuration(**{name: x.astype(float) for name, x in numbers.items()})


def time_us(parameters: Parameters, c: Configuration, facts: Facts):
    whole = kernel(c, Machine(facts, parameters, 2.0, 2.0, 1.0))
    exchange = exchange_us(whole.full, whole.first, whole.last)
    return whole.launch_us + closed(whole.full)[0].end_us + exchange


def test_gradient_in_every_parameter_of_the_machine():
    rows = 9000
    facts = jax.tree.map(float, load_hardware("h200-datasheet").facts)._replace(ctas_per_sm_max=4.0)
    rng = np.random.default_rng(9)
    typical = {name: x.typical for name, x in PARAMETERS.items()}
    typical = np.array([*(typical | {"compute_throughput_bytes_per_us": 25e6}).values()])
    jitter = np.exp(rng.normal(0, 0.5, (rows, len(typical))))
    configurations = random_configurations(rows)

    which = np.arange(rows) % len(typical)
    moves = np.eye(len(typical))[which]

    def timed(logs, c):
        return time_us(Parameters(*jnp.exp(logs)), c, facts)

    def slopes(logs, move, c):
        here, slope = jax.jvp(lambda x: timed(x, c), (logs,), (move,))
        up, down = jax.vmap(timed, (0, None))(logs + STEP_US * jnp.stack([move, -move]), c)
        return here, slope, (here - down) / STEP_US, (up - here) / STEP_US

    logs = np.log(typical * jitter)
    here, *found = map(np.asarray, jax.jit(jax.vmap(slopes))(logs, moves, configurations))
    found, left, right = (slope / here for slope in found)
    assert np.isfinite(found).all()
    smooth = np.abs(left - right) < 1e-4
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(found[smooth], right[smooth], rtol=1e-3, atol=1e-4)
    matters = [np.abs(found[which == i]).max() > 0 for i in range(len(typical))]
    assert all(matters), [name for name, m in zip(PARAMETERS, matters, strict=True) if not m]


@jax.jit
def neutral_gradients(parameters, configurations, facts):
    gradient = jax.grad(lambda p, c: time_us(p, c, facts))
    return jax.vmap(gradient, in_axes=(None, 0))(parameters, configurations)


@pytest.mark.parametrize("name", ["toy", "a6000-paper", "h200-datasheet"])
def test_gradients_of_a_neutral_machine_are_finite(name):
    machine = load_hardware(name)
    facts = jax.tree.map(float, machine.facts)
    parameters = jax.tree.map(float, machine.parameters)
    found = neutral_gradients(parameters, random_configurations(400), facts)
    wrong = [name for name, x in found._asdict().items() if not np.isfinite(np.asarray(x)).all()]
    assert wrong == []
