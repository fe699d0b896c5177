"""Tapes against the programs that XLA compiles of the same functions, operation by operation: the
same bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_batch import random_columns

from wsjax.engine import batch
from wsjax.engine.corrections import factor_of
from wsjax.engine.programs import BRIEF, UNPROVED, Form, fields_of, opened, tflops, tflops_of_few
from wsjax.engine.recording import record
from wsjax.engine.tapes import BLOCK, ROWS, Tape
from wsjax.hardware.machine import load_hardware

MACHINES = ("h200", "a6000-paper", "mi300x")


def compiled(function, rows, *arguments):
    """What an unfused program makes of all rows, in which every number varies."""
    full = jax.tree.map(lambda x: np.full(rows, x) if not np.ndim(x) else x, arguments)
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(function), compiler_options=BRIEF)(*full)
    return jax.tree.map(np.asarray, found)


def same(one, two):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("single", [False, True])
def test_predictions(single):
    rows, unproved = ROWS, 0
    for name in MACHINES:
        inputs, _ = batch.columns(random_columns(7, rows), load_hardware(name))
        form = Form(single=single)
        found = Tape(fields_of)(rows, inputs, form=form)
        known = found["time_us"][found["reason"] == 0]
        assert np.sum(known > 0) > 20
        unproved += np.sum(known == UNPROVED)
        same(found, compiled(lambda i, form=form: fields_of(i, form), rows, inputs))
    assert unproved > 10


def test_pipelines_of_rows_without_a_formula():
    inputs, rows = batch.columns(random_columns(8, ROWS), load_hardware("h200"))
    found, expected = Tape(opened)(rows, inputs), compiled(opened, rows, inputs)
    without = [x._replace(prediction=x.prediction._replace(tflops=None)) for x in (found, expected)]
    same(*without)  # of these the rate is of no use


def test_learned_corrections():
    machine = load_hardware("h200")
    head = machine.head
    assert head is not None
    columns = random_columns(9, ROWS)._replace(
        **{"m": np.full(ROWS, 4096), "n": 4096, "mma_in_flight": 1, "schedule": 2, "math_warps": 8}
    )
    inputs, rows = batch.columns(columns, machine)
    times = np.random.default_rng(0).uniform(10.0, 500.0, rows)
    times[::7] = UNPROVED
    found = Tape(factor_of)(rows, inputs, times, head=head)
    assert np.all(found[::7] == 1.0)
    assert np.sum(found != 1.0) > 20
    same(found, compiled(lambda i, t: factor_of(i, t, head), rows, inputs, times))


def test_rows_are_the_same_in_any_block():
    machine = load_hardware("h200")
    rows = 2 * BLOCK + 77
    inputs, _ = batch.columns(random_columns(3, rows), machine)
    whole = Tape(fields_of)(rows, inputs, form=Form())
    tail = Tape(fields_of)(77, inputs.take(np.s_[-77:]), form=Form())
    same({name: column[-77:] for name, column in whole.items()}, tail)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_what_numpy_rounds_otherwise_is_left_to_xla(kind):
    weights = np.random.default_rng(1).normal(size=(3, 5)).astype(kind)

    def function(row):
        early = jnp.log(row["a"]) * 3.0  # on which a later one depends
        z = jnp.stack([jnp.exp(early * 0.1), row["b"], early])
        hidden = jnp.tanh(jnp.matmul(z, weights, precision="highest"))
        return {"sum": hidden.sum(), "b": row["b"] + 1.0, "early": early, "none": row["n"] // 2}

    rng = np.random.default_rng(2)
    columns = {"a": rng.uniform(1, 9, ROWS).astype(kind), "b": kind(0.5), "n": np.arange(ROWS)}
    found = Tape(function)(ROWS, columns)
    expected = compiled(function, ROWS, columns)
    assert found["b"].shape == (ROWS,)
    np.testing.assert_allclose(found.pop("sum"), expected.pop("sum"), rtol=1e-5)  # may be fused
    same(found, expected)


def test_an_operation_is_written_once_and_only_if_needed():
    def function(x, y):
        unused = jnp.sqrt(x)
        return (x + y) * (x + y) + (jnp.float64(2.0) + jnp.float64(3.0)) + 0.0 * len(unused.shape)

    with jax.enable_x64(True):
        one = jax.ShapeDtypeStruct((), np.float64)
        recorded = record(function, (one, one))
    assert recorded.source.count("add(a0, a1)") == 1
    assert "sqrt" not in recorded.source
    assert 5.0 in recorded.names.values()
    assert recorded.rest_kinds is None


def test_rates_are_rounded_as_in_programs():
    inputs, rows = batch.columns(random_columns(5, 300), load_hardware("h200"))
    times = np.random.default_rng(0).uniform(1.0, 900.0, rows)
    c = inputs.configuration
    sizes = [1.0 * np.broadcast_to(x, rows) for x in (c.m, c.n, c.k, c.batch)]

    def rate(m, n, k, batch, time_us):
        return tflops(c._replace(m=m, n=n, k=k, batch=batch), time_us)

    np.testing.assert_array_equal(tflops_of_few(c, times), compiled(rate, rows, *sizes, times))


@pytest.mark.parametrize("power", [2, -2, 3])
def test_powers_and_gradients(power):
    def function(x, to):
        return jax.jvp(lambda x: x**power * x + jnp.maximum(x, 2.0) / x, (x,), (to,))[1]

    rng = np.random.default_rng(0)
    columns = rng.uniform(1.0, 3.0, ROWS), rng.uniform(0.0, 1.0, ROWS)
    same(Tape(function)(ROWS, *columns), compiled(function, ROWS, *columns))


def test_numbers_of_python():
    assert Tape(lambda pair: pair[0] * 2.0 + pair[1])(1, (0.5, 3)) == [4.0]


def test_no_rows():
    inputs, _ = batch.columns(random_columns(5, 3), load_hardware("h200"))
    none = Tape(fields_of)(0, inputs.take(np.s_[:0]), form=Form())
    assert {len(column) for column in none.values()} == {0}
