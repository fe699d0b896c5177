"""The continuous parameters of the timing model: what calibration fits, and gradients flow to.

Each has a unit, a neutral value with which its term vanishes (so that a file that leaves it out is
the paper's machine), and a weak prior: a typical value on a data-centre GPU and the spread of its
logarithm, for tables that do not determine it. `family` parameters belong to a kernel family (how
the code is written), the others to the machine. The equations are in `traffic` and `durations`.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, get_type_hints

INF = math.inf
Value = Any
"""A float, or an array in a program."""


@dataclass(frozen=True)
class Parameter:
    """What one parameter means.

    spread: the prior's standard deviation of the logarithm. share: at most 1. scale: the quantity
    of a machine to which it is proportional, a key of `peaks.scaled`; none: to no fact. neutral:
    the field's default in `Parameters`.
    """

    unit: str
    meaning: str
    typical: float
    spread: float = 1.0
    family: bool = False
    share: bool = False
    scale: str = ""
    neutral: float = 0.0

    @property
    def is_rate(self) -> bool:
        """Rates are above 0 and may be infinite; all else is 0 or more and finite."""
        return math.isinf(self.neutral)


def _time(meaning: str, typical: float, *, family: bool = False) -> Parameter:
    return Parameter("µs", meaning, typical, family=family)


def _rate(
    meaning: str,
    typical: float,
    *,
    family: bool = False,
    unit: str = "B/µs",
    scale: str = "clock",
) -> Parameter:
    return Parameter(unit, meaning, typical, 0.7, family=family, scale=scale)


def _share(meaning: str, typical: float, spread: float = 1.0, *, family: bool = False) -> Parameter:
    return Parameter("1", meaning, typical, spread, family=family, share=True)


class Parameters(NamedTuple):
    """A value for each parameter: floats, or arrays in a program. Defaults are neutral."""

    launch_us: Annotated[Value, _time("once a kernel, before the first wave", 4.5)] = 0.0
    launch_per_stage_us: Annotated[
        Value, _time("setting up the barriers of a ring slot", 0.05, family=True)
    ] = 0.0
    launch_wide_us: Annotated[
        Value, _time("more to launch with 8 MATH warps or more", 0.15, family=True)
    ] = 0.0
    launch_saved_us: Annotated[
        Value, _time("less to launch for a serial kernel", 0.5, family=True)
    ] = 0.0
    launch_cluster_us: Annotated[Value, _time("more to launch in clusters", 0.3, family=True)] = 0.0
    load_throughput_bytes_per_us: Annotated[Value, _rate("what one SM can pull", 180e3)] = INF
    l2_throughput_bytes_per_us: Annotated[
        Value, _rate("all L2 slices, requests coalesced", 9e6, scale="l2")
    ] = INF
    dram_throughput_bytes_per_us: Annotated[
        Value, _rate("all DRAM channels", 4e6, scale="dram")
    ] = INF
    dram_exposure: Annotated[
        Value, _share("share of the shorter of DRAM and L2 time not hidden", 0.15)
    ] = 1.0
    dirty_share: Annotated[
        Value, _share("share of a cold L2's lines that are to be written back", 0.75, 0.3)
    ] = 1.0
    out_of_bounds_cost: Annotated[
        Value, Parameter("1", "extra cost of a byte out of bounds, all SMs busy", 5.0)
    ] = 0.0
    pitch_cost: Annotated[
        Value, Parameter("1", "extra cost of a byte at a row pitch of odd 16 B", 0.8)
    ] = 0.0
    short_row_cost: Annotated[
        Value, Parameter("1", "extra cost of a byte in rows of 64 B", 0.6)
    ] = 0.0
    multicast_cost: Annotated[Value, _share("cost of a byte by another CTA's multicast", 0.3)] = 0.0
    l2_capacity_bytes: Annotated[
        Value, Parameter("B", "what L2 keeps between waves", 40e6, 0.5, scale="l2_bytes")
    ] = INF
    warm_hit_share: Annotated[Value, _share("share of a warm L2's data that hits", 0.8, 0.2)] = 1.0
    load_startup_us: Annotated[Value, _time("a DMA warp busy issuing a tile-load", 0.03)] = 0.0
    load_issue_us: Annotated[Value, _time("least time of a step's loads", 0.08, family=True)] = 0.0
    load_latency_us: Annotated[
        Value, _time("from transfer to data visible, overlapped", 0.15, family=True)
    ] = 0.0
    latency_throughput_bytes_per_us: Annotated[
        Value, _rate("latency's share that grows with bytes", 200e3)
    ] = INF
    crowding_latency_us: Annotated[Value, _time("latency added when all SMs load", 0.09)] = 0.0
    dram_latency_first_us: Annotated[Value, _time("latency of a miss in the first wave", 0.55)] = (
        0.0
    )
    dram_latency_us: Annotated[Value, _time("latency of a miss later", 0.5)] = 0.0
    sharing: Annotated[
        Value, Parameter("1", "s CTAs share a tile: misses / (1 + x log s)", 0.15)
    ] = 0.0
    latency_exposure: Annotated[
        Value, _share("share of latency beside transfer not hidden", 0.1)
    ] = 1.0
    cluster_latency_us: Annotated[
        Value, _time("a load's wait for the other CTAs of a cluster", 0.1, family=True)
    ] = 0.0
    compute_throughput_flop_per_us: Annotated[
        Value,
        _rate("an SM's matrix unit at the data sheet's clock", 7.2e6, unit="flop/µs", scale="flop"),
    ] = INF
    compute_throughput_bytes_per_us: Annotated[Value, _rate("the paper's basis", 25e3)] = INF
    smem_throughput_bytes_per_us: Annotated[Value, _rate("operands from shared memory", 230e3)] = (
        INF
    )
    spill_throughput_bytes_per_us: Annotated[Value, _rate("accumulators that spill", 20e3)] = INF
    clock_rise: Annotated[
        Value, Parameter("1", "how far short kernels' clock is above it", 0.08, 0.1)
    ] = 0.0
    clock_drop: Annotated[Value, Parameter("1", "slow-down at 1000 TFLOP/s for long", 0.23)] = 0.0
    compute_startup_us: Annotated[Value, _time("a step's fixed MATH time", 0.02, family=True)] = 0.0
    sync_us: Annotated[Value, _time("a step's semaphores", 0.01, family=True)] = 0.0
    drain_us: Annotated[
        Value, _time("draining the MMAs of 64 of k, if none stays in flight", 0.035, family=True)
    ] = 0.0
    promotion_us: Annotated[
        Value, _time("adding fp8 sums to others, each 128 of k", 0.07, family=True)
    ] = 0.0
    promotion_hidden: Annotated[
        Value,
        _share("share of that, and of spills, under the other group's MMAs", 0.3, family=True),
    ] = 0.0
    mma_queue: Annotated[
        Value, Parameter("MMAs", "MMAs that issue ahead", 7.0, 0.5, family=True)
    ] = INF
    softness: Annotated[
        Value, Parameter("1", "of the bounds of a step's period", 0.005, family=True)
    ] = 0.0
    dram_softness: Annotated[Value, Parameter("1", "more of it where DRAM sets the rate", 0.15)] = (
        0.0
    )
    store_throughput_bytes_per_us: Annotated[
        Value, _rate("an SM's epilogue", 52e3, family=True)
    ] = INF
    direct_throughput_bytes_per_us: Annotated[
        Value, _rate("stores straight from registers", 5e3, family=True)
    ] = INF
    drain_throughput_bytes_per_us: Annotated[
        Value, _rate("the last wave's stores, all SMs", 6.3e6, scale="l2")
    ] = INF
    epilogue_startup_us: Annotated[Value, _time("an epilogue's fixed time", 0.3, family=True)] = 0.0
    overhead_hidden: Annotated[
        Value, Parameter("odds", "of a CTA's overhead hiding", 0.9, family=True)
    ] = 0.0
    launch_divided_us: Annotated[
        Value, _time("more to launch a kernel that can divide output tiles", 0.2, family=True)
    ] = 0.0
    reduction_us: Annotated[
        Value, _time("fixed time of adding to another CTA's sums", 0.9, family=True)
    ] = 0.0
    reduction_throughput_bytes_per_us: Annotated[
        Value, _rate("an SM's sums to or from memory, to be added up", 70e3, family=True)
    ] = INF
    reductions_throughput_bytes_per_us: Annotated[
        Value, _rate("all SMs' sums to or from memory", 4e6, family=True, scale="l2")
    ] = INF


PARAMETERS: dict[str, Parameter] = {
    name: replace(hint.__metadata__[0], neutral=Parameters._field_defaults[name])
    for name, hint in get_type_hints(Parameters, include_extras=True).items()
}
"""What each field of `Parameters` means, in their order."""
