"""Bounds lie below the exact times, brackets round them, on machines of any parameters."""

import jax
import numpy as np
import pytest

from wsjax.engine import batch, bracket
from wsjax.engine.programs import floats
from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import PARAMETERS
from wsjax.model.bounds import Family, family_bound_us
from wsjax.model.durations import ctas_per_sm
from wsjax.schema.columns import COLUMNS, Configuration, with_defaults
from wsjax.schema.limits import REASONS
from wsjax.sweeps.families import above, below

ROWS = 8192
SHARES = ("warm_hit_share", "promotion_hidden", "multicast_cost")


def random_configurations(rng: np.random.Generator) -> Configuration:
    """Kernels of all kinds; sizes log-uniform, so that many launches have one wave, or few."""
    schedule = rng.integers(0, 4, ROWS)
    drawn = {name: np.exp(rng.uniform(0, np.log(8192), ROWS)).astype(int) for name in "mnk"}
    drawn |= {
        "batch": rng.choice([1, 1, 1, 3], ROWS),
        "layout": rng.integers(0, 4, ROWS),
        "block_m": rng.choice([64, 128, 256], ROWS),
        "block_n": rng.choice([32, 64, 128, 256], ROWS),
        "block_k": rng.choice([32, 64, 128], ROWS),
        "stages": rng.integers(1, 9, ROWS),
        "dma_warps": rng.integers(1, 3, ROWS),
        "math_warps": np.where(schedule >= 2, 8, rng.choice([4, 8], ROWS)),
        "mma_in_flight": rng.integers(0, 2, ROWS),
        "accum": rng.integers(0, 3, ROWS),
        "schedule": schedule,
        "cluster_m": rng.choice([1, 1, 2, 4], ROWS),
        "cluster_n": rng.choice([1, 1, 2, 4], ROWS),
        "split_k": np.where(schedule % 2, rng.choice([1, 2, 3, 8, 32], ROWS), 1),
        "scheduler": np.where(schedule % 2, rng.choice([0, 2, 3, 4], ROWS), 0),
        "reduction": rng.integers(0, 2, ROWS),
        "group_m": rng.choice([1, 2, 8], ROWS),
        "grid_ctas": rng.choice([0, 0, 0, 50], ROWS),
        "write_back": rng.integers(0, 2, ROWS),
        "l2_state": rng.integers(0, 2, ROWS),
    }
    filled = with_defaults(drawn)
    return Configuration(**{name: filled[name] for name in COLUMNS})


def random_machines(rng: np.random.Generator, spread: float) -> dict[str, np.ndarray]:
    """A machine for each row: parameters log-normal around typical values, or neutral."""
    drawn = {}
    for name, parameter in PARAMETERS.items():
        values = parameter.typical * np.exp(rng.normal(0, spread, ROWS))
        values = np.minimum(values, 1.0) if name in SHARES else values
        drawn[name] = np.where(rng.random(ROWS) < 0.3, parameter.neutral, values)
    drawn["ctas_per_sm_max"] = rng.choice([1, 2, 4, 32], ROWS)
    drawn["cutlass_raster"] = rng.integers(0, 2, ROWS)
    drawn["cluster_ctas_max"] = rng.choice([1, 16, 16, 16], ROWS)
    drawn["sms"] = rng.choice([1, 4, 16, 132], ROWS)
    return drawn


@jax.jit
@jax.vmap
def bounds(inputs, members, deepest, reach_us):
    ctas = ctas_per_sm(floats(inputs.configuration), inputs.machine)
    family = Family(deepest * 1.0, ctas)
    return family_bound_us(floats(members), inputs.machine, family, reach_us)


@jax.jit
@jax.vmap
def brackets(inputs):
    return bracket(inputs.configuration, inputs.machine)


def random_family(c: Configuration, rng: np.random.Generator) -> tuple[Configuration, np.ndarray]:
    """The bounds of a family that each row belongs to: what `family_bound_us` takes of it."""
    shallower, deeper = rng.integers(0, 4, (2, ROWS))
    flip = rng.random((3, ROWS)) < 0.5
    family = c._replace(
        stages=np.maximum(c.stages - shallower, 1),
        dma_warps=np.where(flip[0], 2, c.dma_warps),
        mma_in_flight=np.where(flip[1], 1, c.mma_in_flight),
        write_back=np.where(flip[2], 0, c.write_back),
    )
    return family, c.stages + deeper


@pytest.mark.parametrize(("seed", "spread"), [(1, 0.0), (2, 0.7), (3, 2.5)])
def test_bounds_are_below_and_brackets_around_exact_times(seed, spread):
    rng = np.random.default_rng(seed)
    columns, machines = random_configurations(rng), random_machines(rng, spread)
    h200 = load_hardware("h200")
    runs = np.isin(batch.evaluate(columns, h200, machines).reason, [0, REASONS.index("row_pitch")])
    timed = batch.evaluate(columns, h200, machines, legal_override=runs)  # sizes of any alignment
    legal = timed.reason == 0
    time_us = timed.time_us[legal]
    inputs, _ = batch.columns(columns, h200, machines)
    inputs = inputs.spread(np.arange(ROWS))
    with jax.enable_x64(True):
        family = random_family(inputs.configuration, rng)
        bound = np.asarray(bounds(inputs, *family, np.full(ROWS, np.inf)))[legal]
        reach = timed.time_us * rng.choice([0.9, 1.0, 1.0 + 1e-9, 1.1, 2.0], ROWS)
        pruned = np.asarray(bounds(inputs, *family, reach))[legal]
        least, most, exact = (np.asarray(x)[legal] for x in brackets(inputs))
    assert len(time_us) > ROWS / 3
    assert np.all(below(bound) <= time_us)
    reached = time_us <= reach[legal]
    assert np.all(below(pruned)[reached] <= time_us[reached])
    assert np.all(pruned >= below(bound))
    assert np.all(below(least) <= time_us)
    assert np.all(time_us <= above(most))
    np.testing.assert_allclose(least[exact], most[exact], rtol=1e-14)
    closed = timed.method[legal] == 0
    assert np.mean(least[closed] == most[closed]) > 0.9
    loose = np.median(bound / time_us)
    assert loose > 0.85, loose
