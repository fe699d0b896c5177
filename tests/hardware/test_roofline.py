"""No prediction beats a machine's facts: unique bytes over DRAM's rate, flop over the peak."""

import numpy as np
import pandas as pd
import pytest
from paths import DATA

import wsjax
from wsjax.hardware import hardware_names, load_hardware
from wsjax.schema import DTYPE_BYTES, DTYPES

ROOFLINE = DATA / "roofline.csv"
WITHOUT_FACTS = {"toy", "a6000-paper"}
KNOWN = sorted({*hardware_names()} - WITHOUT_FACTS)


def bounds_us(rows: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Operands once from DRAM, if L2 is cold; all flop at the highest clock."""
    machine = load_hardware(name)
    sizes = dict(zip(DTYPES, DTYPE_BYTES, strict=True))
    operands = (rows["m"] + rows["n"]) * rows["k"] * 1.0 * rows["batch"]
    operands *= np.asarray([sizes[word] for word in rows["dtype_in"]])
    dram_us = operands / machine.peaks.dram_bytes_per_us * (rows["l2_state"] == "cold")
    clock = machine.peaks.clock_max_mhz / machine.peaks.clock_mhz
    peak = np.asarray([machine.peak_flop_per_us.get(word, np.inf) for word in rows["dtype_in"]])
    flop = 2.0 * rows["m"] * rows["n"] * rows["k"] * rows["batch"]
    return np.maximum(dram_us, flop / (peak * clock))


def predict(rows: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """(which rows are legal, all rows' times)."""
    predicted = wsjax.predict(pd.DataFrame(rows), hardware=name)
    return predicted["legal"].to_numpy(dtype=bool), predicted["time_us"].to_numpy(dtype=float)


def drawn(seed: int, count: int) -> dict[str, np.ndarray]:
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
    wide = np.isin(picked["schedule"], ["pingpong", "cooperative"])
    rest = {"dtype_out": np.full(count, "bf16"), "math_warps": np.where(wide, 8, 4)}
    return problems | picked | rest


@pytest.mark.parametrize("name", KNOWN)
def test_no_prediction_beats_the_facts(name):
    rows = drawn(len(name), 6_000)
    legal, time_us = predict(rows, name)
    assert legal.mean() > 0.1
    over = time_us[legal] / bounds_us(rows, name)[legal]
    worst = np.flatnonzero(legal)[np.argmin(over)]
    assert over.min() >= 1, {column: values[worst] for column, values in rows.items()}


@pytest.mark.parametrize("name", KNOWN)
def test_the_matrix_vector_product_that_was_too_fast(name):
    case = {str(column): x.to_numpy() for column, x in pd.read_csv(ROOFLINE).items()}
    other = {"block_n": np.asarray([128]), "block_k": np.asarray([32])}
    legal, time_us = predict(case, name)
    if not legal.all():
        legal, time_us = predict(case | other | {"schedule": np.asarray(["serial"])}, name)
    assert legal.all()
    m, n, k = (case[side] for side in "mnk")
    moved = 2.0 * (m * k + n * k + m * n)
    assert (time_us >= moved / load_hardware(name).peaks.dram_bytes_per_us).all()


@pytest.mark.parametrize("name", KNOWN)
def test_every_machine_says_its_facts_and_keeps_to_them(name):
    machine = load_hardware(name)
    assert np.isfinite(machine.peaks).all()
    assert set(machine.peak_flop_per_us) == set(machine.compute_ratio)
    values = machine.parameters._asdict()
    for parameter, most in machine.ceilings.items():
        assert values[parameter] <= most * (1 + 1e-6), parameter
