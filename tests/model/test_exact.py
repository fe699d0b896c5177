"""Reference = scan = closed form = jumps, waits included, and bound <= exact, on random cases."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Case, simulate
from strategies import Kind, random_cases, small_cases

from wsjax.model import events, periodic
from wsjax.model.closed import closed, lower_bound
from wsjax.model.events import Pipeline
from wsjax.schema.columns import SCHEDULES

QUEUE = 2048
COMPILED = "/jax/core/compile/backend_compile_duration"
KINDS: tuple[Kind, ...] = ("realistic", "ties", "wild")
SEEDS: dict[Kind, int] = {"realistic": 1, "ties": 2, "wild": 3}
CASES: dict[Kind, int] = {"realistic": 2000, "ties": 2000, "wild": 1500}


def agree(found, expected) -> None:
    """To 1e-9, relative and absolute."""
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def pipelines(cases: list[Case], rows: int) -> Pipeline:
    """Cases as columns, the last one repeated to `rows` rows."""
    cases = cases + cases[-1:] * (rows - len(cases))
    columns = []
    for name in Case.__dataclass_fields__:
        values = [getattr(case, name) for case in cases]
        values = [SCHEDULES.index(v) for v in values] if name == "schedule" else values
        whole = name in {"k_tiles", "tiles", "stages", "schedule", "dma_warps", "mma_in_flight"}
        columns.append(np.asarray(values, int if whole else float))
    return Pipeline(*columns)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The programs that this module's tests compile."""
    found = []
    listener = lambda event, *_, **__: found.append(event) if event == COMPILED else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    yield found
    jax.monitoring.unregister_event_duration_listener(listener)


@functools.cache
def drawn(kind: Kind) -> tuple[list[Case], np.ndarray]:
    """The kind's cases and the reference's (time, math_wait, dma_wait) of each."""
    cases = random_cases(SEEDS[kind], CASES[kind], kind, max_steps=3000)
    cases += random_cases(SEEDS[kind] + 10, 20, kind)
    return cases, np.array([simulate(case)[:3] for case in cases], float)


@pytest.mark.parametrize("kind", CASES)
def test_scan_equals_reference(kind):
    cases, expected = drawn(kind)
    for at in range(0, len(cases), QUEUE):
        part = cases[at : at + QUEUE]
        found = np.stack(events.simulate_queue(pipelines(part, QUEUE)), 1)[: len(part)]
        agree(found, expected[at : at + QUEUE])


def test_there_are_at_least_5000_cases():
    assert sum(len(drawn(kind)[0]) for kind in CASES) >= 5000


closed_program = jax.jit(jax.vmap(closed))


def closed_rows(columns: Pipeline):
    return jax.tree.map(np.asarray, closed_program(columns))


bound_rows = jax.jit(jax.vmap(lower_bound))


@pytest.mark.parametrize(
    ("kind", "proved_share"), [("realistic", 0.9), ("ties", 0.85), ("wild", 0.75)]
)
def test_closed_form_equals_reference_where_it_is_proved(kind, proved_share):
    cases, expected = drawn(kind)
    columns = pipelines(cases, QUEUE)
    found, proved, waits_proved = jax.tree.map(
        lambda x: np.asarray(x)[: len(cases)], closed_rows(columns)
    )
    agree(found.end_us[proved], expected[proved, 0])
    agree(found.math_wait_us[proved], expected[proved, 1])
    agree(found.dma_wait_us[waits_proved], expected[waits_proved, 2])
    assert proved.mean() >= proved_share
    assert proved[columns.schedule[: len(cases)] == events.SERIAL].all()
    assert not np.any(waits_proved & ~proved)


@pytest.mark.parametrize("kind", CASES)
def test_lower_bound_is_never_above_the_reference_and_often_equal(kind):
    cases, expected = drawn(kind)
    bound = np.asarray(bound_rows(pipelines(cases, QUEUE)))[: len(cases)]
    assert np.all(bound <= expected[:, 0] * (1 + 1e-12) + 1e-12)
    assert np.mean(bound >= expected[:, 0] * (1 - 1e-9)) > 0.75


@pytest.mark.parametrize("kind", CASES)
def test_jumps_equal_reference(kind):
    cases, expected = drawn(kind)
    columns = pipelines(cases, QUEUE)
    outcome, finished = periodic.solve(columns, len(cases), events.MAX_STAGES)
    found = np.stack(outcome, 1)[: len(cases)]
    finished = np.asarray(finished)[: len(cases)]
    agree(found[finished], expected[finished])
    assert finished.mean() > 0.99


@pytest.mark.parametrize("depth", [2, 4, 8])
def test_jumps_in_shallow_queues_equal_the_deep_one(depth):
    cases = [c for kind in CASES for c in drawn(kind)[0] if c.stages <= depth][:QUEUE]
    columns = pipelines(cases, QUEUE)
    shallow, _ = periodic.solve(columns, len(cases), depth)
    deep, _ = periodic.solve(columns, len(cases), events.MAX_STAGES)
    for a, b in zip(shallow, deep, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_specialised_programs_equal_the_general_one():
    cases = [c for c in drawn("wild")[0] if c.schedule == "serial"]
    columns = pipelines(cases, QUEUE)
    alone = jax.vmap(
        lambda p: closed(p._replace(schedule=events.SERIAL)), in_axes=(Pipeline(*[0] * 12),)
    )
    general, specialised = closed_rows(columns), jax.tree.map(np.asarray, jax.jit(alone)(columns))
    waits_proved = np.asarray(general[2])
    assert np.array_equal(waits_proved, specialised[2])
    for a, b in zip(general[0], specialised[0], strict=True):
        np.testing.assert_allclose(a[waits_proved], b[waits_proved], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(general[0].end_us, specialised[0].end_us, rtol=1e-12)


scanned_rows = jax.jit(jax.vmap(lambda p: events.simulate(p, 64, 12)))


@settings(max_examples=60, deadline=None)
@given(st.lists(small_cases(), min_size=16, max_size=16))
def test_small_cases_agree_in_every_way(cases):
    columns = pipelines(cases, 16)
    expected = np.array([simulate(case)[:3] for case in cases], float)
    np.testing.assert_allclose(np.stack(scanned_rows(columns), 1), expected)
    found, proved, waits_proved = closed_rows(columns)
    agree(found.end_us[proved], expected[proved, 0])
    agree(found.dma_wait_us[waits_proved], expected[waits_proved, 2])


def test_all_of_this_takes_few_programs(compiled):
    """Last: it counts what the tests above have compiled."""
    assert len(compiled) <= 25
