"""Which change of a machine buys most: `compare`.

An architect's question: of a workload (problems with weights) on a base machine, what would 25 %
more SMs save, or twice the DRAM rate, or another machine? For each change the best kernel of each
problem is found again, by the exact search that sweeps use, and the weighted time set against the
base's. A change is a machine (`machines`): facts and parameters, with what follows from them.

Three figures of each change tell why it saves what it saves:

    by gradient     the slope of the base's best kernels' times, at the base, taken for a line
    same kernels    the base's best kernels on the changed machine
    best kernels    the best kernel of each problem again

The first two differ where a wave boundary is crossed or another resource sets the pace, the last
two where another kernel has become the best.

All machines are compared by the recurrences alone: a learned correction holds for the very machine
that it was fitted to, so that a changed one has none.

`machines`    "sms=+25%" -> a machine
`comparing`   `compare`: search, slopes, and the answer as frames

`cli` prints a `Comparison`, `views` draws it. Read `comparing` next.
"""

from wsjax.changes.comparing import Comparison, compare

__all__ = ["Comparison", "compare"]
