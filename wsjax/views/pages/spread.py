"""The page of a sweep that kept quantiles: how the times of each problem's kernels are spread."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wsjax.errors import InputError
from wsjax.spec import Spec
from wsjax.sweeps import QUANTILES
from wsjax.views.pages import html
from wsjax.views.pages.cube import Progress, pieces
from wsjax.views.pages.html import Section, packed
from wsjax.views.pages.sweep import closing_of, counts_of, machine_data, nothing_in, problem_columns
from wsjax.views.pages.sweep import source_of as sweep_source

ROWS = 20_000
TIMES = ("time_us_min", *(f"time_us_{name}" for name in QUANTILES), "time_us_max")
SECTIONS = (
    Section(
        "spread",
        "Where the choice of a kernel matters",
        "Times of a problem's kernels over the fastest of them, for the problems with the greatest "
        "median: box from 25 to 75 %, whiskers from 5 to 95 %.",
    ),
    Section(
        "problems",
        "Problems",
        "How many kernels are legal, and their times in µs: the fastest, those that 5, 25, 50, 75 "
        "and 95 % are not above, and the slowest.",
        "table",
    ),
)
NOT_SHOWN = (
    'The sweep kept quantiles (keep = "quantiles"), and no configuration: the fastest ones, tiles '
    "and stages, roofline, limiters and wave quantisation are not shown. With best = 10 they are."
)


def spread_page(
    run: Spec, directory: Path, paths: Sequence[Path], advance: Progress
) -> tuple[str, str]:
    """The page of a sweep's files, and a line of what is in it. `advance(rows)` is called after
    every piece.

    Raises InputError for files that can't be read, or that hold no row.
    """
    source = sweep_source(run, paths, ("rows", *TIMES))
    names = (*source.machine, *source.problem, "rows", *TIMES)
    read: list[np.ndarray] = []
    for columns in pieces(source, names):
        read.append(np.stack([columns[name] for name in names], axis=1).astype(float))
        advance(len(read[-1]))
    counts = counts_of(run, paths)
    if not read:
        raise InputError(nothing_in(directory, counts))
    rows = np.concatenate(read)
    count, legal = len(rows), int(rows[:, names.index("rows")].sum())
    drawn = np.linspace(0, count - 1, min(count, ROWS)).astype(int)
    split = len(source.machine)
    given = rows[:, split : split + len(source.problem)].astype(int)
    machines, machine = np.unique(rows[drawn, :split], axis=0, return_inverse=True)
    problems, problem = np.unique(given[drawn], axis=0, return_inverse=True)
    figures = {name: rows[drawn, names.index(name)] for name in ("rows", *TIMES)}
    notes = [NOT_SHOWN, *counts["notes"]]
    if len(drawn) < count:
        notes.append(f"The page holds {len(drawn):,} of {count:,} rows, drawn evenly.")
    data = counts | {
        "notes": notes,
        "legal": legal,
        "machines": [machine_data(run, source, row)["label"] for row in machines.tolist()],
        "problems": problem_columns(source, problems, given),
        "machine": packed(np.ravel(machine), "u4"),
        "problem": packed(np.ravel(problem), "u4"),
        "figures": {name: packed(values, "f8") for name, values in figures.items()},
    }
    text = html.page(run.name, SECTIONS, data, ("spread.js",), closing_of(run))
    return text, f"{count:,} rows of quantiles, no configurations"
