"""Machines: their facts and continuous parameters, in TOML files.

A file needs `sms`, `smem_bytes_per_sm` and `warp_size`; every other value has a neutral default
(0 for a time, infinity for a rate), so that a minimal file is the paper's machine:

    name = "toy"
    sms = 4
    smem_bytes_per_sm = 102400
    warp_size = 32
    compute_basis = "flops"
    [parameters]
    load_throughput_bytes_per_us = 32768.0
    compute_throughput_flop_per_us = 2097152.0
    [compute_ratio]
    bf16 = 1.0
"""

import json
import math
import tomllib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from wsjax.errors import InputError, nearest
from wsjax.hardware import checks
from wsjax.limits import Facts
from wsjax.space import DTYPES

INF = math.inf
SHIPPED = Path(__file__).parent


class Parameters(NamedTuple):
    """What a machine does in a microsecond: the continuous numbers that calibration fits.

    Times in µs, rates per SM in bytes or flop per µs (1 B/µs is 1 MB/s). One step of a CTA loads
    for `load_startup_us` a tile-load plus bytes / `load_throughput`, is ready `load_latency_us`
    later, and computes for `compute_startup_us + sync_us` plus work / `compute_throughput` (flop or
    bytes: the basis not in use stays infinite). A tile's epilogue takes `epilogue_startup_us` plus
    bytes of C / `store_throughput`. `launch_us` is paid once.
    """

    launch_us: float = 0.0
    load_throughput_bytes_per_us: float = INF
    load_startup_us: float = 0.0
    load_latency_us: float = 0.0
    compute_throughput_flop_per_us: float = INF
    compute_throughput_bytes_per_us: float = INF
    compute_startup_us: float = 0.0
    sync_us: float = 0.0
    store_throughput_bytes_per_us: float = INF
    epilogue_startup_us: float = 0.0


PARAMETERS = Parameters._fields
FACTS = Facts._fields
BASIS_KEYS = {
    "flops": "compute_throughput_flop_per_us",
    "bytes": "compute_throughput_bytes_per_us",
}
_ELSEWHERE = dict.fromkeys(PARAMETERS, "under [parameters]")
_ELSEWHERE |= dict.fromkeys(FACTS, "at the top, above the tables")
_TOP = dict.fromkeys(FACTS, checks.fact) | {
    "name": checks.name,
    "note": checks.text,
    "calibrated": checks.boolean,
    "compute_basis": checks.basis,
    "parameters": checks.table,
    "compute_ratio": checks.table,
}
_PARAMETERS = dict.fromkeys(PARAMETERS, checks.parameter)
_RATIOS: dict[str, checks.Check] = dict.fromkeys(DTYPES, checks.ratio)


@dataclass(frozen=True)
class Hardware:
    """One machine. `compute_ratio` is each input dtype's rate relative to the compute throughput;
    a dtype that is absent has no rate. `text` is the file it came from, and no part of equality."""

    name: str
    facts: Facts
    parameters: Parameters
    compute_basis: str = "flops"
    compute_ratio: dict[str, float] = field(default_factory=lambda: {"bf16": 1.0, "fp16": 1.0})
    calibrated: bool = False
    note: str = ""
    text: str = field(default="", compare=False, repr=False)


def hardware_names() -> list[str]:
    """The shipped machines, in alphabetical order."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_hardware(name_or_path: str | Path | Hardware) -> Hardware:
    """A machine by its shipped name or from a TOML file. Raises InputError with all mistakes."""
    if isinstance(name_or_path, Hardware):
        return name_or_path
    path = Path(name_or_path)
    if str(name_or_path) in hardware_names():
        path = SHIPPED / f"{name_or_path}.toml"
    elif path.suffix != ".toml":
        raise InputError(
            f"hardware: no machine is called '{name_or_path}'"
            f"{nearest(name_or_path, hardware_names())}; for a file of your own give a path that "
            "ends in .toml"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(
            f"{path}: can't read this hardware file: {reason}; "
            f"machines that need no file: {', '.join(hardware_names())}"
        ) from None
    return parse_hardware(text, str(path))


def parse_hardware(text: str, where: str = "hardware") -> Hardware:
    """A machine from the text of a file; `where` names it in messages.

    Raises InputError with every mistake: unknown keys, wrong types, missing facts, numbers out of
    range, a throughput of the basis that is not in use.
    """
    try:
        table = tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: not valid TOML: {error}") from None
    problems: list[str] = []
    read = partial(checks.read_table, where=where, problems=problems, elsewhere=_ELSEWHERE)
    top = read(table, "", _TOP)
    problems += [
        f"{where}: {name}: missing; every hardware file must say it"
        for name in FACTS
        if name not in Facts._field_defaults and name not in table
    ]
    parameters = read(top.pop("parameters", {}), "parameters", _PARAMETERS)
    if "compute_ratio" in top:
        top["compute_ratio"] = read(top["compute_ratio"], "compute_ratio", _RATIOS)
    basis = top.get("compute_basis", "flops")
    unused = _unused_key(basis)
    if unused in parameters:
        problems.append(
            f'{where}: parameters: {unused}: not used when compute_basis = "{basis}"; '
            f"give {BASIS_KEYS[basis]} instead, or change compute_basis"
        )
    if problems:
        raise InputError(problems)
    facts = Facts(**{name: top.pop(name) for name in FACTS if name in top})
    top.setdefault("name", Path(where).stem)
    return Hardware(facts=facts, parameters=Parameters(**parameters), text=text, **top)


def format_hardware(hardware: Hardware) -> str:
    """The machine as TOML; parsing it gives an equal machine."""
    unused = _unused_key(hardware.compute_basis)
    default = Facts._field_defaults
    lines = [f"name = {_quoted(hardware.name)}"]
    lines += [f"note = {_quoted(hardware.note)}"] if hardware.note else []
    lines += [f"calibrated = {str(hardware.calibrated).lower()}"]
    lines += [f"{k} = {v}" for k, v in hardware.facts._asdict().items() if v != default.get(k)]
    lines += [f"compute_basis = {_quoted(hardware.compute_basis)}", "", "[parameters]"]
    lines += [
        f"{k} = {float(v)!r}"
        for k, v in hardware.parameters._asdict().items()
        if k != unused or v != INF
    ]
    lines += ["", "[compute_ratio]"]
    lines += [f"{dtype} = {float(ratio)!r}" for dtype, ratio in hardware.compute_ratio.items()]
    return "\n".join(lines) + "\n"


def _unused_key(basis: str) -> str:
    return BASIS_KEYS["bytes" if basis == "flops" else "flops"]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
