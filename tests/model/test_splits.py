"""Split-K and stream-K against a simulator that plays every CTA of a launch, and its terms."""

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import DATA
from reference import Case, Launch, Unit, split_k
from stream_k import Grid, cut, launch

from wsjax.engine import batch
from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import PARAMETERS, Parameters
from wsjax.model.durations import Machine, kernel
from wsjax.model.splits import units
from wsjax.schema.columns import (
    COLUMNS,
    HEURISTIC,
    REDUCTIONS,
    SCHEDULERS,
    SCHEDULES,
    STREAMK,
    Configuration,
)

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


def reduction_us(p: Parameters, at_once: int) -> float:
    """r(n) of the module's docstring."""
    sums_bytes = 4 * 128 * 128
    return (
        p.reduction_us
        + sums_bytes / p.reduction_throughput_bytes_per_us
        + at_once * sums_bytes / p.reductions_throughput_bytes_per_us
    )


def simulated(c: Configuration, row: int, sms: int, parameters: Parameters) -> float:
    """The time of a split-K launch on a machine on which all waves are alike."""
    tiles, k_tiles = int(c.n[row]) // 128, int(c.k[row]) // 64
    splits = min(int(c.split_k[row]), k_tiles, sms)
    ctas = split_k(sms, tiles, splits, k_tiles)
    return played(c, row, sms, parameters, ctas, tiles)


def played(
    c: Configuration,
    row: int,
    sms: int,
    parameters: Parameters,
    ctas: list[list[Unit]],
    at_once: int,
) -> float:
    """The time of all CTAs of a launch, `at_once` reductions going on at a time."""
    one = Configuration(*(x[row] for x in c))._replace(split_k=None)
    facts = FACTS._replace(sms=float(sms))
    with jax.enable_x64(True):
        p = kernel(one, Machine(facts, parameters, 2.0, 2.0, 1.0)).full
    case = Case(
        k_tiles=1,
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
    each_us = reduction_us(parameters, at_once)
    return float(Launch(case, ctas, each_us, ordered=not c.reduction[row]).run())


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_wave_is_the_launch_played_cta_by_cta(reduction):
    rng, rows, sms = np.random.default_rng(1), 200, 12
    tiles = rng.integers(1, 7, rows)
    splits = np.minimum(rng.integers(1, 13, rows), sms // tiles)
    c = drawn(rng, tiles, rng.integers(1, 40, rows))._replace(
        split_k=splits * 1.0, reduction=np.full(rows, REDUCTIONS.index(reduction) * 1.0)
    )
    parameters = ALIKE._replace(epilogue_startup_us=0.9)
    if reduction == "nondeterministic":
        parameters = parameters._replace(reductions_throughput_bytes_per_us=np.inf)
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


def measured_cuts() -> pd.DataFrame:
    """What CUTLASS's own parameters said on an H200, of all kernels and problems measured there."""
    return pd.read_csv(DATA / "h200_stream_k_cuts.csv.gz")


def test_the_simulators_cut_is_that_of_every_measured_kernel():
    table = measured_cuts()
    assert sum(table["rows"]) == 19_945
    assert set(table["reduction_units"]) == {0}
    sizes = ["tiles_m", "tiles_n", "k_tiles", "cluster_m", "cluster_n"]
    for row in table.to_dict("records"):
        grid = Grid(*(row[name] for name in sizes), ctas=132)
        found = cut(grid, row["scheduler"], row["split_k"])
        expected = (row["split_k_effective"], row["sk_tiles"], row["sk_units"])
        assert (found.splits, found.tiles, found.units) == expected


def test_the_models_cut_is_that_of_every_measured_kernel():
    table = measured_cuts()
    columns = {name: table[name].to_numpy(float) for name in ("cluster_m", "cluster_n", "split_k")}
    words = table["scheduler"].map(SCHEDULERS.index).to_numpy(float)
    sizes = {x: table[f"tiles_{x}"].to_numpy(float) * 128 for x in "mn"}
    sizes["k"] = table["k_tiles"].to_numpy(float) * 64
    c = configurations(len(table), scheduler=words, **columns, **sizes)
    found = jax.jit(jax.vmap(lambda c: units(c, FACTS)))(c)
    np.testing.assert_array_equal(found.splits, table["split_k_effective"])
    np.testing.assert_array_equal(found.stream.tiles, table["sk_tiles"])
    np.testing.assert_array_equal(found.stream.units, table["sk_units"])


@given(
    st.integers(1, 8), st.integers(1, 12), st.integers(1, 200), st.sampled_from(["1x1", "2x1"]),
    st.integers(6, 24), st.sampled_from(["streamk", "heuristic"]),
)  # fmt: skip
def test_every_k_tile_is_in_one_share(tiles_m, tiles_n, k_tiles, cluster, ctas, scheduler):
    size = int(cluster[0])
    grid = Grid(tiles_m * size, tiles_n, k_tiles, size, 1, ctas // size * size)
    taken = [unit for units in launch(grid, cut(grid, scheduler, 1)) for unit in units]
    whole = dict.fromkeys(range(grid.tiles), 0)
    for unit in taken:
        whole[unit.tile] += unit.k_tiles
    assert set(whole.values()) == {k_tiles}
    assert len({(unit.tile, unit.share) for unit in taken}) == len(taken)


def streamed(c: Configuration, row: int, sms: int, parameters: Parameters) -> float:
    """The time of a stream-K launch on a machine on which all waves are alike."""
    tiles, k_tiles = int(c.n[row]) // 128, int(c.k[row]) // 64
    grid = Grid(1, tiles, k_tiles, 1, 1, sms)
    ctas = launch(grid, cut(grid, "streamk", 1))
    return played(c, row, sms, parameters, ctas, 1)


def test_an_even_cut_is_the_launch_played_cta_by_cta():
    rng, rows, sms = np.random.default_rng(3), 60, 12
    tiles = rng.choice([1, 2, 3, 4], rows)
    k_tiles = sms // tiles * rng.integers(8, 24, rows)
    c = drawn(rng, tiles, k_tiles)._replace(scheduler=np.full(rows, STREAMK * 1.0))
    parameters = ALIKE._replace(epilogue_startup_us=0.9)
    expected = [streamed(c, row, sms, parameters) for row in range(rows)]
    np.testing.assert_allclose(times(c, sms, parameters), expected, rtol=1e-9)
    heuristic = c._replace(scheduler=np.full(rows, HEURISTIC * 1.0))
    split = c._replace(split_k=sms / tiles, scheduler=np.zeros(rows))
    np.testing.assert_array_equal(times(heuristic, sms, ALIKE), times(split, sms, ALIKE))


def test_any_other_cut_is_near_the_launch_played_cta_by_cta():
    rng, rows, sms = np.random.default_rng(4), 200, 12
    c = drawn(rng, rng.integers(1, 50, rows), rng.integers(40, 200, rows))
    c = c._replace(scheduler=np.full(rows, STREAMK * 1.0))
    parameters = ALIKE._replace(epilogue_startup_us=0.9)
    expected = [streamed(c, row, sms, parameters) for row in range(rows)]
    error = np.abs(times(c, sms, parameters) / expected - 1)
    assert np.median(error) < 0.03
    assert np.max(error) < 0.2
