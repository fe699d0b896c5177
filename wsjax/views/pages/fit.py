"""The pages of a calibration and of a validation: what their report directories hold."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsjax import tables
from wsjax.errors import InputError
from wsjax.fit import DIGITS, SHORT
from wsjax.hardware import PARAMETERS
from wsjax.tables import existing
from wsjax.views.pages import html
from wsjax.views.pages.html import Section, folded
from wsjax.views.pages.measured import regret_data, rows_data, worst_data

if TYPE_CHECKING:
    import pandas as pd

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
