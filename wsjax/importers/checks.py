"""What in a table contradicts itself: n and k in each other's place, times and rates."""

import re
from typing import TYPE_CHECKING

import numpy as np

from wsjax.importers import values
from wsjax.schema import DTYPE_BYTES

if TYPE_CHECKING:
    import pandas as pd

MOST_TFLOPS = 2e4
LEAST_TFLOPS = 1e-6
MOST_CONTRADICTION = 3.0
"""A time and a rate of one row that differ by more than this factor are of different things."""
_RATE = re.compile(r"(?<![a-z])([tg])fl?op(?:s|/s|s/s|_s|_per_s)(?![a-z/])")
_OTHER_RATES = re.compile("predict|estimat|model|peak|roof|max|min|std|p10|p90|cpu|sol|expect")
_TFLOPS = {"t": 1.0, "g": 1e-3}
SHARE_SWAPPED, SHARE_RIGHT = 0.9, 0.5
"""Swapped is what this share of rows fits swapped, and less than the other as they stand."""


def notes(frame: "pd.DataFrame") -> list[str]:
    """Warnings for a table of `outcome.finish`, from its rows with a problem and a time."""
    known = frame[["m", "n", "k"]].notna().all(axis=1) & (frame["time_us_measured"] > 0)
    rows = frame.loc[known.to_numpy()]
    if rows.empty:
        return []
    return _rate(rows) + _swapped(rows)


def contradiction(frame: "pd.DataFrame") -> tuple[np.ndarray, str]:
    """The rows whose time contradicts the table's own column of TFLOP/s or GFLOP/s, and what is
    wrong with the whole table if it is half of the rows that have both: "" if not."""
    rate = next(filter(None, map(_rate_column, frame)), None)
    none = np.zeros(len(frame), bool)
    if rate is None:
        return none, ""
    name, scale = rate
    given: dict[str, pd.Series] = {str(c): column for c, column in frame.items()}
    m, n, k, batch, time = (
        values.numbers(given[c]).to_numpy() if c in given else np.ones(len(frame))
        for c in ("m", "n", "k", "batch", "time_us_measured")
    )
    stated = values.numbers(given[name]).to_numpy() * scale
    with np.errstate(invalid="ignore", divide="ignore"):
        tflop = 2 * m * n * k * batch / 1e12
        ratio = tflop / (time / 1e6) / stated
        known = np.isfinite(ratio) & (ratio > 0)
        if not known.any() or _is_count(stated[known], tflop[known]):
            return none, ""
        wrong = known & ~((ratio < MOST_CONTRADICTION) & (ratio > 1 / MOST_CONTRADICTION))
    if wrong.sum() < known.sum() / 2:
        return wrong, ""
    at, factor = int(wrong.argmax()), float(np.median(ratio[wrong]))
    return wrong, (
        f"column '{name}' says {stated[at] / scale:g} where {m[at]:.0f}x{n[at]:.0f}x{k[at]:.0f} in "
        f"{_shown(time[at])} makes {ratio[at] * stated[at] / scale:.3g}; {_mend(factor)}"
    )


def _shown(time_us: float) -> str:
    return f"{time_us / 1e3:g} ms" if time_us >= 1e3 else f"{time_us:g} µs"


def _rate_column(name: object) -> tuple[str, float] | None:
    """A column that says a measured rate, and TFLOP/s in one of its unit."""
    low = str(name).lower()
    match = None if _OTHER_RATES.search(low) else _RATE.search(low)
    return (str(name), _TFLOPS[match[1]]) if match else None


def _is_count(stated: np.ndarray, tflop: np.ndarray) -> bool:
    """Whether a column named GFLOPs counts the work of a problem instead of its rate."""
    return bool(np.mean(_close(stated, tflop) | (np.abs(stated / tflop - 1) < 0.02)) > 0.5)


def _mend(factor: float) -> str:
    """What unit of time would bring computed and stated rates together, whose ratio is `factor`."""
    steps = np.log10(factor) / 3
    if abs(steps - round(steps)) > 0.16 or not round(steps):
        return "leave one of the columns out, or say which holds the time: --map time_us=NAME"
    bigger, times = ("larger", factor) if factor > 1 else ("smaller", 1 / factor)
    return (
        f"a unit of time {float(f'{times:.1g}'):,.0f} times {bigger} fits: "
        "say it with --map time_us=NAME (or time_s, time_ms, time_ns)"
    )


def _rate(rows: "pd.DataFrame") -> list[str]:
    m, n, k, batch = (rows[c].to_numpy(dtype=float) for c in ("m", "n", "k", "batch"))
    time = rows["time_us_measured"].to_numpy()
    tflops = 2 * m * n * k * batch / time / 1e6
    odd = ((tflops > MOST_TFLOPS) | (tflops < LEAST_TFLOPS)) & np.isfinite(time)
    if not odd.any():
        return []
    first = int(odd.argmax())
    return [
        f"{int(odd.sum()):,} rows make a rate of no machine, the first {tflops[first]:.3g} TFLOP/s "
        f"({m[first]:.0f}x{n[first]:.0f}x{k[first]:.0f} in {time[first]:g} µs): "
        "is the unit of the time right?"
    ]


def _swapped(rows: "pd.DataFrame") -> list[str]:
    """A note if a column that n and k do not enter alike fits only with them exchanged."""
    m, n, k, batch = (rows[c].to_numpy(dtype=float) for c in ("m", "n", "k", "batch"))
    different = n != k
    if not different.any():
        return []
    m, n, k, batch = m[different], n[different], k[different], batch[different]
    rows = rows.loc[different]
    found = []
    for column, expected in _evidence(rows, m, batch).items():
        value = rows[column].to_numpy(dtype=float)
        as_is = np.mean([_close(value, e(n, k)) for e in expected], axis=1).max()
        exchanged = np.mean([_close(value, e(k, n)) for e in expected], axis=1).max()
        if exchanged >= SHARE_SWAPPED and as_is < SHARE_RIGHT:
            found.append(
                f"n and k look swapped: column '{column}' fits {exchanged:.0%} of the rows with "
                f"them exchanged, and {as_is:.0%} as they stand (--map n=K --map k=N, with the "
                "names of the file, exchanges them)"
            )
    return found


def _close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b) <= 1e-6 * np.abs(b)


def _evidence(rows: "pd.DataFrame", m: np.ndarray, batch: np.ndarray) -> dict:
    """Columns that tell n from k, each with what it may be as functions of n and k."""
    names = {str(c).lower(): c for c in rows.columns}
    found = {}
    if "flops" in names:
        found[names["flops"]] = [lambda n, k: (2 * m * n * k + 2 * m * n) * batch]
    if "bytes" in names:
        sizes = np.asarray(DTYPE_BYTES)
        a = sizes[rows["dtype_in"].cat.codes]
        c = sizes[rows["dtype_out"].cat.codes]
        found[names["bytes"]] = [lambda n, k: (a * (m * k + k * n) + c * m * n) * batch]
    if "tiles" in names and {"block_m", "block_n"} <= set(rows):
        bm, bn = (rows[c].to_numpy(dtype=float, na_value=np.nan) for c in ("block_m", "block_n"))
        found[names["tiles"]] = [lambda n, _: np.ceil(m / bm) * np.ceil(n / bn) * batch]
    for name in ("ldc", "stride_cm"):
        if name in names:
            found[names[name]] = [lambda n, _: n]
    for name in ("lda", "stride_am"):
        if name in names:
            found[names[name]] = [lambda _, k: k, lambda n, _: m]
    return {c: e for c, e in found.items() if rows.dtypes[c].kind in "iuf"}
