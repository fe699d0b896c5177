"""Sweep files: which configurations to predict, on which machines, in TOML.

    name = "llama-8b on an H200"                # default: the file's stem
    hardware = ["h200"]                         # shipped names, or paths relative to this file
    [columns]                                   # one entry a configuration column
    m = [1, 16, 128, 4096]                      # what is left out has its default
    n = { from = 128, to = 8192, step = 128 }   # up to the last value that does not pass `to`
    block_m = { from = 64, to = 256, factor = 2 }
    schedule = "persistent"
    [problems]                                  # instead of those of m, n, k (and batch, dtypes,
    rows = [{ name = "qkv", n = 6144, k = 4096 }]   # layout) that it has; or file = "shapes.csv"
    [hardware_parameters]                       # the machine itself as further axes
    load_latency_us = { scale = [0.5, 1.0, 2.0] }
    sms = [132, 148]
    [filter]
    where = "block_m * block_n <= 32768 and stages >= 2"
    [output]                                    # without it, all rows are kept
    keep = "best"                               # of each problem, on each machine, only
    best = 10                                   # the 10 fastest legal configurations
    precision = "float64"                       # of formulas (default); float32 agrees to 1e-5
    partition_by = "hardware"                   # a folder for each value (hardware=h200/…), or a
                                                # list of columns of machines and problems

`keep = "quantiles"` instead keeps one row a problem and machine, which says how the times of its
legal configurations are distributed (`wsjax.sweeps`).

The rows are all combinations: hardware outermost, then hardware parameters, problems, and columns
in the order of `schema.COLUMNS`, the last fastest.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.hardware import (
    FACTS,
    PARAMETERS,
    Hardware,
    check_rates,
    extrapolation,
    family_defaults,
    hardware_names,
    load_hardware,
)
from wsjax.schema import (
    COLUMNS,
    GEMM,
    PROBLEM,
    REQUIRED,
    Axis,
    Column,
    Product,
    shown,
    toml_value,
    with_defaults,
)
from wsjax.spec.axes import (
    Override,
    Refuse,
    column_axis,
    read_overrides,
    read_problems,
    read_values,
)
from wsjax.spec.where import Predicate, parse

SECTIONS = ("columns", "problems", "hardware_parameters", "filter", "output")
GIVEN = (*PROBLEM, "problem")
"""What a kernel finds: the columns of the problem, and its name."""
OUTPUT_KEYS = ("keep", "best", "precision", "partition_by")
KEEP = ("all", "best", "quantiles")
PRECISIONS = ("float64", "float32")
BEST_MAX = 100_000
_ELSEWHERE = (
    dict.fromkeys((*PARAMETERS, *FACTS), "[hardware_parameters]")
    | dict.fromkeys(COLUMNS, "[columns]")
    | dict.fromkeys(("rows", "file"), "[problems]")
    | {"where": "[filter]"}
    | dict.fromkeys(OUTPUT_KEYS, "[output]")
    | dict.fromkeys(("name", "hardware"), "the top of the file, above the first [section]")
)
"""Where a key belongs that stands in a section which has no such key."""


@dataclass(frozen=True)
class Output:
    """`best`: how many of each problem's fastest rows are kept; None: all rows. `partition_by`: the
    columns that folders stand for, outermost first. `quantiles`: of each problem there is but one
    row, of its times' distribution. `single`: formulas are computed in float32."""

    best: int | None = None
    partition_by: tuple[str, ...] = ()
    quantiles: bool = False
    single: bool = False


@dataclass(frozen=True, eq=False)
class Spec:
    """A sweep file, read and checked.

    `hardware`: the machines. `axes`: problems and columns. `overrides`: axes over hardware
    parameters, outside those. `where`: the filter as it is written. `text`: the file's text, with
    a problem file's rows written into it, so that it stands alone (but for hardware files).
    `output`: which rows are kept.
    """

    name: str
    hardware: tuple[Hardware, ...]
    axes: tuple[Axis, ...]
    overrides: tuple[Override, ...]
    where: str | None
    text: str
    path: Path
    output: Output

    def product(self, hardware: Hardware) -> Product:
        """All rows on one of the machines, before the filter; columns left out are not in it,
        unless the machine's kernels have a default of their own.

        Hardware parameters are float64 columns, facts int64, with the values that rows use. Where
        only each problem's best rows are kept, what L2 holds belongs to the problem: its axis comes
        before those of kernels.
        """
        machine = [override.axis(hardware) for override in self.overrides]
        axes = [*self.axes, *self._family_axes(hardware)]
        if self.output.best is not None:
            axes = sorted(axes, key=lambda axis: not set(axis.names) <= set(GIVEN))
        return Product((*machine, *axes))

    def _family_axes(self, hardware: Hardware) -> list[Axis]:
        """The defaults of a machine's kernels for columns that are left out."""
        given = {name for axis in self.axes for name in axis.names}
        defaults = family_defaults(hardware).items()
        return [Axis((name,), (np.array([x]),)) for name, x in defaults if name not in given]

    def extrapolated(self) -> dict[str, list[str]]:
        """Why rows are extrapolated, if any is: reasons in words, and the machines of each."""
        given = {n: v for a in self.axes for n, v in zip(a.names, a.values, strict=True)}
        reasons: dict[str, list[str]] = {}
        for machine in self.hardware:
            why = extrapolation(machine, with_defaults(family_defaults(machine) | given))
            if self.overrides and not why:
                why = "the machine's parameters are swept"
            if why:
                reasons.setdefault(why, []).append(machine.name)
        return reasons

    def predicate(self) -> Predicate | None:
        """The filter over the configuration columns, `problem`, and swept hardware parameters."""
        if self.where is None:
            return None
        swept = [override.name for override in self.overrides]
        return parse(self.where, _filter_columns(self.axes, swept))


def split(product: Product) -> tuple[Product, Product]:
    """A product whose first axes say what is given (problems, what is swept of the machine) and
    whose others say what is tried, in two."""
    names = [{*axis.names} for axis in product.axes]
    given = takewhile(lambda axis: not axis & {*COLUMNS} or axis <= {*GIVEN}, names)
    count = len(list(given))
    return Product(product.axes[:count]), Product(product.axes[count:])


def load_spec(path: str | Path) -> Spec:
    """Read a sweep file. Raises InputError with all its mistakes, each with file, key and value."""
    path = Path(path)
    return parse_spec(read_text(path, "sweep file"), path)


def read_text(path: Path, kind: str) -> str:
    """The text of a file that a user wrote: a `kind` such as "sweep file"."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 text (byte {error.start + 1}); save the file as UTF-8"
        ) from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a folder; give a {kind} (.toml)") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: can't read this {kind}: {reason}") from None


def parse_toml(text: str, path: Path, kind: str) -> dict[str, Any]:
    """The table that a file's text spells."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: not a {kind}: brackets nested too deep") from None


def refuse_in(path: Path, problems: list[str], section: str = "") -> Refuse:
    """What puts the complaints about a section's keys into `problems`, one line each."""
    place = f"{path}: {section}: " if section else f"{path}: "
    return lambda key, text: problems.append(f"{place}{key}: {text}".replace("\n", " "))


def parse_spec(text: str, path: str | Path, machines: Sequence[Hardware] | None = None) -> Spec:
    """A sweep from its text; `path` names it in messages, and files in it are relative to it.

    `machines` stand for those that the text names, where their files may be gone: a table's
    metadata holds both texts. Raises InputError with all mistakes.
    """
    path = Path(path)
    table = parse_toml(text, path, "sweep file")
    if not table.keys() & {"columns", "problems"} and table.keys() & {*FACTS, "parameters"}:
        raise InputError(
            f"{path}: is a machine's file, no sweep; name it in a sweep's hardware = [\"{path}\"]"
        )
    problems: list[str] = []

    refuse = partial(refuse_in, path, problems)
    top = refuse()
    refuse_unknown(table, ("name", "hardware", *SECTIONS), top)
    sections = {section: read_section(table, section, top) for section in SECTIONS}
    name = _read_name(table.get("name", path.stem), top)
    if machines is None:
        machines = _read_hardware(table.get("hardware"), path.parent, top)
    refuse_unknown(
        sections["hardware_parameters"], (*PARAMETERS, *FACTS), refuse("hardware_parameters")
    )
    overrides = read_overrides(
        sections["hardware_parameters"], machines, refuse("hardware_parameters")
    )
    for machine in machines:
        try:
            check_rates(machine, [override.name for override in overrides])
        except InputError as error:
            top("hardware", str(error))
    rows, axes = None, []
    if "problems" in table:
        refuse_unknown(sections["problems"], ("rows", "file"), refuse("problems"))
        if problems_read := read_problems(sections["problems"], path.parent, refuse("problems")):
            rows, axes = problems_read[0], [problems_read[1]]
    axes += _read_columns(sections["columns"], axes, "problems" in table, refuse("columns"))
    swept = [name for name in sections["hardware_parameters"] if name in (*PARAMETERS, *FACTS)]
    where = read_where(sections["filter"], _filter_columns(axes, swept), refuse("filter"))
    output = _read_output(sections["output"], refuse("output"))
    if problems:
        raise InputError(dict.fromkeys(problems))
    if rows is not None and "file" in sections["problems"]:
        table |= {"problems": {"rows": rows}}
        text = "".join(f"{key} = {toml_value(value)}\n" for key, value in table.items())
    spec = Spec(name, tuple(machines), tuple(axes), overrides, where, text, path, output)
    try:
        for machine in machines:
            spec.product(machine)
    except InputError as error:
        raise InputError(f"{path}: {problem}" for problem in error.problems) from None
    return spec


def refuse_unknown(table: Mapping[str, Any], keys: Sequence[str], refuse: Refuse) -> None:
    """Complain of each key that is none of `keys`: where it belongs, or the nearest of them."""
    for key in [key for key in table if key not in keys]:
        place = _ELSEWHERE.get(key)
        hint = f"; it belongs in {place}" if place else nearest(key, keys)
        refuse(key, f"unknown key here{hint}")


def read_section(table: Mapping[str, Any], section: str, refuse: Refuse) -> dict[str, Any]:
    """A section of a file, empty where it has none."""
    given = table.get(section, {})
    if isinstance(given, dict):
        return given
    refuse(section, f"expected a table, [{section}], not {shown(given)}")
    return {}


def _read_name(name: Any, refuse: Refuse) -> str:
    if not isinstance(name, str):
        refuse("name", f"expected text in quotes, not {shown(name)}")
    elif not name.strip() or name.startswith(".") or len(name.encode()) > 200:
        refuse("name", f"{shown(name)} can't name the results' folder; give a plain, short name")
    elif not name.isprintable() or set(name) & set("/\\"):
        refuse("name", f"{shown(name)} can't name the results' folder; leave out / and \\")
    return str(name)


def _read_hardware(names: Any, folder: Path, refuse: Refuse) -> tuple[Hardware, ...]:
    if names is None:
        refuse("hardware", f"missing; give one or more of: {', '.join(hardware_names())}")
        return ()
    machines: dict[str, Hardware] = {}

    def check(key: str, name: Any) -> str:
        if not isinstance(name, str):
            return f"expected names in quotes, not {shown(name)}{nearest(name, hardware_names())}"
        shipped = name in hardware_names() or not name.endswith(".toml")
        try:
            machines[name] = load_hardware(name if shipped else folder / name)
        except InputError as error:
            for problem in error.problems:
                refuse(key, problem.removeprefix("hardware: "))
        return ""

    if isinstance(names, dict):
        names = [names]
    read_values("hardware", names, check, refuse)
    called = [machine.name for machine in machines.values()]
    for name in sorted({name for name in called if called.count(name) > 1}):
        refuse("hardware", f"two machines are called '{name}'; rename one in its file")
    return tuple(machines.values())


def _read_columns(
    table: Mapping[str, Any], listed: Sequence[Axis], has_list: bool, refuse: Refuse
) -> list[Axis]:
    """The axes of [columns]; `listed` is the axis of [problems], if there is one that is right."""
    refuse_unknown(table, tuple(COLUMNS), refuse)
    names = {name for axis in listed for name in axis.names}
    for name in [name for name in table if name in names]:
        refuse(name, "given both here and in [problems]; leave one out")
    missing = [name for name in REQUIRED if name not in table and name not in names]
    if has_list and not listed:
        missing = [name for name in missing if name not in GEMM]
    for name in missing:
        place = "here or in [problems]" if name in GEMM else "here"
        refuse(name, f"missing; give it {place}, such as {name} = 128")
    axes = [column_axis(name, table[name], refuse) for name in COLUMNS if name in table]
    return [axis for axis in axes if axis is not None]


def read_where(
    table: Mapping[str, Any], columns: Mapping[str, Column], refuse: Refuse
) -> str | None:
    """The filter of [filter] as it is written, after a check."""
    refuse_unknown(table, ("where",), refuse)
    where = table.get("where")
    if where is None:
        return None
    if not isinstance(where, str):
        refuse("where", f"expected a condition in quotes, not {shown(where)}")
        return None
    try:
        parse(where, columns)
    except InputError as error:
        for problem in error.problems:
            refuse("where", problem)
    return where


def _filter_columns(axes: Sequence[Axis], swept: Sequence[str]) -> dict[str, Column]:
    """What a filter may read: configuration columns, `problem`, and swept hardware parameters."""
    columns = dict(COLUMNS)
    for axis in axes:
        for name, words in axis.words.items():
            columns[name] = Column(name, "a problem's name", choices=words)
    for name in swept:
        columns[name] = Column(name, "swept", minimum=int(name in FACTS), maximum=2**63)
    return columns


def _read_output(table: Mapping[str, Any], refuse: Refuse) -> Output:
    """The [output] of a sweep file."""
    refuse_unknown(table, OUTPUT_KEYS, refuse)
    best = table.get("best")
    keep = table.get("keep", "all" if best is None else "best")
    if keep not in KEEP:
        refuse("keep", f"unknown word {shown(keep)}{nearest(keep, KEEP)}")
    if best is not None and not (type(best) is int and 1 <= best <= BEST_MAX):
        refuse("best", f"expected a whole number from 1 to {BEST_MAX}, not {shown(best)}")
    if keep == "all" and best is not None:
        refuse("best", 'not with keep = "all", which keeps all rows; leave one of them out')
    if keep == "quantiles" and best is not None:
        refuse("best", 'not with keep = "quantiles", which keeps no rows; leave one of them out')
    if keep == "best" and best is None:
        refuse("best", "missing: how many of each problem's rows to keep, such as best = 10")
    precision = table.get("precision", PRECISIONS[0])
    if precision not in PRECISIONS:
        refuse("precision", f"unknown word {shown(precision)}{nearest(precision, PRECISIONS)}")
    single = precision == "float32"
    if keep == "best" and single:
        refuse("precision", 'not float32 with keep = "best", whose bounds need float64')
    return Output(
        best if keep == "best" else None, _folders(table, refuse), keep == "quantiles", single
    )


def _folders(table: Mapping[str, Any], refuse: Refuse) -> tuple[str, ...]:
    """The columns of partition_by; `layout` knows which can be."""
    names = table.get("partition_by", [])
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        refuse("partition_by", f"expected columns' names in quotes, not {shown(names)}")
        return ()
    if len({*names}) < len(names):
        refuse("partition_by", "a column is in the list twice; leave one out")
    return tuple(dict.fromkeys(names))
