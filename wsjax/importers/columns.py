"""Columns of a table: numbers and words checked, defaults filled in, pieces put together."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wsjax.importers import values
from wsjax.importers import words as known
from wsjax.schema import COLUMNS, DEFAULTS, with_defaults

if TYPE_CHECKING:
    import pandas as pd


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
    told = [known.ours(name, word) for word in found]
    own = np.asarray([*(choices.index(w) if w in choices else -1 for w in told), -1])[codes]
    return pd.Series(pd.Categorical.from_codes(own, choices)), (own < 0) & (codes >= 0)


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

    usual = {**DEFAULTS, **usual}
    defaults = with_defaults(usual)
    if "schedule" in told:
        codes = told["schedule"].cat.codes.to_numpy()
        defaults = with_defaults(
            {**usual, "schedule": np.where(codes < 0, usual["schedule"], codes)}
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
            own = np.where(free, usual[name], codes)
            found[name] = pd.Series(pd.Categorical.from_codes(own, column.choices))
        else:
            found[name] = pd.Series(np.broadcast_to(np.asarray(default), (rows,)).astype("int64"))
            if name in told:
                own = told[name].fillna(found[name].astype("Int64"))
                found[name] = own.mask(wrong[name])
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
