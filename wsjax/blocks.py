"""One block of a sweep's rows: from numbers of rows to the columns of a table."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import frame as frames
from wsjax import intervals, tables
from wsjax.hardware import Hardware
from wsjax.limits import REASONS, Facts
from wsjax.space import COLUMNS, Configuration, Product
from wsjax.where import Predicate

if TYPE_CHECKING:
    import pyarrow as pa


class Part(NamedTuple):
    """A shard's share of a sweep: rows `start` to `stop` of the product on one of its `machines`.

    `swept`: the hardware parameters and facts that are axes of the product.
    """

    machine: Hardware
    machines: tuple[str, ...]
    product: Product
    swept: tuple[str, ...]
    start: int
    stop: int

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """What the codes of text columns stand for."""
        configuration = {name: column.choices for name, column in COLUMNS.items() if column.choices}
        return configuration | self.product.words | {"hardware": self.machines}


class Block(NamedTuple):
    """The legal rows as columns of a table, and how many were not kept."""

    columns: dict[str, "pa.Array"]
    rows: int
    filtered: int
    illegal: dict[str, int]


def predict_block(part: Part, predicate: Predicate | None, start: int, stop: int) -> Block:
    """Predict rows `start` to `stop` of a part's product: those that pass the filter."""
    from wsjax import batch

    numbers = _numbers(part, start, stop)
    if predicate is not None:
        keep = predicate.mask(numbers, stop - start)
        numbers = _take(numbers, keep)
        kept = int(keep.sum())
    else:
        kept = stop - start
    prediction = batch.evaluate(
        Configuration(*(numbers[name] for name in COLUMNS)),
        part.machine,
        {name: numbers[name] for name in part.swept},
    )
    legal = prediction.reason == 0
    counts = np.bincount(prediction.reason, minlength=len(REASONS))
    illegal = {reason: int(counts[i]) for i, reason in enumerate(REASONS) if i and counts[i]}
    rows = int(legal.sum())
    numbers = _take(numbers, legal)
    prediction = prediction._replace(**_take(prediction._asdict(), legal))
    backing = intervals.backing(
        part.machine,
        Configuration(*(numbers[name] for name in COLUMNS)),
        prediction,
        _altered(part, numbers, rows),
    )
    columns = _columns(part, numbers, rows) | tables.prediction_columns(prediction, **backing)
    return Block(columns, rows, stop - start - kept, illegal)


def _numbers(part: Part, start: int, stop: int) -> dict[str, np.ndarray]:
    """All columns of the rows as numbers. One that never changes is a scalar (but for m, which
    says how many rows there are), so that programs are compiled once for the whole sweep."""
    rows = part.product.rows(start, stop)
    given = rows | {name: np.asarray(value) for name, value in part.product.constants.items()}
    given["m"] = rows["m"]
    facts = part.machine.facts._replace(
        **{name: given[name] for name in part.swept if name in Facts._fields}
    )
    configuration = frames.resolve({n: v for n, v in given.items() if n in COLUMNS}, facts)
    return given | configuration._asdict()


def _altered(part: Part, numbers: dict[str, np.ndarray], rows: int) -> np.ndarray:
    """Rows whose machine differs from the file's in what is swept."""
    own = part.machine.facts._asdict() | part.machine.parameters._asdict()
    found = np.zeros(rows, dtype=bool)
    for name in part.swept:
        found |= numbers[name] != own[name]
    return found


def _take(columns: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """The columns at a mask of rows; scalars stay."""
    return {name: x[rows] if np.ndim(x) else x for name, x in columns.items()}


def _columns(part: Part, numbers: dict[str, np.ndarray], rows: int) -> dict[str, "pa.Array"]:
    """The columns before the prediction: configuration, problem, hardware, what is swept of it."""
    machine = np.asarray(part.machines.index(part.machine.name))
    full = {
        name: np.broadcast_to(x, (rows,)) for name, x in {**numbers, "hardware": machine}.items()
    }
    columns = {name: tables.configuration_column(name, full[name]) for name in COLUMNS}
    others = [name for name in full if name not in COLUMNS and name not in part.swept]
    columns |= {name: tables.words(full[name], part.words[name]) for name in others}
    ours = [name for name in part.swept if name not in tables.PREDICTION_COLUMNS]
    return columns | {name: tables.number_column(full[name]) for name in ours}
