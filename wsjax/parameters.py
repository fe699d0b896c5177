"""The continuous parameters of the timing model: what calibration fits, and gradients flow to.

Each has a unit, a neutral value with which its term vanishes (so that a file that leaves it out is
the paper's machine), and a weak prior: a typical value on a data-centre GPU and the spread of its
logarithm, for tables that do not determine it. `family` parameters belong to a kernel family (how
the code is written), the others to the machine.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

INF = math.inf


@dataclass(frozen=True)
class Parameter:
    """What one parameter means. `spread` is the prior's standard deviation of the logarithm."""

    unit: str
    meaning: str
    neutral: float
    typical: float
    spread: float = 1.0
    family: bool = False

    @property
    def is_rate(self) -> bool:
        """Rates are above 0 and may be infinite; all else is 0 or more and finite."""
        return math.isinf(self.neutral)


class Parameters(NamedTuple):
    """A value for each parameter of `PARAMETERS`: floats, or arrays in a program."""

    launch_us: float = 0.0
    load_throughput_bytes_per_us: float = INF
    load_startup_us: float = 0.0
    load_latency_us: float = 0.0
    compute_throughput_flop_per_us: float = INF
    compute_throughput_bytes_per_us: float = INF
    compute_startup_us: float = 0.0
    sync_us: float = 0.0
    store_throughput_bytes_per_us: float = INF
    epilogue_startup_us: float = 0.0


PARAMETERS: dict[str, Parameter] = {
    "launch_us": Parameter("µs", "once a kernel, before the first wave", 0.0, 4.0),
    "load_throughput_bytes_per_us": Parameter("B/µs", "an SM's loads", INF, 60e3),
    "load_startup_us": Parameter("µs", "a DMA warp busy issuing a tile-load", 0.0, 0.03),
    "load_latency_us": Parameter("µs", "from transfer to data visible, overlapped", 0.0, 0.5),
    "compute_throughput_flop_per_us": Parameter("flop/µs", "an SM's matrix unit", INF, 7e6),
    "compute_throughput_bytes_per_us": Parameter("B/µs", "the paper's basis", INF, 25e3),
    "compute_startup_us": Parameter("µs", "a step's fixed MATH time", 0.0, 0.02, family=True),
    "sync_us": Parameter("µs", "a step's semaphores", 0.0, 0.01, family=True),
    "store_throughput_bytes_per_us": Parameter("B/µs", "an SM's stores of C", INF, 40e3),
    "epilogue_startup_us": Parameter("µs", "an epilogue's fixed time", 0.0, 0.3, family=True),
}
assert tuple(PARAMETERS) == Parameters._fields
