"""Hardware files: what is shipped, what is refused and how, and that they go round."""

import dataclasses
import math
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wsjax
from wsjax.errors import InputError
from wsjax.hardware import NewFacts, new_machine
from wsjax.hardware.machine import (
    FACTS,
    PARAMETERS,
    SHIPPED,
    Facts,
    Hardware,
    Parameters,
    format_hardware,
    hardware_names,
    load_hardware,
    parse_hardware,
)
from wsjax.hardware.parameters import PARAMETERS as REGISTRY
from wsjax.hardware.peaks import Peaks
from wsjax.hardware.sections import REGIONS
from wsjax.schema.columns import COLUMNS, DTYPES

MINIMAL = "sms = 4\nsmem_bytes_per_sm = 102400\nwarp_size = 32\n"


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        parse_hardware(text, "mine.toml")
    return caught.value.problems


CALIBRATED = {"h200", "h200-gluon", "h200-cutlass"}


def test_shipped_machines():
    nvidia = {"a100-sxm", "a100-pcie", "a6000", "b200", "gh200", "h100-sxm", "h20", "h800"}
    names = nvidia | {"a6000-paper", "h100-triton", "l40", "l40s", "mi300x", "rtx-4090", "toy"}
    assert set(hardware_names()) == names | CALIBRATED | {"h200-datasheet"}
    for name in hardware_names():
        machine = load_hardware(name)
        assert machine.name == name
        assert machine.calibrated == (name in CALIBRATED)
        assert bool(machine.calibration) == bool(machine.spread) == machine.calibrated
        assert load_hardware(machine) is machine


@pytest.mark.parametrize("name", sorted(set(hardware_names()) - CALIBRATED - {"toy"}))
def test_each_shipped_number_has_its_source(name):
    lines = (SHIPPED / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    above = ""
    for line in lines:
        named = re.match(r"(\w+) = [\d.]+\s*(# .+)?$", line)
        if named and named[1] not in ("mma_n", "mma_k", "mma_warps", "bf16"):
            assert named[2] or above.startswith("#"), line
        if named is None or named[2]:
            above = line


def test_a_data_sheet_machine_is_its_data_sheet():
    machine = load_hardware("h200-datasheet")
    facts, p = machine.facts, machine.parameters
    assert (facts.sms, facts.smem_bytes_per_sm, facts.warp_size) == (132, 227 * 1024, 32)
    assert p.compute_throughput_flop_per_us * 132 == pytest.approx(989.4e6, rel=1e-6)
    assert p.store_throughput_bytes_per_us * 132 == pytest.approx(4.8e6, rel=1e-6)
    assert machine.compute_ratio["fp8_e4m3"] == 2.0
    amd = load_hardware("mi300x").facts
    assert (amd.sms, amd.smem_bytes_per_sm, amd.warp_size) == (304, 64 * 1024, 64)
    assert "fp8_e4m3" not in load_hardware("a100-sxm").compute_ratio


@pytest.mark.parametrize(("dma_warps", "time_us"), [(2, 22.0), (1, 29.0)])
def test_paper_machine_does_what_an_a6000_does(dma_warps, time_us):
    row = {"m": 1024, "n": 1024, "k": 1024, "block_m": 128, "block_n": 128, "block_k": 64}
    frame = pd.DataFrame([row | {"stages": 2, "dma_warps": dma_warps, "schedule": "serial"}])
    predicted = wsjax.predict(frame, hardware="a6000-paper")
    assert predicted["time_us"].tolist() == pytest.approx([time_us], abs=0.7)
    machine = load_hardware("a6000-paper")
    assert machine.compute_basis == "bytes"
    assert math.isinf(machine.parameters.compute_throughput_flop_per_us)
    assert "GB/s" in machine.note


def test_minimal_file_is_neutral():
    machine = parse_hardware(MINIMAL, "some/where/mine.toml")
    assert machine.name == "mine"
    assert machine.parameters == Parameters()
    assert machine.facts == Facts(4, 102400, 32)
    assert machine.text == MINIMAL
    for name, value in machine.parameters._asdict().items():
        assert value == REGISTRY[name].neutral


def test_all_mistakes_at_once():
    text = """
name = 3
sms = "132"
smem_bytes_per_sm = true
warp_sise = 32
launch_us = 1
mma_m = 16.0
mma_k = 0
calibrated = 1
compute_basis = "flop"
parameter = { }
[parameters]
launch_us = nan
sync_us = -1
load_startup_us = inf
load_throughput_bytes_per_us = 0
store_throughput_bytes_per_us = "12.5"
sms = 4
[compute_ratio]
bf17 = 1
bf16 = -1
"""
    assert problems(text) == (
        "mine.toml: name: expected text in quotes, not 3",
        'mine.toml: sms: expected a whole number, not "132"; write 132',
        "mine.toml: smem_bytes_per_sm: expected a whole number, not true",
        "mine.toml: warp_sise: unknown key; did you mean 'warp_size'?",
        "mine.toml: launch_us: unknown key here; it belongs under [parameters]",
        "mine.toml: mma_m: expected a whole number, not 16.0; write 16",
        "mine.toml: mma_k: 0 is out of range; nearest valid: 1",
        "mine.toml: calibrated: expected true or false, not 1",
        "mine.toml: compute_basis: \"flop\" is no basis; did you mean 'flops'?",
        "mine.toml: parameter: unknown key; did you mean 'parameters'?",
        "mine.toml: warp_size: missing; every hardware file must say it",
        "mine.toml: parameters: launch_us: nan is no time: it must be finite and at least 0; "
        "nearest valid: 0",
        "mine.toml: parameters: sync_us: -1 is no time: it must be finite and at least 0; "
        "nearest valid: 0",
        "mine.toml: parameters: load_startup_us: inf is no time: it must be finite and at least 0; "
        "nearest valid: 0",
        "mine.toml: parameters: load_throughput_bytes_per_us: 0 is no rate: it must be above 0; "
        "left out it is inf",
        'mine.toml: parameters: store_throughput_bytes_per_us: expected a number, not "12.5"; '
        "write 12.5",
        "mine.toml: parameters: sms: unknown key here; it belongs at the top, above the tables",
        "mine.toml: compute_ratio: bf17: unknown key; did you mean 'bf16'?",
        "mine.toml: compute_ratio: bf16: -1 is no ratio: it must be finite and above 0; "
        "a dtype without a rate is left out",
    )


@pytest.mark.parametrize(
    ("basis", "key", "instead"),
    [
        ("flops", "compute_throughput_bytes_per_us", "compute_throughput_flop_per_us"),
        ("bytes", "compute_throughput_flop_per_us", "compute_throughput_bytes_per_us"),
    ],
)
def test_throughput_of_the_other_basis_is_refused(basis, key, instead):
    text = f'{MINIMAL}compute_basis = "{basis}"\n[parameters]\n{key} = 1.0\n'
    (problem,) = problems(text)
    assert key in problem
    assert f"give {instead} instead" in problem


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("sms = ", "not valid TOML"),
        ("sms = " + "9" * 5000, "not valid TOML"),
        (f"{MINIMAL}parameters = 3", "expected a table, [parameters], not 3"),
        (f"{MINIMAL}[parameters]\nlaunch_us = 1{'0' * 400}", "launch_us: expected a number"),
        (f"{MINIMAL}mma_n = 9999999999", "nearest valid: 2147483648"),
        (f'{MINIMAL}name = " "', "name: must not be empty"),
    ],
)
def test_odd_files(text, part):
    (problem,) = problems(text)
    assert problem.startswith("mine.toml: ")
    assert part in problem


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("h200x", "did you mean 'h200'?"),
        ("", "valid: a100-pcie"),
        (".", "no machine is called"),
        ("missing.toml", "No such file"),
        ("latin.toml", "not UTF-8"),
        ("folder.toml", "can't read"),
    ],
)
def test_unknown_or_unreadable(name, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("latin.toml").write_bytes(b"name = '\xe9'")
    Path("folder.toml").mkdir()
    with pytest.raises(InputError, match=re.escape(part)):
        load_hardware(name)


def test_own_file_by_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL, encoding="utf-8")
    assert load_hardware(path) == load_hardware(str(path))
    assert load_hardware(path).name == "mine"


times = st.floats(0, 1e6)
rates = st.floats(1e-3, 1e12) | st.just(math.inf)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


RECORD = {
    "table": texts,
    "date": texts,
    "rows": st.integers(0, 2**62),
    "held_out_mape_pct": st.floats(0, 1e6),
    "undetermined": st.lists(st.sampled_from(PARAMETERS), max_size=3),
}
intervals = st.tuples(st.floats(-5, 0), st.floats(0, 5)).map(list)
spreads = st.just({}) | st.fixed_dictionaries(
    {"all": intervals},
    optional={"parameters": st.floats(0, 1), **dict.fromkeys(REGIONS, intervals)},
)


@st.composite
def spans(draw) -> dict[str, list]:
    found = {}
    for name in draw(st.lists(st.sampled_from(list(COLUMNS)), unique=True, max_size=4)):
        choices = COLUMNS[name].choices
        values = st.sampled_from(choices) if choices else st.integers(0, 2**31)
        most = None if choices else 2
        least = 1 if choices else 2
        unique = bool(choices)
        found[name] = sorted(draw(st.lists(values, min_size=least, max_size=most, unique=unique)))
    return found


def _values(known):
    return st.floats(0, 1) if known.share else rates if known.is_rate else times


VAST = st.floats(1e13, 1e20)
peaks = st.just(Peaks()) | st.builds(Peaks, *([VAST] * len(Peaks._fields)))


@st.composite
def machines(draw) -> Hardware:
    basis = draw(st.sampled_from(["flops", "bytes"]))
    numbers = {name: draw(_values(known)) for name, known in REGISTRY.items()}
    unused = {"flops": "bytes", "bytes": "flop"}[basis]
    numbers[f"compute_throughput_{unused}_per_us"] = math.inf
    return Hardware(
        name=draw(texts.filter(str.strip)),
        facts=Facts(*(draw(st.integers(1, 2**31)) for _ in FACTS)),
        parameters=Parameters(**numbers),
        compute_basis=basis,
        compute_ratio=draw(st.dictionaries(st.sampled_from(DTYPES), st.floats(1e-3, 1e3))),
        calibrated=draw(st.booleans()),
        note=draw(texts),
        standard_errors=draw(st.dictionaries(st.sampled_from(PARAMETERS), st.floats(0, 10))),
        calibration=draw(st.fixed_dictionaries({}, optional=RECORD)),
        span=draw(spans()),
        spread=draw(spreads),
        peaks=draw(peaks),
        peak_flop_per_us=draw(st.dictionaries(st.sampled_from(DTYPES), st.floats(1e30, 1e40))),
    )


@settings(deadline=None)
@given(machines())
def test_format_then_parse_is_the_same_machine(machine):
    assert parse_hardware(format_hardware(machine)) == machine


def test_loading_needs_no_heavy_library():
    code = (
        "import sys; from wsjax.hardware import load_hardware; load_hardware('h200'); "
        "print(sorted({'jax', 'pandas', 'pyarrow', 'cattrs', 'rich', 'z3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


FAMILY = "epilogue_startup_us = 0.3"


def test_family_parameters_stand_in_either_table():
    machine = parse_hardware(f"{MINIMAL}[parameters]\n{FAMILY}\n")
    assert machine == parse_hardware(f"{MINIMAL}[family]\n{FAMILY}\n")
    assert "[family]\n" in format_hardware(machine)


def test_mistakes_in_the_tables_of_a_calibration():
    text = f"""{MINIMAL}
[parameters]
{FAMILY}
[family]
{FAMILY}
load_latency = 1
launch_us = 1.0
[standard_errors]
launch_us = -1
sms = 1
[calibration]
rows = -3
held_out_mape_pct = "3"
undetermined = [1]
[span]
m = [2, 1]
schedule = ["pingpog"]
layout = []
stages = 3
[spread]
persistent_load = [0.1, -0.1]
serial_lode = [0.0, 0.1]
serial_load = [0.0, 0.1]
"""
    assert problems(text) == (
        "mine.toml: family: load_latency: unknown key; did you mean 'load_latency_us'?",
        "mine.toml: family: launch_us: unknown key here; it belongs under [parameters]",
        "mine.toml: standard_errors: launch_us: -1 must be finite and at least 0",
        "mine.toml: standard_errors: sms: unknown key here; "
        "it belongs at the top, above the tables",
        "mine.toml: calibration: rows: expected a whole number of at least 0, not -3",
        'mine.toml: calibration: held_out_mape_pct: expected a number, not "3"; write 3.0',
        "mine.toml: calibration: undetermined: expected a list of texts, not [1]",
        "mine.toml: span: m: expected [least, greatest] as whole numbers, not [2, 1]",
        "mine.toml: span: schedule: unknown word \"pingpog\"; did you mean 'pingpong'?",
        "mine.toml: span: layout: expected a list of words, not []",
        "mine.toml: span: stages: expected [least, greatest] as whole numbers, not 3",
        "mine.toml: spread: persistent_load: expected [low, high], two numbers in order, "
        "not [0.1, -0.1]",
        "mine.toml: spread: serial_lode: unknown key; did you mean 'serial_load'?",
        "mine.toml: spread: all: missing; every [spread] must say it",
        "mine.toml: family: epilogue_startup_us: is given under [parameters] too; leave one out",
    )


def test_a_file_extends_another(tmp_path):
    base = tmp_path / "base.toml"
    base.write_text(f"{MINIMAL}[parameters]\nlaunch_us = 1.0\n{FAMILY}\n[span]\nm = [1, 2]\n")
    path = tmp_path / "mine.toml"
    path.write_text('base = "base.toml"\nsms = 5\n[parameters]\nlaunch_us = 2.0\n')
    machine = load_hardware(path)
    assert (machine.name, machine.facts) == ("mine", Facts(5, 102400, 32))
    assert machine.parameters == Parameters(launch_us=2.0, epilogue_startup_us=0.3)
    assert machine.span == {"m": [1, 2]}
    assert parse_hardware(machine.text) == machine
    path.write_text('base = "toy"\nname = "other"\n')
    toy = load_hardware("toy")
    assert load_hardware(path) == dataclasses.replace(toy, name="other")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('base = "mine.toml"', "base: these files extend each other"),
        ('base = "toyy"', "did you mean 'toy'?"),
        ('base = "absent.toml"', "can't read"),
        ("base = 3", "base: expected text in quotes, not 3"),
    ],
)
def test_a_base_that_is_none(text, part, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_hardware(path)
    assert part in caught.value.problems[0]


def test_a_parameter_above_its_fact_is_refused():
    text = f"""{MINIMAL}dram_bytes_per_us = 4.8e6
dram_byte_per_us = 1
l2_bytes = -1
[parameters]
dram_bytes_per_us = 1.0
"""
    assert problems(text) == (
        "mine.toml: dram_byte_per_us: unknown key; did you mean 'dram_bytes_per_us'?",
        "mine.toml: l2_bytes: -1 is no fact: it must be finite and above 0; "
        "left out it is not known",
        "mine.toml: parameters: dram_bytes_per_us: unknown key here; "
        "it belongs at the top, above the tables",
    )
    text = f"""{MINIMAL}dram_bytes_per_us = 4.8e6
[parameters]
dram_throughput_bytes_per_us = 13.5e6
dirty_share = 1.5
"""
    assert problems(text) == (
        "mine.toml: parameters: dirty_share: 1.5 is above 1, the most that the machine's facts "
        "allow; lower it, or correct the fact",
        "mine.toml: parameters: dram_throughput_bytes_per_us: 1.35e+07 is above 4800000 B/µs, the "
        "most that the machine's facts allow; lower it, or correct the fact",
    )


def test_a_fact_alone_has_an_effect():
    machine = parse_hardware(f"{MINIMAL}dram_bytes_per_us = 1000000.0")
    assert machine.parameters.dram_throughput_bytes_per_us == pytest.approx(0.9e6)
    assert math.isinf(machine.parameters.l2_throughput_bytes_per_us)


def test_a_new_machine_is_scaled_from_the_one_it_is_like(tmp_path):
    text = new_machine("new", "h200", NewFacts(sms=66, dram_gbs=2400, bf16_tflops=247.35))
    path = tmp_path / "new.toml"
    path.write_text(text, encoding="utf-8")
    new, known = load_hardware(path), load_hardware("h200")
    own, theirs = new.parameters, known.parameters
    assert new.facts == known.facts._replace(sms=66)
    assert not new.calibrated
    half = {"dram_throughput_bytes_per_us", "compute_throughput_flop_per_us"}
    for name, value in own._asdict().items():
        factor = 0.5 if name in half else 1.0
        assert value == pytest.approx(getattr(theirs, name) * factor, rel=2e-3), name
    assert new.compute_ratio == known.compute_ratio
    assert parse_hardware(new.text) == new


@pytest.mark.parametrize(
    ("like", "facts", "part"),
    [
        ("toy", NewFacts(), "has no [peak_flop_per_us]"),
        ("h200", NewFacts(dram_gbs=-1), "--dram-gbs -1: give a number above 0"),
        ("h200x", NewFacts(), "did you mean 'h200'?"),
    ],
)
def test_a_new_machine_needs_facts(like, facts, part):
    with pytest.raises(InputError, match=re.escape(part)):
        new_machine("new", like, facts)


def test_files_that_are_like_each_other(tmp_path):
    for own, other in (("a", "b"), ("b", "a")):
        text = f'{MINIMAL}like = "{other}.toml"\n'
        (tmp_path / f"{own}.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="these files are like each other"):
        load_hardware(tmp_path / "a.toml")
