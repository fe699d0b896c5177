"""A bound below the times of a whole family of configurations at once.

A family is all configurations that differ only in ring depth, DMA warps, MMAs in flight and the way
C is written (`RELAXED`): where one problem is swept over many of them, a family whose bound lies
above what is known to be reached needs no look at its members. The bound is the model's own time on
a *relaxed machine*, which has no softness, an endless MMA queue and a clock that does not fall, for
the deepest ring, less what those can save, and some of what the clock is known to cost.

**Why it is below.** Write, for the waves f (first), m (full) and l (last), with n steps a tile and
J waves: M the slope, V what the ring costs, A = start + (n-1) M + V + e the end of one tile alone
(start = u + L + c). The exact time is launch + E + (A_f - A_m) + (A_l - A_m), E being the end of J
tiles. It grows with loads, latencies, compute and epilogues, and n M + V also as rings get
shallower; the relaxed machine has all of them at their least. So it is below, but for what stands
there with a minus:

- J = 1: the time is launch + A_f, all of it growing.
- serial, J > 1: launch + (J-2) A_m + A_f + A_l, all of it growing, but for the overhead that CTAs
  on one SM hide from each other. That is at most share min(O, n delta), O the overhead and delta =
  max(load, compute) (1 - 1/ctas); where delta is larger than on the relaxed machine, so is M, and
  n share <= n - 1 makes up for it; else share O is taken off.
- others, J > 1: some path of the event graph has E >= A_m + (J-1) P with P = max(n M + V, n c + em)
  (`closed`; em the epilogue that crosses a boundary, none for ping-pong), so that the time is at
  least launch + (J-2) P + (A_f - e) + A_l - (start_m - M_m). Here compute cancels to + c. The minus
  leaves the slowdown's part of load and latency, at most (slowdown - 1) (load + latency), and D - 1
  times the step that softness adds to load, compute and latency; P has n such steps, so that
  nothing is left of it if (J-2) n >= D - 1.

**Slowdown**, of compute and epilogues where there are more than two waves. It follows from an
estimate of the time on a fast clock, with a period that is the largest of rate, ring and what an
MMA in flight asks of it, for all waves: n of those are at most n M + V + 2 (load + latency). So if
the time is not above `reach_us`, P and with it the estimate have an upper bound, and the slowdown,
which rises and then falls with the estimate, a lower one. If the bound that this makes lies above
`reach_us`, so does the time.
"""

from typing import NamedTuple

import jax.numpy as jnp

from wsjax.hardware import INF
from wsjax.model.arithmetic import Number
from wsjax.model.closed import slopes
from wsjax.model.costs import Machine
from wsjax.model.durations import CLOCK_FLOP_PER_US, CLOCK_US, kernel
from wsjax.model.events import MAX_STAGES, PINGPONG, SERIAL, Pipeline
from wsjax.model.raster import ceil_div, tile_grid
from wsjax.schema import Configuration

RELAXED = ("stages", "dma_warps", "mma_in_flight", "write_back")
"""The columns in which the members of a family differ."""


class Family(NamedTuple):
    """The members' greatest `stages`; and how many CTAs of a serial kernel share an SM
    (`durations.ctas_per_sm`), the same for all."""

    deepest: Number
    ctas: Number


class _Wave(NamedTuple):
    """One wave's tile on the relaxed machine. Times in µs."""

    start_us: Number
    """The end of the first step's compute: u + L + c of `closed`."""
    rate_us: Number
    """The slope of the DMA row: s of `closed`."""
    load_us: Number
    """A step's bytes over their rate."""
    latency_us: Number
    """What a step's data take beyond."""
    compute_us: Number
    """MATH busy with a step."""
    epilogue_us: Number
    """From the last compute to C being stored."""
    steps: Number
    """k-tiles an output tile."""

    def slope_us(self, slowdown: Number) -> Number:
        """Time a step."""
        return jnp.maximum(self.rate_us, slowdown * self.compute_us)

    def steady_us(self, slowdown: Number, deepest: Number) -> Number:
        """n M + V: the time of a tile's steps when its data keep coming, in the deepest ring."""
        slope_us = self.slope_us(slowdown)
        start_us = self.start_us + (slowdown - 1.0) * self.compute_us
        windows = jnp.floor((self.steps - 1.0) / deepest)
        ring_us = jnp.maximum(start_us - deepest * slope_us, 0.0)
        return self.steps * slope_us + windows * ring_us

    def alone_us(self, slowdown: Number, deepest: Number) -> Number:
        """The end of one tile alone, but for the slowdown of its epilogue."""
        start_us = self.start_us + (slowdown - 1.0) * self.compute_us
        steady_us = self.steady_us(slowdown, deepest) - self.slope_us(slowdown)
        return start_us + steady_us + self.epilogue_us


class _Launch(NamedTuple):
    """A family's launch: its waves, how many; what its MATH does, in µs at `CLOCK_FLOP_PER_US`
    times the dtype's rate."""

    first: _Wave
    full: _Wave
    last: _Wave
    waves: Number
    busy_us: Number


def family_bound_us(
    c: Configuration, machine: Machine, family: Family, reach_us: Number = INF
) -> Number:
    """A time, in µs, that no legal member of a family beats, or only if that is above `reach_us`.

    c (numbers as floats): the least of the family's values of `stages` and `write_back`, the
    greatest of `dma_warps` and `mma_in_flight`.
    """
    launch, launch_us = _launch(c, machine, family), kernel(c, machine).launch_us
    apart_us = _apart_us(machine, family, launch)
    joined_us = _joined_us(c, machine, family, launch, reach_us - launch_us)
    several_us = jnp.where(c.schedule == SERIAL, apart_us, joined_us)
    one_us = launch.first.alone_us(1.0, family.deepest)
    return launch_us + jnp.where(launch.waves > 1, several_us, one_us)


def _launch(c: Configuration, machine: Machine, family: Family) -> _Launch:
    facts = machine.facts._replace(
        ctas_per_sm_max=family.ctas, smem_bytes_per_sm=INF, registers_per_sm=INF
    )
    parameters = machine.parameters._replace(
        clock_drop=0.0, mma_queue=INF, overhead_hidden=0.0, softness=0.0, dram_softness=0.0
    )
    relaxed = machine._replace(facts=facts, parameters=parameters)
    whole = kernel(c._replace(stages=float(MAX_STAGES)), relaxed)
    tiles = tile_grid(c, ceil_div(c.m, c.block_m), ceil_div(c.n, c.block_n))
    flop = tiles * whole.full.k_tiles * 2.0 * c.block_m * c.block_n * c.block_k
    first, full, last = (_unqueued(x, family) for x in (whole.first, whole.full, whole.last))
    first = first._replace(epilogue_us=whole.first.epilogue_us)
    return _Launch(first, full, last, whole.full.tiles, flop / (CLOCK_FLOP_PER_US * machine.rate))


def _wave(p: Pipeline) -> _Wave:
    q = slopes(p)
    return _Wave(
        q.landing + p.load_latency_us + p.compute_us,
        q.load,
        p.load_a_us + p.load_b_us,
        p.load_latency_us,
        p.compute_us,
        p.epilogue_us,
        q.n,
    )


def _unqueued(p: Pipeline, family: Family) -> _Wave:
    """A wave of the members without MMAs in flight: of CTAs that share an SM, one computes while
    another's data come, and what that hides of the latency is the overhead's (`durations`)."""
    wave, several = _wave(p), (p.mma_in_flight == 1) & (family.ctas > 1)
    others_us = jnp.where(several, (1.0 - 1.0 / family.ctas) * wave.compute_us, 0.0)
    hidden_us = jnp.minimum(others_us, wave.latency_us)
    return wave._replace(
        start_us=wave.start_us - hidden_us,
        latency_us=wave.latency_us - hidden_us,
        epilogue_us=wave.epilogue_us + hidden_us,
    )


def _apart_us(machine: Machine, family: Family, launch: _Launch) -> Number:
    """Several waves of a serial kernel."""
    hidden = machine.parameters.overhead_hidden
    share = hidden / (1.0 + hidden)

    def exposed_us(wave: _Wave) -> Number:
        overhead_us = wave.epilogue_us + wave.load_us + wave.latency_us
        spare_us = jnp.maximum(wave.load_us, wave.compute_us) * (1.0 - 1.0 / family.ctas)
        some_us = jnp.minimum(overhead_us, wave.steps * spare_us)
        most_us = jnp.where(share * wave.steps <= wave.steps - 1, some_us, overhead_us)
        most_us = jnp.where(family.ctas > 1, share * most_us, 0.0)
        return wave.alone_us(1.0, family.deepest) - jnp.minimum(most_us, wave.epilogue_us)

    between_us = (launch.waves - 2) * exposed_us(launch.full)
    return between_us + launch.first.alone_us(1.0, family.deepest) + exposed_us(launch.last)


def _joined_us(
    c: Configuration, machine: Machine, family: Family, launch: _Launch, reach_us: Number
) -> Number:
    """Several waves whose tiles follow each other; `reach_us` is without the launch."""
    p, full, between = machine.parameters, launch.full, launch.waves - 2
    turns = jnp.maximum(family.deepest - 1.0, 1.0)
    crossing_us = jnp.where(c.schedule == PINGPONG, 0.0, full.epilogue_us)
    arrival_us = full.load_us + full.latency_us
    slower = p.clock_drop * launch.busy_us / (launch.busy_us + 2.0 * CLOCK_US)

    def ends_us(slowdown: Number) -> Number:
        """What is not between the first and the last tile."""
        start_us = full.start_us + (slowdown - 1.0) * full.compute_us
        alone_us = launch.first.alone_us(slowdown, family.deepest)
        alone_us += launch.last.alone_us(slowdown, family.deepest)
        alone_us += (slowdown - 2.0) * full.epilogue_us
        return alone_us + full.slope_us(slowdown) - start_us - slower * arrival_us

    each = between - turns / full.steps
    tile_us = jnp.where(each > 0, (reach_us - ends_us(1.0)) / jnp.maximum(each, 1e-9), INF)
    overhead_us = p.launch_us + arrival_us
    most_us = tile_us + crossing_us + 2.0 * (1.0 + slower) * arrival_us
    estimates_us = (
        overhead_us + launch.waves * (full.steps * full.slope_us(1.0) + crossing_us),
        overhead_us + launch.waves * most_us,
    )
    least = [jnp.minimum(launch.busy_us, x) / (x + 2.0 * CLOCK_US) for x in estimates_us]
    slowdown = 1.0 + p.clock_drop * jnp.maximum(jnp.minimum(*least), 0.0)

    exposed_us = slowdown * (full.steps * full.compute_us + crossing_us)
    tile_us = jnp.maximum(full.steady_us(slowdown, family.deepest), exposed_us)
    part = jnp.maximum(1.0 - between * full.steps / turns, 0.0)
    lost_us = part * (1.0 + slower) * _softest_us(machine, full, turns)
    return ends_us(slowdown) + between * tile_us - lost_us


def _softest_us(machine: Machine, full: _Wave, turns: Number) -> Number:
    """At most `turns` times what softness adds to a step, in any ring of a family."""
    p = machine.parameters
    step_us = full.load_us + full.latency_us + full.compute_us
    rate_us = jnp.maximum(full.load_us, full.compute_us)
    softness = p.softness + p.dram_softness * jnp.maximum(1.0 - p.softness, 0.0)
    return full.compute_us + jnp.sqrt(softness * rate_us * step_us * turns)
