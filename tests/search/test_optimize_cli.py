"""`wsjax optimize`: what it prints, and its exit codes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from wsjax import engine
from wsjax.cli.main import main
from wsjax.spec import spaces

SPACE = """[columns]
block_m = [64, 128]
block_n = [64, 128]
block_k = [32, 64]
stages = [1, 2, 3]
dma_warps = [1, 2]
schedule = ["persistent", "pingpong"]
"""
ENOUGH_S = 4.0
"""It takes a second on an idle machine, compiling takes fifteen and more; others may use it too."""
KEYS = [
    "configuration",
    "time_us",
    "math_wait_us",
    "extrapolated",
    "proved",
    "runner_up",
    "solver_s",
]


@pytest.fixture
def run(capsys, tmp_path):
    """Run `wsjax optimize` on a problem, a small space and the toy machine -> stdout, stderr."""
    (tmp_path / "space.toml").write_text(SPACE)
    problem = ["optimize", "-m", "512", "-n", "512", "-k", "256"]
    known = {"SPACE": str(tmp_path / "space.toml")}

    def call(*options, code=0, problem=problem):
        given = {"--space": "SPACE", "--hardware": "toy"}
        given |= dict(zip(options[::2], options[1::2], strict=True)) if len(options) > 1 else {}
        flags = list(options) if len(options) == 1 else []
        words = [known.get(word, word) for pair in given.items() for word in pair]
        assert main([*problem, *words, *flags]) == code
        return capsys.readouterr()

    return call


def test_the_answer(run):
    shown = run("--where", "block_m == 64").out
    assert "512x512x256 bf16 nt on toy (not calibrated)" in shown
    for label in ("kernel", "time", "proved", "binds", "runner-up", "took"):
        assert label in shown
    assert "block_m == 64; without it" in shown
    assert "yes: the best of its space" in shown


def test_json_has_its_keys_and_no_others(run):
    shown = json.loads(run("--json").out)
    assert list(shown) == KEYS
    assert shown["proved"] is True
    configuration = shown["configuration"]
    assert configuration["schedule"] in ("persistent", "pingpong")
    assert (configuration["m"], configuration["dtype_in"]) == (512, "bf16")
    assert shown["runner_up"]["time_us"] >= shown["time_us"]
    predict = ["predict", "--hardware", "toy", "--json"]
    for option in ("m", "n", "k"):
        predict += [f"-{option}", str(configuration[option])]
    blocks = "x".join(str(configuration[f"block_{x}"]) for x in "mnk")
    predict += ["--tile", blocks, "--schedule", configuration["schedule"]]
    for option in ("stages", "dma_warps"):
        predict += [f"--{option.replace('_', '-')}", str(configuration[option])]
    assert main(predict) == 0


def test_options_reach_the_search(run):
    assert "of at most 30,000 bytes a CTA" in run("--max-smem-bytes", "30000").out
    front = run("--objective", "pareto:time,smem_bytes").out
    assert "proved: the whole front" in front
    assert front.count("stage") > 1
    assert (
        "proved"
        in run("--encoding", "events", "--where", "block_m * block_n * block_k == 2**20").out
    )


def test_the_front_as_json(capsys, run, tmp_path):
    words = ["optimize", "-m", "512", "-n", "512", "-k", "256", "--hardware", "toy"]
    words += ["--space", str(tmp_path / "space.toml"), "--json"]
    assert main([*words, "--objective", "pareto:time,smem_bytes"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert len(shown) > 1
    assert all(list(one) == [*KEYS, "smem_bytes"] for one in shown)
    times = [one["time_us"] for one in shown]
    assert times == sorted(times)


def test_infeasible(run):
    shown = run("--where", "block_m * block_n * block_k >= 2**20 and stages >= 3", code=3)
    assert shown.out == ""
    lines = [line.removeprefix("wsjax:").strip() for line in shown.err.splitlines()]
    assert lines == [
        "infeasible: no kernel of the space 'space' meets all of",
        "block_m * block_n * block_k >= 2**20",
        "stages >= 3",
        "shared memory of toy",
    ]


@pytest.mark.parametrize(
    ("conditions", "named", "which"),
    [
        ("stages < 1", "no kernel meets", ["stages < 1"]),
        ("stages < 2 and stages > 2", "no kernel meets all of", ["stages < 2", "stages > 2"]),
        (
            "stages <= 4 and stages >= 6 and block_m == 64",
            "no kernel meets all of",
            ["stages <= 4", "stages >= 6"],
        ),
    ],
)
def test_conditions_that_contradict_each_other_are_infeasible(run, conditions, named, which):
    shown = run("--where", conditions, code=3)
    assert shown.out == ""
    lines = [line.removeprefix("wsjax:").strip() for line in shown.err.splitlines()]
    assert lines == [f"infeasible: on any machine {named}", *which]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objective", "nan*time"), "'nan' is no weight"),
        (("--objective", "-2*time"), "'-2' is no weight"),
        (("--max-smem-bytes", "0"), "whole number above 0, not 0"),
        (("--timeout", "-1"), "seconds above 0"),
        (("--space", "nowhere.toml"), "can't read this space file"),
        (("--hardware", "h200x"), "did you mean 'h200'"),
        (("--encoding", "table"), "valid: sweep, events"),
        (("--wher", "stages < 1"), "--wher"),
    ],
)
def test_mistakes_have_exit_code_2(run, options, message):
    shown = run(*options, code=2)
    assert shown.out == ""
    assert message in shown.err


def test_all_mistakes_at_once(run):
    options = ("--where", "stage < 1", "--objective", "tim", "--timeout", "0")
    shown = run(*options, code=2, problem=["optimize", "-m", "0"]).err
    for mistake in ("m: 0", "n: missing", "k: missing", "stages", "'tim'", "timeout"):
        assert mistake in shown


@pytest.mark.parametrize("flag", ["", "--json"])
def test_ctrl_c_prints_the_best_found(monkeypatch, capsys, tmp_path, run, flag):
    whole = engine.evaluate

    def interrupted(*arguments, **options):
        monkeypatch.setattr(engine, "evaluate", whole)
        signal.raise_signal(signal.SIGINT)
        return whole(*arguments, **options)

    monkeypatch.setattr(engine, "evaluate", interrupted)
    monkeypatch.setattr(spaces, "BLOCK_ROWS", 8)
    words = ["optimize", "-m", "512", "-n", "512", "-k", "256", "--hardware", "toy"]
    words += ["--space", str(tmp_path / "space.toml"), "--objective", "dma_wait"]
    assert main([*words, *flag.split()]) == 130
    shown = capsys.readouterr().out
    if flag:
        found = json.loads(shown)
        assert list(found) == [*KEYS, "bound"]
        assert not found["proved"]
    else:
        assert "nothing scores below 0.000" in shown


@pytest.mark.parametrize("objective", ["time", "pareto:time,dma_wait"])
def test_a_timeout_holds_while_programs_compile(tmp_path, objective):
    """The first call of a process, nothing compiled: kernels and exit code 4, within a second of
    the limit, process start excluded, and neither a traceback nor a wait at the end."""
    words = ["optimize", "-m", "4096", "-n", "4096", "-k", "4096", "--timeout", "0.5", "--json"]
    call = f"""
import sys, time
import jax
from wsjax import optimize
from wsjax.cli import main
sys.argv[1:] = {[*words, "--objective", objective]}
print(time.time(), file=sys.stderr, flush=True)
sys.exit(main())
"""
    folder = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    done = subprocess.run(
        [sys.executable, "-c", call], capture_output=True, text=True, env=os.environ | folder
    )
    left_s = time.time() - float(done.stderr)
    assert done.returncode == 4
    assert left_s < 0.5 + ENOUGH_S
    found = json.loads(done.stdout)
    for one in found if objective.startswith("pareto") else [found]:
        assert not one["proved"]
        assert one["time_us"] > 100
    if objective == "time":
        assert 100 < found["bound"] <= found["time_us"]
