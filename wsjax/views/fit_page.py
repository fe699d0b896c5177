"""The pages of a calibration and of a validation: what their report directories hold.

Up to `EXACT` rows a page holds each measured row with its prediction. Of more it holds bins: rows
whose measured time, error and words are alike become one, with a weight.
"""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import tables
from wsjax.errors import InputError
from wsjax.fit import DIGITS, SHORT
from wsjax.hardware import PARAMETERS
from wsjax.schema import PROBLEM
from wsjax.tables import existing
from wsjax.views import html
from wsjax.views.html import Section, folded, packed

if TYPE_CHECKING:
    import pandas as pd

EXACT = 60_000
TIME_BIN = 0.05
"""Of the decimal logarithm of a measured time."""
ERROR_BIN = 0.005
"""Of the natural logarithm of predicted over measured time. Both double until the bins are few."""
WORST_MOST = 300
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
PARITY = Section(
    "parity",
    "Predicted and measured times",
    "Each row's error against its measured time. Colour: how many rows; dots: the rows with the "
    "greatest errors.",
)
RESIDUALS = Section(
    "residuals",
    "Errors by group",
    "Predicted over measured time, less 1. Box: the middle half, with the median; whiskers: 5 % "
    "and 95 %.",
)
COVERAGE = Section(
    "coverage",
    "Coverage of the intervals",
    "The share of rows whose measured time lies between time_us_lo and time_us_hi, which should be "
    "90 %. Bars: the 95 % confidence interval of the share, if rows were independent.",
)
REGRET = Section(
    "regret",
    "Regret",
    "The measured time of the configuration that is chosen by prediction, over the best measured "
    "of the problem; all rows count. Left: if the few that are predicted fastest are measured and "
    "the best is taken. Right: if the one that is predicted fastest is taken, over problems.",
)
WORST = Section("worst", "Worst rows", "The rows with the greatest absolute errors.", "table")
GROUPS = Section("groups", "Figures", "All rows, and those of each word of a column.", "table")
PARAMETERS_FIGURE = Section(
    "parameters",
    "Parameters",
    "Fitted values over typical ones of a data-centre GPU. Bars: 1.96 standard errors.",
)
PARAMETERS_TABLE = Section(
    "values",
    "Values",
    "Standard errors are of the logarithm. What the rows do not determine is held.",
    "table",
)
CORRELATIONS = Section(
    "correlations",
    "Correlations of the errors",
    "Near 1 or -1: the rows know the two parameters only together.",
)
ABLATIONS = Section(
    "ablations",
    "Ablations",
    "How much the mean error on held-out problems rises when a term is left out and the others are "
    "fitted again.",
)


class Dimension(NamedTuple):
    """What tells rows apart: its words, and each row's position in them."""

    name: str
    words: list[str]
    codes: np.ndarray


def calibration_page(directory: Path) -> tuple[str, str]:
    """The page of a report directory of `calibrate`, and a line of what is in it."""
    parameters = _csv(directory / "parameters.csv")
    data: dict[str, Any] = {"kind": "calibration", "parameters": _parameters(parameters)}
    sections = [PARAMETERS_FIGURE, PARAMETERS_TABLE]
    if (pairs := _optional(directory / "correlation.csv")) is not None:
        data["correlations"] = {
            "names": [str(name) for name in pairs.columns[1:]],
            "values": pairs.iloc[:, 1:].to_numpy(float).tolist(),
        }
        sections.append(CORRELATIONS)
    if (ablation := _optional(directory / "ablation.csv")) is not None:
        data["ablations"] = _records(ablation)
        sections.append(ABLATIONS)
    rows = directory / "rows.parquet"
    if rows.exists():
        frame = _rows(rows)
        data |= _measured(frame)
        sections = [PARITY, RESIDUALS, *sections, REGRET, COVERAGE, WORST]
    return _page(directory, sections, data), f"{len(parameters)} parameters"


def validation_page(directory: Path) -> tuple[str, str]:
    """The page of a report directory of `validate`, and a line of what is in it."""
    frame = _rows(directory / "rows.parquet")
    sections = [REGRET, PARITY, RESIDUALS, COVERAGE, WORST]
    page = _page(directory, sections, {"kind": "validation"} | _measured(frame))
    return page, f"{len(frame):,} rows"


def _page(directory: Path, sections: list[Section], data: dict[str, Any]) -> str:
    figures = _optional(directory / "metrics.csv")
    if figures is not None:
        data["figures"] = _records(figures.fillna({"column": "", "word": ""}))
        sections = [*sections, GROUPS]
    data["headings"], data["digits"] = SHORT, DIGITS
    machine = directory / "hardware.toml"
    text = machine.read_text("utf-8") if machine.exists() else ""
    data["origin"] = tomllib.loads(text).get("calibration", {})
    closing = folded("The machine's file", text) if text else ""
    return html.page(_title(directory), sections, data, ("fit.js",), closing)


def _title(directory: Path) -> str:
    """What the first line of `report.md` says."""
    path = directory / "report.md"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return lines[0].removeprefix("# ") if lines else directory.name


def _measured(frame: "pd.DataFrame") -> dict[str, Any]:
    return {
        "rows": rows_data(frame),
        "worst": worst_data(frame),
        "regret": regret_data(frame),
        "count": len(frame),
    }


def _parameters(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """Each parameter with its typical value, from which a fit of a bare machine starts."""
    return [
        row | {"typical": known.typical, "meaning": known.meaning}
        for row in _records(table)
        if (known := PARAMETERS.get(str(row["name"]))) is not None
    ]


def _rows(path: Path) -> "pd.DataFrame":
    frame = tables.read_table(existing(path)).to_pandas(strings_to_categorical=True)
    wanted = {"time_us", "time_us_measured", "time_us_lo", "time_us_hi", "stages", "extrapolated"}
    if missing := wanted - {*frame.columns}:
        raise InputError(
            f"{path}: has no column {', '.join(sorted(missing))}; make the report again"
        )
    if frame.empty:
        raise InputError(f"{path}: holds no rows; make the report again")
    return frame


def _csv(path: Path) -> "pd.DataFrame":
    return tables.read_table(existing(path)).to_pandas()


def _optional(path: Path) -> "pd.DataFrame | None":
    return _csv(path) if path.exists() else None


def _records(table: "pd.DataFrame") -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


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
    worst = frame.iloc[np.argsort(-np.abs(error), kind="stable")[:WORST_MOST]]
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
    names = [name for name in PROBLEM if name in frame]
    return _combined([_coded(frame[name]) for name in names])[1]


def _dimensions(frame: "pd.DataFrame") -> list[Dimension]:
    columns: dict[str, Any] = {name: frame[name] for name in FILTERS if name in frame}
    columns |= {name: frame[name] for name in ("layout", "dtype_in", "l2_state") if name in frame}
    columns["tile"] = _tiles(frame)
    columns["stages"] = frame["stages"]
    columns["extrapolated"] = np.where(frame["extrapolated"], "yes", "no")
    dimensions = [_dimension(name, values) for name, values in columns.items()]
    dimensions += [_size(name, frame[name].to_numpy()) for name in SIZES]
    return [d for d in dimensions if 1 < len(d.words) <= WORDS_MOST]


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
