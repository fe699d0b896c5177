"""Predictions for frames: `predict`, and what the command line asks of one configuration."""

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from wsjax import hardware as hardware_
from wsjax import importers, schema, tables
from wsjax.errors import InputError, gather
from wsjax.hardware import Hardware, load_hardware
from wsjax.schema import COLUMNS, REASONS, Configuration
from wsjax.spec import PRECISIONS
from wsjax.tables import check_destination

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

READ = {*COLUMNS, "status", *importers.READ}


@overload
def predict(
    frame: "pd.DataFrame", hardware: str | Path | Hardware = "h200", precision: str = "float64"
) -> "pd.DataFrame": ...
@overload
def predict(
    frame: "pa.Table", hardware: str | Path | Hardware = "h200", precision: str = "float64"
) -> "pa.Table": ...
def predict(
    frame: Any, hardware: str | Path | Hardware = "h200", precision: str = "float64"
) -> Any:
    """`frame` with a predicted time, and what makes it up, for each row.

    frame: a pandas DataFrame (its index is kept) or an Arrow table. It holds the configuration
    columns of `wsjax.schema.COLUMNS`; `m n k block_m block_n block_k` must be there, the others
    have defaults: one GEMM (`batch` 1) of bf16 in and out, `layout` nt, `schedule` persistent,
    `stages` the deepest ring that fits, `dma_warps` 1, `math_warps` 4 (pingpong and cooperative
    8), `mma_in_flight` 0, `accum` f32 (of fp8 also f32_fast, f32_promoted), cluster 1x1,
    `scheduler` persistent, `split_k` 1, `reduction` deterministic, `group_m` 1, `grid_ctas` 0
    (CTAs launched; 0: as many as the SMs hold), `write_back` tma (C by asynchronous TMA; `direct`:
    from registers), `l2_state` cold (`warm`: A and B are in L2 before the launch). On a calibrated
    machine whose measured kernels never had such a default, a kernel's column has the measured
    value nearest to it: on `h200`, `schedule` pingpong and `mma_in_flight` 1. Measured tables of
    `wsjax.importers` are recognised by their columns. A row with `status` ok ran, and is legal,
    where the table holds measured times too.

    hardware: a shipped machine's name, a TOML file, or a `Hardware`.

    precision: what formulas are computed in, float64 by default; in float32 times differ by up to
    1e-5 of them (1e-6 is usual). Legality and rows that no formula is proved for are computed in
    float64 whatever it says.

    All columns are kept; behind them come `wsjax.schema.PREDICTION_COLUMNS`: times in µs (`_us`;
    waits summed over the busiest SM's tiles), `waves`, `k_tiles`, `smem_bytes` of a CTA, `tflops`
    of the whole problem, the `limiter`, the `method` that made the row, `extrapolated` (no
    measurement backs it), `legal`, and the `reason` where not: an illegal row has no time; of a
    calibrated machine also `time_us_lo` and `time_us_hi`, between which 90 % of measured times lie.
    A name that is taken gets the suffix `_predicted`; `time_us` must be free, so that nobody takes
    measured times for predicted ones: drop the prediction's columns before predicting again.

    Raises InputError with all mistakes of the frame at once. Worker processes are to be started by
    'spawn': one that is forked after a prediction lacks JAX's threads, and gets a WsjaxError.
    """
    check_precision(precision)
    return _predicted(frame, load_hardware(hardware), precision)[0]


class Described(NamedTuple):
    """Rows' configurations on the machine, and their prediction; what measurements say of it (see
    `hardware.backing`), and which rows lack a value."""

    configurations: Configuration
    prediction: Any
    backing: dict[str, Any]
    incomplete: np.ndarray

    def columns(self) -> "dict[str, pa.Array]":
        """The columns that it becomes."""
        return tables.prediction_columns(
            self.prediction, incomplete=self.incomplete, **self.backing
        )

    def record(self) -> dict[str, Any]:
        """The first row, which lacks nothing, as plain values."""
        return tables.record(self.prediction, **self.backing)


def _predicted(frame: Any, machine: Hardware, precision: str) -> tuple[Any, Described]:
    """The frame with the prediction's columns, and what they were made of."""
    given = _names(frame)
    columns = {
        name: tables.series(frame, name) if tables.is_arrow(frame) else frame[name]
        for name in given
        if name in READ and given.count(name) == 1
    }
    translated = importers.convert(columns)
    if translated is None and "status" in columns and not importers.has_times(given):
        warnings.warn(
            "column 'status' has no effect: no column of measured times (time_us_measured) stands "
            "beside it",
            stacklevel=3,
        )
        del columns["status"]
    rows = schema.read_rows(translated or columns, len(frame), given)
    if translated is None:
        schema.warn_of_misspelling(given)
    found = described(rows, machine, precision)
    columns = found.columns()
    ours = {schema.prediction_name(name, given): column for name, column in columns.items()}
    append = tables.append if tables.is_arrow(frame) else tables.append_to_frame
    return append(frame, ours), found


def check_precision(precision: str) -> None:
    """Raise InputError if it is none."""
    if precision not in PRECISIONS:
        raise InputError(f"precision: '{precision}'; valid: {', '.join(PRECISIONS)}")


def described(rows: schema.Rows, machine: Hardware, precision: str = "float64") -> Described:
    """The prediction of a frame's rows."""
    c = hardware_.resolve(rows.columns, machine)
    prediction = _evaluate(c, rows, machine, precision)
    backing = hardware_.backing(machine, c, prediction)
    return Described(c, prediction, backing, rows.incomplete)


def _evaluate(c: Configuration, rows: schema.Rows, machine: Hardware, precision: str) -> Any:
    """The `engine.evaluate` of a frame's rows; incomplete ones have no figures but a reason."""
    from wsjax import engine

    single = precision == "float32"
    prediction = engine.evaluate(c, machine, legal_override=rows.measured_ok, single=single)
    lost = rows.incomplete
    if not lost.any():
        return prediction
    figures = {
        name: np.where(lost, np.nan, values)
        for name, values in prediction._asdict().items()
        if values.dtype.kind == "f"
    }
    codes = {
        "limiter": np.where(lost, -1, prediction.limiter),
        "method": np.where(lost, -1, prediction.method),
        "reason": np.where(lost, REASONS.index("incomplete"), prediction.reason),
    }
    return prediction._replace(**figures, **codes)


def predict_table(
    source: str | Path,
    out: str | Path,
    hardware: str | Path | Hardware,
    precision: str = "float64",
) -> tuple[int, str]:
    """Predict a table in a file and write it to another, whole or not at all.

    A CSV or Parquet table keeps its columns as they are; of the other formats of
    `wsjax.importers` the table is the imported one.

    Returns how many rows were written, and how many of them are extrapolated and why, in words; ""
    if none is. Raises InputError with all mistakes, and for a table without rows.
    """
    machine, *_ = gather(
        partial(load_hardware, hardware),
        partial(tables.existing, source),
        partial(check_destination, out, source),
        partial(check_precision, precision),
    )
    table = _read(source, machine)
    if not table.num_rows:
        raise InputError(f"{source}: has no rows below its header; write some")
    try:
        predicted, found = _predicted(table, machine, precision)
    except InputError as error:
        raise InputError([f"{source}: {problem}" for problem in error.problems]) from None
    tables.write_table(predicted, out, tables.metadata([machine]))
    beyond = found.backing["extrapolated"]
    if not beyond.any():
        return len(beyond), ""
    why = hardware_.extrapolation(machine, found.configurations._asdict())
    return len(beyond), f"{np.count_nonzero(beyond):,} of {len(beyond):,} rows: {why}"


def _read(path: str | Path, machine: Hardware) -> "pa.Table":
    found: Any = importers.read_own(path, hardware_.family_defaults(machine))
    return found if tables.is_arrow(found) else tables.from_frame(found)


def _names(frame: Any) -> list[Any]:
    import pandas as pd

    if tables.is_arrow(frame):
        return list(frame.column_names)
    if isinstance(frame, pd.DataFrame):
        return list(frame.columns)
    raise InputError(
        f"predict takes a pandas DataFrame or an Arrow table, not {type(frame).__name__}"
    )
