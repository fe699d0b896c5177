"""Some of a sweep's rows: from their numbers to the columns of a table."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import hardware, tables
from wsjax.engine import lengthened
from wsjax.hardware import Hardware
from wsjax.schema import COLUMNS, PREDICTION_COLUMNS, REASONS, Configuration, Product
from wsjax.spec import Predicate
from wsjax.sweeps.trials import FILTERED, columns_of, verdicts

if TYPE_CHECKING:
    import pyarrow as pa

    from wsjax.engine import Source

DEFAULTS = {name: c.default_number for name, c in COLUMNS.items() if c.default_number is not None}
BLOCK_ROWS = 2**16
"""Rows that are predicted, and held in memory, at once."""


class Part(NamedTuple):
    """A shard's share of a sweep: rows `start` to `stop` of what `source` numbers.

    `machines`: the names of all the sweep's. `swept`: the hardware parameters and facts that are
    axes of the product.
    """

    source: "Source"
    machines: tuple[str, ...]
    swept: tuple[str, ...]
    start: int
    stop: int

    @property
    def machine(self) -> Hardware:
        """The machine that the rows run on, before what is swept of it."""
        return self.source.hardware

    @property
    def product(self) -> Product:
        """The rows' columns."""
        return self.source.product

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """What the codes of text columns stand for."""
        configuration = {name: column.choices for name, column in COLUMNS.items() if column.choices}
        return configuration | self.product.words | {"hardware": self.machines}


class Kept(NamedTuple):
    """The numbers of legal rows, and how many others were filtered away, or are illegal, by code
    of their reason."""

    numbers: np.ndarray
    filtered: int
    illegal: np.ndarray


def legal_rows(part: Part, predicate: Predicate | None, start: int, stop: int) -> Kept:
    """Of rows `start` to `stop`, those that pass the filter and are legal."""
    known = verdicts(part.source, predicate)
    if known is not None:
        return _repeated(known, start, stop)
    numbers = np.arange(start, stop)
    blocks = -(-len(numbers) // BLOCK_ROWS)
    found = part.source.reasons(lengthened(numbers, blocks * BLOCK_ROWS))[: len(numbers)]
    if predicate is not None:
        passes = predicate.mask(_read(part, numbers, predicate.names), len(numbers))
        found = np.where(passes, found, np.int8(FILTERED))
    counts = _counts(found)
    return Kept(start + np.flatnonzero(found == 0), int(counts[0]), counts[1:])


def _repeated(known: np.ndarray, start: int, stop: int) -> Kept:
    """The same where the verdicts on each problem's rows are those `known` ones."""
    each = len(known)
    first, end = start // each, -(-stop // each)
    numbers = (np.arange(first, end)[:, None] * each + np.flatnonzero(known == 0)).ravel()
    some = slice(*np.searchsorted(numbers, (start, stop)))
    before, after = known[: start - first * each], known[stop - (end - 1) * each :]
    counts = (end - first) * _counts(known) - _counts(before) - _counts(after)
    return Kept(numbers[some], int(counts[0]), counts[1:])


def _counts(verdicts: np.ndarray) -> np.ndarray:
    """How many there are of each: `FILTERED`, legal, and each reason."""
    return np.bincount(verdicts - FILTERED, minlength=len(REASONS) - FILTERED)


def predict_rows(part: Part, numbers: np.ndarray) -> dict[str, "pa.Array"]:
    """Legal rows as columns of a table."""
    from wsjax import engine

    prediction = engine.evaluate_rows(part.source, numbers)
    columns, unbacked = columns_of(part.source, numbers)
    configurations = Configuration(*(columns[name] for name in COLUMNS))
    machine, interval = part.machine, None
    if machine.spread:
        interval = hardware.bounds(machine, configurations, prediction, unbacked)
    ours = _columns(part, columns, len(numbers))
    return ours | tables.prediction_columns(prediction, extrapolated=unbacked, interval=interval)


def pieces(numbers: np.ndarray) -> list[np.ndarray]:
    """Rows, as many at a time as are predicted at once."""
    return [numbers[at : at + BLOCK_ROWS] for at in range(0, len(numbers), BLOCK_ROWS)]


def by_reason(counts: np.ndarray) -> dict[str, int]:
    """Counts of rows by the code of their reason, as counts of the illegal ones by its name."""
    return {reason: int(counts[i]) for i, reason in enumerate(REASONS) if i and counts[i]}


def _read(part: Part, numbers: np.ndarray, names: tuple[str, ...]) -> dict[str, Any]:
    """The columns that a filter reads; only if one follows from others, all."""
    axes = part.product.axes
    wanted = [i for i, axis in enumerate(axes) if {*axis.names} & {*names}]
    constants = DEFAULTS | part.product.constants
    found = {name: constants[name] for name in names if name in constants}
    if not {*names} <= {*found, *part.product.names}:
        return columns_of(part.source, numbers)[0]
    lengths = [len(axis) for axis in axes]
    for i in wanted:
        digit = numbers // math.prod(lengths[i + 1 :]) % lengths[i]
        found |= {name: x for name, x in axes[i].take(digit).items() if name in names}
    return found


def _columns(part: Part, columns: dict[str, Any], rows: int) -> dict[str, "pa.Array"]:
    """The columns before the prediction: configuration, problem, hardware, what is swept of it."""
    machine = np.asarray(part.machines.index(part.machine.name))
    given = columns | {"hardware": machine}
    found = {name: tables.configuration_column(name, given[name], rows) for name in COLUMNS}
    others = [name for name in given if name not in COLUMNS and name not in part.swept]
    found |= {name: tables.words(given[name], part.words[name], rows) for name in others}
    ours = [name for name in part.swept if name not in PREDICTION_COLUMNS]
    return found | {name: tables.number_column(given[name], rows) for name in ours}
