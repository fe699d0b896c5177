"""Gradients of time and waits: against finite differences away from ties, finite everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import random_cases
from test_exact import pipelines

from wsjax import events
from wsjax.closed import closed
from wsjax.durations import Machine, kernel
from wsjax.events import Pipeline
from wsjax.hardware import load_hardware
from wsjax.limits import Facts
from wsjax.space import COLUMNS, Configuration

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


def test_gradient_in_every_machine_parameter():
    toy = load_hardware("toy")
    numbers = {name: column.default_number for name, column in COLUMNS.items()}
    numbers |= {"m": 512.0, "n": 768.0, "k": 640.0, "block_m": 128.0, "block_n": 64.0}
    numbers |= {"block_k": 64.0, "stages": 3.0, "mma_in_flight": 1}
    configuration = Configuration(**numbers)
    parameters = toy.parameters._replace(
        load_startup_us=0.03,
        load_latency_us=0.4,
        compute_throughput_bytes_per_us=90000.0,
        compute_startup_us=0.05,
        sync_us=0.02,
        store_throughput_bytes_per_us=20000.0,
        epilogue_startup_us=0.3,
    )

    def time_us(parameters):
        machine = Machine(Facts(*map(float, toy.facts)), parameters, 2.0, 2.0, 1.0)
        return parameters.launch_us + closed(kernel(configuration, machine).full)[0].end_us

    found = jax.grad(time_us)(parameters)
    for name, value in parameters._asdict().items():
        move = 1e-6 * value
        up, down = (time_us(parameters._replace(**{name: value + d})) for d in (move, -move))
        np.testing.assert_allclose(
            getattr(found, name), (up - down) / (2 * move), rtol=1e-5, err_msg=name
        )
        assert getattr(found, name) != 0, name
    neutral = jax.grad(time_us)(jax.tree.map(float, toy.parameters))
    assert np.isfinite(np.asarray(neutral)).all()
