"""What a hardware file may say. A check returns what is wrong with a value, or nothing."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from wsjax.errors import nearest
from wsjax.space import shown

LARGEST = 2**31
BASES = ("flops", "bytes")

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
            good[key] = float(value) if checks[key] in (parameter, ratio) else value
    return good


def fact(key: str, value: Any) -> str:
    """A whole number of at least 1, or 0 where the epilogue needs no buffer."""
    if type(value) is not int:
        return f"expected a whole number, not {shown(value)}{_plainly(value, int)}"
    minimum = 0 if key == "epilogue_smem_bytes_max" else 1
    if minimum <= value <= LARGEST:
        return ""
    return f"{value} is out of range; nearest valid: {max(minimum, min(value, LARGEST))}"


def parameter(key: str, value: Any) -> str:
    """A rate (above 0, or inf) where the key says throughput, else a time (0 or more, finite)."""
    if not _is_number(value):
        return f"expected a number, not {shown(value)}{_plainly(value, float)}"
    if "throughput" in key:
        return "" if value > 0 else f"{value} is no rate: it must be above 0; left out it is inf"
    if 0 <= value < math.inf:
        return ""
    return f"{value} is no time: it must be finite and at least 0; nearest valid: 0"


def ratio(key: str, value: Any) -> str:
    """A finite number above 0."""
    if not _is_number(value):
        return f"expected a number, not {shown(value)}{_plainly(value, float)}"
    if 0 < value < math.inf:
        return ""
    return f"{value} is no ratio: it must be finite and above 0; a dtype without a rate is left out"


def basis(key: str, value: Any) -> str:
    """ "flops" or "bytes"."""
    return "" if value in BASES else f"{shown(value)} is no basis{nearest(value, BASES)}"


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


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 2**63)


def _plainly(value: Any, number: type[int] | type[float]) -> str:
    """The hint for a number in quotes, or a whole one with a fraction."""
    try:
        same = not isinstance(value, bool) and number(value) == float(value)
    except (TypeError, ValueError, OverflowError):
        return ""
    return f"; write {number(value)}" if same else ""
