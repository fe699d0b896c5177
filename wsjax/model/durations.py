"""From a configuration and a machine to durations: what the recurrences are fed, wave by wave.

A step of one CTA loads tile A (block_m x block_k) and tile B (block_k x block_n) and does
W = 2 block_m block_n block_k flop. With the bytes of `traffic`, in a wave of `active` CTAs:

    ports    = max(bytes / load_throughput, active (coalesced bytes + stores) / l2_throughput)
               * slowdown
               + outside bytes / load_throughput * (1 + out_of_bounds_cost * active / sms)
    load     = max(load_issue * slowdown, ports, dram bytes / dram_throughput), and of the shorter
               of the last two the share dram_exposure that is not hidden under the other
    latency  = (load_latency + box bytes / latency_throughput + cluster_latency
               + crowding_latency * active / sms) * slowdown + miss share * dram_latency
               of which the transfer hides all but a share, latency_exposure, of what it can
    compute  = (max(W / flop rate, operand bytes / smem_throughput) + start-up + sync
               + draining, if no MMA stays in flight, + promotion of fp8 sums) * slowdown + spills
    epilogue = (epilogue_startup + tile bytes / store_throughput
               + stores straight from registers) * slowdown

Latencies vary from load to load, so a step's mean period lies above the hard maximum of its bounds
(rate, compute, ring) where these are close: `softness` says how much, and `dram_softness` how much
more where DRAM sets the rate. The difference is added to load and compute alike, so that the
recurrences' period grows by just that; both 0, it vanishes. Long kernels at a high flop rate, of
what the dtype allows, lower the clock: `slowdown`.

Promotion (`accum`) doubles the accumulators, and adds them up each 128 of k. Of that and of what
spills, the two groups of a cooperative kernel hide `promotion_hidden` under each other's MMAs.

A parameter that is a Python number and neutral costs nothing: its terms are not compiled. In a
neutral machine, load = tile bytes / load_throughput, compute = W / flop rate (or bytes over
the paper's byte rate) and every wave is the same: the paper's model.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from wsjax.hardware import Parameters
from wsjax.model.arithmetic import (
    Number,
    floor_div,
    inverse,
    inverses,
    is_number,
    overlapped,
    scaled,
    soft_max,
)
from wsjax.model.costs import Costs, Machine, costs
from wsjax.model.events import COOPERATIVE, DURATIONS, PINGPONG, SERIAL, Pipeline
from wsjax.model.raster import Raster, raster
from wsjax.model.splits import Units, of_units, reduced, units
from wsjax.model.traffic import Traffic, traffic
from wsjax.model.warps import Warps, producer_warps, warps_of
from wsjax.schema import OVERHEAD_REGISTERS, PROMOTED, SPLITK, Configuration, smem_bytes

CLOCK_FLOP_PER_US = 1e9
CLOCK_US = 100.0
"""The flop rate to which `clock_drop` refers, of a dtype with `rate` 1 (fp8 has 2), and how long it
takes the clock to fall."""
RING_SHARE = 0.75
IDLE_STORES = 2.0
"""Softness spares RING_SHARE of as many steps as the ring has slots; stores from registers cost
(IDLE_STORES + share of SMs) / (IDLE_STORES + 1). Chosen on the measured H200 table `gemm_ws`."""
SPILL_BYTES = 8.0
"""What an fp32 accumulator that spills moves in a step: it is stored and loaded."""
TINY = 1e-30
PROMOTED_DEPTH = 128.0
"""The depth of k after which CUTLASS's sm90 kernels promote fp8 sums: four MMAs of 32."""


class Kernel(NamedTuple):
    """A launch as the recurrences see it: the busiest CTA's output tiles, wave by wave.

    `full` runs all of them as in a full wave (the only one, if there is but one). `first` and
    `last` are one tile each, of a cold first wave and of a partial last one: `closed.exchange_us`.
    """

    full: Pipeline
    first: Pipeline
    last: Pipeline
    launch_us: Number


class _Wave(NamedTuple):
    """What sets one wave apart."""

    active: Number
    """CTAs in flight."""
    share: Number
    """CTAs in flight an SM, of all SMs."""
    ctas: Number
    per_ctas: Number
    """CTAs of the busiest SM, and 1 / that."""
    dram_bytes: Number
    """From and to DRAM a step, of all CTAs."""
    miss_us: Number
    """Latency of a step's misses in L2, on average."""
    stores: Number
    """Whether a wave before it stores C meanwhile: 0 or 1."""


class _Tile(NamedTuple):
    """What every wave of a configuration shares."""

    cost: Costs
    per_stage: Number
    """1 / stages."""
    per_depth: Number
    """1 / (stages - 1) if an MMA in flight holds a slot, else 0."""
    matrix_us: Number
    """A step's matrix work: flop or operands from shared memory, whichever takes longer."""
    fixed_us: Number
    """A step's start-up, semaphores, and draining of MMAs if none stays in flight."""
    box_us: Number
    """Latency that grows with a step's bytes, and of a cluster."""
    spilled_us: Number
    """A step's traffic of accumulators that spill."""
    unqueued: Number
    """The share of a step's MMAs that cannot be issued ahead."""
    epilogue_us: Number
    """From an output tile's last compute to C being stored, at the full clock."""
    warps: Warps | None
    """None where no kernel is pipelined."""
    early: Number
    """The share of a CTA's steps that softness slows: those after its ring has filled once."""


class _Arrival(NamedTuple):
    """How long a step's bytes of one wave move, and the share of DRAM in that."""

    moved_us: Number
    dram_part: Number


class _Step(NamedTuple):
    """A step of one wave, and of one CTA on an SM that others share (`serial`)."""

    load_us: Number
    latency_us: Number
    compute_us: Number
    period_us: Number
    overhead_us: Number


class Moved(NamedTuple):
    """How a configuration's output tiles are divided, if they may be; and waves and bytes, of the
    shares where they are."""

    units: Units | None
    raster: Raster
    traffic: Traffic


def moved(c: Configuration, machine: Machine) -> Moved:
    """What one configuration moves where, before any duration."""
    divided = None if c.split_k is None else units(c, machine.facts)
    part = divided.configuration if divided else c
    r = raster(part, machine.facts, ctas_per_sm(c, machine))
    r = of_units(r, divided) if divided else r
    bytes_of = machine.parameters, machine.in_bytes, machine.out_bytes
    t = traffic(part, r, *bytes_of, *((c, divided.stream.apart) if divided else ()))
    return Moved(divided, r, t)


def kernel(c: Configuration, machine: Machine) -> Kernel:
    """The pipelines of one configuration (numbers as floats), times in µs."""
    p = machine.parameters
    divided, r, t = moved(c, machine)
    cost = costs(machine)
    share, ctas = _crowd(r.active, cost)
    share_last, ctas_last = _crowd(r.active_last, cost)
    per_ctas, per_ctas_last, per_waves = inverses(ctas, ctas_last, r.waves)
    tile = _tile(c, r, t, machine, cost, per_waves)
    partial_bytes = t.dram_later_bytes * (r.active_last * r.per.active)
    miss_us = scaled(p.dram_latency_us, t.miss_later)
    first = _Wave(
        r.active,
        share,
        ctas,
        per_ctas,
        t.dram_first_bytes,
        scaled(p.dram_latency_first_us, t.miss_first),
        0.0,
    )
    full = _Wave(r.active, share, ctas, per_ctas, t.dram_later_bytes, miss_us, 1.0)
    last = _Wave(r.active_last, share_last, ctas_last, per_ctas_last, partial_bytes, miss_us, 1.0)
    serial, clustered = c.schedule == SERIAL, c.cluster_m * c.cluster_n > 1

    slowdown = 1.0
    if not is_number(p.clock_drop, 0.0):
        step = _step(c, r, p, tile, full, 1.0, *_arrivals(t, p, tile.cost, 1.0, full))
        slowdown = _slowdown(c, r, p, tile, step, machine.rate)
    arrivals = _arrivals(t, p, tile.cost, slowdown, first, full, last)
    cold_step, warm_step, partial_step = (
        _step(c, r, p, tile, wave, slowdown, arrival)
        for wave, arrival in zip((first, full, last), arrivals, strict=True)
    )
    drain_us = scaled(tile.cost.drain, t.stored_bytes * r.k_tiles)
    several = r.waves > 1

    def pipeline(wave: _Wave, step: _Step, *, repeated: bool, ends: Any) -> Pipeline:
        tile_us = tile.epilogue_us * slowdown
        tile_us = jnp.where(serial, step.overhead_us, tile_us) if repeated else tile_us
        return Pipeline(
            k_tiles=r.k_tiles,
            tiles=r.waves,
            stages=c.stages,
            load_a_us=step.load_us * t.a_share,
            load_b_us=step.load_us * (1.0 - t.a_share),
            load_startup_us=p.load_startup_us,
            load_latency_us=step.latency_us,
            compute_us=step.compute_us,
            epilogue_us=tile_us + jnp.where(ends, wave.active * drain_us, 0.0),
            schedule=c.schedule,
            dma_warps=c.dma_warps,
            mma_in_flight=c.mma_in_flight,
        )

    cold = pipeline(first, cold_step, repeated=False, ends=~several)
    warm = pipeline(full, warm_step, repeated=True, ends=False)
    usual = {
        name: jnp.where(several, getattr(warm, name), getattr(cold, name)) for name in DURATIONS
    }
    launch_us = p.launch_us + p.launch_per_stage_us * c.stages
    launch_us += jnp.where(c.math_warps >= 8, p.launch_wide_us, 0.0)
    launch_us -= jnp.where(serial, p.launch_saved_us, 0.0)
    launch_us += jnp.where(clustered, p.launch_cluster_us, 0.0)
    partial = pipeline(last, partial_step, repeated=True, ends=True)
    waves = warm._replace(**usual), cold, partial
    if divided and c.split_k is not None:
        waves = reduced(divided, r, *waves, cost=cost, startup_us=p.reduction_us, slowdown=slowdown)
        dividing = (c.scheduler >= SPLITK) | (c.split_k > 1)
        launch_us += jnp.where(dividing, p.launch_divided_us, 0.0)
    return Kernel(*waves, launch_us)


def _crowd(active: Number, cost: Costs) -> tuple[Number, Number]:
    """`active` CTAs over the SMs, and how many the busiest SM has."""
    share = active * cost.sm
    return share, jnp.maximum(jnp.ceil(share - 1e-9), 1.0)


def ctas_per_sm(c: Configuration, machine: Machine) -> Number:
    """CTAs of a serial kernel that fit an SM by shared memory and registers; others have one."""
    facts = machine.facts
    smem = smem_bytes(c, facts, machine.in_bytes, machine.out_bytes)
    threads = c.math_warps * facts.warp_size
    registers = c.block_m * c.block_n * (1.0 + _promoted(c)) + OVERHEAD_REGISTERS * threads
    launched = (c.math_warps + producer_warps(facts)) * registers
    per_launched, per_smem = inverses(launched, smem)
    by_registers = floor_div(facts.registers_per_sm * c.math_warps, per_launched)
    fits = jnp.minimum(floor_div(facts.smem_bytes_per_sm, per_smem), by_registers)
    fits = jnp.clip(fits, 1.0, facts.ctas_per_sm_max * 1.0)
    return jnp.where(c.schedule == SERIAL, fits, 1.0)


def _arrivals(
    t: Traffic, p: Parameters, cost: Costs, slowdown: Number, *waves: _Wave
) -> list[_Arrival]:
    outside_us = scaled(cost.load, t.outside_bytes)

    def move(wave: _Wave) -> tuple[Number, Number]:
        slices_us = scaled(cost.l2, wave.active * (t.slices_bytes + t.stored_bytes * wave.stores))
        ports_us = jnp.maximum(scaled(cost.load, wave.ctas) * t.inside_bytes, slices_us) * slowdown
        ports_us += outside_us * (1.0 + scaled(p.out_of_bounds_cost, wave.share))
        dram_us = scaled(cost.dram, wave.dram_bytes)
        return overlapped(p.dram_exposure, ports_us, dram_us), dram_us

    moved = [move(wave) for wave in waves]
    if is_number(p.dram_softness, 0.0):
        return [_Arrival(moved_us, 0.0) for moved_us, _ in moved]
    per_moved = inverses(*(jnp.maximum(moved_us, TINY) for moved_us, _ in moved))
    return [_Arrival(us, dram * per) for (us, dram), per in zip(moved, per_moved, strict=True)]


def _step(
    c: Configuration,
    r: Raster,
    p: Parameters,
    tile: _Tile,
    wave: _Wave,
    slowdown: Number,
    arrival: _Arrival,
) -> _Step:
    load_us = jnp.maximum(p.load_issue_us * slowdown, arrival.moved_us)
    latency_us = p.load_latency_us + tile.box_us
    latency_us += scaled(p.crowding_latency_us, jnp.minimum(wave.share, 1.0))
    latency_us = latency_us * slowdown + wave.miss_us
    beside_us = jnp.minimum(load_us, latency_us)
    latency_us = jnp.maximum(latency_us - load_us, 0.0) + p.latency_exposure * beside_us

    compute_us = (tile.matrix_us + tile.fixed_us) * slowdown + tile.spilled_us
    shared_us = wave.ctas * compute_us
    if tile.warps is not None:
        busy_us = tile.matrix_us * tile.warps.units / jnp.minimum(tile.warps.units * wave.ctas, 1.0)
        busy_us = jnp.maximum(wave.ctas * busy_us, tile.matrix_us + tile.fixed_us) * slowdown
        pipelined_us = busy_us + wave.ctas * tile.spilled_us
        shared_us = jnp.where(tile.warps.pipelined, pipelined_us, shared_us)
    ring_us = (load_us + latency_us + compute_us) * tile.per_stage
    short_us = (load_us + latency_us) * tile.per_depth
    bound_us = jnp.maximum(jnp.maximum(load_us, shared_us), jnp.maximum(ring_us, short_us))

    ring_us = jnp.maximum(ring_us, short_us + tile.unqueued * compute_us * tile.per_depth)
    more = scaled(p.dram_softness, arrival.dram_part * (1.0 - p.softness))
    softness = p.softness if is_number(more, 0.0) else p.softness + more
    soft_us = soft_max(softness, jnp.maximum(load_us, shared_us), ring_us)
    extra_us = jnp.maximum(soft_us - bound_us, 0.0) * tile.early

    period_us = bound_us + extra_us
    others_us = jnp.where(tile.per_depth > 0, 0.0, shared_us - compute_us)
    behind_us = jnp.maximum(latency_us - others_us, 0.0)
    behind_us = jnp.maximum(behind_us + (c.stages - 2.0) * extra_us, 0.0)
    one_us = jnp.maximum(jnp.maximum(load_us * wave.per_ctas, compute_us), ring_us)
    overhead_us = load_us + latency_us + tile.epilogue_us * slowdown
    hideable_us = jnp.minimum(overhead_us, r.k_tiles * jnp.maximum(period_us - one_us, 0.0))
    share = p.overhead_hidden / (1.0 + p.overhead_hidden)
    overhead_us -= jnp.where(wave.ctas > 1, scaled(share, hideable_us), 0.0)
    return _Step(
        load_us=load_us + extra_us,
        latency_us=behind_us,
        compute_us=shared_us + extra_us,
        period_us=period_us,
        overhead_us=jnp.maximum(overhead_us - (load_us + extra_us + behind_us), 0.0),
    )


def _tile(
    c: Configuration, r: Raster, t: Traffic, machine: Machine, cost: Costs, per_waves: Number
) -> _Tile:
    p, facts = machine.parameters, machine.facts
    pingpong = c.schedule == PINGPONG
    groups = jnp.where(pingpong, 2.0, 1.0)
    high = facts.mma_m * c.math_warps / facts.mma_warps
    halved = (c.block_m * groups < high) & (c.schedule != COOPERATIVE)
    a_bytes = c.block_m * c.block_k * machine.in_bytes
    b_bytes = c.block_k * c.block_n * machine.in_bytes
    mma_bytes = 2.0 * facts.mma_k
    mma_rows_bytes = facts.mma_m * mma_bytes
    mmas = a_bytes * (1.0 / mma_rows_bytes) * jnp.where(halved, 2.0, 1.0)
    per_mma = r.per.block_m * r.per.block_k * (mma_rows_bytes / machine.in_bytes)
    per_mma *= jnp.where(halved, 0.5, 1.0)
    matrix_us = 2.0 * c.block_m * c.block_n * c.block_k * cost.flop
    matrix_us += scaled(cost.paper, a_bytes + b_bytes)
    columns = c.block_n * jnp.where(halved, 0.5, 1.0)
    operands_us = scaled(cost.smem, mmas * (facts.mma_m + columns) * mma_bytes)
    matrix_us = jnp.maximum(matrix_us, operands_us)
    promoted = _promoted(c)
    drain_us = scaled(p.drain_us, c.block_k * (1.0 / 64.0))
    drains = c.mma_in_flight != 1
    registers = c.block_m * c.block_n * groups * (1.0 + promoted)
    warps = warps_of(c, machine, cost)
    if warps is not None:
        matrix_us = jnp.where(warps.alone, warps.matrix_us, matrix_us)
        drains, registers = drains | warps.alone, registers + warps.pointers
    threads = c.math_warps * facts.warp_size
    room = (facts.max_registers_per_thread - OVERHEAD_REGISTERS) * threads
    spilled = jnp.maximum(registers - room, 0.0)
    exposed = 1.0 - jnp.where(c.schedule == COOPERATIVE, promoted * p.promotion_hidden, 0.0)
    promotion_us = scaled(p.promotion_us, c.block_k * (1.0 / PROMOTED_DEPTH) * promoted * exposed)

    tile_bytes = c.block_m * c.block_n * machine.out_bytes
    inside = jnp.minimum(c.m, c.block_m) * jnp.minimum(c.n, c.block_n) * machine.out_bytes
    crowd = (IDLE_STORES + r.active * cost.sm) * (1.0 / (1.0 + IDLE_STORES))
    direct_us = jnp.where(c.write_back == 1, scaled(cost.direct, inside * crowd), 0.0)
    cluster_us = jnp.where(c.cluster_m * c.cluster_n > 1, p.cluster_latency_us, 0.0)
    one_in_flight = (c.mma_in_flight == 1) & (c.stages >= 2)
    return _Tile(
        cost=cost,
        per_stage=inverse(c.stages),
        per_depth=jnp.where(one_in_flight, inverse(jnp.maximum(c.stages - 1.0, 1.0)), 0.0),
        matrix_us=matrix_us,
        fixed_us=p.compute_startup_us + p.sync_us + jnp.where(drains, drain_us, 0.0) + promotion_us,
        box_us=scaled(cost.latency, t.box_bytes) + cluster_us,
        spilled_us=scaled(
            cost.spill, SPILL_BYTES * spilled * jnp.where(pingpong, 0.5, 1.0) * exposed
        ),
        unqueued=jnp.maximum(1.0 - p.mma_queue * per_mma, 0.0),
        epilogue_us=p.epilogue_startup_us + scaled(cost.store, tile_bytes) + direct_us,
        warps=warps,
        early=jnp.maximum(1.0 - RING_SHARE * c.stages * (per_waves * r.per.k_tiles), 0.0),
    )


def _promoted(c: Configuration) -> Number:
    """1 where fp8 sums are added up in further registers, else 0."""
    return (c.accum == PROMOTED) * 1.0


def _slowdown(
    c: Configuration, r: Raster, p: Parameters, tile: _Tile, step: _Step, rate: Number
) -> Number:
    """The clock falls with the flop rate, within `CLOCK_US`, from 1 to 1 + clock_drop."""
    tile_us = jnp.where(c.schedule == SERIAL, step.overhead_us, tile.epilogue_us)
    tile_us = jnp.where(c.schedule == PINGPONG, 0.0, tile_us)
    estimate_us = p.launch_us + step.load_us + step.latency_us
    estimate_us += r.waves * (r.k_tiles * step.period_us + tile_us)
    flop = r.tiles * r.k_tiles * 2.0 * c.block_m * c.block_n * c.block_k
    busy_us = jnp.minimum(flop / (CLOCK_FLOP_PER_US * rate), estimate_us)
    return 1.0 + p.clock_drop * busy_us * inverse(estimate_us + 2.0 * CLOCK_US)
