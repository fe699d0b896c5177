"""A machine as the numbers of a program, and what a byte or a flop takes on it."""

from typing import NamedTuple

from wsjax.hardware import Parameters
from wsjax.model.arithmetic import Number
from wsjax.schema import Facts


class Machine(NamedTuple):
    """A machine as numbers that a program takes as data; swept facts and parameters are arrays.

    `in_bytes` and `out_bytes` are an element's sizes and `rate` its compute throughput relative to
    the machine's (0: none), looked up for the configuration's dtypes.
    """

    facts: Facts
    parameters: Parameters
    in_bytes: Number
    out_bytes: Number
    rate: Number


class Costs(NamedTuple):
    """Reciprocals of the rates: products are cheaper than quotients."""

    load: Number
    """µs a byte that an SM pulls."""
    l2: Number
    """µs a byte that the L2 slices serve, all SMs together."""
    dram: Number
    """µs a byte from or to DRAM, all SMs together."""
    latency: Number
    """µs of latency a byte of a step's boxes."""
    flop: Number
    """µs a flop of the configuration's dtype, on an SM."""
    paper: Number
    """µs a byte of operands, the paper's basis (0 on machines with flop rates)."""
    smem: Number
    """µs a byte of operands that the matrix unit reads from shared memory."""
    spill: Number
    """µs a byte of accumulators that spill."""
    store: Number
    """µs a byte of C that an epilogue stores."""
    direct: Number
    """µs a byte of C that is stored straight from registers."""
    drain: Number
    """µs a byte of the last wave's stores, all SMs together."""
    reduction: Number
    """µs a byte of sums that an SM adds to another's."""
    reductions: Number
    """µs a byte of sums, all SMs together."""
    sm: Number
    """1 / SMs."""


def costs(machine: Machine) -> Costs:
    """The `Costs` of a machine for the configuration's dtypes."""
    p = machine.parameters
    return Costs(
        load=1.0 / p.load_throughput_bytes_per_us,
        l2=1.0 / p.l2_throughput_bytes_per_us,
        dram=1.0 / p.dram_throughput_bytes_per_us,
        latency=1.0 / p.latency_throughput_bytes_per_us,
        flop=1.0 / (p.compute_throughput_flop_per_us * machine.rate) / (1.0 + p.clock_rise),
        paper=1.0 / p.compute_throughput_bytes_per_us,
        smem=1.0 / p.smem_throughput_bytes_per_us,
        spill=1.0 / p.spill_throughput_bytes_per_us,
        store=1.0 / p.store_throughput_bytes_per_us,
        direct=1.0 / p.direct_throughput_bytes_per_us,
        drain=1.0 / p.drain_throughput_bytes_per_us,
        reduction=1.0 / p.reduction_throughput_bytes_per_us,
        reductions=1.0 / p.reductions_throughput_bytes_per_us,
        sm=1.0 / machine.facts.sms,
    )
