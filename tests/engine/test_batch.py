"""The spine against the reference: configurations in, times and waits out, whatever the method."""

import math
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from paths import SWEEPS
from reference import Case, simulate

from wsjax.engine import batch
from wsjax.engine.programs import _fields
from wsjax.hardware.machine import Hardware, load_hardware
from wsjax.model import periodic
from wsjax.schema.columns import COLUMNS, METHODS, SCHEDULES, Configuration, with_defaults
from wsjax.schema.limits import REASONS
from wsjax.spec.sweep_files import load_spec

QUICKSTART = SWEEPS / "quickstart.toml"
TOY = load_hardware("toy")
PAPERS = (
    "launch_us",
    "load_throughput_bytes_per_us",
    "load_latency_us",
    "compute_throughput_flop_per_us",
    "store_throughput_bytes_per_us",
)
"""The parameters that the simulator written by hand knows: of the others this H200 has none."""


def paper_like(machine: Hardware) -> Hardware:
    given = {name: getattr(machine.parameters, name) for name in PAPERS}
    parameters = TOY.parameters._replace(**given)
    return replace(TOY, name=machine.name, facts=machine.facts, parameters=parameters)


H200 = paper_like(load_hardware("h200-datasheet"))
COMPILED = "/jax/core/compile/backend_compile_duration"


def configuration(**columns) -> Configuration:
    tile = {"m": 512, "n": 512, "k": 256, "block_m": 128, "block_n": 128, "block_k": 64}
    filled = with_defaults({**tile, "stages": 2, **columns})
    return Configuration(**{name: filled[name] for name in COLUMNS})


def random_columns(seed: int, rows: int) -> Configuration:
    rng = np.random.default_rng(seed)
    return configuration(
        m=rng.integers(1, 3000, rows),
        n=8 * rng.integers(1, 376, rows),
        k=8 * rng.integers(1, 251, rows),
        batch=rng.integers(1, 3, rows),
        block_m=rng.choice([64, 128, 256], rows),
        block_n=rng.choice([32, 64, 128], rows),
        block_k=rng.choice([32, 64], rows),
        stages=rng.integers(1, 9, rows),
        dma_warps=rng.integers(1, 3, rows),
        math_warps=np.full(rows, 8),
        mma_in_flight=rng.integers(0, 2, rows),
        schedule=rng.integers(0, 4, rows),
    )


def case_by_hand(c: Configuration, hardware) -> Case:
    """Section 2.1 of the model for one bf16 row, in plain Python."""
    p = hardware.parameters
    tiles = math.ceil(c.m / c.block_m) * math.ceil(c.n / c.block_n) * c.batch
    compute = 2 * c.block_m * c.block_n * c.block_k / p.compute_throughput_flop_per_us
    return Case(
        k_tiles=math.ceil(c.k / c.block_k),
        tiles=math.ceil(tiles / hardware.facts.sms),
        stages=c.stages,
        load_a=c.block_m * c.block_k * 2 / p.load_throughput_bytes_per_us,
        load_b=c.block_n * c.block_k * 2 / p.load_throughput_bytes_per_us,
        load_startup=p.load_startup_us,
        load_latency=p.load_latency_us,
        compute=compute + p.compute_startup_us + p.sync_us,
        epilogue=p.epilogue_startup_us
        + c.block_m * c.block_n * 2 / p.store_throughput_bytes_per_us,
        schedule=SCHEDULES[c.schedule],
        dma_warps=c.dma_warps,
        mma_in_flight=c.mma_in_flight,
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"schedule": 0}, (22, 4, 0)),
        ({"schedule": 0, "load_latency_us": 2}, (38, 20, 8)),
        ({"schedule": 0, "load_startup_us": 0.5}, (38, 20, 0)),
        ({"schedule": 0, "load_startup_us": 0.5, "dma_warps": 2}, (26, 8, 2)),
        ({"schedule": 0, "load_latency_us": 2, "mma_in_flight": 1}, (46, 28, 16)),
        ({"schedule": 1, "epilogue_startup_us": 3}, (31, 1, 9)),
        ({"schedule": 1, "epilogue_startup_us": 3, "mma_in_flight": 1}, (31, 1, 9)),
        ({"schedule": 3, "epilogue_startup_us": 3}, (31, 1, 9)),
        ({"schedule": 2, "epilogue_startup_us": 3}, (22, 1, 0)),
        ({"schedule": 2, "epilogue_startup_us": 6}, (27, 1, 2)),
    ],
)
def test_values_worked_by_hand(changes, expected):
    columns = {k: v for k, v in changes.items() if k in COLUMNS}
    overrides = {k: v for k, v in changes.items() if k not in COLUMNS}
    found = batch.evaluate(configuration(**columns), TOY, overrides)
    assert (found.time_us[0], found.math_wait_us[0], found.dma_wait_us[0]) == expected


def test_waves_of_the_papers_example():
    machine = load_hardware("a6000-paper")
    found = batch.evaluate(configuration(m=2048, n=2048, stages=1), machine)
    assert found.waves[0] == 4


@pytest.mark.parametrize("hardware", [TOY, H200], ids=lambda h: h.name)
def test_random_configurations_equal_the_reference(hardware):
    rows = 800
    columns = random_columns(3, rows)
    overrides = {"load_startup_us": 0.02, "epilogue_startup_us": 0.4, "sync_us": 0.01}
    found = batch.evaluate(columns, hardware, overrides)
    machine = hardware.__class__(
        hardware.name, hardware.facts, hardware.parameters._replace(**overrides)
    )
    legal = np.flatnonzero(found.reason == 0)
    assert len(legal) > rows / 4
    for row in legal:
        one = Configuration(*(int(x[row]) if np.ndim(x) else int(x) for x in columns))
        expected = simulate(case_by_hand(one, machine))
        time_us = expected.time + hardware.parameters.launch_us
        assert math.isclose(found.time_us[row], time_us, rel_tol=1e-9)
        assert math.isclose(found.math_wait_us[row], expected.math_wait, rel_tol=1e-9, abs_tol=1e-9)
        assert math.isclose(found.dma_wait_us[row], expected.dma_wait, rel_tol=1e-9, abs_tol=1e-9)
        flop = 2 * one.m * one.n * one.k * one.batch
        assert math.isclose(found.tflops[row], flop / time_us / 1e6, rel_tol=1e-9)
    parts = found.launch_us + found.fill_us + found.steady_us + found.epilogue_us
    np.testing.assert_allclose(parts[legal], found.time_us[legal], rtol=1e-12)
    assert set(found.method[legal]) >= {0, 1}
    times = batch.times_us(columns, hardware, overrides)
    np.testing.assert_allclose(times, found.time_us, rtol=1e-12)


def test_an_unfinished_jump_is_scanned(monkeypatch):
    columns = random_columns(4, 400)
    overrides = {"epilogue_startup_us": 2.0, "load_latency_us": 1.5}
    expected = batch.evaluate(columns, H200, overrides)
    monkeypatch.setattr(periodic, "MAX_BLOCKS", 2)
    monkeypatch.setattr(batch, "solve", periodic.solve.jitted)

    jax.clear_caches()
    found = batch.evaluate(columns, H200, overrides)

    jax.clear_caches()
    assert np.sum(found.method == METHODS.index("scan")) > 5
    for a, b in zip(found[:11], expected[:11], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_illegal_rows_have_a_reason_and_no_time():
    found = batch.evaluate(
        configuration(
            stages=np.array([2, 9, 2, 2, 2]),
            block_m=np.array([128, 128, 130, 128, 128]),
            cluster_m=np.array([1, 1, 1, 2, 1]),
            dtype_in=np.array([2, 2, 2, 2, 0]),
        ),
        TOY,
    )
    reasons = [REASONS[code] for code in found.reason]
    assert reasons == ["", "shared_memory", "block_multiple", "not_modelled", "not_modelled"]
    assert np.isnan(found.time_us).tolist() == [False, True, True, True, True]
    assert found.method.tolist() == [0, -1, -1, -1, -1]


def test_rows_legal_by_definition_may_still_not_be_modelled():
    columns = configuration(stages=np.array([9, 9, 2]), cluster_n=np.array([1, 2, 1]))
    found = batch.evaluate(columns, TOY, legal_override=np.array([True, True, False]))
    assert [REASONS[code] for code in found.reason] == ["", "not_modelled", ""]


def test_sizes_up_to_2_to_the_31_do_not_overflow():
    size = 2**31
    found = batch.evaluate(configuration(m=size, n=size, k=size, schedule=np.arange(4)), TOY)
    tiles = (size // 128) ** 2
    assert found.waves.tolist() == [tiles // 4] * 4
    assert found.k_tiles.tolist() == [size // 64] * 4
    steps = (tiles // 4) * (size // 64)
    np.testing.assert_allclose(found.time_us[1:], float(steps), rtol=1e-6)
    assert np.all(found.tflops > 0)


def test_few_rows_of_any_form_and_machine_take_one_program():
    batch.times_us(configuration(stages=8), TOY)
    program: Any = _fields
    kept = program._cache_size()
    batch.evaluate(random_columns(5, 200), H200, {"pitch_cost": np.full(200, 0.1)})
    batch.times_us(configuration(schedule=np.arange(3)), H200, {"sync_us": 0.01})
    assert program._cache_size() == kept


@pytest.mark.parametrize("machine", ["h200", "h200-gluon", "a6000-paper"])
def test_float32_agrees_over_the_quickstart_sweep(machine):
    hardware = load_hardware(machine)
    product = load_spec(QUICKSTART).product(hardware)
    some = np.random.default_rng(6).choice(len(product), 12_000, replace=False)
    columns = configuration(**{k: v for k, v in product.take(some).items() if k in COLUMNS})
    double, single = (batch.evaluate(columns, hardware, single=x) for x in (False, True))
    np.testing.assert_array_equal(single.reason, double.reason)
    np.testing.assert_array_equal(single.method, double.method)
    np.testing.assert_array_equal(single.waves, double.waves)
    np.testing.assert_allclose(single.time_us, double.time_us, rtol=1e-5)
    formula = double.method == METHODS.index("closed")
    assert np.mean(single.time_us[formula] != double.time_us[formula]) > 0.9
    jumps = double.method == METHODS.index("periodic")
    np.testing.assert_array_equal(single.time_us[jumps], double.time_us[jumps])


def test_a_second_chunk_compiles_nothing(monkeypatch):
    monkeypatch.setattr(batch, "CHUNKS", (512, 2048))
    monkeypatch.setattr(batch, "SIZES", (512,))

    def columns(seed):
        return random_columns(seed, 3 * batch.CHUNKS[-1] // 2)

    batch.evaluate(columns(1), H200)
    batch.times_us(columns(1), H200)
    compiled = []
    listener = lambda event, *_, **__: compiled.append(event) if event == COMPILED else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        batch.evaluate(columns(2), H200)
        batch.times_us(columns(2), H200)
        batch.evaluate(random_columns(3, batch.CHUNKS[-1] + 7), H200)
        assert compiled == []
        monkeypatch.setattr(batch, "CHUNKS", (512, 1024))
        batch.evaluate(random_columns(3, 1100), H200)
        assert compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
