"""The event timeline of one configuration: every load, compute, wait and epilogue of the busiest
CTA, from the kernel's begin to its end.

The recurrences of `events` are played step by step (`steps`), with all durations of
`durations.kernel`; the cold first and the partial last wave stretch the play (`stretch`). The end
is the predicted `time_us`, the waits add up to `math_wait_us` and `dma_wait_us`.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from wsjax import engine, schema
from wsjax.engine import Inputs
from wsjax.errors import InputError, gather
from wsjax.hardware import Hardware, load_hardware
from wsjax.model import SERIAL, Pipeline, isolated, kernel
from wsjax.schema import Configuration
from wsjax.timelines import critical, stretch
from wsjax.timelines import steps as played
from wsjax.timelines.critical import CriticalPath
from wsjax.timelines.steps import Steps, count, numbers

MOST_STEPS = 2**17
"""A longer kernel is played only so far; the rest of it is one block."""


class Timeline(NamedTuple):
    """One configuration's events.

    figures: the prediction (`programs.Prediction`, plain numbers). pipeline: the durations of a
    full wave. steps: the events as they are drawn, in µs from the kernel's begin. first_us,
    last_us: what the cold first and the last partial wave last longer than a full one. path: the
    critical path, its times as drawn. complete: whether all steps are there.
    """

    configuration: Configuration
    hardware: str
    figures: Mapping[str, Any]
    pipeline: Pipeline
    steps: Steps
    first_us: float
    last_us: float
    path: CriticalPath

    @property
    def complete(self) -> bool:
        return len(self.steps.start) == count(self.pipeline)

    @property
    def time_us(self) -> float:
        return self.figures["time_us"]


class Whole(NamedTuple):
    """`durations.kernel` of one configuration, and how long one tile of each wave takes alone."""

    full: Pipeline
    first: Pipeline
    last: Pipeline
    launch_us: float
    full_alone_us: float
    first_alone_us: float
    last_alone_us: float


def one_row(c: Configuration, machine: Hardware) -> Inputs:
    """The columns of one configuration."""
    return engine.columns(Configuration(*(np.full(1, x) for x in c)), machine)[0]


def numbers_of(inputs: Inputs) -> Inputs:
    """The columns of one row as Python numbers."""
    return jax.tree.map(lambda x: float(np.asarray(x).flat[0]), inputs)


def whole(inputs: Inputs) -> Whole:
    """The durations of one row, op by op: compiling them takes longer. Needs float64."""
    row = numbers_of(inputs)
    found = kernel(row.configuration, row.machine)
    full, first, last = (numbers(p) for p in (found.full, found.first, found.last))
    alone = [float(isolated(p._replace(tiles=1))[0].end_us) for p in (full, first, last)]
    return Whole(full, first, last, float(found.launch_us), alone[0], alone[1], alone[2])


def trace(hardware: str | Path | Hardware = "h200", **columns: Any) -> Timeline:
    """The timeline of one configuration: `trace(m=4096, n=4096, k=4096, block_m=128, block_n=128,
    block_k=64, stages=4, schedule="pingpong")`.

    columns: those of `wsjax.space.COLUMNS`, words as words; the defaults are `predict`'s.

    Raises InputError for what is wrong with them, or if the configuration is illegal.
    """
    machine, numbers = gather(
        partial(load_hardware, hardware), partial(schema.from_keywords, columns)
    )
    return timeline(schema.resolve_one(numbers, machine.facts), machine)


def timeline(c: Configuration, machine: Hardware, *, ran: bool = False) -> Timeline:
    """The timeline of one configuration (whole numbers). ran: it is legal, because it did run.

    Raises InputError if it is illegal.
    """
    rows = Configuration(*(np.full(1, x) for x in c))
    found_figures = engine.evaluate(rows, machine, legal_override=np.full(1, ran))
    figures = {name: values.item() for name, values in found_figures._asdict().items()}
    if figures["reason"]:
        raise InputError(f"illegal: {schema.why(figures['reason'], c, machine.facts)}")
    with jax.enable_x64(True):
        found = whole(one_row(c, machine))
        p = found.full
        play = played.play(p, MOST_STEPS)
        exchange = _exchange(found)
    shifted = stretch.shift(p, play, exchange)
    return Timeline(
        configuration=c,
        hardware=machine.name,
        figures=figures,
        pipeline=p,
        steps=stretch.drawn(p, play, shifted, found.launch_us),
        first_us=exchange.first_us,
        last_us=exchange.last_us,
        path=critical.path(p, play),
    )


def _exchange(found: Whole) -> stretch.Exchange:
    first_us = found.first_alone_us - found.full_alone_us
    if found.full.tiles == 1:
        return stretch.Exchange(first_us, 0.0, 0.0, None, None)
    cold, partial = (
        played.play(p._replace(tiles=1, schedule=SERIAL), MOST_STEPS)
        for p in (found.first, found.last)
    )
    epilogue_us = found.last.epilogue_us - found.full.epilogue_us
    last_us = found.last_alone_us - found.full_alone_us
    return stretch.Exchange(first_us, last_us, epilogue_us, cold, partial)
