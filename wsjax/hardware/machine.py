"""Machines: their facts and continuous parameters, in TOML files.

A file needs `sms`, `smem_bytes_per_sm` and `warp_size`; every other value has a neutral default
(0 for a time, infinity for a rate), so that a minimal file is the paper's machine:

    name = "toy"
    sms = 4
    smem_bytes_per_sm = 102400
    warp_size = 32
    compute_basis = "flops"
    dram_bytes_per_us = 4.8e6                     # facts that bound parameters: `hardware.peaks`
    [peak_flop_per_us]
    bf16 = 989.4e6
    [parameters]                                  # the machine's
    load_throughput_bytes_per_us = 32768.0
    compute_throughput_flop_per_us = 2097152.0
    [family]                                      # the kernel family's: how its code is written
    sync_us = 0.01
    [compute_ratio]                               # of rates; default: of [peak_flop_per_us]
    bf16 = 1.0

`base = "NAME|FILE.toml"` takes over another machine, but for what the file says itself: top-level
keys, and single entries of [parameters], [family], [peak_flop_per_us] and [compute_ratio]; where it
changes any of these, not [residual].
`like = "NAME|FILE.toml"` takes over only parameters, scaled by what facts differ. `kernels =
"triton_async"` gives the facts of a family of kernels (`wsjax.hardware.kernels`) but for those that
the file says itself. A calibrated file
says in [calibration] where its values come from, in [standard_errors] how sure they are (of the
logarithm), in [span] what the measured table held, and in [spread] how far predictions were off
(`wsjax.intervals`), and may have a learned correction in [residual] (`wsjax.hardware.residual`).
"""

import tomllib
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from wsjax.errors import InputError, nearest
from wsjax.hardware import checks
from wsjax.hardware.kernels import facts_of
from wsjax.hardware.parameters import INF, Parameters
from wsjax.hardware.peaks import DataSheet, Peaks, beyond, ceilings, filled, ratios, scaled
from wsjax.hardware.residual import Head, Residual, read_residual
from wsjax.hardware.sections import BASIS_KEYS, FACTS, PARAMETERS, TABLES, TOP, unused_key
from wsjax.schema import COLUMNS, DTYPES, Facts

__all__ = [
    "BASIS_KEYS",
    "FACTS",
    "INF",
    "PARAMETERS",
    "SHIPPED",
    "Facts",
    "Hardware",
    "Parameters",
    "check_rates",
    "checks",
    "format_hardware",
    "hardware_names",
    "load_hardware",
    "parse_hardware",
]
SHIPPED = Path(__file__).parent
MERGED = ("parameters", "family", "peak_flop_per_us", "compute_ratio")
"""Tables that a file with a `base` extends; others it replaces."""
DEEPEST_BASE = 8
LOAD_RATES = (
    "load_throughput_bytes_per_us",
    "l2_throughput_bytes_per_us",
    "dram_throughput_bytes_per_us",
)


@dataclass(frozen=True)
class Hardware:
    """One machine. `compute_ratio` is each input dtype's rate relative to the compute throughput;
    a dtype that is absent has no rate. `peaks` and `peak_flop_per_us`: facts that bound parameters.
    `text` is the file it came from, and no part of equality.

    After a calibration: `standard_errors` of the logarithms of fitted parameters, `calibration`
    (what they were fitted to, when, how well), `span` (what each column of that table held: [least,
    greatest], or words), `spread` (of measured around predicted times), `residual` (a learned
    correction of times inside that span).
    """

    name: str
    facts: Facts
    parameters: Parameters
    compute_basis: str = "flops"
    compute_ratio: dict[str, float] = field(default_factory=lambda: {"bf16": 1.0, "fp16": 1.0})
    calibrated: bool = False
    note: str = ""
    standard_errors: dict[str, float] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)
    span: dict[str, list[Any]] = field(default_factory=dict)
    spread: dict[str, Any] = field(default_factory=dict)
    residual: Residual | None = None
    peaks: Peaks = field(default_factory=Peaks)
    peak_flop_per_us: dict[str, float] = field(default_factory=dict)
    text: str = field(default="", compare=False, repr=False)

    @property
    def rates(self) -> tuple[float, ...]:
        """The `compute_ratio` of each dtype by its code, 0 for a dtype that has no rate."""
        return tuple(self.compute_ratio.get(name, 0.0) for name in DTYPES)

    @property
    def head(self) -> Head | None:
        """The learned correction as programs take it, if there is one."""
        if self.residual is None:
            return None
        span = self.span_numbers
        if self.parameters.load_startup_us == 0.0:
            # The times of kernels that differ only in their DMA warps are one and the same.
            span = {name: known for name, known in span.items() if name != "dma_warps"}
        return Head(self.residual, tuple((name, *known) for name, known in span.items()))

    @cached_property
    def span_numbers(self) -> dict[str, list[int]]:
        """The `span` with codes for words."""
        return {name: [COLUMNS[name].number(x) for x in known] for name, known in self.span.items()}

    @property
    def physics(self) -> "Hardware":
        """The machine without its learned correction."""
        return replace(self, residual=None) if self.residual else self

    @property
    def sheet(self) -> DataSheet:
        """The facts on which parameters depend."""
        return DataSheet(self.facts, self.peaks, self.peak_flop_per_us, self.compute_ratio)

    @property
    def dram_roof_bytes_per_us(self) -> float:
        """The rate of DRAM that no kernel exceeds: the data sheet's, or, where the file has none,
        the parameter."""
        fact = self.peaks.dram_bytes_per_us
        return fact if fact < INF else self.parameters.dram_throughput_bytes_per_us

    @property
    def ceilings(self) -> dict[str, float]:
        """The most that parameters can be, for those that are bounded."""
        return ceilings(self.sheet)


def hardware_names() -> list[str]:
    """The shipped machines, in alphabetical order."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_hardware(name_or_path: str | Path | Hardware) -> Hardware:
    """A machine by its shipped name or from a TOML file. Raises InputError with all mistakes."""
    if isinstance(name_or_path, Hardware):
        return name_or_path
    if not isinstance(name_or_path, str | Path):
        raise InputError(
            "hardware: expected a machine's name, a file's or a Hardware, "
            f"not {type(name_or_path).__name__}; machines: {', '.join(hardware_names())}"
        )
    path = _find(name_or_path)
    known = _known.get(path)
    if known is None or any(_read(file) != text for file, text in known[0].items()):
        texts: dict[Path, str] = {}
        token = _texts.set(texts)
        try:
            known = _known[path] = (texts, parse_hardware(_read(path), str(path)))
        finally:
            _texts.reset(token)
    machine = known[1]
    given = {part.name: getattr(machine, part.name) for part in fields(machine)}
    own = {name: dict(value) for name, value in given.items() if isinstance(value, dict)}
    return replace(machine, **own)


_known: dict[Path, tuple[dict[Path, str], Hardware]] = {}
"""Machines by their files, with the texts of all files that were read for each."""
_texts: ContextVar[dict[Path, str] | None] = ContextVar("texts", default=None)
"""Where to note the texts that are read."""


def parse_hardware(text: str, where: str = "hardware") -> Hardware:
    """A machine from the text of a file; `where` names it in messages, and a base is looked for
    beside it.

    Raises InputError with every mistake: unknown keys, wrong types, missing facts, numbers out of
    range, a throughput of the basis that is not in use.
    """
    return _parse(text, where, DEEPEST_BASE)


def _parse(text: str, where: str, depth: int) -> Hardware:
    table = _tables(text, where, depth)
    problems: list[str] = []
    read = partial(checks.read_table, where=where, problems=problems)
    top = read(table, "", TOP.checks, elsewhere=TOP.elsewhere)
    problems += [
        f"{where}: {name}: missing; every hardware file must say it"
        for name in FACTS
        if name not in Facts._field_defaults and name not in table
    ]
    found: dict[str, Any] = {
        name: read(top.pop(name), name, section.checks, elsewhere=section.elsewhere)
        for name, section in TABLES.items()
        if name in top
    }
    if found.get("spread") and "all" not in found["spread"]:
        problems.append(f"{where}: spread: all: missing; every [spread] must say it")
    if "residual" in found:
        try:
            found["residual"] = read_residual(found["residual"])
        except ValueError as error:
            problems.append(f"{where}: residual: {error}")
    own, family = found.pop("parameters", {}), found.pop("family", {})
    problems += [
        f"{where}: family: {name}: is given under [parameters] too; leave one out"
        for name in family
        if name in own
    ]
    basis = top.get("compute_basis", "flops")
    unused = unused_key(basis)
    if unused in own:
        problems.append(
            f'{where}: parameters: {unused}: not used when compute_basis = "{basis}"; '
            f"give {BASIS_KEYS[basis]} instead, or change compute_basis"
        )
    if problems:
        raise InputError(problems)
    told = {name: top.pop(name) for name in FACTS if name in top}
    if kernels := top.pop("kernels", ""):
        told = facts_of(kernels, told.get("mma_warps", 1)) | told
    facts = Facts(**told)
    peaks = Peaks(**{name: top.pop(name) for name in Peaks._fields if name in top})
    top.setdefault("name", Path(where).stem)
    extends, like = top.pop("base", None), top.pop("like", None)
    if "peak_flop_per_us" in found:
        found.setdefault("compute_ratio", ratios(found["peak_flop_per_us"]))
    values: dict[str, Any] = {**top, **found}
    machine = Hardware(facts=facts, peaks=peaks, parameters=Parameters(), **values)
    given = own | family
    if wrong := beyond(given, machine.sheet):
        raise InputError([f"{where}: parameters: {problem}" for problem in wrong])
    if like:
        other = _other(like, where, depth)
        given = scaled(other.parameters, other.sheet, machine.sheet) | given
    elif basis == "flops":
        given = filled(given, machine.sheet)
    machine = replace(machine, parameters=Parameters(**given))
    return replace(machine, text=format_hardware(machine) if extends or like else text)


def _other(like: str, where: str, depth: int) -> Hardware:
    """The machine that a file is like."""
    if not depth:
        raise InputError(f"{where}: like: these files are like each other; leave one out")
    path = _find(like, Path(where).parent)
    return _parse(_read(path), str(path), depth - 1)


def format_hardware(hardware: Hardware) -> str:
    """The machine as TOML; parsing it gives an equal machine."""
    from wsjax.hardware.formatting import lines

    return "\n".join(lines(hardware)) + "\n"


def _find(name_or_path: str | Path, beside: Path | None = None) -> Path:
    """The file of a shipped machine, or the path of another; relative to `beside`."""
    path = Path(name_or_path)
    if str(name_or_path) in hardware_names():
        return SHIPPED / f"{name_or_path}.toml"
    if path.suffix != ".toml":
        raise InputError(
            f"hardware: no machine is called '{name_or_path}'"
            f"{nearest(name_or_path, hardware_names())}; for a file of your own give a path that "
            "ends in .toml"
        )
    return path if beside is None else beside / path


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if (texts := _texts.get()) is not None:
            texts[path] = text
        return text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(
            f"{path}: can't read this hardware file: {reason}; "
            f"machines that need no file: {', '.join(hardware_names())}"
        ) from None


def _tables(text: str, where: str, depth: int) -> dict[str, Any]:
    """The TOML of a file over that of its bases. `base` stays in it."""
    try:
        own = tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: not valid TOML: {error}") from None
    if {"columns", "problems"} & own.keys():
        raise InputError(f"{where}: is a sweep file, no machine; run it: wsjax sweep {where}")
    base = own.get("base")
    if not isinstance(base, str):
        return own
    if not depth:
        raise InputError(f"{where}: base: these files extend each other; leave one base out")
    path = _find(base, Path(where).parent)
    below = _tables(_read(path), str(path), depth - 1)
    if {*FACTS, *Peaks._fields, *MERGED, "compute_basis", "kernels"} & own.keys():
        below.pop("residual", None)
    if "kernels" in own:
        below.pop("pipelined", None)
        below.pop("cutlass_raster", None)
    named = below | {"name": Path(where).stem} | own
    both = [key for key in MERGED if isinstance(below.get(key), dict) and key in own]
    extended = {key: below[key] | own[key] for key in both if isinstance(own[key], dict)}
    return named | extended


def check_rates(hardware: Hardware, given: Collection[str] = ()) -> None:
    """InputError for a machine that has no rates, so that all of its times would be 0.

    given: parameters that a sweep gives.
    """
    compute, own = BASIS_KEYS[hardware.compute_basis], hardware.parameters
    if all(getattr(own, name) == INF and name not in given for name in (compute, *LOAD_RATES)):
        raise InputError(
            f"{hardware.name}: has no rates, so that times would be 0; missing under [parameters]: "
            f"{compute}, and one or more of {', '.join(LOAD_RATES)}"
        )
