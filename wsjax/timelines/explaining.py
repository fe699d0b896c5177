"""Why a kernel takes its time, and what would make it shorter.

**Elasticities**: by how many percent the time changes for one percent more of a parameter. With
constant durations the time is launch + exchange + the sum of the durations on the critical path, so
that its derivative is that of this sum with the path held; for kernels too long to play, the closed
form's derivative takes the path's place.

**Finite steps** (10 % more of a parameter, its term left out, another stage, tile or schedule) are
predicted anew, exactly.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import engine, schema
from wsjax.errors import gather
from wsjax.hardware import PARAMETERS, Hardware, load_hardware
from wsjax.model import Pipeline, exchange_us, kernel
from wsjax.model import closed_form as closed
from wsjax.schema import Configuration
from wsjax.timelines.resources import Resource, Roof, Waves, period_us, resources, roof, waves
from wsjax.timelines.timeline import Timeline, numbers_of, one_row, timeline
from wsjax.timelines.variants import variants

MORE = 0.1
"""The finite step of a parameter."""
DURATIONS = tuple(name for name in Pipeline._fields if name.endswith("_us"))


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
    """One configuration explained. clock_us: what the falling clock costs."""

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

    columns: those of `wsjax.space.COLUMNS`, words as words; the defaults are `predict`'s.

    Raises InputError for what is wrong with them, or if the configuration is illegal.
    """
    machine, numbers = gather(
        partial(load_hardware, hardware), partial(schema.from_keywords, columns)
    )
    return explanation(schema.resolve_one(numbers, machine.facts), machine)


def explanation(c: Configuration, machine: Hardware) -> Explanation:
    """Explain one configuration (whole numbers). Raises InputError if it is illegal."""
    found = timeline(c, machine)
    time_us = found.time_us
    parameters = machine.parameters._asdict()
    names = [name for name, value in parameters.items() if value != PARAMETERS[name].neutral]
    more = [{name: parameters[name] * (1 + MORE)} for name in names]
    without: list[dict[str, float]] = [{name: PARAMETERS[name].neutral} for name in names]
    others = list(variants(c, machine))
    changes = [*more, *without, {"clock_drop": 0.0}, *({} for _ in others)]
    rows = [c] * (2 * len(names) + 1) + [other.configuration for other in others]
    times = _times_us(rows, changes, machine)
    relative = times / time_us - 1.0 if time_us else np.zeros(len(times))
    by_name = elasticities(found, machine, names)
    count = len(names)
    return Explanation(
        timeline=found,
        period_us=period_us(found.pipeline),
        resources=resources(found, machine),
        elasticities=tuple(
            Elasticity(name, parameters[name], by_name[name], float(one), float(none))
            for name, one, none in zip(names, relative[:count], relative[count:], strict=False)
        ),
        steps=tuple(
            Step(other.name, float(time), float(change))
            for other, time, change in zip(
                others, times[2 * count + 1 :], relative[2 * count + 1 :], strict=True
            )
            if np.isfinite(time)
        ),
        waves=waves(found, machine),
        roof=roof(c, machine),
        clock_us=time_us - float(times[2 * count]),
    )


def _times_us(
    rows: list[Configuration], changes: list[dict[str, float]], machine: Hardware
) -> np.ndarray:
    """The times of rows on machines of which some parameters are changed, NaN where illegal."""
    configurations = Configuration(*(np.asarray(column) for column in zip(*rows, strict=True)))
    own = machine.parameters._asdict()
    overrides = {
        name: np.array([change.get(name, own[name]) for change in changes], float)
        for name in {name for change in changes for name in change}
    }
    return engine.times_us(configurations, machine, overrides)


def elasticities(t: Timeline, machine: Hardware, names: list[str]) -> dict[str, float]:
    """d log time / d log parameter of one configuration, by the parameters' names."""
    row = numbers_of(one_row(t.configuration, machine))
    counts = t.path.counts if t.complete else _closed_counts(t.pipeline)
    values = np.array([getattr(machine.parameters, name) for name in names])

    def time_us(values: Any) -> Any:
        changed = dict(zip(names, values, strict=True))
        parameters = row.machine.parameters._replace(**changed)
        found = kernel(row.configuration, row.machine._replace(parameters=parameters))
        path_us = sum(counts[name] * getattr(found.full, name) for name in DURATIONS)
        return found.launch_us + exchange_us(found.full, found.first, found.last) + path_us

    def along(direction: Any) -> Any:
        return jax.jvp(time_us, (jnp.asarray(values),), (direction,))[1]

    with jax.enable_x64(True):
        # All but the directions are constants of this program, which makes it quick to compile.
        gradient = np.asarray(jax.jit(jax.vmap(along))(jnp.eye(len(names))))
    found = gradient * values / (t.time_us or 1.0)
    return dict(zip(names, found.tolist(), strict=True))


def _closed_counts(p: Pipeline) -> dict[str, float]:
    """How often each duration is on the critical path, by the closed form."""

    def end_us(durations: dict[str, Any]) -> Any:
        return closed(p._replace(**durations))[0].end_us

    with jax.enable_x64(True):
        own = {name: jnp.asarray(getattr(p, name), float) for name in DURATIONS}
        return {name: float(x) for name, x in jax.grad(end_us)(own).items()}
