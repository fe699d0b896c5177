"""`optimize`: frames in and out, what it says of mistakes, and what it finds in too little time."""

import math
import signal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import wsjax
from wsjax import engine
from wsjax.errors import InfeasibleError, InputError, UnfinishedError
from wsjax.hardware.machine import load_hardware, parse_hardware
from wsjax.search.optimization import ANSWER_COLUMNS, optimize
from wsjax.spec import spaces

TOY = load_hardware("toy").text
MACHINE = parse_hardware(TOY.replace("load_latency_us = 0.0", "load_latency_us = 0.7"), "toy")
PROBLEM = {"m": 512, "n": 384, "k": 256}


def test_frames_keep_their_columns_and_kinds(small_space):
    frame = pd.DataFrame(
        {"m": [64, 512], "n": 256, "k": [128, 100], "who": ["a", "b"]}, index=["x", "y"]
    )
    answers = optimize(frame, MACHINE, space=small_space)
    assert list(answers.columns) == [*frame.columns, *ANSWER_COLUMNS]
    assert list(answers.index) == ["x", "y"]
    assert wsjax.optimize is optimize
    table = optimize(pa.Table.from_pandas(frame, preserve_index=False), MACHINE, space=small_space)
    assert isinstance(table, pa.Table)
    assert table["time_us"].to_pylist() == answers["time_us"].tolist()
    assert table["who"].to_pylist() == ["a", "b"]


def test_a_misspelt_column_is_told(small_space):
    frame = pd.DataFrame([PROBLEM]).assign(dtypein="fp16", stage=3)
    most: Any = np.int64(100_000)
    with pytest.warns(UserWarning, match="'dtypein' has no effect") as told:
        optimize(frame, MACHINE, space=small_space, max_smem_bytes=most)
    assert len(told) == 1


def test_a_frame_goes_on_where_a_problem_is_infeasible(small_space):
    frame = pd.DataFrame({"m": [64, 512], "n": 256, "k": 128})
    answers = optimize(frame, MACHINE, space=small_space, where="m < 100")
    assert answers["conflict"].tolist() == ["", "m < 100"]
    assert answers["block_m"].isna().tolist() == [False, True]
    front = optimize(frame, MACHINE, space=small_space, objective="pareto:time,smem_bytes")
    assert set(front["m"]) == {64, 512}
    assert len(front) > 2


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        ({"m": 1, "n": 1}, {}, "k: missing"),
        ({"m": 1, "n": 1, "k": 0}, {}, "k: 0 is out of range; nearest valid: 1"),
        ({"m": 1, "n": 1, "k": 1, "btach": 1}, {}, "btach: .*did you mean 'batch'"),
        (PROBLEM, {"objective": "speed"}, "'speed' can't be minimised"),
        (PROBLEM, {"objective": "tim"}, "did you mean 'time'"),
        (PROBLEM, {"objective": "-1*time"}, "'-1' is no weight"),
        (PROBLEM, {"objective": "nan*time"}, "'nan' is no weight"),
        (PROBLEM, {"objective": "0*time"}, "'0' is no weight"),
        (PROBLEM, {"objective": "time,time"}, "twice"),
        (PROBLEM, {"objective": "time+time"}, "twice"),
        (PROBLEM, {"objective": "pareto:time"}, "two figures or more"),
        (PROBLEM, {"objective": ""}, "can't be minimised"),
        (PROBLEM, {"objective": None}, "expected text"),
        (PROBLEM, {"where": "stage > 1"}, "did you mean 'stages'"),
        (PROBLEM, {"where": "smem_bytes < 9"}, "no column; limit it with max_smem_bytes"),
        (PROBLEM, {"where": ["time_us < 9", "stages > 99"]}, "it can be minimised"),
        (PROBLEM, {"where": [3]}, "expected a condition in quotes, not 3"),
        (PROBLEM, {"max_smem_bytes": -1}, "whole number above 0, not -1"),
        (PROBLEM, {"max_smem_bytes": 1.5}, "whole number above 0, not 1.5"),
        (PROBLEM, {"timeout_s": 0}, "seconds above 0, not 0"),
        (PROBLEM, {"timeout_s": math.nan}, "seconds above 0, not nan"),
        (PROBLEM, {"encoding": "event"}, "did you mean 'events'"),
        (PROBLEM, {"encoding": "events", "objective": "pareto:time,dma_wait"}, "no front"),
        (PROBLEM, {"where": ["stages != 0"] * 49}, "49 conditions"),
        (pd.DataFrame({"m": [], "n": [], "k": []}, dtype=int), {}, "no rows"),
        (pd.DataFrame({"m": [1], "n": [1]}), {}, "'k' is missing"),
        (pd.DataFrame([PROBLEM | {"stages": 3}]), {}, "'stages' is the name of an answer"),
        ([PROBLEM], {}, "not list"),
    ],
)
def test_mistakes_are_named(problem, options, message):
    with pytest.raises(InputError, match=message):
        optimize(problem, **({"hardware": MACHINE} | options))


@pytest.mark.parametrize(
    ("options", "which"),
    [
        ({"where": ["stages < 3", "stages > 4"]}, ("stages < 3", "stages > 4")),
        ({"where": "stages < 1"}, ("stages < 1",)),
        (
            {"where": "stages > 20 and dma_warps == 1 and stages < 3"},
            ("stages > 20", "stages < 3"),
        ),
        ({"where": "stages > 99", "max_smem_bytes": 1}, ("stages > 99",)),
    ],
)
def test_contradictions_are_infeasible_on_any_machine(options, which):
    with pytest.raises(InfeasibleError, match="on any machine") as raised:
        optimize(PROBLEM, **({"hardware": MACHINE} | options))
    assert raised.value.conflict == which
    frame = optimize(pd.DataFrame([PROBLEM]), **({"hardware": MACHINE} | options))
    assert frame["conflict"].tolist() == [" and ".join(which)]


def test_empty_and_endless_spaces(space_file, small_space):
    text = "[columns]\nblock_m = 64\nblock_n = 64\nblock_k = 64\n"
    space_file.write_text(f"{text}[filter]\nwhere = 'block_m > 64'\n")
    with pytest.raises(InputError, match="no kernel passes its filter on toy"):
        optimize(PROBLEM, MACHINE, space=space_file)
    wide = "{ from = 1, to = 60000, step = 1 }"
    space_file.write_text(f"[columns]\nblock_m = {wide}\nblock_n = {wide}\nblock_k = 64\n")
    with pytest.raises(InputError, match="3,600,000,000 kernels; give fewer values, or a timeout"):
        optimize(PROBLEM, MACHINE, space=space_file)
    with pytest.raises(InfeasibleError, match="what is modelled of toy"):
        optimize(PROBLEM | {"dtype_in": "fp8_e4m3"}, MACHINE, space=small_space)


def test_ctrl_c_gives_the_best_found(monkeypatch, small_space):
    """Ctrl-C falls into the first of several blocks."""
    options = {"space": small_space, "objective": "dma_wait"}
    whole = optimize(PROBLEM, MACHINE, **options).iloc[0]
    before = signal.getsignal(signal.SIGINT)
    evaluate = engine.evaluate

    def interrupted(*arguments, **fields):
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(engine, "evaluate", evaluate)
        return evaluate(*arguments, **fields)

    monkeypatch.setattr(engine, "evaluate", interrupted)
    monkeypatch.setattr(spaces, "BLOCK_ROWS", 100)
    part = optimize(pd.DataFrame([PROBLEM] * 2), MACHINE, **options)
    assert signal.getsignal(signal.SIGINT) is before
    first, second = part.to_dict("records")
    assert not first["proved"]
    assert first["bound"] <= whole["bound"] <= first["bound"] + first["time_us"]
    assert pd.isna(second["time_us"])


def test_a_timeout_gives_the_best_found(monkeypatch, small_space):
    monkeypatch.setattr(spaces, "BLOCK_ROWS", 50)
    whole = optimize(PROBLEM, MACHINE, space=small_space)
    part = optimize(PROBLEM, MACHINE, space=small_space, timeout_s=1e-9)
    assert not part["proved"][0]
    assert part["bound"][0] <= whole["time_us"][0] <= part["time_us"][0]
    options = {"space": small_space, "objective": "pareto:dma_wait,math_wait", "timeout_s": 1e-9}
    front = optimize(PROBLEM, MACHINE, **options)
    assert not front["proved"].any()


def test_what_was_found_in_time_is_proved_however_late(small_space):
    """The programs are there; the decision needs no time of the limit's."""
    optimize(PROBLEM, MACHINE, space=small_space)
    part = optimize(PROBLEM, MACHINE, space=small_space, timeout_s=1e-9)
    assert part["proved"][0]
    assert part["runner_up"][0] is not None


def test_too_little_time_to_find_anything(monkeypatch, small_space):
    monkeypatch.setattr(spaces, "BLOCK_ROWS", 50)
    options = {"space": small_space, "where": "block_m == 128", "timeout_s": 1e-9}
    with pytest.raises(UnfinishedError, match="too short to find") as error:
        optimize(PROBLEM, MACHINE, **options)
    assert error.value.exit_code == 4
    assert optimize(pd.DataFrame([PROBLEM]), MACHINE, **options)["time_us"].isna().all()


@pytest.mark.parametrize(
    ("where", "same"),
    [
        ("m > 5000 or stages <= 2", "stages <= 2"),
        ("not (sms < 200 and stages > 2)", "stages <= 2"),
        ("2 >= stages or 5000 < m", "stages <= 2"),
        ("m == 512 or stages > 99", None),
    ],
)
def test_conditions_on_the_problem_and_the_machine_beside_kernels(small_space, where, same):
    answer = optimize(PROBLEM, MACHINE, space=small_space, where=where)
    expected = optimize(PROBLEM, MACHINE, space=small_space, where=same)
    pd.testing.assert_frame_equal(
        answer.drop(columns=["solver_s", "binding"]), expected.drop(columns=["solver_s", "binding"])
    )
    assert answer["proved"].all()


@pytest.mark.parametrize("where", ["m > 5000 or stages > 20", "not (sms < 200 or stages <= 20)"])
def test_a_condition_that_this_problem_and_machine_break_is_named(small_space, where):
    with pytest.raises(InfeasibleError) as caught:
        optimize(PROBLEM, MACHINE, space=small_space, where=where)
    assert caught.value.conflict == (where,)
