"""The few kernels to ship: `choose`.

A workload is problems with weights; an offer the kernels for it and the time of each problem on
each, in µs. Of all sets of at most k kernels `choose` finds the one with which the workload takes
the least time (the p-median problem), and proves it.

`workloads`    tables -> problems and kernels
`sets`         the best set for every number of kernels up to k, or why there is none
`set_search`   branch and bound with Lagrangian bounds, over whole numbers
`choices`      the answer as frames
`export`       the answer for CUTLASS and Triton, and as a picture

`cli` prints a `Choice` and writes its files. Read `choosing` next, which puts these together.
"""

from wsjax.portfolio.choices import Choice, slower_pct
from wsjax.portfolio.choices import Measured as MeasuredChoice
from wsjax.portfolio.choosing import choose
from wsjax.portfolio.export import (
    Point,
    cutlass_patterns,
    kernel_name,
    loss_svg,
    round_step,
    svg,
    svg_line,
    svg_text,
    without_formulas,
)
from wsjax.portfolio.workloads import (
    Problems,
    has_kernels,
    naming,
    read_frame,
    read_problems,
    space_kernels,
)

__all__ = [
    "Choice",
    "MeasuredChoice",
    "Point",
    "Problems",
    "choose",
    "cutlass_patterns",
    "has_kernels",
    "kernel_name",
    "loss_svg",
    "naming",
    "read_frame",
    "read_problems",
    "round_step",
    "slower_pct",
    "space_kernels",
    "svg",
    "svg_line",
    "svg_text",
    "without_formulas",
]
