"""Sweeps: a sweep file's rows, predicted a block at a time and written shard by shard.

Rows come machine by machine, in the product's order. Those that the filter drops and those that
are illegal are counted, not written. Memory holds one block, however many rows there are.
"""

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wsjax import frame as frames
from wsjax import tables
from wsjax.best import Best, Leader
from wsjax.blocks import Part, predict_block
from wsjax.dataset import SHARD_KEY, Dataset, Shard, open_dataset
from wsjax.errors import InputError
from wsjax.hardware import parse_hardware
from wsjax.limits import REASONS
from wsjax.space import COLUMNS, Product
from wsjax.spec import Spec, load_spec, parse_spec
from wsjax.where import Predicate

if TYPE_CHECKING:
    import pyarrow as pa

SHARD_ROWS = 2**20
BLOCK_ROWS = 2**16
"""Candidate rows of a file, and of what is held in memory at once."""

FEW = 5
MANY = 10**9
"""So many candidates are worth a word before the work begins."""
PROBLEM_COLUMNS = ("m", "n", "k", "batch", "dtype_in", "dtype_out", "layout")
Progress = Callable[[int, int], None]


class Summary(NamedTuple):
    """What a sweep did: `candidates` = `rows` written + `filtered` + the sum of `illegal`.

    `shards`, and how many of them were `resumed`: found done. `best`: the fastest row of each of
    a few problems (and machines) spread over the sweep, or the few fastest times if there is but
    one problem, each with how many rows of the problem have that time; `fastest`: the row of most
    TFLOP/s of all.
    """

    directory: Path
    candidates: int
    rows: int
    filtered: int
    illegal: dict[str, int]
    shards: int
    resumed: int
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
    products = [run.product(machine) for machine in run.hardware]
    candidates = sum(map(len, products))
    count = sum(-(-len(product) // SHARD_ROWS) for product in products)
    if candidates > MANY:
        warnings.warn(
            f"{candidates:,} candidates: {count:,} files in {directory}; "
            "a [filter] drops rows, fewer values save the time",
            stacklevel=2,
        )
    keys = _keys(run)
    best = Best(keys, each=1 if len(keys) > 1 else FEW)
    shards: list[Shard] = []
    done = resumed = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, candidates)

    with open_dataset(directory, texts, count) as dataset:
        for number, part in enumerate(_parts(run, products)):
            shard = dataset.finished(number, part.machine.name, part.start, part.stop)
            again = _resume(best, part, dataset, number) if shard else None
            if shard and again:
                best, resumed = again, resumed + 1
                advance(part.stop - part.start)
            else:
                path = dataset.path(number)
                shard = _write(run.predicate(), part, path, texts, best, advance)
            shards.append(shard)
    if best.fastest is not None and best.fastest["time_us"] == 0:
        warnings.warn(f"{best.fastest['hardware']}: {frames.NEUTRAL}", stacklevel=2)
    return Summary(
        directory=directory,
        candidates=candidates,
        rows=sum(shard.rows for shard in shards),
        filtered=sum(shard.filtered for shard in shards),
        illegal=_total(shard.illegal for shard in shards),
        shards=len(shards),
        resumed=resumed,
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


def _parts(run: Spec, products: list[Product]) -> Iterator[Part]:
    names = tuple(machine.name for machine in run.hardware)
    swept = tuple(override.name for override in run.overrides)
    for machine, product in zip(run.hardware, products, strict=True):
        for start in range(0, len(product), SHARD_ROWS):
            stop = min(start + SHARD_ROWS, len(product))
            yield Part(machine, names, product, swept, start, stop)


def _write(
    predicate: Predicate | None,
    part: Part,
    path: Path,
    texts: Mapping[str, str],
    best: Best,
    advance: Callable[[int], None],
) -> Shard:
    """Write one shard; what it stands for."""
    rows = filtered = 0
    illegal: list[dict[str, int]] = []
    with tables.shard_writer(path, texts) as (write, note):
        for start in range(part.start, part.stop, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, part.stop)
            block = predict_block(part, predicate, start, stop)
            if block.rows or (stop == part.stop and not rows):
                write(block.columns)
            _compare(best, block.columns, part)
            rows, filtered = rows + block.rows, filtered + block.filtered
            illegal.append(block.illegal)
            advance(stop - start)
        name, counts = part.machine.name, _total(illegal)
        shard = Shard(name, part.start, part.stop, rows, filtered, counts)
        note(SHARD_KEY, shard.text())
    return shard


def _resume(best: Best, part: Part, dataset: Dataset, number: int) -> Best | None:
    """`best` with a finished shard's rows; None, and a warning, if they can't be read."""
    best = deepcopy(best)
    try:
        for columns in tables.read_batches(dataset.path(number)):
            _compare(best, columns, part)
    except InputError:
        dataset.warn(number)
        return None
    return best


def _total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sums by reason, in the order of `REASONS`."""
    total = sum(map(Counter, counts), Counter())
    return {reason: total[reason] for reason in REASONS if total[reason]}


def _compare(best: Best, columns: Mapping[str, "pa.Array"], part: Part) -> None:
    """Let a table's rows compete for the best."""
    numbers = {
        name: tables.numbers(columns[name], part.words.get(name, ()))
        for name in (*best.keys, "time_us", "tflops")
    }
    best.update(numbers, partial(tables.row, columns))
