"""A machine as the lines of its TOML file."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from wsjax.hardware.machine import Hardware
from wsjax.hardware.parameters import INF
from wsjax.hardware.sections import FAMILY, unused_key
from wsjax.schema import Facts


def lines(hardware: Hardware) -> Iterator[str]:
    """The file's lines: facts, then tables; those that only a calibration fills may be absent."""
    unused = unused_key(hardware.compute_basis)
    default = Facts._field_defaults
    yield f"name = {_value(hardware.name)}"
    if hardware.note:
        yield f"note = {_value(hardware.note)}"
    yield f"calibrated = {_value(hardware.calibrated)}"
    yield from (f"{k} = {v}" for k, v in hardware.facts._asdict().items() if v != default.get(k))
    yield from (f"{k} = {v!r}" for k, v in hardware.peaks._asdict().items() if v != INF)
    yield f"compute_basis = {_value(hardware.compute_basis)}"
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


def _table(name: str, entries: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{name}]"
    yield from (f"{key} = {_value(value)}" for key, value in entries.items())


def _value(value: Any) -> str:
    """A value as TOML spells it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
