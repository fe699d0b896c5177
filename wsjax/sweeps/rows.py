"""A shard's rows: from their numbers to the columns of a table.

Rows of a sweep come machine by machine, in the product's order, problem by problem where that is
slowest. What is tried on each problem is the same for all, so that its columns, and often which of
its rows pass the filter and are legal, are worked out once (`kernels_of`, `_verdicts`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import engine, hardware, schema, tables
from wsjax.engine import SHAPING, Candidates, lengthened
from wsjax.hardware import Hardware
from wsjax.schema import (
    COLUMNS,
    DEFAULTS,
    PREDICTION_COLUMNS,
    PROBLEM,
    REASONS,
    TMA_BYTES,
    Configuration,
    Facts,
    Product,
)
from wsjax.spec import Predicate, split

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 2**16
"""Rows that are predicted, and held in memory, at once."""
KERNELS_MAX = 2**16
"""More on each problem are not laid out."""
ANY_SIZE = dict.fromkeys(("m", "n", "k"), TMA_BYTES)
"""Sizes that every machine takes."""
FILTERED = -1

Columns = Mapping[str, Any]


class Shard(NamedTuple):
    """A file of a sweep: rows `start` to `stop` of those on a machine.

    name: in the sweep's directory. candidates: all rows on the machine. machines: the names of all
    the sweep's. swept: the hardware parameters and facts that are axes of the product.
    """

    name: str
    candidates: Candidates
    machines: tuple[str, ...]
    swept: tuple[str, ...]
    start: int
    stop: int

    @property
    def machine(self) -> Hardware:
        """The machine that the rows run on, before what is swept of it."""
        return self.candidates.hardware

    @property
    def product(self) -> Product:
        """The rows' columns."""
        return self.candidates.product

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """What the codes of text columns stand for."""
        configuration = {name: column.choices for name, column in COLUMNS.items() if column.choices}
        return configuration | self.product.words | {"hardware": self.machines}


def given_names(shard: Shard) -> list[str]:
    """The columns that say what a row's kernel is given: problem, machine, what is swept of it."""
    others = [name for name in shard.product.names if name not in (*COLUMNS, *shard.swept)]
    return [*PROBLEM, *others, "hardware", *shard.swept]


def given_numbers(shard: Shard, names: Iterable[str], numbers: np.ndarray) -> dict[str, Any]:
    """Such columns of the rows of these numbers; one that never changes may be a scalar."""
    rows = shard.product.take(numbers)
    known = {**DEFAULTS, **rows, "hardware": shard.machines.index(shard.machine.name)}
    return {name: known[name] for name in names}


def given_columns(shard: Shard, names: Iterable[str], numbers: np.ndarray) -> dict[str, "pa.Array"]:
    """Such columns of the rows of these numbers, as tables hold them."""
    given = given_numbers(shard, names, numbers)
    words = shard.words
    return {name: _column(words, name, x, len(numbers)) for name, x in given.items()}


def _column(
    words: Mapping[str, tuple[str, ...]], name: str, values: np.ndarray, rows: int
) -> "pa.Array":
    if name in COLUMNS:
        return tables.configuration_column(name, values, rows)
    if name in words:
        return tables.words(values, words[name], rows)
    return tables.number_column(values, rows)


class Legal(NamedTuple):
    """The numbers of legal rows, and how many others were filtered away, or are illegal, by code
    of their reason."""

    numbers: np.ndarray
    filtered: int
    illegal: np.ndarray


def legal_rows(
    shard: Shard, predicate: Predicate | None, start: int, stop: int, chunk_rows: int = CHUNK_ROWS
) -> Legal:
    """Of rows `start` to `stop`, those that pass the filter and are legal."""
    known = _verdicts(shard.candidates, predicate)
    if known is not None:
        return _repeated(known, start, stop)
    numbers = np.arange(start, stop)
    chunks = -(-len(numbers) // chunk_rows)
    verdicts = shard.candidates.reasons(lengthened(numbers, chunks * chunk_rows))[: len(numbers)]
    if predicate is not None:
        passes = predicate.mask(_read(shard, numbers, predicate.names), len(numbers))
        verdicts = np.where(passes, verdicts, np.int8(FILTERED))
    counts = _counts(verdicts)
    return Legal(start + np.flatnonzero(verdicts == 0), int(counts[0]), counts[1:])


def _repeated(known: np.ndarray, start: int, stop: int) -> Legal:
    """The same where the verdicts on each problem's rows are those `known` ones."""
    each = len(known)
    first, end = start // each, -(-stop // each)
    numbers = (np.arange(first, end)[:, None] * each + np.flatnonzero(known == 0)).ravel()
    some = slice(*np.searchsorted(numbers, (start, stop)))
    before, after = known[: start - first * each], known[stop - (end - 1) * each :]
    counts = (end - first) * _counts(known) - _counts(before) - _counts(after)
    return Legal(numbers[some], int(counts[0]), counts[1:])


def _counts(verdicts: np.ndarray) -> np.ndarray:
    """How many there are of each: `FILTERED`, legal, and each reason."""
    return np.bincount(verdicts - FILTERED, minlength=len(REASONS) - FILTERED)


def by_reason(counts: np.ndarray) -> dict[str, int]:
    """Counts of rows by the code of their reason, as counts of the illegal ones by its name."""
    return {reason: int(counts[i]) for i, reason in enumerate(REASONS) if i and counts[i]}


def predict_rows(shard: Shard, numbers: np.ndarray) -> dict[str, "pa.Array"]:
    """Legal rows as columns of a table: configuration, problem, hardware, what is swept of it, and
    the prediction."""
    prediction = engine.evaluate_rows(shard.candidates, numbers)
    columns, unbacked = columns_of(shard.candidates, numbers)
    configurations = Configuration(*(columns[name] for name in COLUMNS))
    machine, interval = shard.machine, None
    if machine.spread:
        interval = hardware.bounds(machine, configurations, prediction, unbacked)
    given = columns | {"hardware": np.asarray(shard.machines.index(machine.name))}
    others = [name for name in given if name not in COLUMNS and name not in shard.swept]
    swept = [name for name in shard.swept if name not in PREDICTION_COLUMNS]
    names, words = (*COLUMNS, *others, *swept), shard.words
    ours = {name: _column(words, name, given[name], len(numbers)) for name in names}
    return ours | tables.prediction_columns(prediction, extrapolated=unbacked, interval=interval)


def _read(shard: Shard, numbers: np.ndarray, names: tuple[str, ...]) -> dict[str, Any]:
    """The columns that a filter reads; only if one follows from others, all."""
    axes = shard.product.axes
    wanted = [i for i, axis in enumerate(axes) if {*axis.names} & {*names}]
    constants = DEFAULTS | shard.product.constants
    values = {name: constants[name] for name in names if name in constants}
    if not {*names} <= {*values, *shard.product.names}:
        return columns_of(shard.candidates, numbers)[0]
    lengths = [len(axis) for axis in axes]
    for i in wanted:
        digit = numbers // math.prod(lengths[i + 1 :]) % lengths[i]
        values |= {name: x for name, x in axes[i].take(digit).items() if name in names}
    return values


class Kernels(NamedTuple):
    """What is tried on each of the `outer` product's problems: all `columns` that do not vary with
    those, of the kinds that tables hold, a scalar where one never changes; and which of the
    `each` rows no measurement backs, as far as they tell."""

    outer: Product
    each: int
    columns: dict[str, np.ndarray]
    unbacked: np.ndarray


@lru_cache(8)
def kernels_of(candidates: Candidates) -> Kernels | None:
    """None where they are too many, or where the deepest legal ring depends on the problem."""
    outer, inner = split(candidates.product)
    varying = {*outer.names} - {*outer.constants}
    if len(inner) > KERNELS_MAX or varying & {*SHAPING}:
        return None
    rows = inner.take(np.arange(len(inner)))
    resolved = _resolved(candidates, ANY_SIZE | rows)
    kept = {name: x.astype(tables.kind_of(name)) for name, x in resolved.items() if name in COLUMNS}
    columns = {name: x for name, x in (resolved | kept).items() if name not in varying}
    return Kernels(outer, len(inner), columns, _unbacked(candidates, columns, len(inner)))


def columns_of(candidates: Candidates, numbers: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """All columns of the rows of these numbers, as numbers, a scalar where one never changes; and
    the rows that no measurement backs."""
    kernels = kernels_of(candidates)
    if kernels is None:
        columns = _resolved(candidates, candidates.product.take(numbers))
        return columns, _unbacked(candidates, columns, len(numbers))
    problem = numbers // kernels.each
    row = numbers - problem * kernels.each
    first = np.flatnonzero(np.diff(problem, prepend=-1))
    repeats = np.diff(first, append=len(numbers))
    given = kernels.outer.take(problem[first])
    outer = {
        name: x.astype(tables.kind_of(name)) if name in COLUMNS else x
        for name, x in given.items()
        if name not in kernels.outer.constants
    }
    unbacked = np.repeat(_unbacked(candidates, outer, len(first)), repeats) | kernels.unbacked[row]
    columns = {name: x[row] if x.ndim else x for name, x in kernels.columns.items()}
    return columns | {name: np.repeat(x, repeats) for name, x in outer.items()}, unbacked


@lru_cache(8)
def _verdicts(candidates: Candidates, predicate: Predicate | None) -> np.ndarray | None:
    """What becomes of the rows that are tried on any problem: codes into REASONS, 0 for legal
    ones, or `FILTERED`; None where that depends on the problem."""
    kernels = kernels_of(candidates)
    names = () if predicate is None else predicate.names
    if kernels is None or not (candidates.uniform and {*names} <= {*kernels.columns}):
        return None
    reason = candidates.reasons(np.arange(kernels.each))
    if predicate is None:
        return reason
    return np.where(predicate.mask(kernels.columns, kernels.each), reason, np.int8(FILTERED))


def _resolved(candidates: Candidates, rows: Columns) -> dict[str, np.ndarray]:
    """Columns of rows with the constants, defaults, and what follows from others."""
    given = {**rows, **{name: np.asarray(x) for name, x in candidates.product.constants.items()}}
    swept = {name: x for name, x in given.items() if name in Facts._fields}
    facts = candidates.hardware.facts._replace(**swept)
    configuration = schema.resolve({n: x for n, x in given.items() if n in COLUMNS}, facts)
    return given | configuration._asdict()


def _unbacked(candidates: Candidates, columns: Columns, rows: int) -> np.ndarray:
    """Rows that lie outside of the machine's measurements, or whose machine differs from it in what
    is swept, as far as some columns tell."""
    machine = candidates.hardware
    span = {name: known for name, known in machine.span.items() if name in columns}
    configurations = Configuration(*(columns.get(name) for name in COLUMNS))
    unbacked = hardware.outside(replace(machine, span=span), configurations, rows)
    measured = machine.facts._asdict() | machine.parameters._asdict()
    for name in measured.keys() & columns.keys():
        unbacked |= columns[name] != measured[name]
    return unbacked
