"""A sweep's results for other tools: its directory, if it is whole, as a pyarrow dataset."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wsjax import tables
from wsjax.errors import InputError
from wsjax.spec import Spec
from wsjax.sweeps.dataset import SHARD_KEY, Shard, described, footers, is_ours, read, shard_names
from wsjax.sweeps.layout import folder_columns, part_of, run_of
from wsjax.tables import Folder, Store, existing, store

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def open(directory: str | Path) -> "ds.Dataset":
    """The table that a sweep wrote into a directory, as a `pyarrow.dataset.Dataset`.

    directory: a path, or a URI such as `s3://bucket/path`. Nothing is read but the ends of files:
    `.to_table(columns=[…], filter=…)` reads, and DuckDB and Polars (`scan_pyarrow_dataset`) query
    it. Columns that folders stand for (`[output] partition_by`) are the last.

    Raises InputError for a directory that no sweep wrote, or that is not whole: it says which files
    or rows are missing.
    """
    if not isinstance(directory, str | Path):
        raise InputError(f"a sweep's directory is a path, not {type(directory).__name__}")
    place = store(directory)
    if isinstance(place, Folder) and not existing(place.path).is_dir():
        raise InputError(f"{place}: is a file; give the directory of a sweep")
    texts = {key: text for key, text in described(place).items() if key != SHARD_KEY}
    if not texts:
        raise InputError(f"{place}: no sweep wrote this directory; give one that `sweep` made")
    run = run_of(texts, str(place))
    ends = footers(place, shard_names(place.names()))
    shards = {name: read(place, name, footer, texts) for name, footer in ends.items()}
    if problems := [*_damaged(place, ends, shards), *_missing(run, shards)]:
        mend = f"wsjax sweep {place} --out {place} makes what is missing"
        raise InputError(f"{place}: not whole: {'; '.join(problems)}; {mend}")
    system, base = place.place()
    machine = run.hardware[0]
    folders = folder_columns(part_of(run, machine, 0, 1), run.output.partition_by)
    return tables.parquet_dataset([f"{base}/{name}" for name in shards], system, base, folders)


def _damaged(
    place: Store, ends: Mapping[str, tables.Footer | None], shards: Mapping[str, Shard | None]
) -> list[str]:
    """The files that can't be read; `sweep` replaces those that were its own, no others."""
    return [
        f"{name} is damaged{'' if is_ours(place, name, ends[name]) else ' (move it away first)'}"
        for name, shard in shards.items()
        if shard is None
    ]


def _missing(run: Spec, shards: Mapping[str, Shard | None]) -> list[str]:
    """The rows of each machine that no file stands for."""
    found: dict[str, list[Shard]] = defaultdict(list)
    for shard in shards.values():
        if shard is not None:
            found[shard.hardware].append(shard)
    missing = []
    for machine in run.hardware:
        end, count = 0, len(run.product(machine))
        bounds = [(shard.start, shard.stop) for shard in found[machine.name]]
        for start, stop in [*sorted(bounds), (count, count)]:
            if start > end:
                missing.append(f"rows {end:,} to {start - 1:,} on {machine.name} are missing")
            end = max(end, stop)
    return missing
