"""Columns of a table as ours: which they are (`--map ours=theirs`), numbers and words checked,
defaults filled in, pieces put together."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.importers import values
from wsjax.importers.texts import MALFORMED
from wsjax.schema import COLUMNS, DEFAULTS, with_defaults

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
        word = values.ours(ours, text)
        return str(word) if word in column.choices else None
    return int(text) if str(text).isdecimal() else None


def whole(name: str, given: "pd.Series") -> tuple["pd.Series", np.ndarray]:
    """Whole numbers in range, else blank; and which were neither that nor blank."""
    import pandas as pd

    column = COLUMNS[name]
    number = values.numbers(given).to_numpy()
    with np.errstate(invalid="ignore"):
        good = (number >= column.minimum) & (number <= column.maximum) & (number % 1 == 0)
    blank = given.isna().to_numpy(dtype=bool)
    whole = np.where(good, number, 0).astype(np.int64)
    return pd.Series(pd.arrays.IntegerArray(whole, ~good)), ~good & ~blank


def words(name: str, given: "pd.Series") -> tuple["pd.Series", np.ndarray]:
    """Words of ours or that the field has for them, else blank; and which were neither that nor
    blank."""
    import pandas as pd

    codes, found = pd.factorize(values.scalars(given))
    choices = COLUMNS[name].choices
    told = [values.ours(name, word) for word in found]
    numbers = np.asarray([*(choices.index(w) if w in choices else -1 for w in told), -1])[codes]
    return pd.Series(pd.Categorical.from_codes(numbers, choices)), (numbers < 0) & (codes >= 0)


def filled(
    told: Mapping[str, "pd.Series"],
    wrong: Mapping[str, np.ndarray],
    rows: int,
    usual: Mapping[str, int],
) -> dict[str, "pd.Series"]:
    """The configuration columns in order, with defaults for what is not told (where it is `wrong`,
    it stays blank). `stages` is absent if no row tells it. usual: defaults in place of the
    schema's."""
    import pandas as pd

    kernels: dict[str, Any] = {**DEFAULTS, **usual}
    defaults = with_defaults(kernels)
    if "schedule" in told:
        codes = told["schedule"].cat.codes.to_numpy()
        defaults = with_defaults(
            {**kernels, "schedule": np.where(codes < 0, kernels["schedule"], codes)}
        )
    found = {}
    for name, column in COLUMNS.items():
        default = defaults.get(name)
        if default is None:
            blank = pd.Series(pd.arrays.IntegerArray(np.zeros(rows, int), np.ones(rows, bool)))
            has = name in told and not told[name].isna().all()
            if has or name != "stages":
                found[name] = told.get(name, blank)
        elif column.choices:
            codes = told[name].cat.codes.to_numpy() if name in told else np.full(rows, -1)
            free = (codes < 0) & ~wrong.get(name, np.zeros(rows, bool))
            cells = np.where(free, kernels[name], codes)
            found[name] = pd.Series(pd.Categorical.from_codes(cells, column.choices))
        else:
            found[name] = pd.Series(np.broadcast_to(np.asarray(default), (rows,)).astype("int64"))
            if name in told:
                cells = told[name].fillna(found[name].astype("Int64"))
                found[name] = cells.mask(wrong[name])
    return found


def _category(column: "pd.Series") -> "pd.Series":
    """Texts, or what can be written as such, as categories."""
    import pandas as pd

    codes, found = pd.factorize(values.scalars(column))
    again, words = pd.factorize(np.asarray([*(str(v) for v in found), ""], dtype=object))
    own = np.where(codes < 0, -1, again[codes])
    return pd.Series(pd.Categorical.from_codes(own, words).remove_unused_categories())


def compact(given: Mapping[str, "pd.Series"]) -> "pd.DataFrame":
    """A frame of columns: texts as categories, whole numbers without blanks as such."""
    import pandas as pd

    found = {}
    for name, column in given.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            pass
        elif isinstance(column.dtype, pd.Int64Dtype):
            column = column if column.isna().any() else column.astype("int64")
        elif column.dtype.kind not in "iufbM":
            column = _category(column)
        found[name] = column.array
    return pd.DataFrame(found)


def joined(pieces: list["pd.DataFrame"]) -> "pd.DataFrame":
    """Pieces under each other; a column that one of them lacks is blank there."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    if len(pieces) == 1:
        return pieces[0]
    found = {}
    held = [({str(n): c for n, c in piece.items()}, len(piece)) for piece in pieces]
    for name in dict.fromkeys(name for columns, _ in held for name in columns):
        parts = [c.get(name, pd.Series(np.full(rows, np.nan))) for c, rows in held]
        if any(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
            texts = [_category(part).array for part in parts]
            found[name] = pd.Series(union_categoricals(cast(Any, texts)))
        else:
            found[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(found)
