"""The best kernel of a space: `optimize`.

A space is a list of kernels (`spec.Space`), a problem a GEMM. The engine times every kernel on the
problem, exactly as `predict` does; Z3 then decides the discrete question: which of the kernels that
can win is the best that meets all constraints, or which smallest set of constraints conflict.

`criteria`       what is minimised, and what must hold: the user's conditions, the machine's limits
`scanning`       the engine times a space's kernels, and those that can win are kept
`answers`        one problem: the scan, Z3's decision, what binds, why none will do
`z3_events`      the paper's own encoding: event times as Z3 arrays, to check the scan with
`optimization`   `optimize` for frames of problems

`cli` prints the answers of a `Request`. Read `answers` next.
"""

from wsjax.search.answers import Answer, Chosen
from wsjax.search.optimization import Request, optimize, request

__all__ = ["Answer", "Chosen", "Request", "optimize", "request"]
