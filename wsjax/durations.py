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

import jax.numpy as jnp

from wsjax.events import Pipeline
from wsjax.hardware import Parameters
from wsjax.limits import Facts
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


def ceil_div(a, b):
    """ceil(a / b) for whole positive numbers held as floats; exact below 2**53."""
    return jnp.floor((a + (b - 1)) / b)


class Counts(NamedTuple):
    """Whole numbers of one configuration, as floats."""

    k_tiles: Any
    tiles: Any
    waves: Any


def counts(c: Configuration, facts: Facts) -> Counts:
    """k_tiles = ceil(k/block_k), tiles = ceil(m/block_m) ceil(n/block_n) batch, waves."""
    tiles = ceil_div(c.m, c.block_m) * ceil_div(c.n, c.block_n) * c.batch
    return Counts(ceil_div(c.k, c.block_k), tiles, ceil_div(tiles, facts.sms))


def pipeline(c: Configuration, machine: Machine) -> Pipeline:
    """The busiest CTA's pipeline of one configuration (numbers as floats), times in µs."""
    p = machine.parameters
    count = counts(c, machine.facts)
    a_bytes = c.block_m * c.block_k * machine.in_bytes
    b_bytes = c.block_k * c.block_n * machine.in_bytes
    flop = 2.0 * c.block_m * c.block_n * c.block_k
    compute_us = flop / (p.compute_throughput_flop_per_us * machine.rate)
    compute_us += (a_bytes + b_bytes) / p.compute_throughput_bytes_per_us
    out_bytes = c.block_m * c.block_n * machine.out_bytes
    return Pipeline(
        k_tiles=count.k_tiles,
        tiles=count.waves,
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
