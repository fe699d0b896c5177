"""The event timeline of one configuration: every load, compute, wait and epilogue of the busiest
CTA, from the kernel's begin to its end.

The recurrences are played step by step (`steps`), with all durations of `wsjax.model.kernel`, as if
the CTA's waves were all alike. The predicted time exchanges its first tile for one of a cold wave
and its last for one of a partial wave, each as if it ran alone (`wsjax.model.exchange_us`), and the
predicted waits are those of the play. What is drawn has both: it ends at the predicted `time_us`,
and its waits add up to `math_wait_us` and `dma_wait_us`.

- **Time is stretched, never torn.** An event at time t of the play is drawn at t + shift(t). In the
  first tile the shift takes every compute's start to where it is in a cold wave; later it is what
  the cold wave lasts longer. In the last tile it changes evenly over the mainloop (`serial`: to
  where computes start in a partial wave), and over the epilogue by what that lasts longer. So the
  order of events stays, the ring stays within its depth, and the end is the predicted time.
- **Waits keep their length.** A wait is drawn right before the load or compute that it is for, as
  long as in the play; loads, computes and epilogues take up the stretching. So drawn waits add up
  to the predicted ones. Where a wait is longer than the time there now is, the rest goes to the
  warp's other waits, evenly over the time that they leave.

If the kernel has one wave, or all waves are alike, nothing is stretched.
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
from wsjax.hardware import Hardware, load_hardware, resolve_one
from wsjax.model import PINGPONG, SERIAL, Events, Pipeline, isolated, kernel
from wsjax.schema import Configuration
from wsjax.timelines.steps import WAITS, CriticalPath, count, numbers, path, play

MOST_STEPS = 2**17
"""A longer kernel is played only so far; the rest of it is one block."""
LEAST_BUSY = 0.02
"""At least this share of the time between two waits is drawn as a load or compute."""
ROUNDING = 1e-9


class Timeline(NamedTuple):
    """One configuration's events, as they are drawn."""

    configuration: Configuration
    hardware: str
    """The machine's name."""
    figures: Mapping[str, Any]
    """The prediction: the fields of `wsjax.engine.Prediction` as plain numbers."""
    pipeline: Pipeline
    """The durations of a full wave, in µs."""
    steps: Events
    """Each step's events: arrays (steps,), in µs from the kernel's begin."""
    first_us: float
    """What the cold first wave's tile lasts longer than a full wave's."""
    last_us: float
    """What the partial last wave's tile lasts longer than a full wave's."""
    path: CriticalPath
    predicted_us: float
    """The time that `predict` gives: with the machine's learned correction, which has no events."""

    @property
    def complete(self) -> bool:
        """Whether all steps are there."""
        return len(self.steps.start) == count(self.pipeline)

    @property
    def time_us(self) -> float:
        return self.figures["time_us"]


class KernelTimes(NamedTuple):
    """`wsjax.model.kernel` of one configuration as Python numbers, and how long one tile of each
    wave takes alone. Times in µs."""

    full: Pipeline
    """The busiest CTA's tiles in full waves."""
    first: Pipeline
    """One tile of the cold first wave."""
    last: Pipeline
    """One tile of the partial last wave."""
    launch_us: float
    """Before the first wave."""
    full_alone_us: float
    """The end of one tile of `full` that runs alone."""
    first_alone_us: float
    """The end of the tile of `first` alone."""
    last_alone_us: float
    """The end of the tile of `last` alone."""


class Exchange(NamedTuple):
    """What the first and the last wave last longer than the others, in µs, and the last epilogue.

    cold, partial: their first tile's steps, played alone (None: not needed).
    """

    first_us: float
    last_us: float
    epilogue_us: float
    cold: Events | None
    partial: Events | None


class Shift(NamedTuple):
    """How much later than in the play an event is, at some times of the play; between them
    linearly."""

    at: np.ndarray
    by: np.ndarray

    def __call__(self, time: np.ndarray) -> np.ndarray:
        """When events of the play happen."""
        return time + np.interp(time, self.at, self.by)


def one_row(c: Configuration, machine: Hardware) -> Inputs:
    """The columns of one configuration."""
    return engine.columns(Configuration(*(np.full(1, x) for x in c)), machine)[0]


def _times(i: Inputs) -> KernelTimes:
    waves = kernel(engine.floats(i.configuration), i.machine)
    each = waves.full, waves.first, waves.last
    alone = (isolated(p._replace(tiles=1))[0].end_us for p in each)
    return KernelTimes(*each, waves.launch_us, *alone)


_tape = engine.Tape(_times)


def kernel_times(inputs: Inputs) -> KernelTimes:
    """The durations of one row."""
    full, first, last, *rest = _tape(1, inputs)
    return KernelTimes(numbers(full), numbers(first), numbers(last), *(float(x[0]) for x in rest))


def trace(hardware: str | Path | Hardware = "h200", **columns: Any) -> Timeline:
    """The timeline of one configuration: `trace(m=4096, n=4096, k=4096, block_m=128, block_n=128,
    block_k=64, stages=4, schedule="pingpong")`.

    columns: those of `wsjax.schema.COLUMNS`, words as words; the defaults are `predict`'s.

    Raises InputError for what is wrong with them, or if the configuration is illegal.
    """
    machine, numbers = gather(
        partial(load_hardware, hardware), partial(schema.from_keywords, columns)
    )
    return timeline(resolve_one(numbers, machine), machine)


def timeline(c: Configuration, machine: Hardware, *, ran: bool = False) -> Timeline:
    """The timeline of one configuration (whole numbers), of the recurrences alone: a learned
    correction has no events. ran: it is legal, because it did run.

    Raises InputError if it is illegal.
    """
    given, machine = machine, machine.physics
    rows = Configuration(*(np.full(1, x) for x in c))
    prediction = engine.evaluate(rows, machine, legal_override=np.full(1, ran))
    figures = {name: values.item() for name, values in prediction._asdict().items()}
    if figures["reason"]:
        raise InputError(f"illegal: {schema.why(figures['reason'], c, machine.facts)}")
    if schema.undivided(c).split_k is not None:
        raise InputError("timeline: kernels that divide output tiles are not drawn; take split_k 1")
    times = kernel_times(one_row(c, machine))
    with jax.enable_x64(True):
        played = play(times.full, MOST_STEPS)
        exchange = _exchange(times)
    shifted = shift(times.full, played, exchange)
    return Timeline(
        configuration=c,
        hardware=machine.name,
        figures=figures,
        pipeline=times.full,
        steps=drawn(times.full, played, shifted, times.launch_us),
        first_us=exchange.first_us,
        last_us=exchange.last_us,
        path=path(times.full, played),
        predicted_us=_predicted_us(rows, given, figures["time_us"], ran=ran),
    )


def _predicted_us(rows: Configuration, machine: Hardware, time_us: float, *, ran: bool) -> float:
    """The time of one row with the machine's learned correction, from that without."""
    if machine.residual is None:
        return time_us
    prediction = engine.evaluate(rows, machine, legal_override=np.full(1, ran))
    return float(prediction.time_us[0])


def _exchange(times: KernelTimes) -> Exchange:
    first_us = times.first_alone_us - times.full_alone_us
    if times.full.tiles == 1:
        return Exchange(first_us, 0.0, 0.0, None, None)
    cold, partial = (
        play(p._replace(tiles=1, schedule=SERIAL), MOST_STEPS) for p in (times.first, times.last)
    )
    epilogue_us = times.last.epilogue_us - times.full.epilogue_us
    last_us = times.last_alone_us - times.full_alone_us
    return Exchange(first_us, last_us, epilogue_us, cold, partial)


def shift(p: Pipeline, played: Events, exchange: Exchange) -> Shift:
    """The shift of a play. Of one that was cut short, the last tile's is left out."""
    n, steps = p.k_tiles, len(played.start)
    none = np.zeros(1), np.zeros(1)
    first = last = none
    if p.tiles > 1 and exchange.cold is not None and steps >= n:
        first = _exchanged(played, slice(0, n), exchange.cold, 0.0, exchange.first_us)
    if p.tiles > 1 and steps == count(p):
        tile = slice(steps - n, steps)
        begin = float(played.turn[steps - n])
        if p.schedule == SERIAL and exchange.partial is not None:
            last = _exchanged(played, tile, exchange.partial, begin, exchange.last_us)
        else:
            mainloop_us = exchange.last_us - exchange.epilogue_us
            at = np.array([begin, played.end[-1], played.epilogue[-1]])
            last = at, np.array([0.0, mainloop_us, exchange.last_us])
    at = np.union1d(first[0], last[0])
    by = np.interp(at, *first) + np.interp(at, *last)
    if np.all(np.diff(at + by) >= -ROUNDING):
        return Shift(at, by)
    return Shift(np.array([0.0, played.epilogue[-1]]), np.array([0.0, by[-1]]))


def _exchanged(
    played: Events, tile: slice, other: Events, begin: float, more_us: float
) -> tuple[np.ndarray, np.ndarray]:
    """Times of a tile's events in the play, and how much later they are in another wave."""
    ends = [played.end[tile][-1], played.epilogue[tile][-1]]
    at = np.concatenate([[begin], played.start[tile], ends])
    to = np.concatenate([other.start, [other.end[-1]]]) + begin
    return at, np.concatenate([[0.0], to - at[1:-1], [more_us]])


def drawn(p: Pipeline, played: Events, shifted: Shift, launch_us: float) -> Events:
    """A play as it is drawn: times from the kernel's begin on."""
    times = {name: shifted(x) for name, x in played._asdict().items() if name not in WAITS}
    events = Events(**times, **{name: getattr(played, name) for name in WAITS})
    for warp in ("a", "b"):
        acquire, done, wait = names = (f"acquire_{warp}", f"done_{warp}", f"wait_{warp}")
        before = np.append(0.0, getattr(played, done)[:-1])
        idle = getattr(played, acquire) - getattr(played, wait) - before
        begin, ends, waits = (getattr(events, name) for name in names)
        loads = _loads(begin, ends, waits, idle)
        events = events._replace(**dict(zip(names, loads, strict=True)))
    events = _computes(p, events)
    later = {name: x + launch_us for name, x in events._asdict().items() if name not in WAITS}
    return events._replace(**later)


def _loads(
    begin: np.ndarray, done: np.ndarray, wait: np.ndarray, idle: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(begins, ends, the waits before) of one DMA warp's loads."""
    begin, wait = _laid(begin, wait, done[-1])
    until = begin[1:] - wait[1:]
    until = np.where(idle[1:] > ROUNDING, np.clip(done[:-1], begin[:-1], until), until)
    return begin, np.append(until, done[-1]), wait


def _computes(p: Pipeline, events: Events) -> Events:
    """MATH's starts, turns, ends and epilogues, waits as long as they were."""
    last = np.flatnonzero(np.isfinite(events.epilogue))
    ends_us = (
        events.epilogue[-1] if len(last) and last[-1] == len(events.end) - 1 else events.end[-1]
    )
    start, wait = _laid(events.start, events.math_wait, ends_us)
    turn = start - wait
    end = np.append(turn[1:], max(events.end[-1], start[-1]))
    inner = last[last < len(turn) - 1]
    epilogue = events.epilogue.copy()
    if p.schedule == PINGPONG:
        end[inner] = np.clip(events.end[inner], start[inner], turn[inner + 1])
        followed = inner[inner + p.k_tiles + 1 < len(turn)]
        epilogue[followed] = np.minimum(epilogue[followed], turn[followed + p.k_tiles + 1])
        epilogue[last] = np.maximum(epilogue[last], end[last])
    else:
        epilogue[inner] = turn[inner + 1]
        both_us = p.compute_us + p.epilogue_us
        share = p.compute_us / both_us if both_us > 0 else 1.0
        end[inner] = start[inner] + share * (epilogue[inner] - start[inner])
    return events._replace(start=start, turn=turn, end=end, epilogue=epilogue, math_wait=wait)


def _laid(begin: np.ndarray, wait: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    """(begins, waits before them) of a warp's events up to `end`: waits add up to what they did.

    Where even all the time between the begins is too short for the waits, begins move too.
    """
    room = np.diff(begin, prepend=0.0)
    room[1:] *= 1.0 - LEAST_BUSY
    kept = np.minimum(wait, room)
    free, missing = room - kept, wait.sum() - kept.sum()
    if missing <= ROUNDING:
        return begin, wait
    if missing < free.sum():
        return begin, kept + free * (missing / free.sum())
    busy = np.diff(begin, append=max(end, wait.sum())) - np.append(kept[1:], 0.0)
    busy *= max(end - wait.sum(), 0.0) / max(busy.sum(), ROUNDING)
    return np.cumsum(wait) + np.append(0.0, np.cumsum(busy)[:-1]), wait
