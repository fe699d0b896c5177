"""What a sweep file's [output] may say: which rows are kept.

[output]
keep = "all"                 # the default
keep = "best"                # or: of each problem, on each machine, only
best = 10                    # the 10 fastest legal configurations
per = "problem"              # (the default)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wsjax.axes import Refuse
from wsjax.errors import nearest
from wsjax.space import shown

KEEP = ("all", "best")
PER = ("problem",)
BEST_MAX = 100_000


@dataclass(frozen=True)
class Output:
    """`best`: how many of each problem's fastest rows are kept; None: all rows."""

    best: int | None = None


def read_output(table: Mapping[str, Any], refuse: Refuse) -> Output:
    """The [output] of a sweep file; unknown keys are not looked at."""
    if "partition_by" in table:
        refuse("partition_by", "not available in this version; leave it out")
    best = table.get("best")
    keep = table.get("keep", "all" if best is None else "best")
    if keep not in KEEP:
        refuse("keep", f"unknown word {shown(keep)}{nearest(keep, KEEP)}")
    if best is not None and not (type(best) is int and 1 <= best <= BEST_MAX):
        refuse("best", f"expected a whole number from 1 to {BEST_MAX}, not {shown(best)}")
    if keep == "all" and best is not None:
        refuse("best", 'not with keep = "all", which keeps all rows; leave one of them out')
    if keep == "best" and best is None:
        refuse("best", "missing: how many of each problem's rows to keep, such as best = 10")
    per = table.get("per", PER[0])
    if per not in PER:
        refuse("per", f"unknown word {shown(per)}{nearest(per, PER)}")
    if keep == "all" and "per" in table:
        refuse("per", 'only with keep = "best"; leave it out')
    return Output(best if keep == "best" else None)
