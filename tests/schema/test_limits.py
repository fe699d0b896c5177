"""Legality: one arithmetic for ints, arrays and Z3 terms; what real kernels do; explanations."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from wsjax.hardware.machine import hardware_names, load_hardware
from wsjax.schema.columns import COLUMNS, DTYPE_BYTES, DTYPES, SCHEDULES, Configuration
from wsjax.schema.limits import (
    BARRIER_BYTES,
    REASONS,
    checks,
    deepest_stages,
    epilogue_bytes,
    smem_bytes,
    why,
)

H200 = load_hardware("h200")
TOY = load_hardware("toy")
PAPER = load_hardware("a6000-paper")


def configuration(**columns: int) -> Configuration:
    """A bf16 configuration with the columns' defaults: 4 MATH warps, `persistent`."""
    numbers = {name: column.default_number or 0 for name, column in COLUMNS.items()}
    return Configuration(**numbers | {"m": 512, "n": 512, "k": 256, "math_warps": 4} | columns)


def tile(block_m: int, block_n: int, block_k: int, stages: int = 1, **columns) -> Configuration:
    blocks = {"block_m": block_m, "block_n": block_n, "block_k": block_k}
    return configuration(**blocks, stages=stages, **columns)


def groups(schedule: str) -> dict[str, Any]:
    return {
        "math_groups": 2 if schedule == "pingpong" else 1,
        "groups_per_tile": 2 if schedule == "cooperative" else 1,
    }


def reason(c: Configuration, facts, schedule="persistent", dtype="bf16", rate=1.0) -> str:
    sizes: Any = {"in_bytes": DTYPE_BYTES[DTYPES.index(dtype)], "out_bytes": 2}
    held = checks(c, facts, **sizes, **groups(schedule), rate=rate)
    return next((name for name, holds in held if not holds), "")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_toy_example_is_legal_in_every_schedule(schedule):
    warps = 8 if schedule in ("pingpong", "cooperative") else 4
    c = tile(128, 128, 64, stages=2, math_warps=warps)
    assert reason(c, TOY.facts, schedule) == ""
    assert smem_bytes(c, TOY.facts, 2, 2) == 2 * (32768 + 16) + 32768
    assert reason(c._replace(stages=3), TOY.facts, schedule) == "shared_memory"


def test_every_tile_of_the_paper_is_legal_on_its_machine():
    for block_m in (64, 128):
        for block_n in (64, 128):
            for block_k in (64, 128):
                deepest = deepest_stages(block_m, block_n, block_k, 2, 2, PAPER.facts)
                assert deepest >= 1
                c = tile(block_m, block_n, block_k, deepest, dma_warps=2)
                assert reason(c, PAPER.facts, "serial") == ""


@pytest.mark.parametrize(
    ("block_m", "block_n", "block_k", "stages"),
    [
        (128, 128, 64, 6),
        (128, 256, 64, 4),
        (256, 128, 64, 4),
        (128, 256, 128, 2),
        (128, 128, 128, 3),
        (64, 256, 64, 5),
        (64, 128, 64, 9),
        (64, 128, 128, 4),
        (64, 64, 64, 13),
    ],
)
def test_deepest_ring_is_the_one_cutlass_takes_on_an_h200(block_m, block_n, block_k, stages):
    assert deepest_stages(block_m, block_n, block_k, 2, 2, H200.facts) == stages


@pytest.mark.parametrize(
    ("c", "schedule", "dtype", "expected"),
    [
        (tile(128, 128, 64, 4), "persistent", "bf16", ""),
        (tile(128, 128, 64, 4, cluster_n=2), "persistent", "bf16", ""),
        (tile(128, 128, 64, 4, cluster_m=8, cluster_n=4), "persistent", "bf16", "not_modelled"),
        (tile(128, 128, 64, 4, accum=3), "persistent", "bf16", "not_modelled"),
        (tile(128, 256, 128, 2, accum=2, math_warps=8), "cooperative", "fp8_e4m3", "registers"),
        (tile(128, 256, 128, 2, accum=1, math_warps=8), "cooperative", "fp8_e4m3", ""),
        (tile(128, 128, 64, 4, scheduler=1), "persistent", "bf16", ""),
        (tile(128, 128, 64, 4, scheduler=3), "persistent", "bf16", ""),
        (tile(128, 128, 64, 4, scheduler=4, schedule=0), "serial", "bf16", "not_modelled"),
        (tile(128, 128, 64, 4, scheduler=3, split_k=2), "persistent", "bf16", "not_modelled"),
        (tile(128, 128, 64, 4, split_k=2), "persistent", "bf16", ""),
        (tile(128, 128, 64, 4, split_k=2, schedule=2), "persistent", "bf16", "not_modelled"),
        (tile(96, 128, 64, 4), "persistent", "bf16", "block_multiple"),
        (tile(128, 100, 64, 4), "persistent", "bf16", "block_multiple"),
        (tile(128, 128, 24, 4), "persistent", "bf16", "block_multiple"),
        (tile(128, 128, 16, 4), "persistent", "bf16", ""),
        (tile(128, 128, 16, 4), "persistent", "fp8_e4m3", "block_multiple"),
        (tile(128, 128, 8, 4), "persistent", "tf32", ""),
        (tile(64, 128, 64, 4, math_warps=8), "cooperative", "bf16", "block_multiple"),
        (tile(64, 128, 64, 4, math_warps=8), "pingpong", "bf16", ""),
        (tile(192, 192, 64, 4, math_warps=8), "cooperative", "bf16", ""),
        (tile(192, 192, 64, 4, math_warps=8), "pingpong", "bf16", "registers"),
        (tile(192, 200, 64, 3, math_warps=8), "cooperative", "bf16", "block_multiple"),
        (tile(192, 208, 64, 3, math_warps=8), "cooperative", "bf16", ""),
        (tile(192, 320, 64, 3, math_warps=8), "cooperative", "bf16", "registers"),
        (tile(160, 192, 64, 3, math_warps=8), "cooperative", "bf16", "block_multiple"),
        (tile(64, 128, 64, 4, math_warps=4), "pingpong", "bf16", "threads"),
        (tile(64, 128, 64, 4, math_warps=2), "persistent", "bf16", "threads"),
        (tile(64, 128, 64, 4, math_warps=32), "persistent", "bf16", "threads"),
        (tile(128, 256, 64, 2), "persistent", "bf16", "registers"),
        (tile(128, 256, 64, 2, math_warps=8), "cooperative", "bf16", ""),
        (tile(128, 256, 64, 2, math_warps=8), "pingpong", "bf16", "registers"),
        (tile(128, 256, 64, 5, math_warps=8), "persistent", "bf16", "shared_memory"),
    ],
)
def test_reasons_on_an_h200(c, schedule, dtype, expected):
    assert reason(c, H200.facts, schedule, dtype) == expected


@pytest.mark.parametrize(
    ("sizes", "layout", "write_back", "dtype", "expected"),
    [
        ({"k": 2047}, "nt", "direct", "bf16", "row_pitch"),
        ({"k": 2040}, "nt", "tma", "bf16", ""),
        ({"k": 2040}, "nt", "tma", "fp8_e4m3", "row_pitch"),
        ({"k": 2044}, "nt", "tma", "tf32", ""),
        ({"m": 17}, "nt", "tma", "bf16", ""),
        ({"m": 17}, "tt", "tma", "bf16", "row_pitch"),
        ({"m": 17}, "tn", "tma", "bf16", "row_pitch"),
        ({"n": 1001}, "nt", "tma", "bf16", "row_pitch"),
        ({"n": 1001}, "nt", "direct", "bf16", ""),
        ({"n": 1001}, "nn", "direct", "bf16", "row_pitch"),
        ({"n": 1001}, "tn", "direct", "bf16", "row_pitch"),
        ({"n": 1001}, "tt", "direct", "bf16", ""),
        ({"m": 24, "k": 2047}, "tn", "direct", "bf16", ""),
    ],
)
def test_rows_that_tma_cannot_take(sizes, layout, write_back, dtype, expected):
    words = {"layout": layout, "write_back": write_back}
    codes = {name: COLUMNS[name].number(word) for name, word in words.items()}
    c = tile(64, 64, 64, **codes)._replace(**sizes)
    assert reason(c, H200.facts, dtype=dtype) == expected
    for before_hopper in ("a100-sxm", "l40s", "mi300x"):
        assert reason(c, load_hardware(before_hopper).facts, dtype=dtype) == ""


def test_a_dtype_without_a_rate_is_not_modelled():
    assert reason(tile(128, 128, 64), H200.facts, rate=0.0) == "not_modelled"


def test_warp_size_counts():
    c = tile(128, 128, 32, math_warps=16)
    assert reason(c, load_hardware("a100-sxm").facts) == ""
    assert reason(c, load_hardware("mi300x").facts) == "threads"


def test_reasons_are_known():
    assert REASONS[0] == ""
    assert {name for name, _ in _held(tile(64, 64, 64), H200.facts, "serial")} < set(REASONS)


sizes = st.integers(1, 40).map(lambda i: 8 * i) | st.integers(1, 300)
configurations = st.builds(
    tile,
    sizes,
    sizes,
    sizes,
    st.integers(1, 32),
    dma_warps=st.integers(1, 2),
    math_warps=st.integers(1, 40),
    cluster_m=st.integers(1, 2) | st.just(1),
    split_k=st.integers(1, 2) | st.just(1),
)


def _held(c, facts, schedule, in_bytes: Any = 2, out_bytes: Any = 2):
    shape = groups(schedule)
    return checks(c, facts, in_bytes=in_bytes, out_bytes=out_bytes, **shape, rate=1.0)


VARIABLES = Configuration(*(z3.Int(name) for name in Configuration._fields))
IN_BYTES = z3.Int("in_bytes")
TERMS = {
    (name, schedule): [
        holds if isinstance(holds, z3.BoolRef) else z3.BoolVal(holds)
        for _, holds in _held(VARIABLES, load_hardware(name).facts, schedule, IN_BYTES, 2)
    ]
    for name in hardware_names()
    for schedule in SCHEDULES
}


@settings(deadline=None, max_examples=150)
@given(
    configurations,
    st.sampled_from(hardware_names()),
    st.sampled_from(SCHEDULES),
    st.sampled_from((1, 2, 4)),
)
def test_ints_arrays_and_z3_terms_agree(c, name, schedule, in_bytes):
    facts = load_hardware(name).facts
    ints = [bool(holds) for _, holds in _held(c, facts, schedule, in_bytes)]

    values = [(variable, z3.IntVal(value)) for variable, value in zip(VARIABLES, c, strict=True)]
    values.append((IN_BYTES, z3.IntVal(in_bytes)))
    terms = [z3.simplify(z3.substitute(term, *values)) for term in TERMS[name, schedule]]
    assert [z3.is_true(term) for term in terms] == ints
    assert all(z3.is_true(term) or z3.is_false(term) for term in terms)

    arrays = Configuration(*(np.full(3, value, np.int64) for value in c))
    for holds, expected in zip(_held(arrays, facts, schedule, in_bytes), ints, strict=True):
        assert np.array_equal(np.broadcast_to(holds[1], 3), [expected] * 3)


def test_jax_arrays_work():
    c = tile(128, 128, 64, stages=2)
    arrays = Configuration(*(jnp.asarray([value, value]) for value in c))
    assert all(bool(jnp.all(holds)) for _, holds in _held(arrays, H200.facts, "serial"))


@settings(deadline=None)
@given(configurations, st.sampled_from(hardware_names()), st.sampled_from((1, 2, 4)))
def test_deepest_ring_fits_and_one_more_does_not(c, name, in_bytes):
    facts = load_hardware(name).facts
    deepest = deepest_stages(c.block_m, c.block_n, c.block_k, in_bytes, 2, facts)
    assert 0 <= deepest <= 32
    room = facts.smem_bytes_per_sm
    assert deepest == 0 or smem_bytes(c._replace(stages=deepest), facts, in_bytes, 2) <= room
    assert deepest == 32 or smem_bytes(c._replace(stages=deepest + 1), facts, in_bytes, 2) > room
    block_m, block_n, block_k = (np.array([size, 64]) for size in c[7:10])
    assert deepest_stages(block_m, block_n, block_k, in_bytes, 2, facts)[0] == deepest


def test_z3_finds_the_deepest_ring():
    stages = z3.Int("stages")
    solver = z3.Optimize()
    c = tile(128, 128, 64)._replace(stages=stages)
    solver.add(*(holds for _, holds in _held(c, H200.facts, "persistent")))
    most = solver.maximize(stages)
    assert solver.check() == z3.sat
    assert str(most.value()) == str(deepest_stages(128, 128, 64, 2, 2, H200.facts))


@given(st.integers(1, 2**16), st.integers(1, 2**16), st.integers(0, 2**31))
def test_epilogue_buffer_is_the_smaller_of_tile_and_cap(block_m, block_n, cap):
    assert epilogue_bytes(block_m, block_n, 4, cap) == min(block_m * block_n * 4, cap)


def test_largest_columns_do_not_wrap_round():
    largest = {name: column.maximum for name, column in COLUMNS.items() if not column.choices}
    c = configuration(**largest)
    arrays = Configuration(*(np.full(1, value, np.int64) for value in c))
    for facts in (H200.facts, TOY.facts):
        exact = _held(c, facts, "pingpong", 4, 4)
        wide = _held(arrays, facts, "pingpong", 4, 4)
        assert [bool(np.all(holds)) for _, holds in wide] == [holds for _, holds in exact]
        assert int(smem_bytes(arrays, facts, 4, 4)[0]) == smem_bytes(c, facts, 4, 4)


def explained(reason: str, c: Configuration, facts=H200.facts, **words) -> str:
    codes = {name: COLUMNS[name].number(word) for name, word in words.items()}
    return why(reason, c._replace(**codes), facts)


def test_explanations_say_how_much_and_how_to_mend():
    assert explained("shared_memory", tile(128, 128, 64, 3), TOY.facts) == (
        f"shared memory: 3 stages need {3 * (32768 + BARRIER_BYTES):,} B + 32,768 B epilogue, "
        "102,400 B available; deepest legal: 2 stages"
    )
    assert "not even one stage fits: take a smaller tile" in explained(
        "shared_memory", tile(1024, 1024, 512), TOY.facts
    )
    assert explained("block_multiple", tile(100, 12, 24)) == (
        "block sizes: block_m 100 is no multiple of 64, nearest 128; "
        "block_n 12 is no multiple of 8, nearest 16; block_k 24 is no multiple of 16, nearest 32"
    )
    assert explained("block_multiple", tile(64, 128, 64), schedule="cooperative") == (
        "block sizes: 2 groups can't share 64x128: take a block_m of at least 128, and it a "
        "multiple of that or block_n one of 16"
    )
    assert explained("threads", tile(64, 64, 64, math_warps=6), schedule="pingpong") == (
        "threads: 6 MATH and 1 DMA warps are 224 threads; MATH warps come in multiples of 8, "
        "at most 24 with 1,024 threads a CTA"
    )
    assert explained("registers", tile(128, 256, 64)) == (
        "registers: 256 accumulators + 32 a thread, 255 available; 37,888 a CTA, 65,536 available; "
        "take a smaller tile or more MATH warps"
    )
    most = "cluster 32x1; a cluster of 32, at most 16"
    assert most in explained("not_modelled", tile(64, 64, 64, cluster_m=32))
    cut = explained("not_modelled", tile(64, 64, 64, scheduler=3), schedule="pingpong")
    assert "scheduler streamk in pingpong; persistent and cooperative kernels" in cut
    both = explained("not_modelled", tile(64, 64, 64, scheduler=3, split_k=4))
    assert "split_k = 4 with scheduler streamk; it takes 1" in both
    assert "accum f16; f32" in explained("not_modelled", tile(64, 64, 64, accum=3))
    split = explained("not_modelled", tile(64, 64, 64, split_k=4), schedule="pingpong")
    assert "split_k = 4 in pingpong; persistent and cooperative kernels" in split
    assert "no compute_ratio for int8" in explained(
        "not_modelled", tile(64, 64, 64), dtype_in="int8"
    )
    assert explained("row_pitch", tile(64, 64, 64)._replace(k=2047)) == (
        "row pitch: k = 2047 puts rows of A 4,094 B and B 4,094 B apart, nearest 2048; "
        "TMA takes multiples of 16 B: pad the matrix"
    )
    assert explained("row_pitch", tile(64, 64, 64)._replace(n=1001), dtype_out="fp32") == (
        "row pitch: n = 1001 puts rows of C 4,004 B apart, nearest 1000; "
        "TMA takes multiples of 16 B: pad the matrix, or write C back directly"
    )
    both = explained("row_pitch", tile(64, 64, 64)._replace(m=17, n=1001), layout="tn")
    assert "m = 17 puts rows of A 34 B apart, nearest 16; n = 1001 puts rows of B" in both
    assert explained("incomplete", tile(64, 64, 64)).startswith("incomplete: ")
