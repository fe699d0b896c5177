"""From a configuration and a machine to the durations of one step: what the recurrences are fed.

One step of one CTA loads tile A (block_m x block_k) and tile B (block_k x block_n) of `in_bytes`
an element and does W = 2 block_m block_n block_k flop:

    load_a, load_b = tile bytes / load_throughput            (a transfer server the DMA warps share)
    compute = compute_startup + sync + W / (flop rate * dtype ratio) + (A + B bytes) / byte rate
    epilogue = epilogue_startup + block_m block_n out_bytes / store_throughput

The paper's machine computes at a byte rate, others at a flop rate; the rate not in use is infinite.
An SM's busiest CTA runs ceil(tiles / sms) output tiles of ceil(k / block_k) steps.
"""

from typing import Any, NamedTuple

from wsjax.events import Pipeline
from wsjax.limits import Facts
from wsjax.parameters import Parameters
from wsjax.raster import raster
from wsjax.space import Configuration


class Machine(NamedTuple):
    """A machine as numbers that a program takes as data; swept facts and parameters are arrays.

    `in_bytes` and `out_bytes` are an element's sizes and `rate` its compute throughput relative to
    the machine's (0: none), looked up for the configuration's dtypes.
    """

    facts: Facts
    parameters: Parameters
    in_bytes: Any
    out_bytes: Any
    rate: Any


class Kernel(NamedTuple):
    """A launch as the recurrences see it: the busiest CTA's output tiles, wave by wave.

    `full` runs all of its tiles with the durations of a full wave (of the only one, if there is
    but one). `first` and `last` are one tile each, of a cold first wave and of a last partial one:
    see `closed.exchange_us`. `launch_us` comes before.
    """

    full: Pipeline
    first: Pipeline
    last: Pipeline
    launch_us: Any


def kernel(c: Configuration, machine: Machine) -> Kernel:
    """The pipelines of one configuration (numbers as floats), times in µs."""
    p = machine.parameters
    r = raster(c, machine.facts, 1.0)
    a_bytes = c.block_m * c.block_k * machine.in_bytes
    b_bytes = c.block_k * c.block_n * machine.in_bytes
    flop = 2.0 * c.block_m * c.block_n * c.block_k
    compute_us = flop / (p.compute_throughput_flop_per_us * machine.rate)
    compute_us += (a_bytes + b_bytes) / p.compute_throughput_bytes_per_us
    out_bytes = c.block_m * c.block_n * machine.out_bytes
    full = Pipeline(
        k_tiles=r.k_tiles,
        tiles=r.waves,
        stages=c.stages,
        load_a_us=a_bytes / p.load_throughput_bytes_per_us,
        load_b_us=b_bytes / p.load_throughput_bytes_per_us,
        load_startup_us=p.load_startup_us,
        load_latency_us=p.load_latency_us,
        compute_us=p.compute_startup_us + p.sync_us + compute_us,
        epilogue_us=p.epilogue_startup_us + out_bytes / p.store_throughput_bytes_per_us,
        schedule=c.schedule,
        dma_warps=c.dma_warps,
        mma_in_flight=c.mma_in_flight,
    )
    return Kernel(full, full, full, p.launch_us * 1.0)
