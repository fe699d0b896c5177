"""The page of a sweep: what its table says, packed for the script that draws it."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wsjax import tables
from wsjax.errors import InputError
from wsjax.hardware import FACTS, Hardware
from wsjax.schema import COLUMNS, DTYPE_BYTES, DTYPES, LIMITERS, PREDICTION_COLUMNS, SCHEDULES
from wsjax.spec import Spec
from wsjax.sweeps import numbers_of, part_of
from wsjax.views.pages import html
from wsjax.views.pages.cube import KERNEL, PROBLEM, Cube, Progress, Source, Survey, cube, survey
from wsjax.views.pages.html import Section, folded, packed

FIGURES = (*COLUMNS, "time_us", "limiter", "extrapolated")
STEP = 1e-4
"""Of the logarithm of a kernel's time over its problem's best, which a page holds as a whole
number."""
ABSENT = 2**16 - 1
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


def sweep_page(
    run: Spec, directory: Path, paths: Sequence[Path], advance: Progress
) -> tuple[str, str]:
    """The page of a sweep's files, and a line of what is in it. `advance(rows)` is called after
    every piece, for each row twice.

    Raises InputError for files that can't be read, or that hold no row.
    """
    source = source_of(run, paths)
    found = survey(source, advance)
    counts = counts_of(run, paths)
    if not found.rows:
        raise InputError(nothing_in(directory, counts))
    kept = cube(source, found, advance)
    data = _data(run, source, found, kept) | counts
    sections = [*SECTIONS[:1], *([COMPARED] if len(kept.machines) > 1 else []), *SECTIONS[1:]]
    return html.page(run.name, sections, data, SCRIPTS, closing_of(run)), f"{found.rows:,} rows"


def closing_of(run: Spec) -> str:
    """The files that a sweep was made of, as the end of its page."""
    files = {machine.name: machine.text for machine in run.hardware}
    return folded("The sweep file", run.text) + "".join(
        folded(f"The file of machine {name}", text) for name, text in files.items()
    )


def nothing_in(directory: Path, counts: Mapping[str, Any]) -> str:
    """What to say of a sweep without rows."""
    why = ", ".join(f"{count:,} {word}" for word, count in counts["left_out"].items())
    return f"{directory}: the sweep has no rows to show ({why or 'none made'})"


def rows_of(paths: Sequence[Path]) -> int:
    """How many rows the files hold."""
    return sum(footer.rows for path in paths if (footer := tables.read_footer(path)))


def source_of(run: Spec, paths: Sequence[Path], figures: Iterable[str] = FIGURES) -> Source:
    """A sweep's files and what their columns mean; InputError if one of those, or of `figures`, is
    missing."""
    words = run.product(run.hardware[0]).words
    names = [name for axis in run.axes for name in axis.names if name not in COLUMNS]
    swept = [override.name for override in run.overrides]
    source = Source(
        paths=tuple(paths),
        folders=tuple(_folders(run, path) for path in paths),
        words=words | {"hardware": tuple(machine.name for machine in run.hardware)},
        problem=(*names, *PROBLEM),
        machine=("hardware", *(n for n in swept if n not in PREDICTION_COLUMNS)),
        settings=tuple(
            name
            for axis in run.axes
            if len(axis) > 1
            for name in axis.names
            if name in COLUMNS and name not in (*PROBLEM, *KERNEL)
        ),
    )
    wanted = {*source.problem, *source.machine, *figures}
    for path, folders in zip(paths, source.folders, strict=True):
        if missing := wanted - {*tables.parquet_names(path), *folders}:
            raise InputError(
                f"{path}: has no column {', '.join(sorted(missing))}: another version of wsjax "
                "wrote it; run the sweep again"
            )
    return source


def _folders(run: Spec, path: Path) -> dict[str, float]:
    """The columns that a file's folders stand for, as numbers; words as codes."""
    if not run.output.partition_by:
        return {}
    shard = json.loads(tables.read_metadata(path).get("shard", "{}"))
    machine = next((own for own in run.hardware if own.name == shard.get("hardware")), None)
    if machine is None:
        raise InputError(f"{path}: does not say which rows it holds; run the sweep again")
    part = part_of(run, machine, shard["start"], shard["stop"])
    found = numbers_of(part, run.output.partition_by, np.array([part.start]))
    return {name: np.ravel(value)[0] for name, value in found.items()}


def counts_of(run: Spec, paths: Sequence[Path]) -> dict[str, Any]:
    """What became of the sweep's candidates, from the shards' metadata."""
    left_out: Counter[str] = Counter()
    candidates = 0
    for path in paths:
        shard = json.loads(tables.read_metadata(path).get("shard", "{}"))
        candidates += shard.get("stop", 0) - shard.get("start", 0)
        left_out += Counter({"did not pass the filter": shard.get("filtered", 0)})
        if not run.output.quantiles:
            left_out += Counter({"not among the fastest": shard.get("beaten", 0)})
        left_out += Counter(shard.get("illegal", {}))
    total = sum(len(run.product(machine)) for machine in run.hardware)
    notes = []
    if candidates < total:
        notes.append(f"The sweep is not finished: {candidates:,} of {total:,} candidates are done.")
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


def _data(run: Spec, source: Source, found: Survey, kept: Cube) -> dict[str, Any]:
    best = kept.time_us.min(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        slowdown = np.where(kept.time_us > best[..., None], kept.time_us / best[..., None], 1.0)
        step = np.minimum(np.rint(np.log(slowdown) / STEP), ABSENT - 1)
    there = np.isfinite(kept.time_us)
    mark = kept.setting * len(LIMITERS) + kept.limiter
    return {
        "name": run.name,
        "rows": found.rows,
        "extrapolated": found.extrapolated,
        "all_problems": len(found.problems),
        "all_machines": len(found.machines),
        "machines": [machine_data(run, source, row) for row in kept.machines.tolist()],
        "problems": problem_columns(source, kept.problems, found.problems),
        "schedules": SCHEDULES,
        "limiters": LIMITERS,
        "kernels": dict(zip(KERNEL, kept.kernels.T.tolist(), strict=True)),
        "setting_names": source.settings,
        "settings": [
            [_word(name, value) for name, value in zip(source.settings, row, strict=True)]
            for row in kept.settings.tolist()
        ],
        "step": STEP,
        "absent": ABSENT,
        "best_us": packed(best, "f8"),
        "slowdown": packed(np.where(there, step, ABSENT), "u2"),
        "mark": packed(np.where(there, mark, 0), "u1" if mark.max() < 2**8 else "u4"),
    }


def problem_columns(
    source: Source, rows: np.ndarray, everywhere: np.ndarray
) -> dict[str, list[Any]]:
    """The columns of problems, and a label for each: its name, its size, and what varies
    `everywhere` in the sweep."""
    words = {name: column.choices for name, column in COLUMNS.items()} | dict(source.words)
    columns: dict[str, list[Any]] = {}
    for name, values in zip(source.problem, rows.T, strict=True):
        choices = words.get(name, ())
        columns[name] = [choices[value] for value in values] if choices else values.tolist()
    size = ("m", "n", "k")
    own = [name for name in source.problem if name not in COLUMNS]
    others = [
        name
        for name, values in zip(source.problem, everywhere.T, strict=True)
        if name not in (*own, *size) and len(np.unique(values)) > 1
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


def machine_data(run: Spec, source: Source, row: Sequence[float]) -> dict[str, Any]:
    """A machine's label, and its roofs in TFLOP/s (of each dtype) and bytes per µs."""
    own = run.hardware[int(row[0])]
    swept = dict(zip(source.machine[1:], row[1:], strict=True))
    value = partial(_value, own, swept)
    sms = value("sms")
    peak = value("compute_throughput_flop_per_us") * sms / 1e6
    counted = own.compute_basis == "flops" and math.isfinite(peak)
    return {
        "label": " ".join([own.name, *(f"{name}={x:.4g}" for name, x in swept.items())]),
        "sms": sms,
        "dram": value("dram_throughput_bytes_per_us"),
        "peak": {dtype: peak * ratio for dtype, ratio in own.compute_ratio.items()}
        if counted
        else {},
    }


def _value(machine: Hardware, swept: dict[str, float], name: str) -> float:
    if name in swept:
        return swept[name]
    return getattr(machine.facts if name in FACTS else machine.parameters, name)


def _word(name: str, value: int) -> int | str:
    choices = COLUMNS[name].choices
    return choices[value] if choices else value
