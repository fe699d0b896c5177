"""`wsjax compare`: which change of a machine saves most of a workload's time."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wsjax.cli.app import AsJson, HardwareName, SpaceFile, app
from wsjax.cli.terminal import on_machine, show_json, show_table, telling

if TYPE_CHECKING:
    from wsjax.changes import Comparison

CHANGES_SHOWN, PAIRS_SHOWN = 40, 10
Texts = Annotated[tuple[str, ...], Parameter(negative="")]


@app.command
def compare(
    workload: Annotated[Path, Parameter(help="problems with weights (CSV, Parquet), as of choose")],
    /,
    *,
    hardware: HardwareName = "h200",
    change: Annotated[
        Texts, Parameter(help="a changed machine: NAME=+25%, NAME=2x or NAME=VALUE, several by ,")
    ] = (),
    machine: Annotated[Texts, Parameter(help="another machine: its name or a TOML file")] = (),
    each: Annotated[
        Texts, Parameter(help="all that an architect can set, one by one, better by so much: +25%")
    ] = (),
    pairs: Annotated[bool, Parameter(negative="", help="also every two changes together")] = False,
    by: Annotated[str | None, Parameter(help="the workload's column that tells groups")] = None,
    space: SpaceFile = None,
    out: Annotated[Path | None, Parameter(help="a directory for the tables and a picture")] = None,
    json: AsJson = False,
) -> int:
    """Which change of a machine saves most of a workload's time, on the best kernel of each.

    wsjax compare workload.csv --hardware h200 --each +25% --out compared

    wsjax compare workload.csv --change sms=+25% --change sms=+25%,dram_bytes_per_us=2x --pairs

    `--change`, `--machine` and `--each` may be repeated. Names are a machine's facts (`sms`,
    `clock_mhz`, `dram_bytes_per_us`, `l2_bytes`, `peak_flop_per_us` ...) and parameters (`wsjax
    hardware parameters`). What depends on a fact moves with it: more SMs share one L2 and one DRAM,
    a clock moves all rates and cycles of the SMs, a parameter that a fact bounds keeps its share.
    `--each +25%` makes rates and sizes greater, and times shorter, by that factor; -25% all worse.

    Saved: of the time on `--hardware`, each problem on the best kernel of the default space or of
    `--space`, found again for each change. Beside it, what is saved with the base's kernels, and by
    the gradient of their times; and why these differ. All machines are compared without a learned
    correction, which holds only for the very machine that it was fitted to.

    `--out` gets `changes.csv`, `problems.parquet` (each problem and its kernel), `groups.csv`,
    `pairs.csv` and `tornado.svg`.
    """
    from wsjax import changes
    from wsjax.tables import make_writable

    if out is not None:
        make_writable(out)
    with telling("comparing machines", quiet=json):
        comparison = changes.compare(
            workload,
            hardware,
            change,
            machines=machine,
            each_by=each,
            pairs=pairs,
            by=by,
            space=space,
        )
    written = [] if out is None else write_comparison(comparison, out)
    if json:
        show_json(comparison.record())
    else:
        _show(comparison)
        if written:
            print(f"written to {out}: {', '.join(written)}")
    return 0


def write_comparison(comparison: "Comparison", directory: Path) -> list[str]:
    """The tables of a comparison that have rows, and its picture, in a directory; their names."""
    from wsjax import portfolio, tables, views

    texts = tables.metadata([comparison.hardware])
    parts = {
        "changes.csv": comparison.changes,
        "problems.parquet": comparison.problems,
        "groups.csv": comparison.groups,
        "pairs.csv": comparison.pairs,
    }
    written = {name: frame for name, frame in parts.items() if len(frame)}
    for name, frame in written.items():
        cells = portfolio.without_formulas(frame) if name.endswith(".csv") else frame
        tables.write_table(tables.from_frame(cells), directory / name, texts)
    with tables.replacing(directory / "tornado.svg") as file:
        file.write(views.tornado_svg(comparison).encode())
    return [*written, "tornado.svg"]


def _show(comparison: "Comparison") -> None:
    print(
        f"{comparison.time_us:,.1f} µs {on_machine(comparison.hardware)}, each problem on the best "
        f"of {comparison.kernels:,} kernels"
    )
    if comparison.corrected:
        print("all machines without the learned correction, which no changed machine has")
    shown = comparison.changes.head(CHANGES_SHOWN)
    rows = [
        [
            row["change"],
            f"{row['time_us']:,.1f}",
            *(_pct(row[x]) for x in ("saved_pct", "same_kernels_pct", "gradient_pct")),
            f"{row['elasticity']:+.2f}" if math.isfinite(row["elasticity"]) else "-",
            str(row["switched"]),
            row["why"],
        ]
        for row in shown.to_dict("records")
    ]
    headings = ["change", "time µs", "saved %", "same kernels %", "gradient %", "elasticity"]
    show_table([*headings, "switched", "why they differ"], rows, left=(0, 7), spare=(5, 7))
    if len(comparison.changes) > len(shown):
        print(f"and {len(comparison.changes) - len(shown):,} more; --out writes all")
    if len(comparison.groups):
        wide = comparison.groups.pivot(index="change", columns="group", values="saved_pct")
        names = list(dict.fromkeys(comparison.groups["group"]))
        rows = [[x, *(_pct(wide.loc[x, name]) for name in names)] for x in shown["change"]]
        show_table(["saved %", *map(str, names)], rows, title="by group")
    if len(comparison.pairs):
        rows = [
            [
                f"{row['change']} & {row['other']}",
                _pct(row["saved_pct"]),
                _pct(row["interaction_pct"]),
            ]
            for row in comparison.pairs.head(PAIRS_SHOWN).to_dict("records")
        ]
        show_table(["together", "saved %", "more than both alone"], rows, title="pairs")


def _pct(value: float) -> str:
    return f"{value:+.2f}" if math.isfinite(value) else "-"
