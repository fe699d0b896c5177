"""A sweep file -> Parquet files."""

from wsjax.sweeps.dataset import shard_names
from wsjax.sweeps.given_columns import numbers_of
from wsjax.sweeps.layout import part_of
from wsjax.sweeps.quantiles import QUANTILES
from wsjax.sweeps.results import open
from wsjax.sweeps.run import Summary, load_run, output_directory, sweep

__all__ = [
    "QUANTILES",
    "Summary",
    "load_run",
    "numbers_of",
    "open",
    "output_directory",
    "part_of",
    "shard_names",
    "sweep",
]
