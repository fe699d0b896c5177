"""The columns that say what a row's kernel is given: problem, machine, what is swept of it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import tables
from wsjax.schema import COLUMNS
from wsjax.spec import PROBLEM_COLUMNS
from wsjax.sweeps.blocks import Part

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULTS = {name: c.default_number for name, c in COLUMNS.items() if c.default_number is not None}


def names_of(part: Part) -> list[str]:
    """All of them, in the order of tables."""
    others = [name for name in part.product.names if name not in (*COLUMNS, *part.swept)]
    return [*PROBLEM_COLUMNS, "l2_state", *others, "hardware", *part.swept]


def numbers_of(part: Part, names: Iterable[str], numbers: np.ndarray) -> dict[str, Any]:
    """Columns of the rows of these numbers, as numbers; one that never changes may be a scalar."""
    rows = part.product.take(numbers)
    known = {**DEFAULTS, **rows, "hardware": part.machines.index(part.machine.name)}
    return {name: known[name] for name in names}


def arrow_columns(part: Part, names: Iterable[str], numbers: np.ndarray) -> dict[str, "pa.Array"]:
    """Columns of the rows of these numbers, as tables hold them."""
    found: dict[str, pa.Array] = {}
    for name, values in numbers_of(part, names, numbers).items():
        if name in COLUMNS:
            found[name] = tables.configuration_column(name, values, len(numbers))
        elif name in part.words:
            found[name] = tables.words(values, part.words[name], len(numbers))
        else:
            found[name] = tables.number_column(values, len(numbers))
    return found
