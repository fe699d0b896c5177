"""Measured rows and what was predicted of them, made small enough for a page.

Up to `EXACT` rows a page holds each of them. Of more it holds bins: rows whose measured time, error
and words are alike become one, with a weight.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax.fit import PROBLEM
from wsjax.views.pages.html import packed

if TYPE_CHECKING:
    import pandas as pd

EXACT = 60_000
TIME_BIN = 0.05
"""Of the decimal logarithm of a measured time."""
ERROR_BIN = 0.005
"""Of the natural logarithm of predicted over measured time. Both double until the bins are few."""
WORST = 300
FILTERS = ("split", "group", "schedule", "limiter")
"""What rows are chosen by; what else tells them apart only compares groups of them."""
WORDS_MOST = 40
ROOM = 200
"""Bins, at least, for each combination of words."""
TRIES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 32)
CURVE = 1_000
SHOWN = ("m", "n", "k", "block_m", "block_n", "block_k", "stages", "schedule")
SIZES = {"m": (16, 128, 1024), "k": (512, 2048, 8192)}
"""Where the classes of a size end."""


class Dimension(NamedTuple):
    """What tells rows apart: its words, and each row's position in them."""

    name: str
    words: list[str]
    codes: np.ndarray


def rows_data(frame: "pd.DataFrame") -> dict[str, Any]:
    """What a page needs of the rows of a `rows.parquet`."""
    measured = frame["time_us_measured"].to_numpy(float)
    ratio = frame["time_us"].to_numpy(float) / measured
    inside = _inside(frame, measured)
    dimensions = _dimensions(frame)
    if len(frame) > EXACT:
        dimensions = _few(dimensions)
        measured, ratio, inside, weight, codes, high = _binned(measured, ratio, inside, dimensions)
        dimensions = [d._replace(codes=c) for d, c in zip(dimensions, codes, strict=True)]
    else:
        weight, high = np.ones(len(frame), np.int64), 0.0
    return {
        "measured": packed(measured, "f4"),
        "ratio": packed(ratio, "f4"),
        "inside": packed(inside, "u1"),
        "weight": packed(weight, "u4"),
        "dimensions": [
            {
                "name": d.name,
                "words": d.words,
                "codes": packed(d.codes, "u1"),
                "filter": d.name in FILTERS,
            }
            for d in dimensions
        ],
        "binned": len(measured) < len(frame),
        "error_bin": high,
    }


def worst_data(frame: "pd.DataFrame") -> dict[str, Any]:
    """The rows with the greatest absolute percentage error, greatest first, as columns."""
    error = (frame["time_us"] / frame["time_us_measured"] - 1).to_numpy(float)
    worst = frame.iloc[np.argsort(-np.abs(error), kind="stable")[:WORST]]
    varying = [
        name
        for name in ("layout", "dtype_in", "split", "group", "kernel")
        if name in frame and len(np.unique(np.asarray(frame[name]))) > 1
    ]
    names = [*SHOWN, *varying, "time_us_measured", "time_us", "limiter"]
    return {name: worst[name].tolist() for name in names}


def regret_data(frame: "pd.DataFrame") -> dict[str, Any]:
    """The measured time of the best of the rows that are predicted fastest, over the best measured,
    by how many of them are tried; over problems the mean, 95th percentile and greatest. `curve`:
    that of one try for the problems in ascending order (thinned where they are many). `chance`: of
    a row drawn at random."""
    problem = _problems(frame)
    predicted, measured = (frame[n].to_numpy(float) for n in ("time_us", "time_us_measured"))
    order = np.lexsort((np.arange(len(frame)), predicted, problem))
    starts = np.flatnonzero(np.diff(problem[order], prepend=-1))
    counts = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, counts)
    sorted_times = measured[order]
    best = np.minimum.reduceat(sorted_times, starts)
    tried = [
        np.minimum.reduceat(np.where(rank < k, sorted_times, np.inf), starts) / best for k in TRIES
    ]
    one = np.sort(tried[0])
    thin = np.unique(np.linspace(0, len(one) - 1, min(len(one), CURVE)).round().astype(int))
    chance = np.add.reduceat(sorted_times, starts) / counts / best
    return {
        "tries": list(TRIES),
        "mean": [float(x.mean()) for x in tried],
        "p95": [float(np.quantile(x, 0.95)) for x in tried],
        "max": [float(x.max()) for x in tried],
        "curve": one[thin].tolist(),
        "share": ((thin + 1) / len(one)).tolist(),
        "chance": float(chance.mean()),
        "problems": len(best),
        "choices": float(np.median(counts)),
    }


def _inside(frame: "pd.DataFrame", measured: np.ndarray) -> np.ndarray:
    """1 where a measured time lies in its interval, 0 where not, 2 where there is none."""
    low, high = frame["time_us_lo"].to_numpy(float), frame["time_us_hi"].to_numpy(float)
    known = np.isfinite(low) & np.isfinite(high)
    return np.where(known, (low <= measured) & (measured <= high), 2)


def _problems(frame: "pd.DataFrame") -> np.ndarray:
    """A code for each row's problem, as in `Measured.problem`."""
    names = [name for name in (*PROBLEM, "l2_state") if name in frame]
    return _combined([_coded(frame[name]) for name in names])[1]


def _dimensions(frame: "pd.DataFrame") -> list[Dimension]:
    columns: dict[str, Any] = {name: frame[name] for name in FILTERS if name in frame}
    columns |= {name: frame[name] for name in ("layout", "dtype_in", "l2_state") if name in frame}
    columns["tile"] = _tiles(frame)
    columns["stages"] = frame["stages"]
    columns["extrapolated"] = np.where(frame["extrapolated"], "yes", "no")
    found = [_dimension(name, values) for name, values in columns.items()]
    found += [_size(name, frame[name].to_numpy()) for name in SIZES]
    return [d for d in found if 1 < len(d.words) <= WORDS_MOST]


def _dimension(name: str, values: Any) -> Dimension:
    codes, own = _coded(values)
    return Dimension(name, [str(value) or "(none)" for value in own], codes)


def _tiles(frame: "pd.DataFrame") -> np.ndarray:
    names = ["block_m", "block_n", "block_k"]
    first, codes = _combined([_coded(frame[name]) for name in names])
    blocks = frame[names].to_numpy()[first].tolist()
    return np.asarray(["×".join(map(str, row)) for row in blocks], object)[codes]


def _coded(values: Any) -> tuple[np.ndarray, Any]:
    """Each value's position among the distinct ones, and these in ascending order."""
    import pandas as pd

    return pd.factorize(values, sort=True)


def _combined(columns: list[tuple[np.ndarray, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Of rows of coded columns: where each distinct one is first, and each row's number."""
    number = np.zeros(len(columns[0][0]), np.int64)
    for codes, own in columns:
        number = np.unique(number * len(own) + codes, return_inverse=True)[1]
    return np.unique(number, return_index=True)[1], number


def _size(name: str, values: np.ndarray) -> Dimension:
    ends = SIZES[name]
    words = [f"≤ {ends[0]}", *(f"≤ {end}" for end in ends[1:]), f"> {ends[-1]}"]
    codes = np.searchsorted(ends, values)
    used, positions = np.unique(codes, return_inverse=True)
    return Dimension(name, [words[code] for code in used], positions)


def _few(dimensions: list[Dimension]) -> list[Dimension]:
    """The first of them whose combinations are not too many."""
    kept, count = [], 1
    for dimension in dimensions:
        if count * len(dimension.words) <= max(EXACT // ROOM, 1):
            kept.append(dimension)
            count *= len(dimension.words)
    return kept


def _binned(
    measured: np.ndarray, ratio: np.ndarray, inside: np.ndarray, dimensions: list[Dimension]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[np.ndarray], float]:
    """Bins in place of rows: middle time and ratio, `inside`, how many, the dimensions' codes; and
    how high bins are."""
    kind = inside.astype(np.int64)
    for dimension in dimensions:
        kind = kind * len(dimension.words) + dimension.codes
    wide, high = TIME_BIN, ERROR_BIN
    while True:
        time = np.floor(np.log10(measured) / wide).astype(np.int64)
        error = np.rint(np.log(ratio) / high).astype(np.int64)
        bins = [(x - x.min(), range(int(np.ptp(x)) + 1)) for x in (kind, time, error)]
        first, number = _combined(bins)
        if len(first) <= EXACT:
            break
        wide, high = wide * 2, high * 2
    middle = 10 ** ((time[first] + 0.5) * wide)
    codes = [dimension.codes[first] for dimension in dimensions]
    return middle, np.exp(error[first] * high), inside[first], np.bincount(number), codes, high
