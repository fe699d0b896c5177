"""What a kernel uses: each resource's share of a step, the waves of CTAs, and the roofline.

A step of the kernel's full wave takes its period. What it would take if one resource were all there
is, is found by leaving out the terms of all others; what is left to the period is slack.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.hardware import INF, PARAMETERS, Hardware, Parameters
from wsjax.model import Pipeline, ctas_per_sm, isolate, slopes
from wsjax.model import raster_of as raster
from wsjax.schema import Configuration
from wsjax.timelines.timeline import Timeline, numbers_of, one_row, whole

RESOURCES = {
    "SM's load port": (("load_throughput_bytes_per_us",), "load"),
    "L2 slices": (("l2_throughput_bytes_per_us",), "load"),
    "DRAM": (("dram_throughput_bytes_per_us",), "load"),
    "issue of loads": (("load_issue_us", "load_startup_us"), "load"),
    "matrix unit": (
        ("compute_throughput_flop_per_us", "compute_throughput_bytes_per_us"),
        "compute",
    ),
    "shared memory": (("smem_throughput_bytes_per_us",), "compute"),
    "spilled registers": (("spill_throughput_bytes_per_us",), "compute"),
    "MATH start-up": (("compute_startup_us", "sync_us", "drain_us"), "compute"),
}
"""The parameters of each resource, and what of a step they set."""
BYTES = (
    "l2_capacity_bytes",
    "warm_hit_share",
    "pitch_cost",
    "short_row_cost",
    "out_of_bounds_cost",
)
"""Parameters that set how many bytes move, and take no time by themselves."""


class Resource(NamedTuple):
    """What a step takes of one resource, and what is left of the step's period, in µs."""

    name: str
    step_us: float
    slack_us: float


class Waves(NamedTuple):
    """The waves of CTAs, and what their tail loses: SM time that is idle in the last one, of all
    SM time, and in µs of the kernel, if tiles could be spread evenly."""

    waves: int
    slots: int
    last: int
    idle: float
    lost_us: float


class Roof(NamedTuple):
    """The least times that the machine's rates allow, in µs: for the flop, and for A, B and C from
    and to DRAM once; NaN where the machine has no such rate."""

    compute_us: float
    dram_us: float


def period_us(p: Pipeline) -> float:
    """The mean time of a step in a long mainloop: of its load, its compute or its ring slot."""
    with jax.enable_x64(True):
        once, _ = isolate(p)
        q = slopes(once)
        width = jnp.maximum(q.depth - q.in_flight, 1.0)
        return float(q.period + jnp.maximum(q.window_gain, 0.0) / width)


def resources(t: Timeline, machine: Hardware) -> tuple[Resource, ...]:
    """What each resource that the machine has would take of a step alone, at the kernel's clock."""
    p, period = t.pipeline, period_us(t.pipeline)
    slowdown = _clock(t.configuration, machine)
    found = {}
    for name, (needed, side) in RESOURCES.items():
        own = [x for x in needed if getattr(machine.parameters, x) != PARAMETERS[x].neutral]
        if own:
            alone = _alone(t.configuration, machine, own)
            us = alone.compute_us if side == "compute" else _load_us(alone)
            found[name] = us * (1.0 if name == "DRAM" else slowdown)
    with jax.enable_x64(True):
        q = slopes(isolate(p)[0])
        width = float(jnp.maximum(q.depth - q.in_flight, 1.0))
        held_us = 0.0 if bool(q.in_flight) else p.compute_us
        found["ring"] = (float(q.landing) + p.load_latency_us + held_us) / width
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return tuple(Resource(name, us, period - us) for name, us in ordered if us > 0)


def _load_us(p: Pipeline) -> float:
    with jax.enable_x64(True):
        return float(slopes(isolate(p)[0]).load)


def _alone(c: Configuration, machine: Hardware, own: list[str]) -> Pipeline:
    """A full wave's durations on a machine that has no terms but `own`, and what sets bytes."""
    values = machine.parameters._asdict()
    left = {
        name: values[name] if name in own or name in BYTES else parameter.neutral
        for name, parameter in PARAMETERS.items()
    }
    with jax.enable_x64(True):
        return whole(one_row(c, replace(machine, parameters=Parameters(**left)))).full


def _clock(c: Configuration, machine: Hardware) -> float:
    """How much slower the clock is than at rest."""
    if machine.parameters.clock_drop == 0:
        return 1.0
    hard = machine.parameters._replace(
        softness=0.0, dram_softness=0.0, spill_throughput_bytes_per_us=INF
    )
    rest = hard._replace(clock_drop=0.0)
    with jax.enable_x64(True):
        slow, fast = (
            whole(one_row(c, replace(machine, parameters=x))).full.compute_us for x in (hard, rest)
        )
    return slow / fast if fast else 1.0


def waves(t: Timeline, machine: Hardware) -> Waves:
    """The waves of a kernel, and their tail."""
    with jax.enable_x64(True):
        row = numbers_of(one_row(t.configuration, machine))
        c, m = row.configuration, row.machine
        r = raster(c, m.facts, ctas_per_sm(c, m))
        found, last, tiles = int(r.waves), int(r.active_last), float(r.tiles)
        slots = max(int(m.facts.sms * r.ctas_per_sm), int(r.active))
    idle = 1.0 - tiles / (found * slots)
    return Waves(found, slots, last, idle, idle * (t.time_us - t.figures["launch_us"]))


def roof(c: Configuration, machine: Hardware) -> Roof:
    m, p = one_row(c, machine).machine, machine.parameters
    rate = p.compute_throughput_flop_per_us * float(m.rate[0]) * machine.facts.sms
    in_bytes, out_bytes = float(m.in_bytes[0]), float(m.out_bytes[0])
    moved = c.batch * ((c.m * c.k + c.k * c.n) * in_bytes + c.m * c.n * out_bytes)
    flop = 2.0 * c.m * c.n * c.k * c.batch
    dram = p.dram_throughput_bytes_per_us
    finite = np.isfinite([rate, dram])
    return Roof(
        flop / rate if finite[0] else float("nan"), moved / dram if finite[1] else float("nan")
    )
