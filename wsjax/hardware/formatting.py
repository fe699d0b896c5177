"""A machine as the lines of its TOML file."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from wsjax.hardware.machine import Hardware
from wsjax.hardware.parameters import INF
from wsjax.hardware.sections import FAMILY, unused_key
from wsjax.schema import Facts, toml_value

WIDTH = 100
"""Characters a line of a network's numbers."""


def lines(hardware: Hardware) -> Iterator[str]:
    """The file's lines: facts, then tables; those that only a calibration fills may be absent."""
    unused = unused_key(hardware.compute_basis)
    default = Facts._field_defaults
    yield f"name = {toml_value(hardware.name)}"
    if hardware.note:
        yield f"note = {toml_value(hardware.note)}"
    yield f"calibrated = {toml_value(hardware.calibrated)}"
    yield from (f"{k} = {v}" for k, v in hardware.facts._asdict().items() if v != default.get(k))
    yield from (f"{k} = {v!r}" for k, v in hardware.peaks._asdict().items() if v != INF)
    yield f"compute_basis = {toml_value(hardware.compute_basis)}"
    values = {
        k: float(v) for k, v in hardware.parameters._asdict().items() if k != unused or v != INF
    }
    yield from _table("parameters", {k: v for k, v in values.items() if k not in FAMILY})
    yield from _table("family", {k: v for k, v in values.items() if k in FAMILY})
    if hardware.peak_flop_per_us:
        yield from _table("peak_flop_per_us", hardware.peak_flop_per_us)
    ratios = {dtype: float(ratio) for dtype, ratio in hardware.compute_ratio.items()}
    yield from _table("compute_ratio", ratios)
    for name in ("standard_errors", "calibration", "span", "spread"):
        if getattr(hardware, name):
            yield from _table(name, getattr(hardware, name))
    if hardware.residual:
        entries = hardware.residual.table
        yield from _table("residual", {k: v for k, v in entries.items() if k != "numbers"})
        yield 'numbers = """'
        yield from textwrap.wrap(entries["numbers"], WIDTH)
        yield '"""'


def _table(name: str, entries: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{name}]"
    yield from (f"{key} = {toml_value(value)}" for key, value in entries.items())
