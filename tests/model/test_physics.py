"""The terms of a real GPU: neutral values vanish, waves add up, rasters count, time grows."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import Case, simulate

from wsjax.engine.programs import UNPROVED, Form, Inputs, formulas, pack
from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import PARAMETERS, Parameters
from wsjax.model.arithmetic import divides, floor_div, inverse, inverses, logarithm, soft_max
from wsjax.model.durations import Kernel, Machine, kernel
from wsjax.model.events import Pipeline
from wsjax.model.raster import ceil_div, raster, resident_ctas, window
from wsjax.schema.columns import COLUMNS, SCHEDULES, Configuration
from wsjax.schema.limits import Facts

H200 = jax.tree.map(float, load_hardware("h200-datasheet").facts)
SHARED = H200._replace(ctas_per_sm_max=8.0)
BASIS = {"compute_throughput_bytes_per_us": np.inf}
TYPICAL = Parameters(**{name: x.typical for name, x in PARAMETERS.items()} | BASIS)
NEUTRAL = Parameters(load_throughput_bytes_per_us=60e3, compute_throughput_flop_per_us=7e6)
kernels = jax.jit(jax.vmap(kernel, in_axes=(0, None)))


def machine(parameters: Parameters, facts: Facts = SHARED) -> Machine:
    return Machine(facts, parameters, 2.0, 2.0, 1.0)


def configurations(rows: int, seed: int = 0, **columns) -> Configuration:
    rng = np.random.default_rng(seed)
    drawn = {name: rng.integers(1, 4096, rows) for name in "mnk"}
    drawn |= {name: rng.choice([64, 128], rows) for name in ("block_m", "block_n", "block_k")}
    drawn |= {"stages": rng.integers(1, 7, rows), "mma_in_flight": rng.integers(0, 2, rows)}
    drawn |= {"schedule": rng.integers(0, 4, rows), "group_m": rng.choice([1, 4, 8], rows)}
    drawn |= {"layout": rng.integers(0, 4, rows), "l2_state": rng.integers(0, 2, rows)}
    default = {name: column.default_number or 4 for name, column in COLUMNS.items()}
    given = (
        default
        | {name: c.default_number or 0 for name, c in COLUMNS.items() if c.choices}
        | {"grid_ctas": 0, "cluster_m": 1, "cluster_n": 1, "dma_warps": 1, "math_warps": 8}
        | drawn
        | columns
    )
    return Configuration(**{name: np.broadcast_to(x * 1.0, (rows,)) for name, x in given.items()})


def test_in_a_neutral_machine_all_waves_are_alike_and_move_whole_tiles():
    c = configurations(500)
    found = kernels(c, machine(NEUTRAL, H200))
    for name in Pipeline._fields[:-1]:
        first, full, last = (np.asarray(getattr(p, name)) for p in waves(found))
        np.testing.assert_allclose(first, full, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(last, full, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.full.load_a_us, c.block_m * c.block_k * 2 / 60e3, rtol=1e-12)
    np.testing.assert_allclose(found.full.load_b_us, c.block_n * c.block_k * 2 / 60e3, rtol=1e-12)
    np.testing.assert_allclose(found.full.load_latency_us, 0, atol=1e-12)
    flop = 2 * c.block_m * c.block_n * c.block_k
    np.testing.assert_allclose(found.full.compute_us, flop / 7e6, rtol=1e-12)


def waves(found: Kernel) -> tuple[Pipeline, Pipeline, Pipeline]:
    return found.first, found.full, found.last


def case(p: Pipeline, row: Any, **changes) -> Case:
    values: dict[str, Any] = {
        name.removesuffix("_us"): float(np.asarray(x)[row])
        for name, x in p._asdict().items()
        if name != "queue_end_us"
    }
    whole = ("k_tiles", "tiles", "stages", "dma_warps", "mma_in_flight")
    values |= {name: int(values[name]) for name in whole}
    values |= {"schedule": SCHEDULES[int(values["schedule"])]} | changes
    return Case(**values)


@pytest.mark.parametrize("splits", [(1,), (1, 2, 3, 7, 16, 200)])
def test_a_kernel_is_its_full_waves_with_the_first_and_the_last_exchanged(splits):
    rows = 300
    c = configurations(rows, seed=1)
    drawn = np.random.default_rng(2).choice(splits, rows) * 1.0
    c = c._replace(split_k=np.where(c.schedule % 2 == 1, drawn, 1.0), reduction=c.layout % 2)
    found: Kernel = kernels(c, machine(TYPICAL))
    inputs = Inputs(c, machine(TYPICAL), True)
    times = np.asarray(formulas(pack(inputs), ("time_us",), Form())["time_us",])
    settled = times != UNPROVED
    assert np.mean(settled) > 0.7
    several = np.asarray(found.full.tiles) > 1
    assert 0.3 < several.mean() < 0.9
    for row in np.flatnonzero(settled):
        alone = {"tiles": 1, "schedule": "serial"}
        first, full, last = (simulate(case(p, row, **alone)).time for p in waves(found))
        chain = simulate(case(found.full, row)).time
        chain = max(chain, np.asarray(found.full.queue_end_us)[row])
        expected = chain + first - full + (last - full) * several[row] + found.launch_us[row]
        np.testing.assert_allclose(times[row], expected, rtol=1e-9)


@pytest.mark.parametrize("group", [1, 2, 4, 7])
def test_windows_of_whole_rows_and_groups_are_counted_exactly(group):
    tiles_m, tiles_n, block = 14, 9, 64
    c = configurations(1, m=tiles_m * block, n=tiles_n * block, block_m=block, block_n=block)
    r = raster(c._replace(group_m=np.array([float(group)])), H200, 1.0)
    order = [
        (first + row, column)
        for first in range(0, tiles_m, group)
        for column in range(tiles_n)
        for row in range(min(group, tiles_m - first))
    ]
    for tiles in [*range(1, group + 1), *range(group, group * tiles_n + 1, group)]:
        rows, columns = zip(*order[:tiles], strict=True)
        found = window(r, float(tiles))
        assert float(found.rows[0]) == len(set(rows))
        assert float(found.cols[0]) == max(1, len(set(columns)))
    for groups in range(1, tiles_m // group + 1):
        found = window(r, float(groups * group * tiles_n))
        assert (float(found.rows[0]), float(found.cols[0])) == (groups * group, tiles_n)


def test_soft_max_lies_between_the_larger_and_the_sum():
    a, b = np.random.default_rng(7).uniform(0, 2, (2, 1000))
    for softness in (0.0, 0.01, 0.5, 1.0):
        found = np.asarray(soft_max(softness, a, b))
        assert np.all(found >= np.maximum(a, b) - 1e-12)
        assert np.all(found <= a + b + 1e-12)
    np.testing.assert_allclose(soft_max(0.0, a, b), np.maximum(a, b), rtol=1e-12)
    np.testing.assert_allclose(soft_max(1.0, a, b), a + b, rtol=1e-12)
    assert soft_max(0.5, 0.0, 0.0) == 0


def test_quotients_of_whole_numbers_are_exact_in_programs():
    rng = np.random.default_rng(8)
    b = np.concatenate([rng.integers(1, 2**9, 40_000), rng.integers(1, 2**31, 40_000)])
    a = np.concatenate([b * rng.integers(0, 2**17, 80_000), rng.integers(1, 2**48, 80_000)])
    b = np.tile(b, 2)
    for more in (-1, 0, 1):
        x = np.maximum(a + more, 0)
        ceil, floor, whole = divide(x * 1.0, b * 1.0)
        np.testing.assert_array_equal(ceil, -(-x // b))
        np.testing.assert_array_equal(floor, x // b)
        np.testing.assert_array_equal(whole, x % b == 0)


@jax.jit
def divide(a, b):
    _, per_b, _ = inverses(a + 1.0, b, b + 0.5)
    return ceil_div(a, b, per_b), floor_div(a, inverse(b)), divides(b, a)


def test_inverses_and_logarithms_in_programs_are_numpys():
    rng = np.random.default_rng(9)
    x = np.concatenate([np.exp(rng.uniform(-60, 120, 50_000)), np.arange(1.0, 5_000.0)])
    np.testing.assert_allclose(jax.jit(inverse)(x), 1 / x, rtol=5e-16)
    np.testing.assert_allclose(jax.jit(logarithm)(x), np.log(x), rtol=5e-15, atol=1e-16)
    slopes = jax.jit(jax.vmap(jax.grad(inverse)))(x)
    np.testing.assert_allclose(slopes, -1 / x**2, rtol=2e-15)


def test_inverses_by_one_quotient_are_those_of_each_number():
    numbers = np.exp(np.random.default_rng(10).uniform(-40, 40, (8, 10_000)))
    for some in (numbers[:1], numbers[:3], numbers):
        np.testing.assert_allclose(jax.jit(inverses)(*some), 1 / some, rtol=2e-15)
    slopes = jax.jit(jax.vmap(jax.jacobian(lambda x: jnp.stack(inverses(*x)))))(numbers.T)
    expected = np.einsum("ri,ij->rij", -1 / numbers.T**2, np.eye(8))
    np.testing.assert_allclose(slopes, expected, rtol=4e-15)


PROMOTED = COLUMNS["accum"].choices.index("f32_promoted")


def test_promotion_costs_math_time_and_registers_and_nothing_where_sums_are_plain():
    rows = {"block_m": 128, "block_k": 128, "schedule": SCHEDULES.index("pingpong")}
    plain, promoted = (configurations(50, **rows, accum=code) for code in (0, PROMOTED))
    costly = NEUTRAL._replace(promotion_us=0.5, spill_throughput_bytes_per_us=20e3)
    before, without, found = (
        kernels(c, machine(p))
        for c, p in ((plain, NEUTRAL), (plain, costly._replace(promotion_hidden=0.4)),
                     (promoted, costly))
    )  # fmt: skip
    jax.tree.map(np.testing.assert_array_equal, before, without)
    room = (H200.max_registers_per_thread - 32) * 8 * 32
    spilled = np.maximum(2 * 2 * 128 * plain.block_n - room, 0)
    more = 0.5 + 8 * 0.5 * spilled / 20e3
    np.testing.assert_allclose(found.full.compute_us - before.full.compute_us, more, rtol=1e-9)
    assert (spilled > 0).any()
    assert (spilled == 0).any()


def test_two_groups_of_a_tile_hide_promotion_from_each_other():
    c = configurations(50, block_k=128, schedule=SCHEDULES.index("cooperative"), accum=PROMOTED)
    costly = NEUTRAL._replace(promotion_us=0.5)
    hidden, exposed, none = (
        np.asarray(kernels(c, machine(p)).full.compute_us)
        for p in (costly._replace(promotion_hidden=0.4), costly, NEUTRAL)
    )
    np.testing.assert_allclose(exposed - none, 0.5, rtol=1e-9)
    np.testing.assert_allclose(hidden - none, 0.3, rtol=1e-9)


def test_the_clock_falls_by_the_share_of_what_a_dtype_allows():
    c = configurations(50, m=8192, n=8192, k=8192, schedule=1.0)
    p = NEUTRAL._replace(clock_drop=0.5, load_throughput_bytes_per_us=1e9)
    bf16, fp8 = (kernels(c, machine(p)._replace(rate=rate)).full.compute_us for rate in (1.0, 2.0))
    np.testing.assert_allclose(bf16, 2 * fp8, rtol=0.1)


def test_the_card_holds_what_cutlass_launches_in_clusters():
    found = [float(resident_ctas(132.0, cluster * 1.0)) for cluster in (1, 2, 4, 8, 16)]
    assert found == [132, 132, 116, 112, 112]
    assert float(resident_ctas(1.0, 4.0)) == 1


def test_clusters_round_the_tile_grid_up():
    rng = np.random.default_rng(4)
    sizes = {name: rng.integers(1, 5, 200) for name in ("cluster_m", "cluster_n")}
    c = configurations(200, 0, block_m=128, block_n=128, batch=3, **sizes)
    found = jax.vmap(raster, (0, None, None))(c, H200, 1.0)
    rows = np.ceil(np.ceil(c.m / 128) / c.cluster_m) * c.cluster_m
    cols = np.ceil(np.ceil(c.n / 128) / c.cluster_n) * c.cluster_n
    tiles = 3 * rows * cols
    np.testing.assert_array_equal(found.tiles, tiles)
    np.testing.assert_allclose(found.per.active, 1 / np.asarray(found.active), rtol=1e-12)


def test_multicast_spares_l2_and_costs_a_wait():
    many = {"m": 8192, "n": 8192, "k": 4096, "block_m": 64, "block_n": 128, "schedule": 1}
    rows = {name: np.full(1, value) for name, value in many.items()}
    slow = NEUTRAL._replace(l2_throughput_bytes_per_us=1e5)
    alone, pair, quad = (
        np.asarray(kernels(configurations(1, 0, **rows, cluster_m=x), machine(slow)).full.load_b_us)
        for x in (1, 2, 4)
    )
    assert alone > pair > quad
    paid = slow._replace(multicast_cost=1.0)
    whole = kernels(configurations(1, 0, **rows, cluster_m=2), machine(paid)).full.load_b_us
    assert pair < whole
    waiting = NEUTRAL._replace(cluster_latency_us=0.5, launch_cluster_us=0.25)
    for cluster, launch, latency in ((1, 0, 0), (2, 0.25, 0.5)):
        c = configurations(1, 0, **rows, cluster_m=cluster)
        fast, slower = (kernels(c, machine(p)) for p in (NEUTRAL, waiting))
        np.testing.assert_allclose(slower.launch_us - fast.launch_us, launch)
        more = slower.full.load_latency_us - fast.full.load_latency_us
        np.testing.assert_allclose(more, latency, atol=1e-12)
