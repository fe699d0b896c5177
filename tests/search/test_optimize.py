"""`optimize` against brute force: every kernel evaluated, every constraint judged, one by one."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conditions import every_condition
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wsjax
from wsjax import engine
from wsjax.engine import batch
from wsjax.errors import InfeasibleError, WsjaxError
from wsjax.hardware import family_defaults
from wsjax.hardware.machine import load_hardware, parse_hardware
from wsjax.schema import KERNEL, METHODS
from wsjax.schema.columns import COLUMNS, DTYPE_BYTES, SCHEDULES, Configuration
from wsjax.schema.limits import checks
from wsjax.search.criteria import LIMITS, Task, parse_objective
from wsjax.search.optimization import optimize
from wsjax.search.scanning import closed_forms
from wsjax.spec.spaces import load_space

close = partial(pytest.approx, rel=1e-12)
"""Two programs of one formula may differ in the last bits."""

TOY = load_hardware("toy").text
TIMES = {"load_latency_us": 0.7000001317, "epilogue_startup_us": 1.30000071}
"""Of which a quarter of the kernels have no proved formula, and no score is near half a ps."""
for name, value in TIMES.items():
    TOY = TOY.replace(f"{name} = 0.0", f"{name} = {value}")
MACHINE = parse_hardware(TOY, "toy")
PROBLEM = {"m": 512, "n": 384, "k": 256}
DOMAINS = {
    "block_m": [16, 64, 100, 128, 256],
    "block_n": [8, 64, 128, 256],
    "block_k": [32, 64, 128],
    "stages": [1, 2, 3, 4],
    "dma_warps": [1, 2],
    "split_k": [1, 2],
    "mma_in_flight": [0, 1],
    "schedule": list(SCHEDULES),
}
CONDITIONS = {
    "stages >= 2": lambda c: c.stages >= 2,
    "stages <= 3": lambda c: c.stages <= 3,
    "block_m * block_n <= 8192": lambda c: c.block_m * c.block_n <= 8192,
    "block_m * block_n >= 16384": lambda c: c.block_m * c.block_n >= 16384,
    "schedule in ('serial', 'pingpong')": lambda c: c.schedule in (0, 2),
    "schedule != 'pingpong'": lambda c: c.schedule != 2,
    "block_m * 1.5 < block_n": lambda c: c.block_m * 1.5 < c.block_n,
    "block_n // block_m == 2": lambda c: c.block_n // c.block_m == 2,
    "power_of_two(block_m)": lambda c: c.block_m & (c.block_m - 1) == 0,
    "block_m % mma_m == 0": lambda c: c.block_m % MACHINE.facts.mma_m == 0,
    "dma_warps == 2": lambda c: c.dma_warps == 2,
    "m < n": lambda c: c.m < c.n,
    "stages < 1": lambda c: c.stages < 1,
}
OBJECTIVES = {
    "time": lambda f: (f["time_us"],),
    "math_wait": lambda f: (f["math_wait_us"],),
    "dma_wait": lambda f: (f["dma_wait_us"],),
    "smem_bytes,time": lambda f: (f["smem_bytes"], f["time_us"]),
    "math_wait,dma_wait,time": lambda f: (f["math_wait_us"], f["dma_wait_us"], f["time_us"]),
    "0.5*time+2*math_wait": lambda f: (0.5 * f["time_us"] + 2 * f["math_wait_us"],),
    "time+0.001*smem_bytes": lambda f: (f["time_us"] + 0.001 * f["smem_bytes"],),
}
FRONTS = {
    "pareto:time,smem_bytes": lambda f: (f["time_us"], f["smem_bytes"]),
    "pareto:math_wait,dma_wait,smem_bytes": lambda f: (
        f["math_wait_us"],
        f["dma_wait_us"],
        f["smem_bytes"],
    ),
}


@st.composite
def space_texts(draw):
    """A space file of at most 256 kernels."""
    lines, count = ["[columns]"], 1
    names = ["block_m", "block_n", "block_k", *draw(st.permutations(list(DOMAINS)[3:]))]
    for name in names:
        most = max(1, min(3, 256 // count))
        values = draw(
            st.lists(st.sampled_from(DOMAINS[name]), min_size=1, max_size=most, unique=True)
        )
        count *= len(values)
        lines.append(f"{name} = {values!r}")
    return "\n".join(lines) + "\n"


def brute(text, space_file, problem=PROBLEM, limits=()):
    """Every kernel of a space: its configuration, figures, and the names of what it breaks.

    limits: (name, function of configuration and figures) that are to hold.
    """
    space_file.write_text(text)
    space = load_space(space_file)
    facts = MACHINE.facts
    c = space.configurations(np.arange(len(space)), problem, facts)
    found = batch.evaluate(c, MACHINE, legal_override=np.asarray(True))
    rows = []
    for at in range(len(space)):
        one = Configuration(*(int(np.broadcast_to(x, len(space))[at]) for x in c))
        figures = {name: float(getattr(found, name)[at]) for name in FIGURES}
        sizes = [DTYPE_BYTES[one.dtype_in], DTYPE_BYTES[one.dtype_out]]
        held = checks(
            one,
            facts,
            in_bytes=sizes[0],
            out_bytes=sizes[1],
            math_groups=1 + (one.schedule == 2),
            groups_per_tile=1 + (one.schedule == 3),
            rate=1.0,
        )
        broken = {f"{LIMITS[reason]} of {MACHINE.name}" for reason, holds in held if not holds}
        broken |= {name for name, holds in limits if not holds(one, figures)}
        rows.append((one, figures, broken))
    return rows


FIGURES = ("time_us", "math_wait_us", "dma_wait_us", "smem_bytes")


def rounded(scores):
    return tuple(round(score * 1e6) for score in scores)


def in_order(rows, objective):
    """Positions of the kernels that break nothing, best first."""
    good = [at for at, (_, _, broken) in enumerate(rows) if not broken]
    return sorted(
        good, key=lambda at: (rounded(objective(rows[at][1])), rows[at][1]["smem_bytes"], at)
    )


def answered(row):
    """An answer's kernel, as a configuration's codes."""
    return tuple(
        COLUMNS[name].choices.index(row[name]) if COLUMNS[name].choices else int(row[name])
        for name in KERNEL
    )


def kernel_of(c):
    return tuple(getattr(c, name) for name in KERNEL)


def meets(text, c, _):
    return CONDITIONS[text](c)


def constraints(draw):
    """Conditions, and the same as functions for brute force, under the names of messages."""
    texts = draw(st.lists(st.sampled_from(list(CONDITIONS)), max_size=3, unique=True))
    memory = draw(st.sampled_from([None, 2_000, 40_000, 90_000]))
    limits: list[tuple[str, Any]] = [(text, partial(meets, text)) for text in texts]
    if memory:
        name = f"shared memory of at most {memory:,} bytes a CTA"
        limits.append((name, lambda _, figures: figures["smem_bytes"] <= memory))
    return texts, memory, limits


@settings(deadline=None, max_examples=40)
@given(st.data(), space_texts(), st.sampled_from(list(OBJECTIVES)))
def test_the_optimum_is_that_of_brute_force(space_file, data, text, objective):
    texts, memory, limits = constraints(data.draw)
    rows = brute(text, space_file, limits=limits)
    order = in_order(rows, OBJECTIVES[objective])
    options = {
        "space": space_file,
        "objective": objective,
        "where": texts,
        "max_smem_bytes": memory,
    }
    if not order:
        with pytest.raises(WsjaxError) as error:
            optimize(PROBLEM, MACHINE, **options)
        check_conflict(error.value, rows)
        return
    (answer,) = optimize(PROBLEM, MACHINE, **options).to_dict("records")
    best, figures, _ = rows[order[0]]
    assert answered(answer) == kernel_of(best)
    assert answer["time_us"] == close(figures["time_us"])
    assert answer["math_wait_us"] == close(figures["math_wait_us"])
    assert answer["smem_bytes"] == figures["smem_bytes"]
    assert answer["proved"]
    assert answer["bound"] == rounded(OBJECTIVES[objective](figures))[0] / 1e6
    if len(order) == 1:
        assert answer["runner_up"] is None
    else:
        assert answered(answer["runner_up"]) == kernel_of(rows[order[1]][0])
        assert answer["runner_up_time_us"] == close(rows[order[1]][1]["time_us"])
    check_binding(answer["binding"], rows, order[0], objective)


def power_of_two(number):
    return number > 0 and number & (number - 1) == 0


@settings(deadline=None, max_examples=60)
@given(every_condition)
@example("m > 5000 or stages <= 3")
@example("not (sms > 200 and stages > 3)")
@example("3 >= stages or 5000 < m")
@example("2 > 1 or stages > 2")
def test_conditions_mean_what_python_means(space_file, text):
    """Over all columns and facts, with constants on either side: the best kernel of those for which
    Python's own evaluation holds."""

    def python(c, _):
        words = {
            n: column.choices[getattr(c, n)] for n, column in COLUMNS.items() if column.choices
        }
        names = c._asdict() | MACHINE.facts._asdict() | words
        return eval(text, names | {"power_of_two": power_of_two})

    space = "[columns]\nblock_m = [64, 128]\nblock_n = [64, 128]\nblock_k = 64\n"
    space += "stages = [1, 2, 3]\nschedule = ['serial', 'pingpong']\ndma_warps = [1, 2]\n"
    rows = brute(space, space_file, limits=[(text, python)])
    order = in_order(rows, OBJECTIVES["time"])
    if not order:
        with pytest.raises(WsjaxError):
            optimize(PROBLEM, MACHINE, space=space_file, where=text)
        return
    (answer,) = optimize(PROBLEM, MACHINE, space=space_file, where=text).to_dict("records")
    assert answered(answer) == kernel_of(rows[order[0]][0])


def check_binding(binding, rows, best, objective):
    """What binds is what a better kernel breaks; without it, that kernel could be had."""

    def scores(at):
        return rounded(OBJECTIVES[objective](rows[at][1]))

    timed = [at for at, (c, _, _) in enumerate(rows) if c.split_k == 1 or c.schedule in (1, 3)]
    better = [rows[at][2] for at in timed if scores(at) < scores(best)]
    assert bool(binding) == bool(better)
    if better:
        broken = set(binding.split(" and "))
        assert broken in better
        machine = {f"{words} of {MACHINE.name}" for words in LIMITS.values()}
        least = min((len(b & machine), len(b)) for b in better)
        assert (len(broken & machine), len(broken)) == least


def check_conflict(error, rows):
    """The conflict can't be met, no part of it can't, and no smaller set of conditions is one."""
    assert isinstance(error, InfeasibleError)
    machine = {f"{words} of {MACHINE.name}" for words in LIMITS.values()}
    core = set(error.conflict)
    assert all(core & broken for _, _, broken in rows)
    if "on any machine" in str(error):
        assert not core & machine
        return
    for one in core:
        assert any(not (core - {one}) & broken for _, _, broken in rows)
    names = set().union(*(broken for _, _, broken in rows))
    own = len(core - machine)
    for fewer in itertools.combinations(names - machine, own - 1) if own else ():
        assert not all(({*fewer} | machine) & broken for _, _, broken in rows)


@settings(deadline=None, max_examples=25)
@given(st.data(), space_texts(), st.sampled_from(list(FRONTS)))
def test_the_front_is_that_of_brute_force(space_file, data, text, objective):
    texts, memory, limits = constraints(data.draw)
    rows = brute(text, space_file, limits=limits)
    good = [at for at, (_, _, broken) in enumerate(rows) if not broken]
    scores = {at: rounded(FRONTS[objective](rows[at][1])) for at in good}
    front = {
        score
        for score in scores.values()
        if not any(
            other != score and all(a <= b for a, b in zip(other, score, strict=True))
            for other in scores.values()
        )
    }
    options = {
        "space": space_file,
        "objective": objective,
        "where": texts,
        "max_smem_bytes": memory,
    }
    if not front:
        with pytest.raises(WsjaxError):
            optimize(PROBLEM, MACHINE, **options)
        return
    answers = optimize(PROBLEM, MACHINE, **options)
    assert all(answers["proved"])
    first = {
        score: min((rows[at][1]["smem_bytes"], at) for at in good if scores[at] == score)[1]
        for score in front
    }
    expected = [kernel_of(rows[first[score]][0]) for score in sorted(front)]
    assert [answered(row) for row in answers.to_dict("records")] == expected


def test_a_real_machine(small_space):
    """A machine with every term of the model: against all kernels."""
    problem = {"m": 4096, "n": 1000, "k": 4096, "dtype_in": "fp8_e4m3"}
    where = "schedule == 'pingpong' and block_k >= 64"
    answers = optimize(problem | {"m": np.int64(4096)}, "h200", space=small_space, where=where)
    space, machine = load_space(small_space), load_hardware("h200")
    codes = (
        problem
        | family_defaults(machine)
        | {"dtype_in": COLUMNS["dtype_in"].choices.index("fp8_e4m3")}
    )
    c = space.configurations(np.arange(len(space)), codes, machine.facts)
    found = batch.evaluate(c, machine)
    times = np.where((c.schedule == 2) & (c.block_k >= 64), found.time_us, np.nan)
    assert answers["time_us"][0] == pytest.approx(np.nanmin(times), abs=1e-6)
    assert (
        answers["time_us"][0] == wsjax.predict(answers[[*problem, *KERNEL]], "h200")["time_us"][0]
    )


@pytest.mark.parametrize(
    ("hardware", "n", "block_n"),
    [("h200", 16, 16), ("h200-datasheet", 16, 16), ("h200-datasheet", 8, 8), ("mi300x", 16, 16)],
)
def test_the_default_space_has_tiles_as_narrow_as_the_machines_mma(hardware, n, block_n):
    problem = {"m": 4096, "n": n, "k": 4096}
    answer = optimize(problem, hardware).iloc[0]
    facts = load_hardware(hardware).facts
    assert answer["block_n"] == block_n
    assert answer["block_m"] % facts.mma_m == answer["block_n"] % facts.mma_n == 0
    assert "matrix instruction" not in answer["binding"]


def test_an_answer_says_whether_it_is_extrapolated(small_space):
    """As `predict` says of the same row; within the span of the fitted table it is not."""
    problem = {"m": 4096, "n": 4096, "k": 4096}
    where = "block_k == 64 and dma_warps == 1 and stages > 1"
    answers = [
        optimize(problem | {"k": k}, "h200-gluon", space=small_space, where=where)
        for k in (65_536, 4096)
    ]
    for answer in answers:
        predicted = wsjax.predict(answer[[*problem, *KERNEL]], "h200-gluon")
        assert answer["extrapolated"][0] == predicted["extrapolated"][0]
    assert answers[0]["extrapolated"][0]


@pytest.mark.parametrize("name", ["h200", "a100-sxm", "a6000-paper"])
def test_closed_forms_without_compilation_are_the_compiled_ones(name):
    """On kernels drawn from the default space; NaN only where no formula is proved. A learned
    correction is computed in float32."""
    machine = load_hardware(name)
    relative = 1e-5 if machine.residual else 1e-12
    problem = {"m": 1000, "n": 4096, "k": 2048}
    task = Task(load_space(), problem, machine, parse_objective("time"), ())
    c = task.configurations(np.random.default_rng(0).choice(len(task.space), 300, replace=False))
    formulas = closed_forms(task, c)
    exact = engine.evaluate(c, machine, legal_override=np.asarray(True))
    assert np.isfinite(formulas["time_us"]).mean() > 0.9
    least_us = formulas.pop("least_us")
    assert (least_us <= exact.time_us * (1 + 1e-12))[exact.reason == 0].all()
    for figure, values in formulas.items():
        known = np.isfinite(values)
        compiled = getattr(exact, figure)
        np.testing.assert_allclose(values[known], compiled[known], rtol=relative, atol=1e-9)
        closed = exact.method == METHODS.index("closed")
        assert known[closed].all()


def test_a_problem_that_tma_cannot_take_has_no_kernel_and_the_words_say_what_would_do():
    problem = {"m": 512, "n": 512, "k": 2047}
    message = r"the alignment of rows of h200 \(row pitch: k = 2047 .* nearest 2048; TMA takes"
    with pytest.raises(InfeasibleError, match=message):
        optimize(problem, hardware="h200")
    assert optimize(problem, hardware="a100-sxm")["time_us"].item() > 0
    both = pd.DataFrame([problem, problem | {"k": 2048}])
    answers = optimize(both, hardware="h200", timeout_s=600)
    assert answers["proved"].fillna(False).tolist() == [False, True]
    assert "k = 2047" in answers["conflict"][0]
    assert answers["conflict"][1] == ""
