"""Changed machines: what is typed ("sms=+25%, dram_bytes_per_us=2x") and what follows from it.

A change names facts (`sms`, `l2_bytes`, `clock_mhz` …), parameters, or the peak flop rates, and
says how: `+25%`, `-10%`, `2x`, or a value. What depends on a fact moves with it:

- SMs bring their own load ports, shared memory, matrix units and registers; they share one L2 and
  one DRAM, which stay as they are.
- A clock moves all rates of an SM, and the times that are its cycles (issue, start-up, barriers).
  L2 and DRAM have clocks of their own.
- A rate or size that a fact bounds keeps its share of the fact.
- A parameter by itself moves nothing else; beyond the fact that bounds it, the fact grows with it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from wsjax.errors import InputError, nearest
from wsjax.hardware import (
    FACTS,
    PARAMETERS,
    Hardware,
    Peaks,
    check_rates,
    fact,
    fact_ratios,
    parameter,
    unused_key,
)

PEAK = "peak_flop_per_us"
"""The peak rates of all dtypes together."""
CLOCKS = ("clock_mhz", "clock_max_mhz")
CYCLES = (
    *("load_startup_us", "load_issue_us", "compute_startup_us", "sync_us", "drain_us"),
    *("promotion_us", "epilogue_startup_us"),
)
"""Times that are an SM's cycles."""
EACH = (
    *("sms", "clock_mhz", PEAK, "smem_bytes_per_sm", "registers_per_sm"),
    *("dram_bytes_per_us", "l2_bytes_per_us", "l2_bytes"),
    *("load_throughput_bytes_per_us", "smem_throughput_bytes_per_us"),
    *("store_throughput_bytes_per_us", "drain_throughput_bytes_per_us"),
    *("latency_throughput_bytes_per_us", "load_latency_us", "crowding_latency_us"),
    *("dram_latency_first_us", "dram_latency_us", "load_startup_us", "launch_us"),
)
"""What an architect can set: not how kernels are written, nor what a fit found of caches."""
FOR_FACT = {
    "dram_bytes_per_us": "dram_throughput_bytes_per_us",
    "l2_bytes_per_us": "l2_throughput_bytes_per_us",
    "l2_bytes": "l2_capacity_bytes",
    PEAK: "compute_throughput_flop_per_us",
}
"""The parameter that a fact bounds."""
NAMES = (*FACTS, *Peaks._fields, PEAK, *PARAMETERS)
AMOUNT = re.compile(r"([+-]\d+(?:\.\d*)?)\s*%|(\d+(?:\.\d*)?|\.\d+)\s*x")
EXAMPLE = "such as sms=+25%, load_latency_us=-10%, l2_bytes=2x or sms=148"


class Changed(NamedTuple):
    """A machine to compare. name: what tells it from the base. parts: the names that were changed,
    with their values of before and after; none for a machine of its own."""

    name: str
    machine: Hardware
    parts: Mapping[str, tuple[float, float]]


def read_changes(base: Hardware, texts: Iterable[str]) -> list[Changed]:
    """The machines that texts describe. Raises InputError with all mistakes."""
    changed, problems = [], []
    for text in texts:
        try:
            changed.append(_read(base, text))
        except InputError as error:
            problems += [f"--change {text}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    return changed


def each(base: Hardware, amount: str) -> list[Changed]:
    """Everything in `EACH` that the machine has, better by an amount such as "+25%": rates and
    sizes greater by it, times shorter by the same factor; worse where it is below 0."""
    match = AMOUNT.fullmatch(amount.strip())
    factor = _factor(match) if match else 0.0
    if not 0 < factor < float("inf"):
        raise InputError(f"--each {amount}: expected a relative change, such as +25% or 2x")
    changed = []
    for name in EACH:
        known = base_value(base, name)
        name = name if isfinite(known) else FOR_FACT.get(name, name)
        known = base_value(base, name)
        if known > 0 and isfinite(known):
            by = 1.0 / factor if name.endswith("_us") and "per_us" not in name else factor
            changed.append(_made(base, {name: known * by}, f"{name} {_relative(by)}"))
    return changed


def together(base: Hardware, one: Changed, other: Changed) -> Changed | None:
    """Two changes at a time; None where they change the same, or are machines of their own."""
    if not (one.parts and other.parts) or one.parts.keys() & other.parts.keys():
        return None
    values = {
        name: after for parts in (one.parts, other.parts) for name, (_, after) in parts.items()
    }
    return _made(base, values, f"{one.name} & {other.name}")


def base_value(machine: Hardware, name: str) -> float:
    """A machine's value of anything that can be changed."""
    if name == PEAK:
        return machine.sheet.flop_per_us
    for owner in (machine.facts, machine.peaks):
        if name in owner._fields:
            return getattr(owner, name)
    return getattr(machine.parameters, name)


def _read(base: Hardware, text: str) -> Changed:
    values: dict[str, float] = {}
    problems = []
    for part in text.split(","):
        name, equals, amount = (word.strip() for word in part.partition("="))
        if not equals or name not in NAMES:
            hint = nearest(name, NAMES) if equals else f"; write NAME=AMOUNT, {EXAMPLE}"
            problems.append(f"unknown name '{name}'{hint}" if equals else f"'{part}'{hint}")
        elif name in values:
            problems.append(f"{name}: given twice; leave one out")
        else:
            try:
                values[name] = _amount(base, name, amount)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems)
    label = ", ".join(
        f"{name} {_relative(value / base_value(base, name))}"
        if isfinite(base_value(base, name)) and base_value(base, name)
        else f"{name} {value:g}"
        for name, value in values.items()
    )
    return _made(base, values, label)


def _amount(base: Hardware, name: str, amount: str) -> float:
    """The value that an amount makes of the base's."""
    match, known = AMOUNT.fullmatch(amount), base_value(base, name)
    if name in (*Peaks._fields, PEAK) and not isfinite(known):
        own = f"; change {FOR_FACT[name]} instead" if name in FOR_FACT else ""
        raise InputError(f"{name}: {base.name} does not say this fact{own}")
    if match:
        if not known or not isfinite(known):
            raise InputError(
                f"{name}: {base.name} has {known:g}, which no factor changes; give a value"
            )
        value = known * _factor(match)
    else:
        try:
            value = float(amount)
        except ValueError:
            raise InputError(f"{name}: '{amount}' is no amount; write one {EXAMPLE}") from None
    if name == unused_key(base.compute_basis):
        raise InputError(f"{name}: {base.name} does not use it (compute_basis)")
    if name in FACTS:
        value = round(value)
    check = fact if name in FACTS else parameter if name in PARAMETERS else _positive
    if complaint := check(name, value):
        raise InputError(f"{name}: {complaint}")
    return value


def _positive(name: str, value: float) -> str:
    return "" if 0 < value < float("inf") else f"{value:g}: expected a finite number above 0"


def _factor(match: re.Match[str]) -> float:
    return 1.0 + float(match[1]) / 100 if match[1] else float(match[2])


def _relative(ratio: float) -> str:
    """By what factor, in words: +25 %, x2."""
    return f"x{ratio:.4g}" if ratio >= 2 or ratio <= 0.5 else f"{100 * (ratio - 1):+.3g}%"


def _made(base: Hardware, values: Mapping[str, float], name: str) -> Changed:
    """The base with values of its own, and what follows from them."""
    given = {key: round(x) if key in FACTS else float(x) for key, x in values.items()}
    parts = {key: (float(base_value(base, key)), float(x)) for key, x in given.items()}
    facts = base.facts._replace(**{key: x for key, x in given.items() if key in FACTS})
    own_clock = [key for key in CLOCKS if key in given and isfinite(parts[key][0])]
    clock = parts[own_clock[0]][1] / parts[own_clock[0]][0] if own_clock else 1.0
    clocks = {key: getattr(base.peaks, key) * clock for key in CLOCKS if own_clock}
    peaks = base.peaks._replace(
        **{**clocks, **{key: x for key, x in given.items() if key in Peaks._fields}}
    )
    flop = given.get(PEAK, 0.0) / base.sheet.flop_per_us or clock * facts.sms / base.facts.sms
    peak = {dtype: rate * flop for dtype, rate in base.peak_flop_per_us.items()}
    changed = replace(base.physics, name=name, facts=facts, peaks=peaks, peak_flop_per_us=peak)
    ratios = fact_ratios(base.sheet, changed.sheet) | {"clock": clock}
    if not isfinite(base.peaks.l2_bytes_per_us):
        ratios["l2"] = 1.0
    if not peak:
        ratios["flop"] = clock
    moved = {
        key: x * ratios[PARAMETERS[key].scale] / (clock if key in CYCLES else 1.0)
        for key, x in base.parameters._asdict().items()
    }
    moved |= {key: x for key, x in given.items() if key in PARAMETERS}
    changed = replace(changed, parameters=base.parameters._replace(**moved))
    changed = _bounded(changed)
    check_rates(changed)
    return Changed(name, changed, parts)


def _bounded(machine: Hardware) -> Hardware:
    """With facts that grow with a parameter beyond them."""
    over = {
        key: getattr(machine.parameters, key) / most
        for key, most in machine.ceilings.items()
        if getattr(machine.parameters, key) > most
    }
    grown = {
        key: getattr(machine.peaks, key) * over[bound]
        for key, bound in FOR_FACT.items()
        if key != PEAK and bound in over
    }
    factor = over.get(FOR_FACT[PEAK], 1.0)
    peak = {dtype: rate * factor for dtype, rate in machine.peak_flop_per_us.items()}
    return replace(machine, peaks=machine.peaks._replace(**grown), peak_flop_per_us=peak)
