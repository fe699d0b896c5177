"""Calibrations and validations as tables: lines of text for a terminal, files in a directory."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsjax.errors import InputError
from wsjax.fit.ablation import Ablated
from wsjax.fit.calibration import Calibration
from wsjax.fit.metrics import Metrics
from wsjax.fit.validation import Validation, frame_of
from wsjax.hardware import format_hardware
from wsjax.tables import make_writable, replacing

if TYPE_CHECKING:
    import pandas as pd

SHORT = {
    "rows": "rows",
    "problems": "problems",
    "mape_pct": "mean %",
    "median_ape_pct": "median %",
    "p95_ape_pct": "p95 %",
    "max_ape_pct": "max %",
    "bias_pct": "bias %",
    "spearman": "spearman",
    "regret_mean": "regret",
    "regret_p95": "p95",
    "regret_max": "max",
    "within_2pct": "in 2 %",
    "coverage_90_pct": "in 90 % band",
    "extrapolated_rows": "extrapolated",
}
"""Headings of metrics."""
DIGITS = {"spearman": 3, "regret_mean": 3, "regret_p95": 3, "regret_max": 3}


def cells(figures: Metrics) -> list[str]:
    """A set of metrics as the words of a table's row."""
    record = figures.record()
    return ["-" if record[name] is None else _number(name, record[name]) for name in SHORT]


def _number(name: str, value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{DIGITS.get(name, 2)}f}"


def metrics_rows(found: Validation) -> Iterable[tuple[str, str, Metrics]]:
    """(column, word, its metrics): all rows first."""
    yield "", "all", found.metrics
    for column, words in found.by.items():
        yield from ((column, word, figures) for word, figures in words.items())


def parameter_cells(found: Calibration) -> list[list[str]]:
    """A row a parameter that is not fixed: name, start, value, its standard error, unit, status."""
    return [
        [
            p.name,
            f"{p.start:.5g}",
            f"{p.value:.5g}",
            f"{100 * p.standard_error:.1f} %" if p.status == "fitted" else "",
            p.unit,
            p.status,
        ]
        for p in found.parameters
        if p.status != "fixed"
    ]


WORST_HEADINGS = (
    "problem",
    "layout",
    "tile",
    "stages",
    "schedule",
    "of",
    "measured µs",
    "predicted µs",
    "error %",
    "limiter",
)


def worst_cells(found: Validation) -> list[list[str]]:
    """The worst rows as the words of a table; `of`: the row's group or kernel."""
    return [
        [
            f"{row['m']}x{row['n']}x{row['k']}",
            row["layout"],
            f"{row['block_m']}x{row['block_n']}x{row['block_k']}",
            str(row["stages"]),
            row["schedule"],
            row.get("group") or row.get("kernel") or "",
            f"{row['time_us_measured']:,.2f}",
            f"{row['time_us']:,.2f}",
            f"{row['error_pct']:+.1f}",
            row["limiter"],
        ]
        for row in found.worst.to_dict("records")
    ]


PARAMETER_HEADINGS = ("parameter", "start", "value", "± 1 sigma", "unit", "")


ABLATION_HEADINGS = ("without", "mean %", "median %", "p95 %", "earns: points of mean")


def ablation_cells(found: Iterable[Ablated]) -> list[list[str]]:
    """A row a term that was left out: the errors of held-out problems without it."""
    return [
        [
            x.term or "nothing",
            *(f"{error:.2f}" for error in (x.mape_pct, x.median_ape_pct, x.p95_ape_pct)),
            f"{x.earned_pct:+.2f}" if x.term else "",
        ]
        for x in found
    ]


REPLAY_HEADINGS = (
    "configuration",
    "CTAs",
    "durations",
    "period ns",
    "median ns",
    "p95 ns",
    "median %",
    "p95 %",
    "end %",
)


def replay_cells(summary: "pd.DataFrame") -> list[list[str]]:
    """The table of `replay.summary` as words."""
    digits = {"ctas": 0, "period_ns": 0, "median_ns": 0, "p95_ns": 0}
    return [
        [
            value if isinstance(value, str) else f"{value:,.{digits.get(name, 2)}f}"
            for name, value in row.items()
        ]
        for row in summary.to_dict("records")
    ]


def prepare(directory: Path | None) -> None:
    """Make a report's directory; InputError if nothing can be written there."""
    if directory is None:
        return
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: --report takes a directory, and this is a file")
    make_writable(directory)


def write_validation(found: Validation, directory: Path) -> None:
    """`metrics.csv` (all, and by column), `worst.csv`, `rows.parquet`, `hardware.toml`, and
    `report.md`."""
    import pandas as pd

    rows = list(metrics_rows(found))
    figures = pd.DataFrame(
        {"column": column, "word": word, **values.record()} for column, word, values in rows
    )
    _write(directory / "metrics.csv", figures)
    _write(directory / "worst.csv", found.worst)
    _write(directory / "rows.parquet", found.frame())
    _write_text(directory / "hardware.toml", format_hardware(found.hardware))
    headings = ["column", "word", *SHORT.values()]
    texts = [
        f"# {found.hardware.name} on {found.table}",
        _markdown(headings, [[column, word, *cells(values)] for column, word, values in rows]),
        f"{len(found.worst)} worst rows",
        _markdown(WORST_HEADINGS, worst_cells(found)),
    ]
    _write_text(directory / "report.md", "\n\n".join(texts) + "\n")


def write_calibration(
    found: Calibration, directory: Path, left_out: Sequence[Ablated] = ()
) -> None:
    """`parameters.csv`, `correlated.csv`, `correlation.csv` (of the fitted ones), `metrics.csv`,
    `rows.parquet`, `hardware.toml`, and `report.md`; and `ablation.csv` if terms were left out."""
    import numpy as np
    import pandas as pd

    sets = {"training": found.training, "held out": found.held_out}
    figures = {word: values for word, values in sets.items() if values is not None}
    table = [{"column": "split", "word": w, **values.record()} for w, values in figures.items()]
    _write(directory / "metrics.csv", pd.DataFrame(table))
    _write_text(directory / "hardware.toml", found.hardware.text)
    split = np.where(found.is_training, "training", "held out")
    _write(directory / "rows.parquet", frame_of(found.rows).assign(split=split))
    at = [i for i, p in enumerate(found.parameters) if p.status == "fitted"]
    names = [found.parameters[i].name for i in at]
    matrix = pd.DataFrame(found.correlation[np.ix_(at, at)], columns=pd.Index(names))
    matrix.insert(0, "parameter", names)
    _write(directory / "correlation.csv", matrix)
    _write(directory / "parameters.csv", pd.DataFrame(found.parameters))
    pairs = pd.DataFrame(found.correlated, columns=["one", "other", "correlation"])
    _write(directory / "correlated.csv", pairs)
    rows = [[word, *cells(values)] for word, values in figures.items()]
    texts = [
        f"# {found.hardware.name}",
        _markdown(["problems", *SHORT.values()], rows),
        _markdown(PARAMETER_HEADINGS, parameter_cells(found)),
        "Singular values: " + ", ".join(f"{value:.3g}" for value in found.singular_values),
        _markdown(pairs.columns, [map(_word, row) for row in pairs.to_numpy()]),
    ]
    if left_out:
        table = pd.DataFrame(left_out)
        table["parameters"] = table["parameters"].map(" ".join)
        _write(directory / "ablation.csv", table)
        texts += [
            "Held-out problems without a term, the others fitted again",
            _markdown(ABLATION_HEADINGS, ablation_cells(left_out)),
        ]
    _write_text(directory / "report.md", "\n\n".join(texts) + "\n")


def write_replay(
    checked: "pd.DataFrame", summary: "pd.DataFrame", name: str, directory: Path
) -> None:
    """`ctas.csv`, `configurations.csv`, and `report.md`, of `replay.check`."""
    _write(directory / "ctas.csv", checked)
    _write(directory / "configurations.csv", summary)
    texts = [f"# {name} against the recurrences", _markdown(REPLAY_HEADINGS, replay_cells(summary))]
    _write_text(directory / "report.md", "\n\n".join(texts) + "\n")


def _markdown(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(words: Iterable[str]) -> str:
        return f"| {' | '.join(words)} |"

    headings = list(headings)
    return "\n".join([line(headings), line("---" for _ in headings), *map(line, rows)])


def _word(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _write(path: Path, table: "pd.DataFrame") -> None:
    with replacing(path) as file:
        if path.suffix == ".parquet":
            table.to_parquet(file, index=False)
        else:
            table.to_csv(file, index=False)


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
