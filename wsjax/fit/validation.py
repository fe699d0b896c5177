"""Compare predicted with measured times: `validate`."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import hardware as hardware_
from wsjax import schema
from wsjax.errors import InputError
from wsjax.fit import measured
from wsjax.fit.measured import Measured
from wsjax.fit.metrics import Metrics, metrics
from wsjax.hardware import Hardware, load_hardware
from wsjax.schema import COLUMNS, KERNEL, LIMITERS, Configuration

if TYPE_CHECKING:
    import pandas as pd

WORST = 20
BY = ("group", "schedule", "limiter")
SHOWN = ("m", "n", "k", "layout", "block_m", "block_n", "block_k", "stages", "schedule", "group_m")


class Validated(NamedTuple):
    """Measured rows that the model covers, and what it says of them. `not_modelled`: how many it
    does not cover."""

    rows: Measured
    predicted_us: np.ndarray
    low_us: np.ndarray
    high_us: np.ndarray
    limiter: np.ndarray
    extrapolated: np.ndarray
    not_modelled: int


@dataclass(frozen=True)
class Validation:
    """`metrics` of all rows that the model covers; `by`: the same of each word of a column;
    `worst`: the rows with the greatest absolute percentage error, greatest first."""

    hardware: Hardware = field(repr=False)
    table: str
    metrics: Metrics
    by: dict[str, dict[str, Metrics]] = field(repr=False)
    worst: "pd.DataFrame" = field(repr=False)
    not_modelled: int
    excluded: dict[str, int]
    rows: "Validated" = field(repr=False)

    def frame(self) -> "pd.DataFrame":
        """Every row that counts: configuration, measured and predicted time, error in per cent."""
        return frame_of(self.rows)


def validate(table: Any, hardware: str | Path | Hardware = "h200") -> Validation:
    """How well `hardware` predicts measured times.

    table: a measured table (path of any format of `wsjax import`, or DataFrame), or a list of them.
    Rows: all with a finite measured time and status ok, repeats too. Rows that the model does not
    cover are counted apart. Columns that a table leaves out are those of the machine's kernels, as
    `predict` takes them.

    Raises InputError for a table that cannot be read or has no such row.
    """
    machine = load_hardware(hardware)
    usual = hardware_.family_defaults(machine)
    rows = measured.read(table, machine.facts, repeats=True, usual=usual)
    found = evaluate(rows, machine)
    if not len(found.rows):
        first = Configuration(*(int(x[0]) for x in rows.configurations))
        raise InputError(
            f"{rows.table}: the model covers none of the {found.not_modelled:,} measured rows on "
            f"{machine.name}; the first: {schema.why('not_modelled', first, machine.facts)}"
        )
    return Validation(
        hardware=machine,
        table=rows.table,
        metrics=metrics_of(found),
        by={name: words for name in BY if (words := _by(found, name))},
        worst=_worst(found),
        not_modelled=found.not_modelled,
        excluded=rows.excluded,
        rows=found,
    )


def evaluate(rows: Measured, machine: Hardware) -> Validated:
    """Predict measured rows; those that are not modelled are dropped and counted."""
    from wsjax import engine

    prediction = engine.evaluate(
        rows.configurations, machine, legal_override=np.ones(len(rows), dtype=bool)
    )
    outside = hardware_.outside(machine, rows.configurations, len(rows))
    low, high = hardware_.bounds(machine, rows.configurations, prediction, outside)
    covered = prediction.reason == 0
    rows = rows.take(covered)
    return Validated(
        rows=rows,
        predicted_us=prediction.time_us[covered],
        low_us=low[covered],
        high_us=high[covered],
        limiter=np.asarray(LIMITERS, object)[prediction.limiter[covered]],
        extrapolated=outside[covered],
        not_modelled=int((~covered).sum()),
    )


def metrics_of(found: Validated, which: np.ndarray | None = None) -> Metrics:
    """The figures of all rows, or of those where `which`."""
    columns = {
        "measured": found.rows.time_us,
        "predicted": found.predicted_us,
        "low": found.low_us,
        "high": found.high_us,
        "extrapolated": found.extrapolated,
        "problem": found.rows.problem,
        "kernel": _kernel(found.rows.configurations),
    }
    if which is not None:
        columns = {name: values[which] for name, values in columns.items()}
    return metrics(columns)


def _kernel(c: Configuration) -> np.ndarray:
    """A code for each kernel."""
    columns = np.stack([getattr(c, name) for name in KERNEL], axis=1)
    return np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)


def frame_of(found: Validated) -> "pd.DataFrame":
    """Every row: configuration, labels, measured and predicted time, error in per cent."""
    return _frame(found, np.arange(len(found.rows)), list(COLUMNS))


def _words(found: Validated, name: str) -> np.ndarray | None:
    """The words of a column that tables are made by; None if the table has none."""
    if name == "limiter":
        return found.limiter
    if name in COLUMNS:
        codes = getattr(found.rows.configurations, name)
        return np.asarray(COLUMNS[name].choices, object)[codes]
    return found.rows.labels.get(name)


def _by(found: Validated, name: str) -> dict[str, Metrics]:
    words = _words(found, name)
    if words is None:
        return {}
    return {word: metrics_of(found, words == word) for word in sorted(set(words))}


def _worst(found: Validated) -> "pd.DataFrame":
    error = found.predicted_us / found.rows.time_us - 1
    at = np.argsort(-np.abs(error), kind="stable")[:WORST]
    return _frame(found, at, SHOWN)


def _frame(found: Validated, at: np.ndarray, names: Collection[str]) -> "pd.DataFrame":
    """Rows as a table: these configuration columns, labels, times."""
    import pandas as pd

    error = found.predicted_us / found.rows.time_us - 1
    shown = {name: _shown(found.rows.configurations, name)[at] for name in names}
    labels = {name: words[at] for name, words in found.rows.labels.items() if name != "source"}
    figures = {
        "time_us_measured": found.rows.time_us,
        "time_us": found.predicted_us,
        "time_us_lo": found.low_us,
        "time_us_hi": found.high_us,
        "error_pct": error * 100,
        "limiter": found.limiter,
        "extrapolated": found.extrapolated,
    }
    return pd.DataFrame(shown | labels | {name: values[at] for name, values in figures.items()})


def _shown(configurations: Configuration, name: str) -> np.ndarray:
    values, choices = getattr(configurations, name), COLUMNS[name].choices
    return np.asarray(choices, object)[values] if choices else values
