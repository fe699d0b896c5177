"""Pipelined kernels: the ring of cp.async, warps that multiply by themselves, pointers."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from reference import Case, simulate

from wsjax.hardware import load_hardware
from wsjax.model import Machine
from wsjax.model.costs import costs
from wsjax.model.warps import warps_of
from wsjax.schema import compiled, resolve_one

A100, H100 = load_hardware("a100-sxm"), load_hardware("h100-triton")


def machine_of(hardware):
    facts = jax.tree.map(float, compiled(hardware.facts))
    return Machine(facts, hardware.parameters, 2.0, 2.0, 1.0)


def warps(hardware, **columns):
    given = {"m": 4096, "n": 4096, "k": 4096, "block_k": 32, "stages": 3, "layout": 1} | columns
    c = jax.tree.map(float, resolve_one(given, hardware.facts))
    machine = machine_of(hardware)
    found = warps_of(c, machine, costs(machine))
    assert found is not None
    return found


def cp_async(steps, stages, load, latency, compute):
    """When a pipelined CTA ends, step by step: slots are `stages` - 1, and free when a step's
    operands are in registers, at its start; with one stage, a load begins when the step ends."""
    start, end, done = [], [], []
    for g in range(steps):
        free = done[-1] if done else 0
        if stages == 1:
            free = max(free, end[-1] if end else 0)
        elif g >= stages - 1:
            free = max(free, start[g - stages + 1])
        done.append(free + load)
        start.append(max(done[g] + latency, end[-1] if end else 0))
        end.append(start[g] + compute)
    return end[-1]


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("load", "latency", "compute"), [(3, 7, 5), (5, 1, 2), (1, 20, 9), (2, 2, 9)]
)
def test_one_mma_in_flight_is_the_ring_of_cp_async(stages, load, latency, compute):
    """Step for step, once the ring is full: filling it, one MMA in flight is a load ahead."""
    case = Case(17, 1, stages, load, 0, 0, latency, compute, 0, "serial", 1, 1)
    times = [simulate(replace(case, k_tiles=steps)).time for steps in (17, 77)]
    slower = cp_async(17, stages, load, latency, compute)
    assert times[1] - times[0] == cp_async(77, stages, load, latency, compute) - slower
    assert times[0] <= slower <= times[0] + load + latency


def test_warps_share_a_tile_as_triton_lays_them():
    found = warps(A100, block_m=128, block_n=128, math_warps=4)
    read = (128 * 2 + 128 * 2) * 32 * 2
    written = (128 + 128) * 32 * 2
    smem_us = (read + written) / A100.parameters.smem_throughput_bytes_per_us
    flop_us = 2 * 128 * 128 * 32 / A100.parameters.compute_throughput_flop_per_us
    assert bool(found.alone)
    assert np.isclose(found.matrix_us, max(smem_us, flop_us))


def test_two_warps_reach_half_of_the_matrix_units():
    two = warps(A100, block_m=64, block_n=64, math_warps=2)
    assert float(two.units) == 0.5
    flop_us = 2 * 64 * 64 * 32 / A100.parameters.compute_throughput_flop_per_us
    assert float(two.matrix_us) >= 2 * flop_us * (1 - 1e-12)


@pytest.mark.parametrize(
    ("block_m", "math_warps", "alone"),
    [(16, 4, True), (64, 2, True), (64, 4, False), (128, 8, False)],
)
def test_hopper_has_a_warpgroup_for_tiles_of_64_rows(block_m, math_warps, alone):
    assert bool(warps(H100, block_m=block_m, block_n=64, math_warps=math_warps).alone) == alone


def test_rows_that_no_vector_can_load_need_a_pointer_for_each_element():
    assert float(warps(A100, block_m=64, block_n=64, math_warps=4).pointers) == 0
    odd = warps(A100, block_m=64, block_n=128, math_warps=4, k=117)
    assert float(odd.pointers) == 2 * (64 + 128) * 32
    assert float(warps(A100, block_m=64, block_n=128, math_warps=4, layout=0, n=99).pointers) == (
        2 * 128 * 32
    )


def test_other_machines_have_none():
    hardware = load_hardware("h200")
    c = resolve_one(
        dict.fromkeys(("m", "n", "k", "block_m", "block_n", "block_k"), 64), hardware.facts
    )
    machine = machine_of(hardware)
    assert warps_of(c, machine, costs(machine)) is None
