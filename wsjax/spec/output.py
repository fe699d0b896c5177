"""What a sweep file's [output] may say: which rows are kept, and in what folders.

[output]
keep = "all"                 # the default
keep = "best"                # or: of each problem, on each machine, only
best = 10                    # the 10 fastest legal configurations
per = "problem"              # (the default)
keep = "quantiles"           # or: one row a problem and machine, which says how the times of its
                             # legal configurations are distributed: see `wsjax.distributions`
precision = "float64"        # what formulas are computed in (the default); float32 agrees to 1e-5
partition_by = "hardware"    # a folder for each value: hardware=h200/part-00000.parquet; a list of
                             # columns for folders in folders: machines', and those of problems
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wsjax.errors import nearest
from wsjax.schema import shown
from wsjax.spec.axes import Refuse

OUTPUT_KEYS = ("keep", "best", "per", "precision", "partition_by")
KEEP = ("all", "best", "quantiles")
PER = ("problem",)
PRECISIONS = ("float64", "float32")
BEST_MAX = 100_000


@dataclass(frozen=True)
class Output:
    """`best`: how many of each problem's fastest rows are kept; None: all rows. `partition_by`: the
    columns that folders stand for, outermost first. `quantiles`: of each problem there is but one
    row, of its times' distribution. `single`: formulas are computed in float32."""

    best: int | None = None
    partition_by: tuple[str, ...] = ()
    quantiles: bool = False
    single: bool = False


def read_output(table: Mapping[str, Any], refuse: Refuse) -> Output:
    """The [output] of a sweep file; unknown keys are not looked at."""
    best = table.get("best")
    keep = table.get("keep", "all" if best is None else "best")
    if keep not in KEEP:
        refuse("keep", f"unknown word {shown(keep)}{nearest(keep, KEEP)}")
    if best is not None and not (type(best) is int and 1 <= best <= BEST_MAX):
        refuse("best", f"expected a whole number from 1 to {BEST_MAX}, not {shown(best)}")
    if keep == "all" and best is not None:
        refuse("best", 'not with keep = "all", which keeps all rows; leave one of them out')
    if keep == "quantiles" and best is not None:
        refuse("best", 'not with keep = "quantiles", which keeps no rows; leave one of them out')
    if keep == "best" and best is None:
        refuse("best", "missing: how many of each problem's rows to keep, such as best = 10")
    per = table.get("per", PER[0])
    if per not in PER:
        refuse("per", f"unknown word {shown(per)}{nearest(per, PER)}")
    if keep == "all" and "per" in table:
        refuse("per", 'only with keep = "best"; leave it out')
    precision = table.get("precision", PRECISIONS[0])
    if precision not in PRECISIONS:
        refuse("precision", f"unknown word {shown(precision)}{nearest(precision, PRECISIONS)}")
    single = precision == "float32"
    if keep == "best" and single:
        refuse("precision", 'not float32 with keep = "best", whose bounds need float64')
    return Output(
        best if keep == "best" else None, _folders(table, refuse), keep == "quantiles", single
    )


def _folders(table: Mapping[str, Any], refuse: Refuse) -> tuple[str, ...]:
    """The columns of partition_by; `layout` knows which can be."""
    names = table.get("partition_by", [])
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        refuse("partition_by", f"expected columns' names in quotes, not {shown(names)}")
        return ()
    if len({*names}) < len(names):
        refuse("partition_by", "a column is in the list twice; leave one out")
    return tuple(dict.fromkeys(names))
