"""The sweep over a space: which of its kernels a decision has to know.

A lower bound of every kernel's time comes first (`closed.lower_bound`, a few operations). Then the
exact model evaluates kernels in the order of their bounds, until no other can matter: its bound is
above what its like has reached. Kernels that break the same constraints are alike, a *class*: only
the best of a class can be an answer, whatever is decided about the constraints. So the few
candidates that are left stand for the whole space, and nothing is lost.

The fixed order of kernels: the objective's scores, then the fewest bytes of shared memory, then
the kernel's number in its space.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import batch
from wsjax.closed import exchange_us, lower_bound, slopes
from wsjax.constraints import NOT_MODELLED, POWER, Constraint, array_terms, violations
from wsjax.deadlines import Deadline
from wsjax.durations import kernel
from wsjax.events import PINGPONG, Pipeline, isolate
from wsjax.hardware import Hardware
from wsjax.limits import smem_bytes
from wsjax.objectives import FIGURES, ROUNDING, Objective
from wsjax.power import power_w
from wsjax.programs import Inputs, floats, neutral_names, without
from wsjax.space import Configuration
from wsjax.spaces import Space

CHUNKS = (8_192, 65_536)
FIRST_ROWS, MORE_ROWS = 256, 8_192
"""How many kernels are evaluated exactly at once: at first, and then."""


class Index(NamedTuple):
    """Every kernel of a space on one problem: its number, lower bounds of its scores (parts, rows)
    and the constraints that it breaks, as bits. `complete`: all of them, none left out for lack of
    time."""

    numbers: np.ndarray
    bounds: np.ndarray
    broken: np.ndarray
    complete: bool


class Candidate(NamedTuple):
    """A kernel that was evaluated. `key`: its place in the fixed order."""

    key: tuple[float, ...]
    broken: int
    figures: dict[str, float]

    @property
    def number(self) -> int:
        """The kernel's number in its space."""
        return int(self.key[-1])


class Search(NamedTuple):
    """The best of each class, in the fixed order, and `bound`: no kernel that meets all
    constraints has a lower first score. `complete`: none that could be the best was left out."""

    candidates: list[Candidate]
    bound: float
    complete: bool


@dataclass(frozen=True)
class Task:
    """One problem on one machine: what is to be chosen, by which objective and constraints."""

    space: Space
    problem: Mapping[str, Any]
    hardware: Hardware
    objective: Objective
    constraints: Sequence[Constraint]
    max_power_w: float | None = None

    def configurations(self, numbers: Sequence[int] | np.ndarray) -> Configuration:
        """The kernels of these numbers on the problem."""
        at = np.asarray(numbers, dtype=np.int64)
        return self.space.configurations(at, self.problem, self.hardware.facts)

    def bit(self, reason: str) -> int:
        """The bit of the constraint of this reason."""
        return 1 << [constraint.reason for constraint in self.constraints].index(reason)


def index(task: Task, limit: Deadline) -> Index:
    """Every kernel's bounds and broken constraints; a block of kernels at least."""
    facts = task.hardware.facts
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    complete = True
    for numbers, c in task.space.blocks(task.problem, facts):
        terms = array_terms(c, task.hardware)
        figures = {
            **lower_bounds(c, task.hardware),
            "smem_bytes": smem_bytes(c, facts, terms.in_bytes, terms.out_bytes),
        }
        broken = violations(terms, task.constraints, len(numbers))
        parts.append((numbers, task.objective.bounds(figures), broken))
        if limit.passed and numbers[-1] + 1 < len(task.space):
            complete = False
            break
    if not parts:
        parts = [(np.zeros(0, int), np.zeros((len(task.objective.parts), 0)), np.zeros(0, int))]
    numbers, bounds, broken = zip(*parts, strict=True)
    return Index(
        np.concatenate(numbers), np.concatenate(bounds, axis=1), np.concatenate(broken), complete
    )


def lower_bounds(c: Configuration, hardware: Hardware) -> dict[str, np.ndarray]:
    """What the exact `time_us` and `math_wait_us` of each kernel, legal or not, don't go below; inf
    where it has none. At least one field of `c` is an array."""
    inputs, rows = batch.columns(c, hardware)
    neutral = neutral_names(inputs.machine.parameters)
    size = next(size for size in CHUNKS if rows <= size or size == CHUNKS[-1])
    found = np.empty((2, rows))
    with jax.enable_x64(True):
        for start in range(0, rows, size):
            stop = min(start + size, rows)
            part = inputs.take(np.minimum(np.arange(start, start + size), stop - 1))
            found[:, start:stop] = np.asarray(_lower_bounds(part, neutral))[:, : stop - start]
    time_us, math_wait_us = np.where(np.isnan(found), np.inf, found)
    return {"time_us": time_us, "math_wait_us": math_wait_us}


@partial(jax.jit, static_argnames="neutral")
def _lower_bounds(inputs: Inputs, neutral: tuple[str, ...]) -> jax.Array:
    def one(i: Inputs) -> jax.Array:
        whole = kernel(floats(i.configuration), without(i.machine, neutral))
        end_us = lower_bound(whole.full)
        exchanged_us = exchange_us(whole.full, whole.first, whole.last)
        time_us = whole.launch_us + end_us + exchanged_us
        return jnp.stack([time_us, _least_wait_us(whole.full, end_us)])

    return jax.vmap(one, in_axes=(inputs.axes,), out_axes=1)(inputs)


def _least_wait_us(pipeline: Pipeline, end_us: jax.Array) -> jax.Array:
    """What MATH waits at least in a run that does not end before `end_us`.

    It waits when it neither computes nor stores. Ping-pong's stores hide under the other group's
    mainloops but for the last, if they are no longer than these; else the first load is waited for.
    """
    once, repeats = isolate(pipeline)
    p, steps = once, once.k_tiles * once.tiles
    pingpong = p.schedule == PINGPONG
    stores_us = p.epilogue_us * jnp.where(pingpong, 1.0, p.tiles)
    wait_us = end_us * (1.0 - ROUNDING) - (steps * p.compute_us + stores_us) * repeats
    hidden = (p.epilogue_us <= p.k_tiles * p.compute_us) | (p.tiles <= 2)
    first_us = (slopes(p).landing + p.load_latency_us) * repeats
    return jnp.maximum(jnp.where(pingpong & ~hidden, first_us, wait_us), 0.0)


class Evaluated(NamedTuple):
    """Kernels with their exact figures, in the fixed order: `keys` (scores, bytes, numbers)."""

    keys: np.ndarray
    broken: np.ndarray
    figures: dict[str, np.ndarray]

    def candidate(self, at: int) -> Candidate:
        """The kernel at a position."""
        figures = {name: values[at].item() for name, values in self.figures.items()}
        return Candidate(tuple(self.keys[:, at].tolist()), int(self.broken[at]), figures)


def evaluate(task: Task, numbers: np.ndarray, broken: np.ndarray) -> Evaluated:
    """The exact figures of these kernels, legal or not, and whether they draw too much power."""
    c = task.configurations(numbers)
    prediction = batch.evaluate(c, task.hardware, legal_override=np.asarray(True))
    figures = {name: getattr(prediction, name) for name in FIGURES.values()}
    if task.hardware.energy:
        figures["power_w"] = power_w(c, task.hardware, prediction.time_us)
    if task.max_power_w is not None:
        broken = broken | np.where(figures["power_w"] > task.max_power_w, task.bit(POWER), 0)
    keys = np.stack([*task.objective.scores(figures), figures["smem_bytes"], numbers])
    order = np.lexsort(keys[::-1])
    in_order = {name: values[order] for name, values in figures.items()}
    return Evaluated(keys[:, order], broken[order], in_order)


def best_of_classes(task: Task, found: Index, limit: Deadline) -> Search:
    """Of each class of kernels the best, of those that meet all constraints the best two; classes
    that can't be better than that are left out.

    Those that meet all constraints come first, and `FIRST_ROWS` are evaluated in any case. All are,
    where power is limited, of which the bound of a time says nothing.
    """
    classes, codes = np.unique(found.broken, return_inverse=True)
    order = np.lexsort((found.bounds[0], found.broken != 0))
    order = order[(found.broken[order] & task.bit(NOT_MODELLED)) == 0]
    best: dict[int, list[Candidate]] = {}
    rows = FIRST_ROWS
    while True:
        if task.max_power_w is None:
            limits = np.asarray([_limit(best, int(bits)) for bits in classes])
            order = order[found.bounds[0, order] <= limits[codes[order]]]
        if not len(order) or (best and limit.passed):
            break
        chosen, order = order[:rows], order[rows:]
        _update(best, evaluate(task, found.numbers[chosen], found.broken[chosen]))
        rows = MORE_ROWS
    candidates = sorted(candidate for own in best.values() for candidate in own)
    left = found.bounds[0, order[found.broken[order] == 0]].min(initial=np.inf)
    reached = best[0][0].key[0] if best.get(0) else np.inf
    complete = found.complete and (bool(left > reached) or not len(order))
    return Search(candidates, float(min(left, reached)) if found.complete else 0.0, complete)


def _limit(best: Mapping[int, list[Candidate]], broken: int) -> float:
    """The first score above which no further kernel of a class matters."""
    own, answers = best.get(broken, []), best.get(0, [])
    if not broken:
        return answers[1].key[0] if len(answers) > 1 else np.inf
    return min([candidate.key[0] for candidate in (*own[:1], *answers[:1])], default=np.inf)


def _update(best: dict[int, list[Candidate]], new: Evaluated) -> None:
    """Let kernels compete for the best of their classes."""
    firsts = np.unique(new.broken, return_index=True)[1]
    for at in {*firsts.tolist(), *np.flatnonzero(new.broken == 0)[:2].tolist()}:
        one = new.candidate(at)
        best[one.broken] = sorted([*best.get(one.broken, []), one])[: 1 if one.broken else 2]
