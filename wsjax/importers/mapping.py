"""`ours=theirs`: which of a file's columns, or which value for all rows, is one of ours."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from wsjax.errors import InputError, nearest
from wsjax.importers import values, words
from wsjax.importers.csv_rows import MALFORMED
from wsjax.schema import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("time_us_measured", "time_us_measured_p10", "time_us_measured_p90")
MEASURED = (*TIMES, "reps", "status", "source")
OTHERS = ("kernel", "device")
_TIME = re.compile(r"time_(s|ms|us|ns)(_p10|_p90)?")


def parse_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """`ours=theirs` texts as a mapping; InputError with all that is wrong."""
    found: dict[str, str] = {}
    problems = []
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not (equals and ours.strip() and theirs.strip()):
            problems.append(f"--map '{pair}': write ours=theirs, such as block_m=BLOCK_SIZE_M")
        found[ours.strip()] = theirs.strip()
    if problems:
        raise InputError(problems)
    return found


def check(mapping: Mapping[str, str], columns: Iterable[object]) -> None:
    """Raise InputError for names that are not ours, and for theirs that are not in the file."""
    names = [str(name) for name in columns if name != MALFORMED]
    valid = [*COLUMNS, *MEASURED, *OTHERS, "time_ms", "time_us", "time_ns", "time_s"]
    problems = []
    for ours, theirs in mapping.items():
        if ours not in valid and not _TIME.fullmatch(ours):
            problems.append(
                f"--map {ours}={theirs}: '{ours}' is no column of ours{nearest(ours, valid)}"
            )
        elif theirs not in names and _constant(ours, theirs) is None:
            words = COLUMNS[ours].choices if ours in COLUMNS else ()
            problems.append(
                f"--map {ours}={theirs}: '{theirs}' is no column of the file and no value of "
                f"'{ours}'{nearest(theirs, [*names, *words])}"
            )
    targets = Counter(_target(ours) for ours in mapping)
    for target in (target for target, count in targets.items() if count > 1):
        given = ", ".join(f"{o}={t}" for o, t in mapping.items() if _target(o) == target)
        problems.append(f"--map {given}: one time, given twice; leave one of them out")
    if problems:
        raise InputError(problems)


def mapped(mapping: Mapping[str, str], theirs: Mapping[str, "pd.Series"]) -> dict[str, "pd.Series"]:
    """The columns that the mapping makes of a file's."""
    found = {}
    for ours, name in mapping.items():
        if name not in theirs:
            found[ours] = values.everywhere(theirs, _constant(ours, name))
            continue
        unit = _TIME.fullmatch(ours)
        if unit:
            found[_target(ours)] = values.times_us(theirs[name], values.US_PER[unit[1]])
        elif ours in TIMES:
            scale = values.unit_in(name) or 1.0
            found[ours] = values.times_us(theirs[name], scale)
        else:
            found[ours] = theirs[name]
    return found


def _target(ours: str) -> str:
    """The column that a name of `--map` makes."""
    unit = _TIME.fullmatch(ours)
    return f"{TIMES[0]}{unit[2] or ''}" if unit else ours


def _constant(ours: str, text: str) -> int | str | None:
    """A value for all rows, if `text` can be one."""
    column = COLUMNS.get(ours)
    if column is None:
        return text if ours in OTHERS else None
    if column.choices:
        word = words.ours(ours, text)
        return str(word) if word in column.choices else None
    return int(text) if str(text).isdecimal() else None
