"""What is typed of a machine, and what follows from it."""

import numpy as np
import pytest

from wsjax.changes import machines
from wsjax.errors import InputError
from wsjax.hardware import PARAMETERS, hardware_names, load_hardware

H200 = load_hardware("h200").physics
TOY = load_hardware("toy")


def moved(text: str, base=H200) -> dict[str, float]:
    """By what factor parameters differ, of those that do."""
    changed = machines.read_changes(base, [text])[0].machine
    pairs = zip(PARAMETERS, base.parameters, changed.parameters, strict=True)
    return {name: after / before for name, before, after in pairs if before != after}


def test_more_sms_share_l2_and_dram():
    assert moved("sms=+25%") == {}
    [change] = machines.read_changes(H200, ["sms=+25%"])
    assert change.machine.facts == H200.facts._replace(sms=165)
    assert change.machine.peaks == H200.peaks
    assert change.machine.peak_flop_per_us["bf16"] == pytest.approx(989.4e6 * 1.25)
    assert change.parts == {"sms": (132, 165)}
    assert change.name == "sms +25%"


def test_a_clock_moves_what_an_sm_does_and_leaves_l2_and_dram():
    factors = moved("clock_mhz=+10%")
    rates = {n for n, known in PARAMETERS.items() if known.scale in ("clock", "flop")}
    assert {n for n, x in factors.items() if x == pytest.approx(1.1)} >= {
        "compute_throughput_flop_per_us",
        "load_throughput_bytes_per_us",
        "smem_throughput_bytes_per_us",
    }
    for name, factor in factors.items():
        assert factor == pytest.approx(1.1 if name in rates else 1 / 1.1), name
    assert {"dram_throughput_bytes_per_us", "l2_throughput_bytes_per_us"}.isdisjoint(factors)
    assert "epilogue_startup_us" in factors
    assert "dram_latency_us" not in factors


@pytest.mark.parametrize(
    ("fact", "parameters"),
    [
        ("dram_bytes_per_us", {"dram_throughput_bytes_per_us"}),
        (
            "l2_bytes_per_us",
            {
                "l2_throughput_bytes_per_us",
                "drain_throughput_bytes_per_us",
                "reductions_throughput_bytes_per_us",
            },
        ),
        ("l2_bytes", {"l2_capacity_bytes"}),
        ("peak_flop_per_us", {"compute_throughput_flop_per_us"}),
    ],
)
def test_what_a_fact_bounds_keeps_its_share(fact, parameters):
    factors = moved(f"{fact}=2x")
    assert factors.keys() == parameters
    assert list(factors.values()) == pytest.approx([2.0] * len(parameters))


def test_a_parameter_moves_alone_and_its_fact_only_if_it_must():
    text = "dram_throughput_bytes_per_us"
    assert moved(f"{text}=2x") == {text: 2.0}
    lower, beyond = machines.read_changes(H200, [f"{text}=-10%", f"{text}=2x"])
    assert lower.machine.peaks == H200.peaks
    assert beyond.machine.peaks.dram_bytes_per_us == pytest.approx(2 * 4767408.0)


@pytest.mark.parametrize("name", hardware_names())
def test_each_is_better_keeps_to_facts_and_changes_one_thing(name):
    base = load_hardware(name).physics
    changed = machines.each(base, "+25%")
    assert {"sms", "launch_us"} & {part for change in changed for part in change.parts}
    for change in changed:
        ((part, (before, after)),) = change.parts.items()
        is_time = part.endswith("_us") and "per_us" not in part
        assert after == pytest.approx(before / 1.25 if is_time else before * 1.25, rel=0.01)
        most, values = change.machine.ceilings, change.machine.parameters._asdict()
        over = {x for x in most if most[x] * (1 + 1e-6) < values[x] < np.inf}
        # Wider banks are a change too: no fact of a file says how wide they are.
        assert over <= {"smem_throughput_bytes_per_us"} & {part}


def test_two_changes_together():
    one, other, same = machines.read_changes(H200, ["sms=148", "l2_bytes=2x", "sms=2x"])
    both = machines.together(H200, one, other)
    assert both is not None
    assert both.machine.facts.sms == 148
    assert both.machine.parameters.l2_capacity_bytes == 2 * H200.parameters.l2_capacity_bytes
    assert machines.together(H200, one, same) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("smss=+25%", "unknown name 'smss'; did you mean 'sms'?"),
        ("sms", "write NAME=AMOUNT, such as sms="),
        ("sms=more", "sms: 'more' is no amount"),
        ("sms=-100%", "sms: 0 is out of range; nearest valid: 1"),
        ("dram_bytes_per_us=0x", "dram_bytes_per_us: 0: expected a finite number above 0"),
        ("load_latency_us=-200%", "load_latency_us: -0.1476275 is no time"),
        ("sms=2x, sms=3x", "sms: given twice"),
        ("sync_us=2x", "sync_us: h200-cutlass has 0, which no factor changes; give a value"),
        ("compute_throughput_bytes_per_us=1e4", "does not use it (compute_basis)"),
    ],
)
def test_mistakes_say_what_where_and_how_to_mend_them(text, words):
    base = load_hardware("h200-cutlass").physics
    with pytest.raises(InputError) as error:
        machines.read_changes(base, ["l2_bytes=2x", text])
    [problem] = error.value.problems
    assert problem.startswith(f"--change {text}: ")
    assert words in problem


def test_a_fact_that_is_not_known_names_its_parameter():
    with pytest.raises(InputError, match="change dram_throughput_bytes_per_us instead"):
        machines.read_changes(TOY, ["dram_bytes_per_us=2x"])
