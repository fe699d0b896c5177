"""The paper's encoding against the event simulator: every event's constraints, and the optimum."""

import dataclasses
import time

import numpy as np
import pytest
import z3
from crosscheck import agrees, case, compare, paper_problems, paper_task
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import simulate

from wsjax.cli.main import main
from wsjax.deadlines import Deadline, deadline
from wsjax.errors import InfeasibleError, InputError
from wsjax.hardware.machine import load_hardware, parse_hardware
from wsjax.schema.limits import smem_bytes
from wsjax.search import z3_events as encoding
from wsjax.search.criteria import (
    Task,
    array_terms,
    machine_limits,
    parse_objective,
    user_constraints,
    violations,
)
from wsjax.search.optimization import optimize
from wsjax.search.z3_events import encode, goals, minimise, rounded, whole
from wsjax.spec.spaces import Space, load_space

TEXT = """[columns]
block_m = [128, 64]
block_n = 64
block_k = [64, 128]
stages = [3, 1, 2]
dma_warps = [1, 2]
mma_in_flight = [0, 1]
schedule = ["serial", "pingpong", "persistent"]
[filter]
where = "block_m * 1.5 >= 96 and (block_k == 64 or stages < 3)"
"""
NAMES = ("time_us", "math_wait_us", "dma_wait_us", "smem_bytes")
TIMES = st.sampled_from([1e-9, 0.25, 0.7, 1.3, 3.1])
"""In µs; the first is 0 in whole picoseconds, but not neutral: one program serves all machines."""


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Space:
    path = tmp_path_factory.mktemp("encoding") / "space.toml"
    path.write_text(TEXT)
    return load_space(path)


def machine(startup, latency, compute, epilogue, launch):
    """A machine of one SM whose events take these times, and some for the bytes and flop."""
    text = dataclasses.replace(load_hardware("toy"), name="drawn").text
    values = {
        "launch_us": launch,
        "load_startup_us": startup,
        "load_latency_us": latency,
        "compute_startup_us": compute,
        "epilogue_startup_us": epilogue,
    }
    lines = [line for line in text.splitlines() if line.split(" ")[0] not in values]
    lines = [line.replace("sms = 4", "sms = 1") for line in lines]
    return parse_hardware("\n".join([*lines, *(f"{k} = {v}" for k, v in values.items())]), "drawn")


def kernels(task: Task):
    """The simulator's figures of each kernel that meets all constraints, by number."""
    numbers = np.arange(len(task.space))
    c = task.configurations(numbers)
    terms = array_terms(c, task.hardware)
    meets = violations(terms, task.constraints, len(numbers)) == 0
    if task.space.predicate is not None:
        meets &= task.space.predicate.mask(terms.columns, len(numbers))
    memory = smem_bytes(c, terms.facts, terms.in_bytes, terms.out_bytes)
    found = rounded(task, numbers)
    figures = {}
    for at in np.flatnonzero(meets).tolist():
        repeats, rest = int(found.repeats[at]), int(found.rest[at])
        run = simulate(case(found, at))
        times = [int(x) * repeats for x in (run.time, run.math_wait, run.dma_wait)]
        figures[at] = dict(zip(NAMES, [times[0] + rest, *times[1:], int(memory[at])], strict=True))
    return figures


def task_of(space, hardware, objective="time", where=()):
    constraints = (*user_constraints(where, None), *machine_limits(hardware))
    problem = {"m": 150, "n": 64, "k": 130}
    return Task(space, problem, hardware, parse_objective(objective), constraints)


@settings(deadline=None, max_examples=6)
@given(st.data())
def test_every_kernel_has_the_simulators_figures(space, data):
    task = task_of(space, machine(*(data.draw(TIMES) for _ in range(5))))
    expected = kernels(task)
    encoded = encode(task, Deadline())
    for at in data.draw(st.lists(st.sampled_from([*expected]), min_size=4, max_size=4)):
        encoded.solver.push()
        encoded.solver.add(encoded.number == at)
        assert encoded.solver.check() == z3.sat
        model = encoded.solver.model()
        assert {name: whole(model, encoded.figures[name]) for name in NAMES} == expected[at]
        encoded.solver.pop()
    others = [at for at in range(len(space)) if at not in expected]
    encoded.solver.add(z3.Or(*(encoded.number == at for at in others)))
    assert encoded.solver.check() == z3.unsat


OBJECTIVES = {
    "time": lambda f: (f["time_us"],),
    "math_wait,dma_wait": lambda f: (f["math_wait_us"], f["dma_wait_us"]),
    "smem_bytes,time": lambda f: (f["smem_bytes"], f["time_us"]),
    "0.5*time+2*math_wait": lambda f: (f["time_us"] + 4 * f["math_wait_us"],),
    "time+0.001*smem_bytes": lambda f: (f["time_us"] + 1000 * f["smem_bytes"],),
}


@settings(deadline=None, max_examples=5)
@given(
    st.tuples(TIMES, TIMES, TIMES, TIMES, TIMES),
    st.sampled_from([*OBJECTIVES]),
    st.sampled_from(["stages >= 1", "schedule != 'serial'", "stages <= 2 and dma_warps == 2"]),
)
def test_the_optimum_is_the_simulators(space, times, objective, where):
    task = task_of(space, machine(*times), objective, where)
    expected = kernels(task)
    order = sorted(
        expected,
        key=lambda at: (OBJECTIVES[objective](expected[at]), expected[at]["smem_bytes"], at),
    )
    encoded = encode(task, Deadline())
    first = minimise(encoded, goals(task, encoded), Deadline())
    assert first is not None
    assert first.proved
    assert (first.number, first.figures) == (order[0], expected[order[0]])
    encoded.solver.add(encoded.number != first.number)
    second = minimise(encoded, goals(task, encoded), Deadline())
    assert second is not None
    assert second.number == order[1]


@pytest.mark.parametrize("number", [3, 100, 253])
def test_ways_to_the_papers_optimum(number):
    """`make crosscheck` does it for all 256, and by the scan and `optimize` too."""
    ways = ("encoding", "simulator", "exhaustive")
    assert agrees(compare(paper_task(paper_problems()[number]), ways))


def test_optimize_with_the_papers_encoding(space):
    problem = {"m": 150, "n": 64, "k": 130}
    options = {"space": space, "hardware": machine(0.0, 0.7, 0.0, 0.0, 2.0)}
    fast = optimize(problem, **options).iloc[0]
    slow = optimize(problem, encoding="events", **options).iloc[0]
    same = ["block_m", "block_k", "stages", "schedule", "dma_warps", "proved", "runner_up"]
    assert slow[same].tolist() == fast[same].tolist()
    assert slow["time_us"] == pytest.approx(fast["time_us"], abs=1e-5)
    with pytest.raises(InfeasibleError, match="on any machine"):
        optimize(problem, encoding="events", where="stages < 1", **options)


def test_a_deadline_gives_the_best_so_far():
    task = paper_task({"m": 1024, "n": 1024, "k": 512})
    encoded = encode(task, Deadline())
    with deadline(1e-6) as limit:
        found = minimise(encoded, goals(task, encoded), limit)
    assert found is None or not found.proved


def test_ctrl_c_in_z3_ends_the_search(monkeypatch):
    task = paper_task({"m": 128, "n": 128, "k": 128})
    encoded = encode(task, Deadline())
    found = minimise(encoded, goals(task, encoded), Deadline(interrupted=True))
    assert found is not None
    assert not found.proved
    monkeypatch.setattr(z3.Solver, "check", lambda _: z3.unknown)
    for reason in ("interrupted from keyboard", "canceled", "timeout"):
        monkeypatch.setattr(z3.Solver, "reason_unknown", lambda _, reason=reason: reason)
        limit = Deadline()
        assert minimise(encoded, goals(task, encoded), limit) is None
        assert limit.interrupted == (reason != "timeout")


def test_what_is_too_large_is_said(monkeypatch):
    task = paper_task({"m": 128, "n": 128, "k": 1024})
    monkeypatch.setattr(encoding, "STEPS_MAX", 8)
    with pytest.raises(InputError, match="16 steps of a CTA; it can take 8"):
        encode(task, Deadline())
    monkeypatch.setattr(encoding, "KERNELS_MAX", 8)
    with pytest.raises(InputError, match="192 kernels; it can take 8"):
        encode(task, Deadline())


def test_a_timeout_of_the_encoding_has_a_kernel_and_a_bound(space, capsys, tmp_path):
    """The best so far and its bound, within a second of the limit, however far the encoding is."""
    problem = {"m": 150, "n": 64, "k": 2000}
    options = {"space": space, "hardware": machine(0.0, 0.7, 0.0, 0.0, 2.0)}
    fast = optimize(problem, **options).iloc[0]
    for seconds in (1e-6, 0.3):
        start_s = time.monotonic()
        slow = optimize(problem, encoding="events", timeout_s=seconds, **options).iloc[0]
        assert time.monotonic() - start_s < seconds + 1
        assert not slow["proved"]
        assert slow["bound"] == fast["time_us"] <= slow["time_us"] + 1e-5
    file = tmp_path / "space.toml"
    file.write_text(TEXT)
    command = f"optimize -m 150 -n 64 -k 2000 --space {file} --hardware toy --encoding events"
    assert main([*command.split(), "--timeout", "0.3"]) == 4
    shown = capsys.readouterr().out
    assert "nothing scores below" in shown
    assert "kernel" in shown
