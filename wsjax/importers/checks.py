"""What in a table contradicts itself: n and k in each other's place, a rate that no machine has."""

from typing import TYPE_CHECKING

import numpy as np

from wsjax.schema import DTYPE_BYTES

if TYPE_CHECKING:
    import pandas as pd

MOST_TFLOPS = 2e4
LEAST_TFLOPS = 1e-6
SHARE_SWAPPED, SHARE_RIGHT = 0.9, 0.5
"""Swapped is what this share of rows fits swapped, and less than the other as they stand."""


def notes(frame: "pd.DataFrame") -> list[str]:
    """Warnings for a table of `outcome.finish`, from its rows with a problem and a time."""
    known = frame[["m", "n", "k"]].notna().all(axis=1) & (frame["time_us_measured"] > 0)
    rows = frame.loc[known.to_numpy()]
    if rows.empty:
        return []
    return _rate(rows) + _swapped(rows)


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
