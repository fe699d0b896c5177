"""A sweep file -> Parquet files, shard by shard, and one table of them.

    run       `sweep`: which shards are there, which are to be made, and what came of it
    engines   who makes the shards: threads of this process, or a Ray cluster
    layout    which rows are a shard's, in what folder, under what name
    dataset   the directory: what shards say of themselves, what is done, damaged or foreign; `open`
    shards    one shard: all legal rows, each problem's best, or how their times are distributed
    rows      a shard's rows, from their numbers to Arrow columns
    topk      each problem's best rows by exact top-k with pruning; `families`: what it prunes
    quantiles a log-histogram sketch of each problem's times
    summary   the fastest rows of a few problems, and of all

Row i of a sweep follows from i, a shard from its rows' numbers and the texts in its metadata: so a
shard is the same bytes whoever makes it, when and beside what. `wsjax.sweep`, `wsjax.open` and the
verb `sweep` call this package, `report` reads what it wrote. Read `run` first, then `shards`.
"""

from wsjax.sweeps.dataset import Record, missing_rows, open, shard_names
from wsjax.sweeps.layout import shard_of
from wsjax.sweeps.quantiles import QUANTILES
from wsjax.sweeps.rows import given_numbers
from wsjax.sweeps.run import Summary, load_run, output_directory, sweep
from wsjax.sweeps.shards import Sizes, in_order
from wsjax.sweeps.topk import TopK, least_of

__all__ = [
    "QUANTILES",
    "Record",
    "Sizes",
    "Summary",
    "TopK",
    "given_numbers",
    "in_order",
    "least_of",
    "load_run",
    "missing_rows",
    "open",
    "output_directory",
    "shard_names",
    "shard_of",
    "sweep",
]
