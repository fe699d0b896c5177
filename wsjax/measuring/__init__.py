"""What to measure, and measuring it: a workload -> a plan -> a table that `calibrate` reads.

0. `planning`: a pool of pairs of problem and kernel, of which `wsjax.fit.design` takes the best;
1. `runner`: which rows are left, in which order, and the file that they are appended to;
2. `worker`: the process that runs kernels, which may hang or crash; the `Engine` behind it;
3. `gpu`: how a kernel is timed and checked on an NVIDIA GPU;
4. `gluon`, `triton_gemm`: the kernels. Gluon's is the model's own: DMA warps, MATH warps, a ring;
5. `cutlass_profiler`: CUTLASS's kernels, which its own tool times.

`gpu`, `gluon` and `triton_gemm` are imported in the worker's process only: they need PyTorch and
Triton. Called by the command line; read `wsjax.fit` next.
"""

from wsjax.measuring.cutlass_profiler import profiler_commands
from wsjax.measuring.planning import Plan, plan
from wsjax.measuring.runner import ENGINES, Measured, measure
from wsjax.measuring.worker import Engine, UnavailableError, UnsupportedError, serve

__all__ = [
    "ENGINES",
    "Engine",
    "Measured",
    "Plan",
    "UnavailableError",
    "UnsupportedError",
    "measure",
    "plan",
    "profiler_commands",
    "serve",
]
