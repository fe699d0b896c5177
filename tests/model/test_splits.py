"""Split-K against a simulator that plays every CTA of a launch, and its terms."""

import jax
import numpy as np
import pytest
from reference import Case, Launch, split_k

from wsjax.engine import batch
from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import PARAMETERS, Parameters
from wsjax.model.durations import Machine, kernel
from wsjax.schema.columns import COLUMNS, SCHEDULES, Configuration

FACTS = jax.tree.map(float, load_hardware("h200-datasheet").facts)
ALIKE = Parameters(
    launch_us=0.0,
    load_throughput_bytes_per_us=60e3,
    load_latency_us=0.7,
    load_startup_us=0.02,
    latency_exposure=1.0,
    compute_throughput_flop_per_us=7e6,
    reduction_us=0.6,
    reduction_throughput_bytes_per_us=60e3,
    reductions_throughput_bytes_per_us=4e6,
)
"""A machine on which all waves are alike, so that one CTA is as any other."""


def configurations(rows: int, **columns) -> Configuration:
    given = {name: column.default_number or 1 for name, column in COLUMNS.items()}
    given |= {name: c.default_number or 0 for name, c in COLUMNS.items() if c.choices}
    given |= {"block_m": 128, "block_n": 128, "block_k": 64, "grid_ctas": 0, "math_warps": 8}
    given |= {"schedule": SCHEDULES.index("cooperative")} | columns
    return Configuration(**{name: np.broadcast_to(x * 1.0, (rows,)) for name, x in given.items()})


def drawn(rng: np.random.Generator, tiles: np.ndarray, k_tiles: np.ndarray) -> Configuration:
    rows = len(tiles)
    rest = {"stages": rng.integers(1, 7, rows), "dma_warps": rng.integers(1, 3, rows)}
    rest |= {"mma_in_flight": rng.integers(0, 2, rows), "reduction": rng.integers(0, 2, rows)}
    return configurations(rows, m=128, n=128 * tiles, k=64 * k_tiles, **rest)


def times(c: Configuration, sms: int, parameters: Parameters) -> np.ndarray:
    """By the engine, jumps and scans included."""
    toy = load_hardware("h200-datasheet")
    changes = {**parameters._asdict(), "sms": sms}
    whole = Configuration(*(x.astype(int) for x in c))
    return batch.times_us(whole, toy, {name: np.float64(x) for name, x in changes.items()})


def reduction_us(c: Configuration, row: int, p: Parameters, tiles: int, active: int) -> float:
    """r(n) of the module's docstring."""
    at_once = active if c.reduction[row] else min(tiles, active)
    sums_bytes = 4 * 128 * 128
    return (
        p.reduction_us
        + sums_bytes / p.reduction_throughput_bytes_per_us
        + at_once * sums_bytes / p.reductions_throughput_bytes_per_us
    )


def simulated(c: Configuration, row: int, sms: int, parameters: Parameters) -> float:
    """The time of all CTAs of a launch on a machine on which all waves are alike."""
    one = Configuration(*(x[row] for x in c))._replace(split_k=None)
    facts = FACTS._replace(sms=float(sms))
    with jax.enable_x64(True):
        p = kernel(one, Machine(facts, parameters, 2.0, 2.0, 1.0)).full
    tiles, k_tiles = int(c.n[row]) // 128, int(c.k[row]) // 64
    splits = min(int(c.split_k[row]), k_tiles, sms)
    case = Case(
        k_tiles=k_tiles,
        tiles=1,
        stages=int(p.stages),
        load_a=float(p.load_a_us),
        load_b=float(p.load_b_us),
        load_startup=float(p.load_startup_us),
        load_latency=float(p.load_latency_us),
        compute=float(p.compute_us),
        epilogue=parameters.epilogue_startup_us,
        schedule="cooperative",
        dma_warps=int(p.dma_warps),
        mma_in_flight=int(p.mma_in_flight),
    )
    each_us = reduction_us(c, row, parameters, tiles, min(tiles * splits, sms))
    ctas = split_k(sms, tiles, splits, k_tiles)
    return float(Launch(case, ctas, each_us, ordered=not c.reduction[row]).run())


def test_one_wave_is_the_launch_played_cta_by_cta():
    rng, rows, sms = np.random.default_rng(1), 200, 12
    tiles = rng.integers(1, 7, rows)
    splits = np.minimum(rng.integers(1, 13, rows), sms // tiles)
    c = drawn(rng, tiles, rng.integers(1, 40, rows))._replace(split_k=splits * 1.0)
    parameters = ALIKE._replace(epilogue_startup_us=0.9)
    found = times(c, sms, parameters)
    expected = [simulated(c, row, sms, parameters) for row in range(rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("tiles", [1, 2, 3, 6, 12])
def test_waves_are_the_launch_played_cta_by_cta_where_its_ctas_divide_evenly(tiles):
    rng, rows, sms = np.random.default_rng(tiles), 40, 6
    splits = rng.integers(1, 4, rows) * (sms // tiles or 1)
    k_tiles = splits * rng.integers(6, 12, rows)
    c = drawn(rng, np.full(rows, tiles), k_tiles)._replace(
        split_k=splits * 1.0, stages=np.full(rows, 6.0), reduction=np.zeros(rows)
    )
    parameters = ALIKE._replace(reductions_throughput_bytes_per_us=np.inf)
    found = times(c, sms, parameters)
    expected = [simulated(c, row, sms, parameters) for row in range(rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_deterministic_queue_grows_with_each_share_and_atomics_do_not():
    c = configurations(5, m=128, n=256, k=64 * 960, stages=4, split_k=np.array([2, 4, 8, 16, 32]))
    h200 = load_hardware("h200-cutlass").physics
    whole = Configuration(*(x.astype(int) for x in c))
    ordered = batch.times_us(whole, h200)
    at_once = batch.times_us(whole._replace(reduction=np.ones(5, int)), h200)
    assert np.all(ordered[1:] >= at_once[1:])
    np.testing.assert_allclose(ordered[0], at_once[0], rtol=0.02)
    assert at_once[-1] < at_once[0] / 3
    assert ordered[-1] > ordered[-2]


def test_undivided_rows_are_as_without_these_terms():
    rng = np.random.default_rng(5)
    c = drawn(rng, rng.integers(1, 3000, 500), rng.integers(1, 100, 500))
    whole = Configuration(*(x.astype(int) for x in c))
    h200 = load_hardware("h200-cutlass").physics
    mixed = Configuration(*(np.append(x, x[:1]) for x in whole))
    mixed = mixed._replace(split_k=np.append(whole.split_k, 4))
    plain, beside = batch.times_us(whole, h200), batch.times_us(mixed, h200)[:-1]
    np.testing.assert_allclose(beside, plain, rtol=1e-12)


def test_every_parameter_of_reductions_vanishes():
    names = (
        "reduction_us",
        "reduction_throughput_bytes_per_us",
        "reductions_throughput_bytes_per_us",
    )
    for name in (*names, "launch_divided_us"):
        assert PARAMETERS[name].neutral in (0.0, np.inf)
