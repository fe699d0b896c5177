"""How a sweep's rows are laid out in files: which rows are whose, in what folder, under what name.

Rows come machine by machine, in the product's order. Files of `shard_rows` rows are numbered from 0
in that order; where `partition_by` names columns, these are the slowest to change, a file has one
value of each, and lies in the folders that say it: `hardware=h200/m=16/part-00003.parquet`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from wsjax.engine import Candidates
from wsjax.errors import InputError, nearest
from wsjax.hardware import Hardware, parse_hardware
from wsjax.schema import COLUMNS, Product
from wsjax.spec import GIVEN, Spec, parse_spec, split
from wsjax.sweeps.rows import Shard, given_columns

if TYPE_CHECKING:
    import pyarrow as pa

FOLDERS_MAX = 10_000
"""Folders of a machine, at most: more would hold next to nothing, and slow down all readers."""
COMBINATIONS_MAX = 2**20
FILES_MAX = 100_000
"""Files of a sweep, at most: a directory of more is slow for all readers."""
SHARD_ROWS_MAX = 2**30


@dataclass(frozen=True)
class ShardRows:
    """Rows of a file: candidates, or, where only the best are kept, those.

    least, most: by default there are a quarter of a machine's candidates in a file, within these
    bounds. candidates: of a file of best rows, at most, if one problem has not more.
    """

    least: int = 2**18
    most: int = 2**20
    candidates: int = 2**28

    def usual(self, candidates: int) -> int:
        """Of a machine with so many candidates; some files are made at once."""
        return min(max(-(-candidates // 4), self.least), self.most)

    def of(self, run: Spec, product: Product, given: int | None) -> int:
        """Candidates of a file, if the user gives so many rows; whole problems if their best rows
        are kept."""
        rows = given or self.usual(len(product))
        best = 1 if run.output.quantiles else run.output.best
        if best is None:
            return rows
        each = len(split(product)[1])
        return each * max(1, min(rows // best, self.candidates // each))


USUAL_ROWS = ShardRows()


def layout(run: Spec, shard_rows: int | None = None, sizes: ShardRows = USUAL_ROWS) -> list[Shard]:
    """All files of a sweep, in order. InputError if it can't be partitioned as it says, or has too
    many files."""
    plans = []
    for machine in run.hardware:
        candidates = _candidates(run, machine)
        rows = sizes.of(run, candidates.product, shard_rows)
        plans.append(_Plan(candidates, _bounds(run, candidates.product), rows))
    if (count := sum(plan.files() for plan in plans)) > FILES_MAX:
        raise InputError(_too_many(run, plans, count, sizes))
    names = run.output.partition_by
    shards = [shard for plan in plans for shard in plan.shards(run)]
    return [
        shard._replace(name=f"{_folder(shard, names)}part-{number:05d}.parquet")
        for number, shard in enumerate(shards)
    ]


def shard_of(run: Spec, machine: Hardware, start: int, stop: int) -> Shard:
    """Rows `start` to `stop` of those on a machine, without a name."""
    return _shard(run, _candidates(run, machine), start, stop)


def run_of(texts: Mapping[str, str], path: str) -> Spec:
    """A sweep from the metadata of one of its files; `path` names that in messages."""
    if not {"wsjax.name", "wsjax.spec", "wsjax.hardware"} <= texts.keys():
        raise InputError(f"{path}: no sweep wrote this table; give a sweep file (.toml)")
    machines = [
        parse_hardware(text, f"{path}: {name}")
        for name, text in json.loads(texts["wsjax.hardware"]).items()
    ]
    return parse_spec(texts["wsjax.spec"], f"{texts['wsjax.name']}.toml", machines)


def folder_columns(shard: Shard, names: tuple[str, ...], rows: int = 1) -> dict[str, "pa.Array"]:
    """The columns that folders stand for, as the files would hold them."""
    return given_columns(shard, names, np.full(rows, shard.start)) if names else {}


def _shard(run: Spec, candidates: Candidates, start: int, stop: int) -> Shard:
    names = tuple(machine.name for machine in run.hardware)
    swept = tuple(override.name for override in run.overrides)
    return Shard("", candidates, names, swept, start, stop)


class _Plan(NamedTuple):
    """A machine's rows, those with which its folders change, and how many of them are a file's."""

    candidates: Candidates
    bounds: list[int]
    rows: int

    def files(self) -> int:
        """How many files there will be."""
        return sum(-((first - last) // self.rows) for first, last in pairwise(self.bounds))

    def shards(self, run: Spec) -> Iterator[Shard]:
        """The files, in order."""
        for first, last in pairwise(self.bounds):
            for start in range(first, last, self.rows):
                yield _shard(run, self.candidates, start, min(start + self.rows, last))


def _candidates(run: Spec, machine: Hardware) -> Candidates:
    return Candidates(machine, _product(run, machine), run.output.single)


def _too_many(run: Spec, plans: Sequence[_Plan], files: int, sizes: ShardRows) -> str:
    """What to do about a sweep of so many files."""
    candidates = sum(plan.bounds[-1] for plan in plans)
    most = [p._replace(rows=sizes.of(run, p.candidates.product, SHARD_ROWS_MAX)) for p in plans]
    fewer = sum(plan.files() for plan in most) <= FILES_MAX
    return (
        f"{run.path}: {candidates:,} candidates would be {files:,} files, more than {FILES_MAX:,}; "
        f"give fewer values{', or a larger --shard-rows' if fewer else ''}"
    )


def _product(run: Spec, machine: Hardware) -> Product:
    """The rows on a machine; columns that folders stand for change slowest."""
    product, names = run.product(machine), run.output.partition_by
    if run.output.quantiles:
        given = sorted(product.axes, key=lambda axis: {*axis.names} <= {*COLUMNS} - {*GIVEN})
        product = Product(tuple(given))
    if not names:
        return product
    outer, _ = split(product)
    valid = ("hardware", *outer.names)
    wrong = [name for name in names if name not in valid]
    if wrong:
        each = "a folder needs a column of problems or machines that the sweep gives"
        raise InputError(
            f"{run.path}: output: partition_by: not '{name}': {each}{nearest(name, valid)}"
            for name in wrong
        )

    def rank(axis: Any) -> int:
        return min((names.index(name) for name in axis.names if name in names), default=len(names))

    return Product(tuple(sorted(product.axes, key=rank)))


def _bounds(run: Spec, product: Product) -> list[int]:
    """The rows with which the folder changes, and the end."""
    names = [name for name in run.output.partition_by if name != "hardware"]
    if not names:
        return [0, len(product)]
    prefix = Product(tuple(axis for axis in product.axes if {*axis.names} & {*names}))
    if len(prefix) <= COMBINATIONS_MAX:
        rows = prefix.rows(0, len(prefix))
        changes = np.any([rows[name][1:] != rows[name][:-1] for name in names], axis=0)
        firsts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(prefix)]
        if len(firsts) - 1 <= FOLDERS_MAX:
            return [first * (len(product) // len(prefix)) for first in firsts]
    raise InputError(
        f"{run.path}: output: partition_by: {', '.join(names)}: more than {FOLDERS_MAX:,} folders; "
        "name a column of fewer values, or leave it out"
    )


def _folder(shard: Shard, names: tuple[str, ...]) -> str:
    """A file's folders."""
    columns = folder_columns(shard, names)
    texts = ((name, str(column[0].as_py())) for name, column in columns.items())
    return "".join(f"{name}={quote(text, safe='')}/" for name, text in texts)
