"""The continuous parameters of the timing model: what calibration fits, and gradients flow to.

Each has a unit, a neutral value with which its term vanishes (so that a file that leaves it out is
the paper's machine), and a weak prior: a typical value on a data-centre GPU and the spread of its
logarithm, for tables that do not determine it. `family` parameters belong to a kernel family (how
the code is written), the others to the machine. The equations are in `traffic` and `durations`.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

INF = math.inf
Value = Any
"""A float, or an array in a program."""


@dataclass(frozen=True)
class Parameter:
    """What one parameter means.

    spread: the prior's standard deviation of the logarithm. share: at most 1. scale: the quantity
    of a machine to which it is proportional, a key of `peaks.scaled`; none: to no fact.
    """

    unit: str
    meaning: str
    neutral: float
    typical: float
    spread: float = 1.0
    family: bool = False
    share: bool = False
    scale: str = ""

    @property
    def is_rate(self) -> bool:
        """Rates are above 0 and may be infinite; all else is 0 or more and finite."""
        return math.isinf(self.neutral)


class Parameters(NamedTuple):
    """A value for each parameter of `PARAMETERS`: floats, or arrays in a program."""

    launch_us: Value = 0.0
    launch_per_stage_us: Value = 0.0
    launch_wide_us: Value = 0.0
    launch_saved_us: Value = 0.0
    launch_cluster_us: Value = 0.0
    load_throughput_bytes_per_us: Value = INF
    l2_throughput_bytes_per_us: Value = INF
    dram_throughput_bytes_per_us: Value = INF
    dram_exposure: Value = 1.0
    dirty_share: Value = 1.0
    out_of_bounds_cost: Value = 0.0
    pitch_cost: Value = 0.0
    short_row_cost: Value = 0.0
    multicast_cost: Value = 0.0
    l2_capacity_bytes: Value = INF
    warm_hit_share: Value = 1.0
    load_startup_us: Value = 0.0
    load_issue_us: Value = 0.0
    load_latency_us: Value = 0.0
    latency_throughput_bytes_per_us: Value = INF
    crowding_latency_us: Value = 0.0
    dram_latency_first_us: Value = 0.0
    dram_latency_us: Value = 0.0
    sharing: Value = 0.0
    latency_exposure: Value = 1.0
    cluster_latency_us: Value = 0.0
    compute_throughput_flop_per_us: Value = INF
    compute_throughput_bytes_per_us: Value = INF
    smem_throughput_bytes_per_us: Value = INF
    spill_throughput_bytes_per_us: Value = INF
    clock_rise: Value = 0.0
    clock_drop: Value = 0.0
    compute_startup_us: Value = 0.0
    sync_us: Value = 0.0
    drain_us: Value = 0.0
    promotion_us: Value = 0.0
    promotion_hidden: Value = 0.0
    mma_queue: Value = INF
    softness: Value = 0.0
    dram_softness: Value = 0.0
    store_throughput_bytes_per_us: Value = INF
    direct_throughput_bytes_per_us: Value = INF
    drain_throughput_bytes_per_us: Value = INF
    epilogue_startup_us: Value = 0.0
    overhead_hidden: Value = 0.0


def _time(meaning: str, typical: float, *, family: bool = False) -> Parameter:
    return Parameter("µs", meaning, 0.0, typical, family=family)


def _rate(
    meaning: str,
    typical: float,
    *,
    family: bool = False,
    unit: str = "B/µs",
    scale: str = "clock",
) -> Parameter:
    return Parameter(unit, meaning, INF, typical, 0.7, family=family, scale=scale)


def _share(
    meaning: str, neutral: float, typical: float, spread: float = 1.0, *, family: bool = False
) -> Parameter:
    return Parameter("1", meaning, neutral, typical, spread, family=family, share=True)


PARAMETERS: dict[str, Parameter] = {
    "launch_us": _time("once a kernel, before the first wave", 4.5),
    "launch_per_stage_us": _time("setting up the barriers of a ring slot", 0.05, family=True),
    "launch_wide_us": _time("more to launch with 8 MATH warps or more", 0.15, family=True),
    "launch_saved_us": _time("less to launch for a serial kernel", 0.5, family=True),
    "launch_cluster_us": _time("more to launch in clusters", 0.3, family=True),
    "load_throughput_bytes_per_us": _rate("what one SM can pull", 180e3),
    "l2_throughput_bytes_per_us": _rate("all L2 slices, requests coalesced", 9e6, scale="l2"),
    "dram_throughput_bytes_per_us": _rate("all DRAM channels", 4e6, scale="dram"),
    "dram_exposure": _share("share of the shorter of DRAM and L2 time not hidden", 1.0, 0.15),
    "dirty_share": _share("share of a cold L2's lines that are to be written back", 1.0, 0.75, 0.3),
    "out_of_bounds_cost": Parameter(
        "1", "extra cost of a byte out of bounds, all SMs busy", 0.0, 5.0
    ),
    "pitch_cost": Parameter("1", "extra cost of a byte at a row pitch of odd 16 B", 0.0, 0.8),
    "short_row_cost": Parameter("1", "extra cost of a byte in rows of 64 B", 0.0, 0.6),
    "multicast_cost": _share("cost of a byte by another CTA's multicast", 0.0, 0.3),
    "l2_capacity_bytes": Parameter(
        "B", "what L2 keeps between waves", INF, 40e6, 0.5, scale="l2_bytes"
    ),
    "warm_hit_share": _share("share of a warm L2's data that hits", 1.0, 0.8, 0.2),
    "load_startup_us": _time("a DMA warp busy issuing a tile-load", 0.03),
    "load_issue_us": _time("least time of a step's loads", 0.08, family=True),
    "load_latency_us": _time("from transfer to data visible, overlapped", 0.15, family=True),
    "latency_throughput_bytes_per_us": _rate("latency's share that grows with bytes", 200e3),
    "crowding_latency_us": _time("latency added when all SMs load", 0.09),
    "dram_latency_first_us": _time("latency of a miss in the first wave", 0.55),
    "dram_latency_us": _time("latency of a miss later", 0.5),
    "sharing": Parameter("1", "s CTAs share a tile: misses / (1 + x log s)", 0.0, 0.15),
    "latency_exposure": _share("share of latency beside transfer not hidden", 1.0, 0.1),
    "cluster_latency_us": _time("a load's wait for the other CTAs of a cluster", 0.1, family=True),
    "compute_throughput_flop_per_us": _rate(
        "an SM's matrix unit at the data sheet's clock", 7.2e6, unit="flop/µs", scale="flop"
    ),
    "compute_throughput_bytes_per_us": _rate("the paper's basis", 25e3),
    "smem_throughput_bytes_per_us": _rate("operands from shared memory", 230e3),
    "spill_throughput_bytes_per_us": _rate("accumulators that spill", 20e3),
    "clock_rise": Parameter("1", "how far short kernels' clock is above it", 0.0, 0.08, 0.1),
    "clock_drop": Parameter("1", "slow-down at 1000 TFLOP/s for long", 0.0, 0.23),
    "compute_startup_us": _time("a step's fixed MATH time", 0.02, family=True),
    "sync_us": _time("a step's semaphores", 0.01, family=True),
    "drain_us": _time("draining the MMAs of 64 of k, if none stays in flight", 0.035, family=True),
    "promotion_us": _time("adding fp8 sums to others, each 128 of k", 0.07, family=True),
    "promotion_hidden": _share(
        "share of that, and of spills, under the other group's MMAs", 0.0, 0.3, family=True
    ),
    "mma_queue": Parameter("MMAs", "MMAs that issue ahead", INF, 7.0, 0.5, family=True),
    "softness": Parameter("1", "of the bounds of a step's period", 0.0, 0.005, family=True),
    "dram_softness": Parameter("1", "more of it where DRAM sets the rate", 0.0, 0.15),
    "store_throughput_bytes_per_us": _rate("an SM's epilogue", 52e3, family=True),
    "direct_throughput_bytes_per_us": _rate("stores straight from registers", 5e3, family=True),
    "drain_throughput_bytes_per_us": _rate("the last wave's stores, all SMs", 6.3e6, scale="l2"),
    "epilogue_startup_us": _time("an epilogue's fixed time", 0.3, family=True),
    "overhead_hidden": Parameter("odds", "of a CTA's overhead hiding", 0.0, 0.9, family=True),
}
assert tuple(PARAMETERS) == Parameters._fields
