"""No prediction beats a machine's facts: unique bytes over DRAM's rate, flop over the peak."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wsjax
from wsjax.hardware import hardware_names, load_hardware
from wsjax.schema import DTYPE_BYTES, DTYPES

ROOFLINE = Path(__file__).parent / "data" / "roofline.csv"
WITHOUT_FACTS = {"toy", "a6000-paper"}
KNOWN = sorted({*hardware_names()} - WITHOUT_FACTS)


def bounds_us(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Operands once from DRAM, if L2 is cold; all flop at the highest clock."""
    machine = load_hardware(name)
    sizes = rows["dtype_in"].map(dict(zip(DTYPES, DTYPE_BYTES, strict=True)))
    operands = (rows["m"] + rows["n"]) * rows["k"] * sizes * rows["batch"]
    dram_us = operands / machine.peaks.dram_bytes_per_us * (rows["l2_state"] == "cold")
    clock = machine.peaks.clock_max_mhz / machine.peaks.clock_mhz
    peak = rows["dtype_in"].map(machine.peak_flop_per_us) * clock
    flop_us = 2.0 * rows["m"] * rows["n"] * rows["k"] * rows["batch"] / peak
    return np.maximum(dram_us, flop_us).to_numpy()


def drawn(seed: int, count: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    size = {name: np.exp2(draw.uniform(0, 17, count)).astype(int) + 1 for name in "mn"}
    problems = {**size, "k": np.exp2(draw.uniform(4, 15, count)).astype(int) * 8}
    choices = {
        "block_m": [64, 128, 256],
        "block_n": [16, 64, 128, 256],
        "block_k": [32, 64, 128],
        "stages": [1, 2, 3, 4, 6, 8],
        "schedule": ["serial", "persistent", "pingpong", "cooperative"],
        "mma_in_flight": [0, 1],
        "group_m": [1, 8],
        "batch": [1, 1, 1, 4],
        "dtype_in": ["bf16", "bf16", "fp8_e4m3", "int8"],
        "write_back": ["tma", "direct"],
        "l2_state": ["cold", "cold", "warm"],
    }
    picked = {name: draw.choice(values, count) for name, values in choices.items()}
    rows = pd.DataFrame(problems | picked)
    rows["dtype_out"] = "bf16"
    rows["math_warps"] = np.where(rows["schedule"].isin(["pingpong", "cooperative"]), 8, 4)
    return rows


@pytest.mark.parametrize("name", KNOWN)
def test_no_prediction_beats_the_facts(name):
    rows = drawn(len(name), 6_000)
    predicted = wsjax.predict(rows, hardware=name)
    legal = predicted["legal"].to_numpy()
    assert legal.mean() > 0.1
    bound_us = bounds_us(rows, name)[legal]
    time_us = predicted["time_us"].to_numpy()[legal]
    worst = np.argmin(time_us / bound_us)
    assert time_us[worst] >= bound_us[worst], rows[legal].iloc[worst].to_dict()


@pytest.mark.parametrize("name", KNOWN)
def test_the_matrix_vector_product_that_was_too_fast(name):
    case = pd.read_csv(ROOFLINE)
    if not wsjax.predict(case, hardware=name)["legal"].all():
        case = case.assign(block_n=128, block_k=32, schedule="serial")
    predicted = wsjax.predict(case, hardware=name)
    assert predicted["legal"].all()
    m, n, k = (case[name].to_numpy() for name in "mnk")
    moved = 2.0 * (m * k + n * k + m * n)
    assert predicted["time_us"].to_numpy() >= moved / load_hardware(name).peaks.dram_bytes_per_us


@pytest.mark.parametrize("name", KNOWN)
def test_every_machine_says_its_facts_and_keeps_to_them(name):
    machine = load_hardware(name)
    assert np.isfinite(machine.peaks).all()
    assert set(machine.peak_flop_per_us) == set(machine.compute_ratio)
    values = machine.parameters._asdict()
    for parameter, most in machine.ceilings.items():
        assert values[parameter] <= most * (1 + 1e-6), parameter
