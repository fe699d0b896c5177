"""What a hardware file may say. A check returns what is wrong with a value, or nothing."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from wsjax.errors import nearest
from wsjax.hardware.kernels import KERNELS
from wsjax.hardware.parameters import PARAMETERS
from wsjax.schema import COLUMNS, shown

LARGEST = 2**31
SLOWEST, MOST = 1e-9, 1e12
"""The least rate and the greatest other parameter: days for what takes microseconds."""
BASES = ("flops", "bytes")
MOST_WIDTH = 4096

Check = Callable[[str, Any], str]


def read_table(
    table: Mapping[str, Any],
    section: str,
    checks: Mapping[str, Check],
    *,
    where: str,
    problems: list[str],
    elsewhere: Mapping[str, str],
) -> dict[str, Any]:
    """The right entries of one table; what is wrong is appended to `problems`.

    `elsewhere` names the place of keys that are only valid in another table.
    """
    place = f"{where}: {section}: " if section else f"{where}: "
    good = {}
    for key, value in table.items():
        if key in checks:
            complaint = checks[key](key, value)
        elif key in elsewhere:
            complaint = f"unknown key here; it belongs {elsewhere[key]}"
        else:
            complaint = f"unknown key{nearest(key, checks)}"
        if complaint:
            problems.append(f"{place}{key}: {complaint}")
        else:
            good[key] = float(value) if checks[key] in NUMBERS else value
    return good


def fact(key: str, value: Any) -> str:
    """A whole number of at least 1, or 0 for what a machine does without."""
    if type(value) is not int:
        return f"expected a whole number, not {shown(value)}{_plainly(value, int)}"
    minimum = 0 if key in ("epilogue_smem_bytes_max", "cutlass_raster", "pipelined") else 1
    if minimum <= value <= LARGEST:
        return ""
    return f"{value} is out of range; nearest valid: {max(minimum, min(value, LARGEST))}"


def parameter(key: str, value: Any) -> str:
    """A rate (above 0, or inf), or else 0 or more and finite, as `PARAMETERS` says."""
    if not _is_number(value):
        return f"expected a number, not {shown(value)}{_plainly(value, float)}"
    known = PARAMETERS[key]
    if known.is_rate and not value > 0:
        return f"{value} is no rate: it must be above 0; left out it is inf"
    if not known.is_rate and not 0 <= value < math.inf:
        what = "time" if known.unit == "µs" else "value"
        return f"{value} is no {what}: it must be finite and at least 0; nearest valid: 0"
    least, most = (SLOWEST, math.inf) if known.is_rate else (0, MOST)
    if least <= value <= most:
        return ""
    return f"{value} is out of range; nearest valid: {min(max(value, least), most)}"


def ratio(key: str, value: Any) -> str:
    """A finite number above 0."""
    if not _is_number(value):
        return f"expected a number, not {shown(value)}{_plainly(value, float)}"
    if 0 < value < math.inf:
        return ""
    if key.endswith(("_us", "_bytes", "_mhz")):
        return f"{value} is no fact: it must be finite and above 0; left out it is not known"
    return f"{value} is no ratio: it must be finite and above 0; a dtype without a rate is left out"


def error(key: str, value: Any) -> str:
    """A finite number, 0 or more: an error of a logarithm, a figure in per cent."""
    if not _is_number(value):
        return f"expected a number, not {shown(value)}{_plainly(value, float)}"
    return "" if 0 <= value < math.inf else f"{value} must be finite and at least 0"


def count(key: str, value: Any) -> str:
    """A whole number, 0 or more."""
    good = type(value) is int and 0 <= value < 2**63
    return "" if good else f"expected a whole number of at least 0, not {shown(value)}"


def span(key: str, value: Any) -> str:
    """What a column held: the least and the greatest of its numbers, or its words."""
    choices = COLUMNS[key].choices
    if choices:
        if not (isinstance(value, list) and value):
            return f"expected a list of words, not {shown(value)}"
        wrong = [word for word in value if word not in choices]
        return f"unknown word {shown(wrong[0])}{nearest(wrong[0], choices)}" if wrong else ""
    pair = isinstance(value, list) and len(value) == 2
    if pair and all(type(x) is int for x in value) and value[0] <= value[1]:
        return ""
    return f"expected [least, greatest] as whole numbers, not {shown(value)}"


def words(key: str, value: Any) -> str:
    """A list of texts."""
    good = isinstance(value, list) and all(isinstance(word, str) for word in value)
    return "" if good else f"expected a list of texts, not {shown(value)}"


def widths(key: str, value: Any) -> str:
    """The widths of a network's two hidden layers."""
    pair = isinstance(value, list) and len(value) == 2
    good = pair and all(type(width) is int and 1 <= width <= MOST_WIDTH for width in value)
    return "" if good else f"expected two whole numbers from 1 to {MOST_WIDTH}, not {shown(value)}"


def interval(key: str, value: Any) -> str:
    """[low, high]: finite numbers in order."""
    pair = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
    if pair and -math.inf < value[0] <= value[1] < math.inf:
        return ""
    return f"expected [low, high], two numbers in order, not {shown(value)}"


def basis(key: str, value: Any) -> str:
    """ "flops" or "bytes"."""
    return "" if value in BASES else f"{shown(value)} is no basis{nearest(value, BASES)}"


def kernels(key: str, value: Any) -> str:
    """A family of kernels."""
    return "" if value in KERNELS else f"{shown(value)} is no family{nearest(value, KERNELS)}"


def boolean(key: str, value: Any) -> str:
    """true or false."""
    return "" if isinstance(value, bool) else f"expected true or false, not {shown(value)}"


def table(key: str, value: Any) -> str:
    """A table."""
    return "" if isinstance(value, dict) else f"expected a table, [{key}], not {shown(value)}"


def text(key: str, value: Any) -> str:
    """Any text."""
    return "" if isinstance(value, str) else f"expected text in quotes, not {shown(value)}"


def name(key: str, value: Any) -> str:
    """Text that is not blank."""
    return text(key, value) or ("" if value.strip() else "must not be empty")


NUMBERS = (parameter, ratio, error)
"""The checks whose values are read as floats."""


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 2**63)


def _plainly(value: Any, number: type[int] | type[float]) -> str:
    """The hint for a number in quotes, or a whole one with a fraction."""
    try:
        same = not isinstance(value, bool) and number(value) == float(value)
    except (TypeError, ValueError, OverflowError):
        return ""
    return f"; write {number(value)}" if same else ""
