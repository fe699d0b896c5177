"""Time does not fall when m, n or k grows at fixed configuration, but for documented effects.

Alignment: a row pitch, a row or a tile that fits better costs less a byte. Raster: another number
of tiles shares L2 otherwise, and another number of CTAs in a last wave shares the machine's rates.
Each is left out in turn; without both, time never falls.
"""

from dataclasses import replace

import numpy as np
import pytest

from wsjax.engine import batch
from wsjax.hardware.machine import load_hardware
from wsjax.hardware.parameters import PARAMETERS
from wsjax.schema.columns import COLUMNS, SCHEDULES, Configuration

ROWS = 6_000
ALIGNMENT = ("pitch_cost", "short_row_cost", "out_of_bounds_cost")
RASTER = (
    *("l2_capacity_bytes", "sharing", "dram_throughput_bytes_per_us", "dram_latency_first_us"),
    *("dram_latency_us", "crowding_latency_us", "l2_throughput_bytes_per_us"),
)
START = load_hardware("h200-datasheet")


def drawn(seed: int, schedules: tuple[str, ...], multiple: int) -> Configuration:
    """Configurations whose m, n and k are drawn one by one, multiples of a number."""
    draw = np.random.default_rng(seed)
    columns = {name: multiple * draw.integers(1, 5000 // multiple, ROWS) for name in "mnk"}
    columns |= {name: draw.choice([64, 128], ROWS) for name in ("block_m", "block_n", "block_k")}
    columns |= {"stages": draw.integers(1, 7, ROWS), "group_m": draw.choice([1, 4, 8], ROWS)}
    columns |= {name: draw.integers(0, 2, ROWS) for name in ("mma_in_flight", "l2_state")}
    columns["schedule"] = draw.choice([SCHEDULES.index(word) for word in schedules], ROWS)
    columns["layout"] = draw.integers(0, 4, ROWS)
    default = {name: column.default_number or 4 for name, column in COLUMNS.items()}
    words = {name: c.default_number or 0 for name, c in COLUMNS.items() if c.choices}
    given = default | words | {"grid_ctas": 0, "dma_warps": 1, "math_warps": 8} | columns
    return Configuration(**{name: np.broadcast_to(x, (ROWS,)) for name, x in given.items()})


def ratios(side: str, by: int, c: Configuration, left_out: tuple[str, ...]) -> np.ndarray:
    """Times of configurations with a longer side over those without, terms left out."""
    values = {
        name: x.neutral if name in left_out else x.typical for name, x in PARAMETERS.items()
    } | {"compute_throughput_bytes_per_us": np.inf}
    machine = replace(START, parameters=START.parameters._replace(**values))
    columns = {name: np.full(ROWS, value) for name, value in values.items()}
    longer = c._replace(**{side: getattr(c, side) + by})
    after, before = (
        batch.evaluate(x, machine, columns, np.ones(ROWS, dtype=bool)).time_us for x in (longer, c)
    )
    return after / before


PIPELINED = tuple(word for word in SCHEDULES if word != "serial")


@pytest.mark.parametrize("by", [8, 64])
@pytest.mark.parametrize("side", ["m", "n", "k"])
def test_time_never_falls_without_alignment_and_raster(side, by):
    found = ratios(side, by, drawn(1, PIPELINED, 8), ALIGNMENT + RASTER)
    assert found.min() > 0.999
    assert np.mean(found < 1 - 1e-9) < 0.01


@pytest.mark.parametrize("side", ["m", "n", "k"])
def test_without_alignment_time_falls_seldom_and_by_little(side):
    found = ratios(side, 8, drawn(2, PIPELINED, 8), ALIGNMENT)
    assert np.mean(found < 1 - 1e-9) < 0.03
    assert np.mean(found < 0.99) < 0.002
    assert found.min() > 0.94


@pytest.mark.parametrize("side", ["m", "n", "k"])
def test_aligned_sizes_seldom_take_less_by_a_tile_more(side):
    found = ratios(side, 128, drawn(3, PIPELINED, 128), ())
    assert np.mean(found < 1 - 1e-9) < 0.005
    assert np.mean(found < 0.99) < 0.002
    assert found.min() > 0.98


@pytest.mark.parametrize("side", ["m", "n", "k"])
def test_serial_kernels_neither(side):
    """Also where one more tile begins to share an SM."""
    found = ratios(side, 128, drawn(4, ("serial",), 128), ())
    assert np.mean(found < 1 - 1e-9) < 0.005
    assert np.mean(found < 0.99) < 0.002
    assert found.min() > 0.96


def test_alignment_shows():
    """What the other tests leave out: a k of whole 128 B rows takes less than one that is not."""
    c = drawn(5, PIPELINED, 64)
    uneven = c._replace(k=c.k - 8)
    assert np.mean(ratios("k", 8, uneven, ()) < 0.95) > 0.2
