"""A bound below the times of a whole family of configurations at once.

A family is all configurations that differ only in ring depth, DMA warps, MMAs in flight and the way
C is written (`RELAXED`): where one problem is swept over many of them, a family whose bound lies
above what is known to be reached needs no look at its members. The bound is the model's own time on
a *relaxed machine*, which has the deepest ring, no softness, an endless MMA queue and a clock that
does not fall, less what those can save.

**Why it is below.** Write, for the waves f (first), m (full) and l (last), with n steps a tile and
J waves: M the slope, A = start + (n-1) M + V + e the end of one tile alone (start = u + L + c),
V >= 0 what its ring costs. The exact time is launch + E + (A_f - A_m) + (A_l - A_m), E being the
end of J tiles. It grows with loads, latencies, compute and epilogues, which the relaxed machine has
at their least, but for what stands there with a minus:

- J = 1: the time is launch + A_f, all of it growing.
- serial, J > 1: launch + (J-2) A_m + A_f + A_l, all of it growing, but for the overhead that CTAs
  on one SM hide from each other. That is at most share min(O, n delta), O the overhead and delta =
  max(load, compute) (1 - 1/ctas); where delta is larger than on the relaxed machine, so is M, and
  n share <= n - 1 makes up for it; else share O is taken off.
- others, J > 1: some path of the event graph has E >= A_m + (J-1) P with P = max(n M + V, n c + em)
  (`closed`; em the epilogue that crosses a boundary, none for ping-pong), so that the time is at
  least launch + (J-2) P + (A_f - e) + A_l - (start_m - M_m). Here compute cancels to + c. The minus
  leaves the slowdown's part of load and latency, at most (slowdown - 1) (load + latency), and D - 1
  times the step that softness adds to all of load, compute and latency; it is in (J-2) P too, so
  that nothing is left of it if (J-2) n >= D - 1.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from wsjax.closed import slopes
from wsjax.durations import CLOCK_FLOP_PER_US, CLOCK_US, STEP_SOFTNESS, Machine, kernel
from wsjax.events import MAX_STAGES, PINGPONG, SERIAL, Pipeline
from wsjax.parameters import INF
from wsjax.raster import ceil_div
from wsjax.space import Configuration

RELAXED = ("stages", "dma_warps", "mma_in_flight", "write_back")
"""The columns in which the members of a family differ."""


class _Wave(NamedTuple):
    """One wave's tile on the relaxed machine: start and slope as in `closed`; load: bytes over
    rate; latency: what a step's data take beyond."""

    start_us: Any
    slope_us: Any
    load_us: Any
    latency_us: Any
    compute_us: Any
    epilogue_us: Any
    steps: Any

    @property
    def alone_us(self):
        """The end of one tile alone."""
        return self.start_us + (self.steps - 1) * self.slope_us + self.epilogue_us


def _wave(p: Pipeline) -> _Wave:
    q = slopes(p)
    return _Wave(
        q.landing + p.load_latency_us + p.compute_us,
        q.period,
        p.load_a_us + p.load_b_us,
        p.load_latency_us,
        p.compute_us,
        p.epilogue_us,
        q.n,
    )


def family_bound_us(c: Configuration, machine: Machine, deepest, ctas):
    """A time, in µs, that no member of a family beats: <= `batch.evaluate`'s of each legal one.

    c (numbers as floats): the least of the family's values of `stages` and `write_back`, the
    greatest of `dma_warps` and `mma_in_flight`. deepest: its greatest `stages`. ctas: how many CTAs
    of a serial kernel share an SM (`durations.ctas_per_sm`), the same for all members.
    """
    relaxed = _relaxed(machine, ctas)
    whole = kernel(c._replace(stages=float(MAX_STAGES)), relaxed)
    first, full, last = _wave(whole.first), _wave(whole.full), _wave(whole.last)
    waves = whole.full.tiles
    serial = c.schedule == SERIAL
    share = machine.parameters.overhead_hidden / (1.0 + machine.parameters.overhead_hidden)

    def exposed_us(wave: _Wave):
        return wave.alone_us - jnp.minimum(_hidden_us(wave, share, ctas), wave.epilogue_us)

    apart_us = (waves - 2) * exposed_us(full) + first.alone_us + exposed_us(last)
    crossing_us = jnp.where(c.schedule == PINGPONG, 0.0, full.epilogue_us)
    tile_us = full.steps * full.slope_us
    tile_us = jnp.maximum(tile_us, full.steps * full.compute_us + crossing_us)
    joined_us = (waves - 2) * tile_us + first.alone_us - full.epilogue_us + last.alone_us
    joined_us += full.slope_us - full.start_us
    joined_us -= _saved_us(c, machine, waves, full, deepest)
    several_us = jnp.where(serial, apart_us, joined_us)
    launch_us = kernel(c, machine).launch_us
    return launch_us + jnp.where(waves > 1, several_us, first.alone_us)


def _relaxed(machine: Machine, ctas) -> Machine:
    """The machine without softness, MMA queue, falling clock and hidden overhead, with `ctas`."""
    parameters = machine.parameters._replace(
        softness=0.0, dram_softness=0.0, clock_drop=0.0, mma_queue=INF, overhead_hidden=0.0
    )
    facts = machine.facts._replace(
        ctas_per_sm_max=ctas, smem_bytes_per_sm=INF, registers_per_sm=INF
    )
    return machine._replace(parameters=parameters, facts=facts)


def _hidden_us(wave: _Wave, share, ctas):
    """The most that CTAs of one SM hide of a serial wave's overhead."""
    overhead_us = wave.epilogue_us + wave.load_us + wave.latency_us
    spare_us = jnp.maximum(wave.load_us, wave.compute_us) * (1.0 - 1.0 / ctas)
    some_us = jnp.minimum(overhead_us, wave.steps * spare_us)
    hidden_us = jnp.where(share * wave.steps <= wave.steps - 1, some_us, overhead_us)
    return jnp.where(ctas > 1, share * hidden_us, 0.0)


def _saved_us(c: Configuration, machine: Machine, waves, full: _Wave, deepest):
    """The most by which slowdown and softness can shorten a launch of several waves."""
    p = machine.parameters
    tiles = ceil_div(c.m, c.block_m) * ceil_div(c.n, c.block_n) * c.batch
    step_flop = 2.0 * c.block_m * c.block_n * c.block_k
    busy_us = tiles * full.steps * step_flop / CLOCK_FLOP_PER_US
    slower = p.clock_drop * busy_us / (busy_us + 2.0 * CLOCK_US)
    arrival_us = full.load_us + full.latency_us
    turns = jnp.maximum(deepest - 1.0, 1.0)
    step = p.softness * STEP_SOFTNESS
    rate_us = jnp.maximum(full.load_us, full.compute_us) * (1.0 + jnp.sqrt(step))
    softness = p.softness + p.dram_softness * jnp.maximum(1.0 - p.softness, 0.0)
    soft_us = turns * jnp.sqrt(step * full.load_us * full.compute_us) + full.compute_us
    soft_us += jnp.sqrt(softness * rate_us * (arrival_us + full.compute_us) * turns)
    part = jnp.maximum(1.0 - (waves - 2) * full.steps / turns, 0.0)
    return slower * arrival_us + (1.0 + slower) * soft_us * part
