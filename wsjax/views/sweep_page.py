"""The pages of a sweep: what its table says, packed for the scripts that draw it."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wsjax import tables
from wsjax.errors import InputError
from wsjax.hardware import FACTS, Hardware
from wsjax.schema import COLUMNS, DTYPE_BYTES, DTYPES, LIMITERS, PREDICTION_COLUMNS, SCHEDULES
from wsjax.spec import Spec
from wsjax.sweeps import QUANTILES, Record, missing_rows
from wsjax.views import html
from wsjax.views.html import Section, folded, packed
from wsjax.views.sweep_rows import (
    AT,
    KERNEL,
    Fastest,
    Frame,
    Progress,
    Source,
    fastest_rows,
    pieces,
    source_of,
)

STEP = 1e-4
"""Of the logarithm of a kernel's time over its problem's best, which a page holds as a whole
number."""
ABSENT = 2**16 - 1
NAMED = 3
"""How many machines are named where many are alike, and how many gaps of an unfinished sweep."""
SCRIPTS = ("cells.js", "sweep.js", "sweep_figures.js", "sweep_start.js")
SECTIONS = (
    Section(
        "best",
        "Fastest configurations",
        "The fastest configuration of each problem. Near: how many kernels (a tile, stages and "
        "schedule, each with its fastest settings) come within 2 % of it. Choose a problem to see "
        "all its kernels.",
        "table",
    ),
    Section(
        "tiles",
        "Tiles and stages",
        "How much slower than the fastest configuration of the problem: the geometric mean over "
        "the problems that are shown. 1 is the fastest; the best schedule and settings count.",
    ),
    Section(
        "roofline",
        "Roofline",
        "The rate of each problem's fastest configuration against its arithmetic intensity: flop "
        "over the bytes of A, B and C moved once. Lines: what the machine's file says of its "
        "matrix units and its DRAM.",
    ),
    Section(
        "limits",
        "What limits a step",
        "The share of kernels whose step is bound by loads, by compute, or by latency (the ring is "
        "too shallow for the load latency).",
    ),
    Section(
        "waves",
        "Wave quantisation",
        "Output tiles run in waves over the SMs: just past a whole number of tiles an SM, a wave "
        "is nearly empty and the rate drops.",
    ),
)
COMPARED = Section(
    "machines",
    "Machines compared",
    "The time of each problem's fastest configuration over that on the first machine: geometric "
    "mean over the problems that are shown, and the least and the greatest.",
)


QUANTILES_ROWS = 20_000
TIMES = ("time_us_min", *(f"time_us_{name}" for name in QUANTILES), "time_us_max")
QUANTILES_SECTIONS = (
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


def sweep_page(
    run: Spec, directory: Path, paths: Sequence[Path], advance: Progress
) -> tuple[str, str]:
    """The page of a sweep's files, and a line of what is in it. `advance(rows)` is called after
    every piece, for each row twice.

    Raises InputError for files that can't be read, or that hold no row.
    """
    source = source_of(run, paths)
    fastest = fastest_rows(source, advance)
    counts = _counts(run, paths)
    if fastest is None:
        raise InputError(_nothing_in(directory, counts))
    data = _data(run, source, fastest) | counts
    sections = [*SECTIONS[:1], *([COMPARED] if len(fastest.machines) > 1 else []), *SECTIONS[1:]]
    page = html.page(run.name, sections, data, SCRIPTS, _closing(run))
    return page, "; ".join([f"{fastest.rows:,} rows", *_unfinished(run, paths)])


def quantiles_page(
    run: Spec, directory: Path, paths: Sequence[Path], advance: Progress
) -> tuple[str, str]:
    """The page of a sweep that kept quantiles: how the times of each problem's kernels are spread.

    As `sweep_page`; `advance(rows)` is called once for each row.
    """
    import pandas as pd

    source = source_of(run, paths, ("rows", *TIMES))
    read: list[Frame] = []
    for piece in pieces(source, (*source.machine, *source.problem, "rows", *TIMES)):
        read.append(piece)
        advance(len(piece))
    counts = _counts(run, paths)
    if not read:
        raise InputError(_nothing_in(directory, counts))
    rows: Frame = pd.concat(read, ignore_index=True)
    drawn = rows.iloc[np.linspace(0, len(rows) - 1, min(len(rows), QUANTILES_ROWS)).astype(int)]
    machines, machine = _coded(drawn[list(source.machine)])
    problems, problem = _coded(drawn[list(source.problem)])
    notes = [NOT_SHOWN, *counts["notes"]]
    if len(drawn) < len(rows):
        notes.append(f"The page holds {len(drawn):,} of {len(rows):,} rows, drawn evenly.")
    data = counts | {
        "notes": notes,
        "legal": int(rows["rows"].sum()),
        "machines": _machines(run, machines),
        "problems": _problems(source, problems, rows),
        "machine": packed(machine, "u4"),
        "problem": packed(problem, "u4"),
        "figures": {name: packed(drawn[name].to_numpy(), "f8") for name in ("rows", *TIMES)},
    }
    text = html.page(run.name, QUANTILES_SECTIONS, data, ("spread.js",), _closing(run))
    content = f"{len(rows):,} rows of quantiles, no configurations"
    return text, "; ".join([content, *_unfinished(run, paths)])


def _coded(rows: Frame) -> tuple[Frame, np.ndarray]:
    """The distinct rows in ascending order, and the position among them of each row."""
    grouped = rows.groupby(list(rows.columns), sort=True)
    distinct = rows.drop_duplicates().sort_values(list(rows.columns), ignore_index=True)
    return distinct, grouped.ngroup().to_numpy()


def _closing(run: Spec) -> str:
    """The files that a sweep was made of, as the end of its page."""
    files = {machine.name: machine.text for machine in run.hardware}
    return folded("The sweep file", run.text) + "".join(
        folded(f"The file of machine {name}", text) for name, text in files.items()
    )


def _nothing_in(directory: Path, counts: Mapping[str, Any]) -> str:
    """What to say of a sweep without rows."""
    why = ", ".join(f"{count:,} {word}" for word, count in counts["left_out"].items())
    return f"{directory}: the sweep has no rows to show ({why or 'none made'})"


def rows_of(paths: Sequence[Path]) -> int:
    """How many rows the files hold."""
    return sum(footer.rows for path in paths if (footer := tables.read_footer(path)))


def _records(paths: Sequence[Path]) -> list[Record]:
    """What the shards' metadata say that they stand for."""
    return [Record(**json.loads(tables.read_metadata(path)["shard"])) for path in paths]


def _unfinished(run: Spec, paths: Sequence[Path]) -> list[str]:
    """What to say of a sweep of which rows are missing; nothing of one that is whole."""
    records = _records(paths)
    gaps = missing_rows(run, records)
    if not gaps:
        return []
    done = sum(record.stop - record.start for record in records)
    total = sum(len(run.product(machine)) for machine in run.hardware)
    more = f"; and {len(gaps) - NAMED} more gaps" if len(gaps) > NAMED else ""
    return [
        f"the sweep is not finished: {done:,} of {total:,} candidates are done; "
        f"{'; '.join(gaps[:NAMED])}{more}"
    ]


def _counts(run: Spec, paths: Sequence[Path]) -> dict[str, Any]:
    """What became of the sweep's candidates, from the shards' metadata."""
    left_out: Counter[str] = Counter()
    candidates = 0
    for record in _records(paths):
        candidates += record.stop - record.start
        left_out += Counter({"did not pass the filter": record.filtered})
        if not run.output.quantiles:
            left_out += Counter({"not among the fastest": record.beaten})
        left_out += Counter(record.illegal)
    notes = [f"{text[0].upper()}{text[1:]}." for text in _unfinished(run, paths)]
    swept = [override.name for override in run.overrides]
    notes += [
        f"The machines differ in {name} too, which is not told apart here: the fastest counts."
        for name in swept
        if name in PREDICTION_COLUMNS
    ]
    if run.output.best is not None:
        notes.append(
            f"The sweep kept the {run.output.best:,} fastest rows of each problem: all figures are "
            "of those."
        )
    return {"candidates": candidates, "left_out": dict(left_out.most_common()), "notes": notes}


def _data(run: Spec, source: Source, fastest: Fastest) -> dict[str, Any]:
    cells = fastest.cells
    shape = (len(fastest.machines), len(fastest.problems), len(fastest.kernels))
    at = tuple(cells[name].to_numpy() for name in AT)
    time_us = np.full(shape, np.inf)
    time_us[at] = cells["time_us"]
    settings: list[list[int | str]] = [[]]
    mark = np.zeros(shape, np.int64)
    mark[at] = cells["limiter"]
    if source.settings:
        distinct, setting = _coded(cells[list(source.settings)])
        settings = [
            [_word(str(name), value) for name, value in row.items()]
            for row in distinct.to_dict("records")
        ]
        mark[at] += setting * len(LIMITERS)
    best = time_us.min(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        slowdown = np.where(time_us > best[..., None], time_us / best[..., None], 1.0)
        step = np.minimum(np.rint(np.log(slowdown) / STEP), ABSENT - 1)
    return {
        "name": run.name,
        "rows": fastest.rows,
        "extrapolated": fastest.extrapolated,
        "extrapolated_because": [
            f"on {', '.join(names[:NAMED])}{' and others' * (len(names) > NAMED)}: {why}"
            for why, names in run.extrapolated().items()
        ],
        "all_problems": len(fastest.all_problems),
        "all_machines": len(fastest.all_machines),
        "machines": _machines(run, fastest.machines),
        "problems": _problems(source, fastest.problems, fastest.all_problems),
        "schedules": SCHEDULES,
        "limiters": LIMITERS,
        "kernels": {name: fastest.kernels[name].tolist() for name in KERNEL},
        "setting_names": source.settings,
        "settings": settings,
        "step": STEP,
        "absent": ABSENT,
        "best_us": packed(best, "f8"),
        "slowdown": packed(np.where(np.isfinite(time_us), step, ABSENT), "u2"),
        "mark": packed(mark, "u1" if mark.max() < 2**8 else "u4"),
    }


def _problems(source: Source, rows: Frame, everywhere: Frame) -> dict[str, list[Any]]:
    """The columns of problems, and a label for each: its name, its size, and what varies
    `everywhere` in the sweep."""
    words = {name: column.choices for name, column in COLUMNS.items()} | dict(source.words)
    columns: dict[str, list[Any]] = {}
    for name in source.problem:
        choices = words.get(name, ())
        values = rows[name].astype(int).tolist()
        columns[name] = [choices[value] for value in values] if choices else values
    size = ("m", "n", "k")
    own = [name for name in source.problem if name not in COLUMNS]
    others = [
        name
        for name in source.problem
        if name not in (*own, *size) and everywhere[name].nunique() > 1
    ]
    columns["label"] = [
        " ".join(
            [
                *(columns[name][i] for name in own),
                "x".join(str(columns[name][i]) for name in size),
                *(f"{name}={columns[name][i]}" for name in others),
            ]
        )
        for i in range(len(rows))
    ]
    sizes = dict(zip(DTYPES, DTYPE_BYTES, strict=True))
    columns["bytes_in"] = [sizes[word] for word in columns["dtype_in"]]
    columns["bytes_out"] = [sizes[word] for word in columns["dtype_out"]]
    return columns | {"shown": [*own, *size, *others]}


def _machines(run: Spec, rows: Frame) -> list[dict[str, Any]]:
    """Each machine's label, a short one of what differs between them, and its roofs."""
    varied = [name for name in rows if rows[name].nunique() > 1] or list(rows)[:1]
    machines = []
    for row in rows.to_dict("records"):
        machine = run.hardware[int(row["hardware"])]
        swept = {str(name): value for name, value in row.items() if name != "hardware"}
        words = {"hardware": machine.name} | {name: f"{x:.4g}" for name, x in swept.items()}
        machines.append(
            {
                "label": " ".join([machine.name, *(f"{name}={words[name]}" for name in swept)]),
                "short": " · ".join(words[str(name)] for name in varied),
                "told_by": " · ".join("machine" if n == "hardware" else str(n) for n in varied),
                **roofs(machine, swept),
            }
        )
    return machines


def roofs(machine: Hardware, swept: Mapping[str, float]) -> dict[str, Any]:
    """A machine's SMs and its roofs: TFLOP/s of each dtype, and bytes per µs from DRAM."""
    value = partial(_value, machine, swept)
    sms = value("sms")
    peak = value("compute_throughput_flop_per_us") * sms / 1e6
    counted = machine.compute_basis == "flops" and math.isfinite(peak)
    return {
        "sms": sms,
        "dram": swept.get("dram_throughput_bytes_per_us", machine.dram_roof_bytes_per_us),
        "peak": {dtype: peak * ratio for dtype, ratio in machine.compute_ratio.items()}
        if counted
        else {},
    }


def _value(machine: Hardware, swept: Mapping[str, float], name: str) -> float:
    if name in swept:
        return swept[name]
    return getattr(machine.facts if name in FACTS else machine.parameters, name)


def _word(name: str, value: int) -> int | str:
    choices = COLUMNS[name].choices
    return choices[value] if choices else value
