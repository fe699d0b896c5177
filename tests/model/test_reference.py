"""The reference against values worked by hand, and against laws that hold for every case."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Case, Duration, Outcome, simulate
from strategies import SIZES, Kind, random_cases, small_cases

LAUNCH = 2
BASE = Case(
    k_tiles=4,
    tiles=4,
    stages=2,
    load_a=0.5,
    load_b=0.5,
    load_startup=0,
    load_latency=0,
    compute=1,
    epilogue=0,
    schedule="serial",
    dma_warps=1,
    mma_in_flight=0,
)
DURATIONS = ("load_a", "load_b", "load_startup", "load_latency", "compute", "epilogue")
KINDS: tuple[Kind, ...] = ("realistic", "ties", "wild")

BY_HAND = [
    ({}, (22, 4, 0)),
    ({"load_latency": 2}, (38, 20, 8)),
    ({"load_startup": 0.5}, (38, 20, 0)),
    ({"load_startup": 0.5, "dma_warps": 2}, (26, 8, 2)),
    ({"load_latency": 2, "mma_in_flight": 1}, (46, 28, 16)),
    ({"epilogue": 3, "schedule": "persistent"}, (31, 1, 9)),
    ({"epilogue": 3, "schedule": "persistent", "mma_in_flight": 1}, (31, 1, 9)),
    ({"epilogue": 3, "schedule": "pingpong"}, (22, 1, 0)),
    ({"epilogue": 6, "schedule": "pingpong"}, (27, 1, 2)),
    # One stage: load and compute take turns, 16 times 1 + 1, or 16 times 3 + 1.
    ({"stages": 1, "schedule": "persistent"}, (34, 16, 15)),
    ({"stages": 1, "schedule": "persistent", "load_latency": 2}, (66, 48, 45)),
    # One step a tile: computes start at 1, 5, 9, 13, or in ping-pong at 1, 2, 5, 6.
    ({"k_tiles": 1, "epilogue": 3, "schedule": "persistent"}, (19, 1, 3)),
    ({"k_tiles": 1, "epilogue": 3, "schedule": "pingpong"}, (12, 1, 0)),
]


def total(outcome: Outcome) -> tuple:
    return outcome.time, outcome.math_wait, outcome.dma_wait


@pytest.mark.parametrize(("changes", "expected"), BY_HAND)
def test_values_worked_by_hand(changes: dict, expected: tuple) -> None:
    time, math_wait, dma_wait = total(simulate(replace(BASE, **changes)))
    assert (LAUNCH + time, math_wait, dma_wait) == expected


def test_two_warps_share_the_server_in_strict_order() -> None:
    """A 0-1, B 1-3, A 3-4 (its warp queued from 1), B 4-6."""
    case = replace(BASE, k_tiles=2, tiles=1, load_a=1, load_b=2, dma_warps=2)
    assert simulate(case) == (7, 5, 0, [3, 6])


def test_two_warps_wait_for_the_slot_each_by_itself() -> None:
    """The slot is released at 4; warp A has waited for it since 1, warp B since 3."""
    case = replace(BASE, k_tiles=2, tiles=1, stages=1, load_a=1, load_b=2, dma_warps=2)
    assert simulate(case) == (8, 6, 4, [3, 7])


def test_start_ups_of_two_warps_overlap() -> None:
    """Start-ups 0-1, A 1-2, B 2-3, compute 3-4, and the same again; A waits 2-4, B 3-4."""
    case = replace(BASE, k_tiles=2, tiles=1, stages=1, load_a=1, load_b=1, load_startup=1)
    assert simulate(replace(case, dma_warps=2)) == (8, 6, 3, [3, 7])


def test_mma_in_flight_holds_a_slot_but_not_over_the_end_of_a_tile() -> None:
    """Loads take 2, data arrive at 5 and 7: slot 0 is free at 6, or with an MMA in flight at 7.

    Slot 1 is a tile's last: free at the end of its compute, at 8, not when step 2 has arrived.
    """
    case = replace(
        BASE, k_tiles=2, tiles=2, load_a=1, load_b=1, load_latency=3, schedule="persistent"
    )
    assert simulate(case) == (14, 10, 2, [5, 7, 11, 13])
    assert simulate(replace(case, mma_in_flight=1)) == (15, 11, 3, [5, 7, 12, 14])


def test_fractions_stay_exact() -> None:
    """Load-bound: 16 loads of 2/3, then latency and compute; all but the first wait 2/3 - 1/5."""
    case = replace(
        BASE,
        load_a=Fraction(1, 3),
        load_b=Fraction(1, 6),
        load_startup=Fraction(1, 12),
        load_latency=Fraction(1, 7),
        compute=Fraction(1, 5),
        schedule="persistent",
    )
    outcome = simulate(case)
    assert total(outcome) == (Fraction(1156, 105), Fraction(164, 21), 0)
    assert outcome.math_starts[:2] == [Fraction(17, 21), Fraction(31, 21)]


@settings(deadline=None)
@given(small_cases())
def test_serial_is_so_many_times_one_isolated_tile(case: Case) -> None:
    *one, starts = simulate(replace(case, schedule="persistent", tiles=1))
    many = simulate(replace(case, schedule="serial"))
    assert many == (*(case.tiles * value for value in one), starts)


@settings(deadline=None)
@given(small_cases())
def test_every_step_computes_once_in_order_and_by_itself(case: Case) -> None:
    time, _, _, starts = simulate(case)
    assert len(starts) == case.k_tiles * (1 if case.schedule == "serial" else case.tiles)
    startups = 2 if case.dma_warps == 1 else 1
    first = startups * case.load_startup + case.load_a + case.load_b + case.load_latency
    assert starts[0] == first
    assert all(later - start >= case.compute for start, later in pairwise(starts))
    assert time >= case.k_tiles * case.tiles * case.compute


@settings(deadline=None)
@given(small_cases())
def test_one_consumer_computes_stores_or_waits_for_data(case: Case) -> None:
    if case.schedule == "pingpong":
        case = replace(case, epilogue=0)
    busy = case.tiles * (case.k_tiles * case.compute + case.epilogue)
    outcome = simulate(case)
    assert outcome.time == busy + outcome.math_wait


@settings(deadline=None)
@given(small_cases(), st.sampled_from(DURATIONS), st.integers(1, 5))
def test_time_never_falls_when_a_duration_grows(case: Case, name: str, more: int) -> None:
    slower = replace(case, **{name: getattr(case, name) + more})
    assert simulate(slower).time >= simulate(case).time


@settings(deadline=None)
@given(small_cases())
def test_time_never_grows_with_more_overlap(case: Case) -> None:
    def time(**changes) -> Duration:
        return simulate(replace(case, **changes)).time

    assert time(stages=case.stages + 1) <= time()
    assert time(dma_warps=2) <= time(dma_warps=1)
    assert time(mma_in_flight=0) <= time(mma_in_flight=1)
    assert time(schedule="pingpong") <= time(schedule="persistent") <= time(schedule="serial")


@settings(deadline=None)
@given(small_cases())
def test_in_flight_has_no_effect_on_one_stage_or_one_step(case: Case) -> None:
    for small in (replace(case, stages=1), replace(case, k_tiles=1)):
        held, free = (simulate(replace(small, mma_in_flight=count)) for count in (1, 0))
        assert held == free


@settings(deadline=None)
@given(small_cases())
def test_cooperative_takes_the_times_of_persistent(case: Case) -> None:
    cooperative = simulate(replace(case, schedule="cooperative"))
    assert cooperative == simulate(replace(case, schedule="persistent"))


@pytest.mark.parametrize("kind", KINDS)
def test_doubled_durations_double_everything(kind: Kind) -> None:
    for case in random_cases(1, 200, kind, max_steps=400):
        doubled = replace(case, **{name: 2 * getattr(case, name) for name in DURATIONS})
        expected = [2 * value for value in total(simulate(case))]
        assert list(total(simulate(doubled))) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_random_cases_keep_their_bounds_and_cover_every_choice(kind: Kind) -> None:
    cases = random_cases(7, 500, kind, max_steps=1000)
    assert cases == random_cases(7, 500, kind, max_steps=1000)
    assert cases != random_cases(8, 500, kind, max_steps=1000)
    for case in cases:
        sizes = (case.k_tiles, case.tiles, case.stages)
        assert all(low <= n <= high for n, (low, high) in zip(sizes, SIZES[kind], strict=True))
        assert case.k_tiles * case.tiles <= 1000
    assert len({(case.schedule, case.dma_warps, case.mma_in_flight) for case in cases}) == 16


def test_random_cases_refuse_a_cap_below_the_smallest_case() -> None:
    with pytest.raises(ValueError, match="at most 3 steps"):
        random_cases(1, 1, "realistic", max_steps=3)


@settings(deadline=None)
@given(small_cases(st.floats(0, 100)))
def test_floats_agree_with_exact_fractions(case: Case) -> None:
    exact = replace(case, **{name: Fraction(getattr(case, name)) for name in DURATIONS})
    for value, expected in zip(total(simulate(case)), total(simulate(exact)), strict=True):
        assert value == pytest.approx(float(expected), rel=1e-12, abs=1e-9)
