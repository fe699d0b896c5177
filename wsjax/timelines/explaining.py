"""Why a kernel takes its time, and what would make it shorter.

**Elasticities**: by how many percent the time changes for one percent more of a parameter. With
constant durations the time is launch + exchange + the sum of the durations on the critical path, so
that its derivative is that of this sum with the path held; for kernels too long to play, the closed
form's derivative takes the path's place.

**Finite steps** (10 % more of a parameter, its term left out, another stage, tile or schedule) are
predicted anew, exactly: parameters by the recurrences, since a learned correction holds for the
machine as it was fitted; other choices as `predict` predicts them, with the correction.

**Resources.** A step of the kernel's full wave takes its period. What it would take if one resource
were all there is, is found by leaving out the terms of all others; what is left to the period is
slack. Beside them stand the waves of CTAs, the idle part of the last one, and the roofline.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import engine, schema
from wsjax.engine import Inputs
from wsjax.errors import gather
from wsjax.hardware import INF, PARAMETERS, Hardware, Parameters, load_hardware, resolve_one
from wsjax.model import (
    DURATIONS,
    Pipeline,
    Slopes,
    closed_form,
    ctas_per_sm,
    exchange_us,
    isolate,
    kernel,
    raster_of,
    slopes,
)
from wsjax.schema import DEEPEST_RING, DTYPE_BYTES, SCHEDULES, WRITES, Configuration, deepest_stages
from wsjax.timelines.timeline import Timeline, kernel_times, one_row, timeline

MORE = 0.1
"""The finite step of a parameter."""
BLOCKS = ("block_m", "block_n", "block_k")
GROUPS = (1, 4, 8, 16)
STORES = {"tma": "C stored by TMA", "direct": "C stored without TMA"}
TWO_GROUPS = SCHEDULES.index("pingpong")
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
KEPT = (
    "clock_rise",
    "l2_capacity_bytes",
    "warm_hit_share",
    "pitch_cost",
    "short_row_cost",
    "out_of_bounds_cost",
    "multicast_cost",
    "dirty_share",
    "sharing",
)
"""Parameters that set how many bytes move, and the clock; they take no time by themselves."""


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
    and to DRAM once, at the data sheet's rate; NaN where the machine has no such rate."""

    compute_us: float
    dram_us: float


class Elasticity(NamedTuple):
    """One parameter: its value, elasticity, and the relative change of the time for `MORE` of it,
    and without its term."""

    name: str
    value: float
    elasticity: float
    more: float
    without: float


class Step(NamedTuple):
    """Another choice: what it is called, its time, and how much longer (+) that is, relatively."""

    name: str
    time_us: float
    change: float


class Explanation(NamedTuple):
    """One configuration explained by the recurrences, but for `steps`, whose times are those that
    `predict` gives. clock_us: what the falling clock costs."""

    timeline: Timeline
    period_us: float
    resources: tuple[Resource, ...]
    elasticities: tuple[Elasticity, ...]
    steps: tuple[Step, ...]
    waves: Waves
    roof: Roof
    clock_us: float


def explain(hardware: str | Path | Hardware = "h200", **columns: Any) -> Explanation:
    """Explain one configuration: `explain(m=4096, n=4096, k=4096, block_m=128, block_n=128,
    block_k=64, stages=4)`.

    columns: those of `wsjax.schema.COLUMNS`, words as words; the defaults are `predict`'s.

    Raises InputError for what is wrong with them, or if the configuration is illegal.
    """
    machine, numbers = gather(
        partial(load_hardware, hardware), partial(schema.from_keywords, columns)
    )
    return explanation(resolve_one(numbers, machine), machine)


def explanation(c: Configuration, machine: Hardware) -> Explanation:
    """Explain one configuration (whole numbers). Raises InputError if it is illegal."""
    t = timeline(c, machine)
    given, machine = machine, machine.physics
    time_us = t.time_us
    parameters = machine.parameters._asdict()
    names = [name for name, value in parameters.items() if value != PARAMETERS[name].neutral]
    more = [{name: parameters[name] * (1 + MORE)} for name in names]
    without: list[dict[str, float]] = [{name: PARAMETERS[name].neutral} for name in names]
    others = list(variants(c, machine))
    changes = [*more, *without, {"clock_drop": 0.0}]
    times = _times_us([c] * len(changes), changes, machine)
    relative = times / time_us - 1.0 if time_us else np.zeros(len(times))
    neighbours = [other.configuration for other in others]
    predicted = _times_us(neighbours, [{} for _ in others], given)
    by_name = elasticities(t, machine, names)
    count = len(names)
    return Explanation(
        timeline=t,
        period_us=period_us(t.pipeline),
        resources=resources(t, machine),
        elasticities=tuple(
            Elasticity(name, parameters[name], by_name[name], float(by_more), float(by_none))
            for name, by_more, by_none in zip(
                names, relative[:count], relative[count:-1], strict=True
            )
        ),
        steps=tuple(
            Step(other.name, float(us), float(us / t.predicted_us - 1.0) if t.predicted_us else 0.0)
            for other, us in zip(others, predicted, strict=True)
            if np.isfinite(us)
        ),
        waves=waves(t, machine),
        roof=roof(c, machine),
        clock_us=time_us - float(times[-1]),
    )


def _times_us(
    rows: list[Configuration], changes: list[dict[str, float]], machine: Hardware
) -> np.ndarray:
    """The times of rows on machines of which some parameters are changed, NaN where illegal."""
    configurations = Configuration(*(np.asarray(column) for column in zip(*rows, strict=True)))
    values = machine.parameters._asdict()
    overrides = {
        name: np.array([change.get(name, values[name]) for change in changes], float)
        for name in {name for change in changes for name in change}
    }
    return engine.times_us(configurations, machine, overrides)


def _along(
    i: Inputs, counts: dict[str, Any], direction: dict[str, Any], neutral: tuple[str, ...]
) -> Any:
    """How fast a time changes as parameters do in a direction, on a path of known events."""
    machine = engine.without(i.machine, neutral)
    c = engine.floats(i.configuration)

    def time_us(changed: dict[str, Any]) -> Any:
        times = kernel(c, machine._replace(parameters=machine.parameters._replace(**changed)))
        path_us = sum(counts[name] * getattr(times.full, name) for name in DURATIONS)
        return times.launch_us + exchange_us(times.full, times.first, times.last) + path_us

    held = {name: getattr(machine.parameters, name) for name in direction}
    return jax.jvp(time_us, (held,), (direction,))[1]


_along_tape = engine.Tape(_along)


def elasticities(t: Timeline, machine: Hardware, names: list[str]) -> dict[str, float]:
    """d log time / d log parameter of one configuration, by the names of parameters, which are all
    that are not neutral."""
    row = jax.tree.map(lambda x: np.ravel(x)[0], one_row(t.configuration, machine))
    counts = t.path.counts if t.complete else _closed_counts(t.pipeline)
    values = np.array([getattr(machine.parameters, name) for name in names])
    directions = dict(zip(names, np.eye(len(names)), strict=True))
    neutral = tuple(name for name in Parameters._fields if name not in names)
    counts = {name: np.float64(counts[name]) for name in DURATIONS}
    gradient = _along_tape(len(names), row, counts, directions, neutral=neutral)
    elasticity = gradient * values / (t.time_us or 1.0)
    return dict(zip(names, elasticity.tolist(), strict=True))


def _closed_counts(p: Pipeline) -> dict[str, float]:
    """How often each duration is on the critical path, by the closed form."""

    def end_us(durations: dict[str, Any]) -> Any:
        return closed_form(p._replace(**durations))[0].end_us

    with jax.enable_x64(True):
        held = {name: jnp.asarray(getattr(p, name), float) for name in DURATIONS}
        return {name: float(x) for name, x in jax.grad(end_us)(held).items()}


class Variant(NamedTuple):
    """A neighbour, and what it is called: '+1 stage'."""

    name: str
    configuration: Configuration


def variants(c: Configuration, machine: Hardware) -> Iterator[Variant]:
    """The neighbours of a configuration (whole numbers) on a machine, legal or not."""
    for more in (1, -1):
        if 1 <= c.stages + more <= DEEPEST_RING:
            yield Variant(f"{more:+d} stage", c._replace(stages=c.stages + more))
    for name in BLOCKS:
        size = getattr(c, name)
        for other in (2 * size, size // 2):
            if other:
                yield _fitted(f"{name} {other}", c._replace(**{name: other}), machine)
    for code, word in enumerate(SCHEDULES):
        if code != c.schedule:
            warps = max(c.math_warps, 8) if code >= TWO_GROUPS else c.math_warps
            yield Variant(word, c._replace(schedule=code, math_warps=warps))
    warps = 3 - c.dma_warps
    yield Variant(f"{warps} DMA warp{'s' * (warps > 1)}", c._replace(dma_warps=warps))
    for warps in (4, 8):
        if warps != c.math_warps:
            yield Variant(f"{warps} MATH warps", c._replace(math_warps=warps))
    kept = "no MMA in flight" if c.mma_in_flight else "1 MMA in flight"
    yield Variant(kept, c._replace(mma_in_flight=1 - c.mma_in_flight))
    for group in GROUPS:
        if group != c.group_m:
            yield Variant(f"group_m {group}", c._replace(group_m=group))
    write = 1 - c.write_back
    yield Variant(STORES[WRITES[write]], c._replace(write_back=write))


def _fitted(name: str, c: Configuration, machine: Hardware) -> Variant:
    """With as many stages as fit, if those of before do not."""
    sizes = (DTYPE_BYTES[c.dtype_in], DTYPE_BYTES[c.dtype_out])
    deepest = int(deepest_stages(c.block_m, c.block_n, c.block_k, *sizes, machine.facts))
    if 1 <= deepest < c.stages:
        ring = f"{deepest} stage{'s' * (deepest > 1)}"
        return Variant(f"{name}, {ring}", c._replace(stages=deepest))
    return Variant(name, c)


def _of_once(p: Pipeline) -> Slopes:
    return slopes(isolate(p)[0])


_slopes_tape = engine.Tape(_of_once)


def _slopes(p: Pipeline) -> Slopes:
    """The slopes of a pipeline, as Python numbers."""
    return Slopes(*(x.item() for x in _slopes_tape(1, p)))


def period_us(p: Pipeline) -> float:
    """The mean time of a step in a long mainloop: of its load, its compute or its ring slot."""
    q = _slopes(p)
    return q.period + max(q.window_gain, 0.0) / max(q.depth - q.in_flight, 1.0)


def resources(t: Timeline, machine: Hardware) -> tuple[Resource, ...]:
    """What each resource that the machine has would take of a step alone, at the kernel's clock."""
    p, period = t.pipeline, period_us(t.pipeline)
    slowdown = _clock(t.configuration, machine)
    step_us = {}
    for name, (needed, side) in RESOURCES.items():
        present = [x for x in needed if getattr(machine.parameters, x) != PARAMETERS[x].neutral]
        if present:
            alone = _alone(t.configuration, machine, present)
            us = alone.compute_us if side == "compute" else _load_us(alone)
            step_us[name] = us * (1.0 if name == "DRAM" else slowdown)
    q = _slopes(p)
    held_us = 0.0 if q.in_flight else p.compute_us
    step_us["ring"] = (q.landing + p.load_latency_us + held_us) / max(q.depth - q.in_flight, 1.0)
    ordered = sorted(step_us.items(), key=lambda item: -item[1])
    return tuple(Resource(name, us, period - us) for name, us in ordered if us > 0)


def _load_us(p: Pipeline) -> float:
    return _slopes(p).load


def _alone(c: Configuration, machine: Hardware, present: list[str]) -> Pipeline:
    """A full wave's durations on a machine that has no terms but `present`, and `KEPT`."""
    values = machine.parameters._asdict()
    left = {
        name: values[name] if name in present or name in KEPT else parameter.neutral
        for name, parameter in PARAMETERS.items()
    }
    return kernel_times(one_row(c, replace(machine, parameters=Parameters(**left)))).full


def _clock(c: Configuration, machine: Hardware) -> float:
    """How much slower the clock is than at rest."""
    if machine.parameters.clock_drop == 0:
        return 1.0
    hard = machine.parameters._replace(
        softness=0.0, dram_softness=0.0, spill_throughput_bytes_per_us=INF
    )
    rest = hard._replace(clock_drop=0.0)
    slow, fast = (
        kernel_times(one_row(c, replace(machine, parameters=x))).full.compute_us
        for x in (hard, rest)
    )
    return slow / fast if fast else 1.0


def _raster(i: Inputs) -> tuple[Any, ...]:
    c = engine.floats(i.configuration)
    r = raster_of(c, i.machine.facts, ctas_per_sm(c, i.machine))
    return r.waves, r.active_last, r.tiles, r.ctas_per_sm, r.active


_raster_tape = engine.Tape(_raster)


def waves(t: Timeline, machine: Hardware) -> Waves:
    """The waves of a kernel, and their tail."""
    found = _raster_tape(1, one_row(t.configuration, machine))
    count, last, tiles, ctas_per_sm, active = (int(x[0]) for x in found)
    slots = max(machine.facts.sms * ctas_per_sm, active)
    idle = 1.0 - tiles / (count * slots)
    return Waves(count, slots, last, idle, idle * (t.time_us - t.figures["launch_us"]))


def roof(c: Configuration, machine: Hardware) -> Roof:
    m, p = one_row(c, machine).machine, machine.parameters
    rate = p.compute_throughput_flop_per_us * float(m.rate[0]) * machine.facts.sms
    in_bytes, out_bytes = float(m.in_bytes[0]), float(m.out_bytes[0])
    moved = c.batch * ((c.m * c.k + c.k * c.n) * in_bytes + c.m * c.n * out_bytes)
    flop = 2.0 * c.m * c.n * c.k * c.batch
    dram = machine.dram_roof_bytes_per_us
    finite = np.isfinite([rate, dram])
    return Roof(
        flop / rate if finite[0] else float("nan"), moved / dram if finite[1] else float("nan")
    )
