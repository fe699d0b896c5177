"""Sweeps: a sweep file's rows, predicted a block at a time and written shard by shard.

Rows come machine by machine, in the product's order. Those that the filter drops and those that
are illegal are counted, not written. Memory holds one block, however many rows there are.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from wsjax import frame as frames
from wsjax import shards, tables
from wsjax.axes import PROBLEM_COLUMNS
from wsjax.best import Best, Leader
from wsjax.blocks import Part
from wsjax.dataset import Dataset, Shard, open_dataset
from wsjax.errors import InputError
from wsjax.hardware import parse_hardware
from wsjax.space import COLUMNS
from wsjax.spec import Spec, load_spec, parse_spec

FEW = 5
MANY = 10**9
"""So many candidates are worth a word before the work begins."""
Progress = Callable[[int, int], None]


class Summary(NamedTuple):
    """What a sweep did: `candidates` = `rows` written + `filtered` + the sum of `illegal` +
    `beaten`: the legal rows that are not among the best, where only those are kept.

    `shards`, and how many of them were `resumed`: found done. Where only the best are kept,
    `evaluated`: legal rows whose times this run looked at, `bounded`: others, which a bound alone
    ruled out.
    `best`: the fastest row of each of a few problems (and machines) spread over the sweep, or the
    few fastest times if there is but one problem, each with how many written rows of the problem
    have that time; `fastest`: the row of most TFLOP/s of all.
    """

    directory: Path
    candidates: int
    rows: int
    filtered: int
    illegal: dict[str, int]
    beaten: int
    shards: int
    resumed: int
    evaluated: int
    bounded: int
    best: list[Leader]
    fastest: dict[str, Any] | None


def sweep(
    spec: str | Path | Spec, out: str | Path | None = None, *, progress: Progress | None = None
) -> Summary:
    """Predict all rows of a sweep into a directory of Parquet files, `results/<name>` by default.

    spec: a sweep file (see `wsjax.spec`), or a Parquet file that a sweep wrote, or its directory:
    its metadata repeats the sweep, whatever has become of the files it was made from.

    A directory that holds a part of the same sweep is completed; the result is the same, byte for
    byte. `progress(done, candidates)` is called after every block.

    Raises InputError for mistakes in the files, and for a directory that holds anything else.
    """
    run = spec if isinstance(spec, Spec) else load_run(spec)
    directory = output_directory(run, out)
    texts = tables.metadata(run.hardware, name=run.name, spec=run.text)
    parts = list(_parts(run))
    candidates = sum(part.stop - part.start for part in parts)
    if candidates > MANY and run.output.best is None:
        warnings.warn(
            f"{candidates:,} candidates: {len(parts):,} files in {directory}; "
            'a [filter] drops rows, fewer values save the time, [output] keep = "best" both',
            stacklevel=2,
        )
    keys = _keys(run)
    best = Best(keys, each=1 if len(keys) > 1 else FEW)
    made: list[Shard] = []
    done = resumed = evaluated = bounded = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, candidates)

    with open_dataset(directory, texts, len(parts)) as dataset:
        for number, part in enumerate(parts):
            shard = dataset.finished(number, part.machine.name, part.start, part.stop)
            again = _resume(best, part, dataset, number) if shard else None
            if shard and again:
                best, resumed = again, resumed + 1
                advance(part.stop - part.start)
            else:
                written = shards.write(dataset.path(number), texts, part, run, best, advance)
                shard = written.shard
                evaluated, bounded = evaluated + written.evaluated, bounded + written.bounded
            made.append(shard)
    if best.fastest is not None and best.fastest["time_us"] == 0:
        warnings.warn(f"{best.fastest['hardware']}: {frames.NEUTRAL}", stacklevel=2)
    return Summary(
        directory=directory,
        candidates=candidates,
        rows=sum(shard.rows for shard in made),
        filtered=sum(shard.filtered for shard in made),
        illegal=shards.total(shard.illegal for shard in made),
        beaten=sum(shard.beaten for shard in made),
        shards=len(made),
        resumed=resumed,
        evaluated=evaluated,
        bounded=bounded,
        best=best.leaders(),
        fastest=best.fastest,
    )


def output_directory(run: Spec, out: str | Path | None = None) -> Path:
    """Where a sweep's files go."""
    return Path(out) if out is not None else Path("results") / run.name


def load_run(source: str | Path) -> Spec:
    """A sweep from its file, or from the metadata of a table that it wrote."""
    if not isinstance(source, str | Path):
        raise InputError(f"a sweep is a file's name or a Spec, not {type(source).__name__}")
    path = Path(source)
    if path.is_dir():
        path = min(path.glob("part-*.parquet"), default=path)
    if path.suffix != ".parquet":
        return load_spec(path)
    texts = tables.read_metadata(path)
    if not {"name", "spec", "hardware"} <= texts.keys():
        raise InputError(f"{path}: no sweep wrote this table; give a sweep file (.toml)")
    machines = [
        parse_hardware(text, f"{path}: {name}")
        for name, text in json.loads(texts["hardware"]).items()
    ]
    return parse_spec(texts["spec"], f"{texts['name']}.toml", machines)


def _keys(run: Spec) -> tuple[str, ...]:
    """What tells problems and machines apart in a summary: the columns of them that vary."""
    varying = [name for axis in run.axes if len(axis) > 1 for name in axis.names]
    swept = [override.name for override in run.overrides]
    return ("hardware", *(n for n in varying if n in PROBLEM_COLUMNS or n not in COLUMNS), *swept)


def _parts(run: Spec) -> Iterator[Part]:
    from wsjax.sources import Source

    names = tuple(machine.name for machine in run.hardware)
    swept = tuple(override.name for override in run.overrides)
    for machine in run.hardware:
        product = run.product(machine)
        source = Source(machine, product)
        rows = shards.rows_of(product, run.output.best)
        for start in range(0, len(product), rows):
            stop = min(start + rows, len(product))
            yield Part(source, names, swept, start, stop)


def _resume(best: Best, part: Part, dataset: Dataset, number: int) -> Best | None:
    """`best` with a finished shard's rows; None, and a warning, if they can't be read."""
    best = deepcopy(best)
    try:
        for columns in tables.read_batches(dataset.path(number)):
            shards.compare(best, columns, part)
    except InputError:
        dataset.warn(number)
        return None
    return best
