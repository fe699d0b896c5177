"""Timelines: every event against the reference, ends and waits against predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Case, simulate
from strategies import random_cases, small_cases

from wsjax import trace
from wsjax.engine import batch
from wsjax.errors import InputError
from wsjax.hardware.machine import load_hardware
from wsjax.model.events import Events, Pipeline
from wsjax.schema.columns import SCHEDULES, Configuration
from wsjax.schema.limits import resolve
from wsjax.timelines import timeline as timelines
from wsjax.timelines.scene import parts
from wsjax.timelines.slices import COMPUTE, WAIT, filled_slots, slices, tracks
from wsjax.timelines.steps import WAITS, count, limiter_name, path, play, shares
from wsjax.timelines.timeline import Timeline, timeline

ENOUGH = 10**6


def pipeline(case: Case) -> Pipeline:
    return Pipeline(
        k_tiles=case.k_tiles,
        tiles=case.tiles,
        stages=case.stages,
        load_a_us=float(case.load_a),
        load_b_us=float(case.load_b),
        load_startup_us=float(case.load_startup),
        load_latency_us=float(case.load_latency),
        compute_us=float(case.compute),
        epilogue_us=float(case.epilogue),
        schedule=SCHEDULES.index(case.schedule),
        dma_warps=case.dma_warps,
        mma_in_flight=case.mma_in_flight,
    )


def dma_wait(p: Pipeline, s: Events) -> float:
    return float(s.wait_b.sum() + (s.wait_a.sum() if p.dma_warps == 2 else 0.0))


@pytest.mark.parametrize("kind", ["realistic", "ties", "wild"])
def test_steps_equal_the_reference(kind):
    for case in random_cases(11, 40, kind, max_steps=600):
        p, expected = pipeline(case), simulate(case)
        s = play(p, ENOUGH)
        starts = s.start[: len(expected.math_starts)]
        np.testing.assert_allclose(
            starts, np.array(expected.math_starts, float), rtol=1e-9, atol=1e-9
        )
        found = (np.nanmax(s.epilogue), s.math_wait.sum(), dma_wait(p, s))
        np.testing.assert_allclose(found, [float(x) for x in expected[:3]], rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("kind", ["realistic", "ties", "wild"])
def test_the_critical_path_is_as_long_as_the_play(kind):
    for case in random_cases(12, 60, kind, max_steps=600):
        p = pipeline(case)
        s = play(p, ENOUGH)
        critical = path(p, s)
        length = sum(shares(p, critical).values())
        np.testing.assert_allclose(length, np.nanmax(s.epilogue), rtol=1e-9, atol=1e-9)
        longer = p._replace(load_latency_us=p.load_latency_us + 0.25)
        grown = np.nanmax(play(longer, ENOUGH).epilogue)
        least = np.nanmax(s.epilogue) + 0.25 * critical.counts["load_latency_us"]
        assert grown >= least - 1e-9 * grown  # no path vanishes


def whole_numbers(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    choices = {
        "m": [16, 64, 500, 1024, 2048, 4096],
        "n": [512, 1500, 2048, 4096],
        "k": [32, 256, 1000, 4096],
        "block_m": [64, 128],
        "block_n": [64, 128, 256],
        "block_k": [32, 64],
        "stages": [1, 2, 3, 4],
        "schedule": range(4),
        "dma_warps": [1, 2],
        "mma_in_flight": [0, 1],
        "group_m": [1, 8],
        "math_warps": [8],
    }
    return {name: rng.choice(np.array(values), rows) for name, values in choices.items()}


@pytest.mark.parametrize(("name", "rows"), [("h200-gluon", 12), ("toy", 12)])
def test_ends_and_waits_are_the_predicted_ones(name, rows):
    machine = load_hardware(name).physics
    configurations = resolve(whole_numbers(rows, seed=13), machine.facts)
    predicted = batch.evaluate(configurations, machine)
    legal = np.flatnonzero(predicted.reason == 0)
    assert len(legal) > rows / 3
    for row in legal:
        numbers = (int(np.ravel(x)[row % np.size(x)]) for x in configurations)
        t = timeline(Configuration(*numbers), machine)
        check(t)
        expected = [getattr(predicted, x)[row] for x in ("time_us", "math_wait_us", "dma_wait_us")]
        found = [t.steps.epilogue[-1], t.steps.math_wait.sum(), dma_wait(t.pipeline, t.steps)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def check(t: Timeline) -> None:
    """No event before what it needs; slices of a track do not overlap; the ring is deep enough."""
    s, depth = t.steps, t.pipeline.stages
    tiny = 1e-9 * max(t.time_us, 1.0)
    for acquire, done in ((s.acquire_a, s.done_a), (s.acquire_b, s.done_b)):
        assert np.all(done >= acquire - tiny)
        assert np.all(acquire[depth:] >= s.released[:-depth] - tiny)
    assert np.all(s.end >= s.start - tiny)
    assert np.all(s.turn[1:] >= s.end[:-1] - tiny)
    _, filled, loading = filled_slots(t)
    assert filled.min() >= 0
    assert loading.min() >= 0
    assert (filled + loading).max() <= depth
    spent = shares(t.pipeline, t.path)
    total = sum(spent.values()) + t.figures["launch_us"] + t.first_us + t.last_us
    np.testing.assert_allclose(total, t.time_us, rtol=1e-9)


def waits_of(t: Timeline, most: int | None) -> tuple[float, float]:
    """The waits of MATH and of DMA in slices, which must not overlap."""
    found, names = slices(t, most), tracks(t)
    for track in range(len(names)):
        own = found.take(found.track == track)
        assert np.all(own.begin_us[1:] >= own.end_us[:-1] - 1e-9 * t.time_us)
    assert found.end_us.max() == pytest.approx(t.time_us, rel=1e-9)
    lasts = (found.end_us - found.begin_us) * (found.kind == WAIT)
    is_math = np.array([names[track].startswith("MATH") for track in found.track])
    return float(lasts[is_math].sum()), float(lasts[~is_math].sum())


BIG = {"block_m": 128, "block_n": 128, "block_k": 64, "stages": 4}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dma_warps", [1, 2])
def test_slices_keep_the_waits_however_condensed(schedule, dma_warps):
    shape = {"m": 2048, "n": 2048, "k": 2048, "schedule": schedule, "dma_warps": dma_warps}
    t = trace("h200-gluon", **BIG, **shape, math_warps=8)
    for most in (None, 40, 3):
        expected = (t.figures["math_wait_us"], t.figures["dma_wait_us"])
        assert waits_of(t, most) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("dma_warps", [1, 2])
@pytest.mark.parametrize("schedule", ["persistent", "pingpong"])
def test_a_kernel_too_long_to_play_still_ends_when_it_should(schedule, dma_warps):
    choices = {"schedule": schedule, "dma_warps": dma_warps, "math_warps": 8, "mma_in_flight": 0}
    t = trace("h200", m=256, n=65536, k=2**24, **BIG, **choices)
    assert not t.complete
    found = slices(t, 1000)
    assert len(found.step) < 20_000
    expected = (t.figures["math_wait_us"], t.figures["dma_wait_us"])
    assert waits_of(t, 1000) == pytest.approx(expected, rel=1e-6)
    played = len(t.steps.start)
    rest = found.take((found.kind == COMPUTE) & (found.step >= played))
    assert rest.steps.sum() == (count(t.pipeline) - played) * len(np.unique(rest.track))
    assert len(rest.step) > 500
    gaps = rest.begin_us[1:] - rest.end_us[:-1]
    assert np.all(gaps < 0.01 * (t.time_us - t.steps.end[-1]))
    assert sum(parts(t).values()) == pytest.approx(1, abs=0.03)


@settings(deadline=None, max_examples=150)
@given(
    case=small_cases(st.floats(0.0, 6.0)),
    first_us=st.floats(-1.0, 4.0),
    last_us=st.floats(-3.0, 3.0),
    launch_us=st.floats(0.0, 5.0),
)
def test_stretching_keeps_waits_and_order(case, first_us, last_us, launch_us):
    p = pipeline(case)
    played = play(p, ENOUGH)
    end_us = played.epilogue[-1]
    tile = p.k_tiles
    grown = max(1.0 + first_us / max(played.epilogue[tile - 1], 1e-9), 0.0)
    events = played._asdict().items()
    cold = Events(*(x[:tile] * (1.0 if name in WAITS else grown) for name, x in events))
    first_us = float(cold.epilogue[-1] - played.epilogue[tile - 1])
    exchange = timelines.Exchange(first_us, last_us, 0.0, cold, cold)
    if p.tiles == 1:
        first_us = last_us = 0.0
    room = end_us + first_us + last_us - max(played.math_wait.sum(), played.wait_b.sum())
    if room < 0.05 * end_us or case.schedule == "serial":
        return
    found = timelines.drawn(p, played, timelines.shift(p, played, exchange), launch_us)
    expected = launch_us + end_us + first_us + last_us
    assert found.epilogue[-1] == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert found.math_wait.sum() == pytest.approx(played.math_wait.sum(), rel=1e-9, abs=1e-6)
    assert np.all(np.diff(found.start) >= -1e-6)
    assert np.all(found.end >= found.start - 1e-6)


def test_a_case_by_hand():
    """Toy: launch 2, then four tiles one after the other: load 1, four computes of 1 each."""
    t = trace("toy", m=512, n=512, k=256, **(BIG | {"stages": 2}), schedule="serial")
    np.testing.assert_allclose(t.steps.start[:6], [3, 4, 5, 6, 8, 9])
    np.testing.assert_allclose(t.steps.acquire_b[:6], [2, 3, 4, 5, 7, 8])
    assert waits_of(t, None) == pytest.approx((4.0, 0.0))
    assert t.path.counts == {
        "load_a_us": 4,
        "load_b_us": 4,
        "load_startup_us": 8,
        "load_latency_us": 4,
        "compute_us": 16,
        "epilogue_us": 4,
    }


def test_what_limits_a_step_is_named():
    t = trace("h200-gluon", m=4096, n=4096, k=4096, **(BIG | {"stages": 2}), mma_in_flight=1)
    assert limiter_name(t.pipeline, "latency").startswith("latency-bound: 1 stage covers 0.")
    assert "one held by the MMA in flight" in limiter_name(t.pipeline, "latency")
    assert limiter_name(t.pipeline, "load").startswith("load-bound: a step loads for ")
    assert limiter_name(t.pipeline, "compute").startswith("compute-bound: a step computes for ")


def test_mistakes():
    with pytest.raises(InputError) as caught:
        trace("h200x", m=0, block=3, schedule="pingpung")
    said = str(caught.value)
    for words in (
        "did you mean 'h200'?",
        "n: missing",
        "m: 0 is out of range",
        "block: unknown name",
    ):
        assert words in said
    assert "did you mean 'pingpong'?" in said
    with pytest.raises(InputError, match="deepest legal: 6 stages"):
        trace("h200", m=512, n=512, k=512, **(BIG | {"stages": 9}))
