"""The columns of a sweep's rows, of which what is tried on every problem is laid out but once."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from wsjax import hardware, schema, tables
from wsjax.engine import SHAPING, Source
from wsjax.schema import COLUMNS, Configuration, Facts, Product
from wsjax.spec import Predicate, split

TRIALS_MAX = 2**16
"""More on each problem are not laid out."""
ANY_SIZE = {"m": 1, "n": 1, "k": 1}
FILTERED = -1

Columns = Mapping[str, Any]


class Trials(NamedTuple):
    """What is tried on each of the `outer` product's problems: all `columns` that do not vary with
    those, of the kinds that tables hold, a scalar where one never changes; and which of the
    `each` rows no measurement backs, as far as they tell."""

    outer: Product
    each: int
    columns: dict[str, np.ndarray]
    unbacked: np.ndarray


@lru_cache(8)
def trials_of(source: Source) -> Trials | None:
    """None where they are too many, or where what is legal depends on the problem."""
    outer, inner = split(source.product)
    varying = {*outer.names} - {*outer.constants}
    if len(inner) > TRIALS_MAX or varying & {*SHAPING}:
        return None
    rows = inner.take(np.arange(len(inner)))
    found = _resolved(source, ANY_SIZE | rows)
    kept = {name: x.astype(tables.kind_of(name)) for name, x in found.items() if name in COLUMNS}
    columns = {name: x for name, x in (found | kept).items() if name not in varying}
    return Trials(outer, len(inner), columns, _unbacked(source, columns, len(inner)))


def columns_of(source: Source, numbers: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """All columns of the rows of these numbers, as numbers, a scalar where one never changes; and
    the rows that no measurement backs."""
    trials = trials_of(source)
    if trials is None:
        columns = _resolved(source, source.product.take(numbers))
        return columns, _unbacked(source, columns, len(numbers))
    problem = numbers // trials.each
    row = numbers - problem * trials.each
    first = np.flatnonzero(np.diff(problem, prepend=-1))
    repeats = np.diff(first, append=len(numbers))
    given = trials.outer.take(problem[first])
    outer = {
        name: x.astype(tables.kind_of(name)) if name in COLUMNS else x
        for name, x in given.items()
        if name not in trials.outer.constants
    }
    unbacked = np.repeat(_unbacked(source, outer, len(first)), repeats) | trials.unbacked[row]
    columns = {name: x[row] if x.ndim else x for name, x in trials.columns.items()}
    return columns | {name: np.repeat(x, repeats) for name, x in outer.items()}, unbacked


@lru_cache(8)
def verdicts(source: Source, predicate: Predicate | None) -> np.ndarray | None:
    """What becomes of the rows that are tried on any problem: codes into limits.REASONS, 0 for
    legal ones, or `FILTERED`; None where that depends on the problem."""
    trials = trials_of(source)
    names = () if predicate is None else predicate.names
    if trials is None or not {*names} <= {*trials.columns}:
        return None
    reason = source.reasons(np.arange(trials.each))
    if predicate is None:
        return reason
    return np.where(predicate.mask(trials.columns, trials.each), reason, np.int8(FILTERED))


def _resolved(source: Source, rows: Columns) -> dict[str, np.ndarray]:
    """Columns of rows with the constants, defaults, and what follows from others."""
    given = {**rows, **{name: np.asarray(x) for name, x in source.product.constants.items()}}
    own = {name: x for name, x in given.items() if name in Facts._fields}
    facts = source.hardware.facts._replace(**own)
    configuration = schema.resolve({n: x for n, x in given.items() if n in COLUMNS}, facts)
    return given | configuration._asdict()


def _unbacked(source: Source, columns: Columns, rows: int) -> np.ndarray:
    """Rows that lie outside of the machine's measurements, or whose machine differs from it in what
    is swept, as far as some columns tell."""
    machine = source.hardware
    span = {name: known for name, known in machine.span.items() if name in columns}
    configurations = Configuration(*(columns.get(name) for name in COLUMNS))
    found = hardware.outside(replace(machine, span=span), configurations, rows)
    own = machine.facts._asdict() | machine.parameters._asdict()
    for name in own.keys() & columns.keys():
        found |= columns[name] != own[name]
    return found
