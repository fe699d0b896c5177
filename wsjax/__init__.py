"""wsjax: how long warp-specialised GEMM kernels take, for millions of configurations a second.

**Glossary.** A kernel computes C = A B; its CTAs split C into output tiles.

    problem       one GEMM: m n k, batch, dtypes, layout
    tile          block_m block_n block_k: the part of C one CTA computes, and the k-depth of a step
    k_tiles       steps an output tile: ceil(k / block_k)
    step          one k-tile of one output tile: a load of tiles of A and B, and one compute
    stages        slots of the circular buffer (ring) in shared memory: loads that can be ahead
    tiles         output tiles: ceil(m / block_m) ceil(n / block_n) batch
    wave          output tiles that are computed at one time, one a CTA
    DMA warp      a producer warp, which issues loads; one for A and B, or one each (dma_warps)
    MATH warps    the consumer warps, which compute and store (math_warps), in one or two groups
    mma_in_flight whether a step's MMA may run on while MATH waits for the next step's data
    schedule      how a CTA goes from one output tile to the next:
                  serial        it ends; tiles never overlap
                  persistent    the DMA warp loads the next tile during the epilogue
                  pingpong      two MATH groups alternate: one's epilogue hides under the other's
                                mainloop
                  cooperative   two MATH groups share a tile; times as persistent
    mainloop, epilogue  a tile's steps; what follows them: C is stored
    raster, group_m     the order of output tiles: groups of group_m block rows
    configuration problem, tile, stages, warps, schedule and the other columns of a row
    machine       hardware: facts (SMs, sizes, limits) and parameters (rates, latencies, costs)
    parameter     a continuous number of a machine's, with unit, neutral value and prior; fitted
    family        parameters that belong to how kernels are written, not to the machine
    time_us       the prediction; math_wait_us, dma_wait_us: MATH waits for data, DMA for slots
    limiter       what sets a step's period: load, compute, or latency (the ring is too shallow)
    method        how a row was computed: closed (formula), periodic (jumps), scan (step by step)
    legal, reason whether a machine can run a configuration, and why not
    extrapolated  outside the span of the table that a machine was fitted to
    shard, chunk  a file of a sweep's results; rows that are predicted at once

Units: µs, bytes, bytes per µs (1 B/µs = 1 MB/s), flop per µs.

**What to read next.** README.md for the verbs; `python -m pydoc wsjax.model` for the equations, and
its siblings: schema, hardware, engine, sweeps, fit, search, portfolio, changes, measuring,
timelines, views,
triton (hooks for autotuners), kept (what is kept between processes), cli.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsjax.changes import Comparison, compare
    from wsjax.errors import InfeasibleError, InputError, WsjaxError
    from wsjax.fit import Calibration, Validation, ablate, calibrate, validate
    from wsjax.hardware import Hardware, format_hardware, hardware_names, load_hardware
    from wsjax.importers import import_table
    from wsjax.measuring import measure, plan
    from wsjax.portfolio import Choice, choose
    from wsjax.predictions import predict
    from wsjax.search import optimize
    from wsjax.sweeps import open, sweep
    from wsjax.timelines import Explanation, Timeline, explain, replay_trace, trace
    from wsjax.views import Report, report

__version__ = "0.1.0"

__all__ = [
    "Calibration",
    "Choice",
    "Comparison",
    "Explanation",
    "Hardware",
    "InfeasibleError",
    "InputError",
    "Report",
    "Timeline",
    "Validation",
    "WsjaxError",
    "ablate",
    "calibrate",
    "choose",
    "compare",
    "explain",
    "format_hardware",
    "hardware_names",
    "import_table",
    "load_hardware",
    "measure",
    "open",
    "optimize",
    "plan",
    "predict",
    "replay_trace",
    "report",
    "sweep",
    "trace",
    "validate",
]

_PACKAGES = {
    "Calibration": "fit",
    "Choice": "portfolio",
    "Comparison": "changes",
    "Explanation": "timelines",
    "Timeline": "timelines",
    "Validation": "fit",
    "ablate": "fit",
    "calibrate": "fit",
    "choose": "portfolio",
    "compare": "changes",
    "explain": "timelines",
    "validate": "fit",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "import_table": "importers",
    "WsjaxError": "errors",
    "measure": "measuring",
    "plan": "measuring",
    "open": "sweeps",
    "optimize": "search",
    "predict": "predictions",
    "Report": "views",
    "replay_trace": "timelines",
    "report": "views",
    "sweep": "sweeps",
    "trace": "timelines",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: jax, pandas and pyarrow take seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'wsjax' has no attribute '{name}'")
    return getattr(import_module(f"wsjax.{_PACKAGES.get(name, 'hardware')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
