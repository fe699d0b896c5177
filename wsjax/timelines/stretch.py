"""From the recurrences' time to the kernel's: a cold first wave and a last partial one, drawn.

The recurrences play a CTA whose waves are all alike. The predicted time exchanges its first tile
for one of a cold wave and its last for one of a partial wave, each as if it ran alone
(`closed.exchange_us`), and the predicted waits are those of the play. What is drawn has both:

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

from typing import NamedTuple

import numpy as np

from wsjax.model import PINGPONG, SERIAL, Pipeline
from wsjax.timelines.steps import WAITS, Steps, count

LEAST_BUSY = 0.02
"""At least this share of the time between two waits is drawn as a load or compute."""
ROUNDING = 1e-9


class Exchange(NamedTuple):
    """What the first and the last wave last longer than the others, in µs, and the last epilogue.

    cold, partial: their first tile's steps, played alone (None: not needed).
    """

    first_us: float
    last_us: float
    epilogue_us: float
    cold: Steps | None
    partial: Steps | None


class Shift(NamedTuple):
    """How much later than in the play an event is, at some times of the play; between them
    linearly."""

    at: np.ndarray
    by: np.ndarray

    def __call__(self, time: np.ndarray) -> np.ndarray:
        """When events of the play happen."""
        return time + np.interp(time, self.at, self.by)


def shift(p: Pipeline, played: Steps, exchange: Exchange) -> Shift:
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
    played: Steps, tile: slice, other: Steps, begin: float, more_us: float
) -> tuple[np.ndarray, np.ndarray]:
    """Times of a tile's events in the play, and how much later they are in another wave."""
    own, ends = played.start[tile], [played.end[tile][-1], played.epilogue[tile][-1]]
    at = np.concatenate([[begin], own, ends])
    to = np.concatenate([other.start, [other.end[-1]]]) + begin
    return at, np.concatenate([[0.0], to - at[1:-1], [more_us]])


def drawn(p: Pipeline, played: Steps, shifted: Shift, launch_us: float) -> Steps:
    """A play as it is drawn: times from the kernel's begin on."""
    times = {name: shifted(x) for name, x in played._asdict().items() if name not in WAITS}
    found = Steps(**times, **{name: getattr(played, name) for name in WAITS})
    for warp in ("a", "b"):
        acquire, done, wait = names = (f"acquire_{warp}", f"done_{warp}", f"wait_{warp}")
        before = np.append(0.0, getattr(played, done)[:-1])
        idle = getattr(played, acquire) - getattr(played, wait) - before
        begin, ends, waits = (getattr(found, name) for name in names)
        loads = _loads(begin, ends, waits, idle)
        found = found._replace(**dict(zip(names, loads, strict=True)))
    found = _computes(p, found)
    later = {name: x + launch_us for name, x in found._asdict().items() if name not in WAITS}
    return found._replace(**later)


def _loads(
    begin: np.ndarray, done: np.ndarray, wait: np.ndarray, idle: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(begins, ends, the waits before) of one DMA warp's loads."""
    begin, wait = _laid(begin, wait, done[-1])
    until = begin[1:] - wait[1:]
    until = np.where(idle[1:] > ROUNDING, np.clip(done[:-1], begin[:-1], until), until)
    return begin, np.append(until, done[-1]), wait


def _computes(p: Pipeline, found: Steps) -> Steps:
    """MATH's starts, turns, ends and epilogues, waits as long as they were."""
    last = np.flatnonzero(np.isfinite(found.epilogue))
    ends_us = found.epilogue[-1] if len(last) and last[-1] == len(found.end) - 1 else found.end[-1]
    start, wait = _laid(found.start, found.math_wait, ends_us)
    turn = start - wait
    end = np.append(turn[1:], max(found.end[-1], start[-1]))
    inner = last[last < len(turn) - 1]
    epilogue = found.epilogue.copy()
    if p.schedule == PINGPONG:
        end[inner] = np.clip(found.end[inner], start[inner], turn[inner + 1])
        own = inner[inner + p.k_tiles + 1 < len(turn)]
        epilogue[own] = np.minimum(epilogue[own], turn[own + p.k_tiles + 1])
        epilogue[last] = np.maximum(epilogue[last], end[last])
    else:
        epilogue[inner] = turn[inner + 1]
        both_us = p.compute_us + p.epilogue_us
        share = p.compute_us / both_us if both_us > 0 else 1.0
        end[inner] = start[inner] + share * (epilogue[inner] - start[inner])
    return found._replace(start=start, turn=turn, end=end, epilogue=epilogue, math_wait=wait)


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
