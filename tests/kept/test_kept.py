"""What is kept between processes: nothing is compiled twice, and nothing stale is used."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import wsjax
from wsjax import kept
from wsjax.hardware.machine import load_hardware
from wsjax.kept import files

PREDICT = """
import jax, json, sys, time
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
)
import numpy as np, pandas as pd, wsjax
rng = np.random.default_rng(0)
rows = 96
pick = lambda *values: rng.choice(values, rows)
frame = pd.DataFrame({
    **{name: pick(256, 1000, 1024, 4096, 8192) for name in "mnk"},
    "block_m": pick(64, 128), "block_n": pick(64, 128), "block_k": pick(32, 64),
    "stages": pick(2, 3, 4), "dma_warps": pick(1, 2), "mma_in_flight": pick(0, 1),
    "schedule": pick("serial", "persistent", "pingpong", "cooperative"),
})
found = [wsjax.predict(frame, name) for name in ("h200", "h200-gluon", "a6000-paper", "a100-sxm")]
methods = sorted({word for table in found for word in table["method"].dropna()})
times = [float(table["time_us"].sum()).hex() for table in found]
print(json.dumps([len(compiled), methods, times]))
"""


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder to keep things in."""
    monkeypatch.setattr(files, "folder", lambda: tmp_path)
    return tmp_path


def test_a_second_process_compiles_nothing(tmp_path):
    """Any mix of schedules and DMA warps, on several machines, through the Python API; and without
    JAX_COMPILATION_CACHE_DIR, as a user has it."""
    place = {"XDG_CACHE_HOME": str(tmp_path)}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | place
    run = partial(subprocess.run, env=environment, capture_output=True, text=True, check=True)
    first, second = (json.loads(run([sys.executable, "-c", PREDICT]).stdout) for _ in range(2))
    assert first[0] > 0
    assert second[0] == 0
    assert second[1:] == first[1:]
    assert {"closed", "periodic"} <= {*first[1]}


def test_programs_are_loaded_and_equal_those_of_jax(empty):
    def function(numbers, scale, steps):
        return {"sum": jnp.sum(numbers["x"]) * scale, "more": [numbers["x"] ** steps]}

    function.__module__, function.__qualname__ = "wsjax.invented", "function"
    numbers = {"x": np.linspace(0.0, 1.0, 9)}
    one, two = (kept.jit(function, static_argnames=("steps",)) for _ in range(2))
    expected = jax.jit(function, static_argnames=("steps",))(numbers, 2.0, steps=3)
    made = one(numbers, 2.0, steps=3)
    entries = sorted(empty.iterdir())
    loaded = two(numbers, 2.0, steps=3)
    assert sorted(empty.iterdir()) == entries
    assert len(entries) == 1
    for found in (made, loaded):
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        jax.tree.map(np.testing.assert_array_equal, found, expected)
    gradient = jax.grad(lambda x: two({"x": x}, 2.0, steps=3)["sum"])(numbers["x"])
    np.testing.assert_allclose(gradient, 2.0)
    two(numbers, 2.0, steps=2)
    two({"x": np.ones(4)}, 2.0, steps=2)
    assert len([*empty.iterdir()]) == 3
    function.__module__ = "tests"  # whose sources no key holds
    for _ in range(2):
        kept.jit(function, static_argnames=("steps",))(numbers, 2.0, steps=3)
    assert len([*empty.iterdir()]) == 5


def test_a_key_holds_all_that_an_entry_depends_on(empty, monkeypatch):
    kept.write("key", [1])
    assert kept.read("key") == [1]
    assert kept.read("other") is None
    for name, change in {
        "__version__": "9.9.9",
        "SETTINGS": ("HOME",),
        "_processor": lambda: ["another"],
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(files, name, change)
            files._makers.cache_clear()
            assert kept.read("key") is None, name
    files._makers.cache_clear()
    assert kept.read("key") == [1]
    with monkeypatch.context() as patch:
        patch.setattr(jax, "__version__", "9.9.9")
        files._makers.cache_clear()
        assert kept.read("key") is None
    files._makers.cache_clear()


def test_a_changed_machine_has_other_times():
    frame = pd.DataFrame({"m": [4096], "n": 4096, "k": 4096, "block_m": 128, "block_n": 128})
    frame["block_k"] = 64
    machine = load_hardware("h200")
    slow = machine.parameters._replace(launch_us=machine.parameters.launch_us + 100.0)
    fewer = machine.facts._replace(sms=66)

    def time_us(machine):
        return wsjax.predict(frame, machine)["time_us"].to_numpy()[0]

    usual, later, long = (
        time_us(replace(changed, residual=None))
        for changed in (machine, replace(machine, parameters=slow), replace(machine, facts=fewer))
    )
    assert later > usual + 90.0
    assert long > 1.3 * usual
    network = machine.residual
    assert network is not None
    other = np.frombuffer(network.numbers, "<f4").copy()
    other[-1] += 0.1
    changed = replace(machine, residual=replace(network, numbers=other.tobytes()))
    assert time_us(machine) != time_us(changed)


def test_a_changed_file_of_a_machine_is_read_again(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "h200"\n[parameters]\nlaunch_us = 1.0\n')
    assert load_hardware(path).parameters.launch_us == 1.0
    load_hardware(path).span.clear()
    assert load_hardware(path).span
    path.write_text('base = "h200"\n[parameters]\nlaunch_us = 2.0\n')
    assert load_hardware(path).parameters.launch_us == 2.0


def test_a_damaged_entry_counts_as_absent(empty):
    kept.write("key", {"a": 1})
    (entry,) = empty.iterdir()
    content = bytearray(entry.read_bytes())
    content[-3] ^= 1
    entry.write_bytes(content)
    assert kept.read("key") is None
    entry.write_bytes(b"")
    assert kept.read("key") is None


def test_a_folder_that_cannot_be_written_keeps_nothing(empty, monkeypatch):
    monkeypatch.setattr(files, "folder", lambda: empty / "absent")
    kept.write("key", 1)
    assert kept.read("key") is None
    monkeypatch.setattr(files, "folder", lambda: None)
    kept.write("key", 1)
    assert kept.read("key") is None
