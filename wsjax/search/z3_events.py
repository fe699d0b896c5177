"""The paper's encoding: event times as Z3 arrays, the recurrences of `events` as constraints.

Every choice (tile, stages, DMA warps, schedule, …) is a whole number that Z3 picks from the
space's axes; so are, in picoseconds, the times of all events of a CTA. Each duration is rounded
once to whole picoseconds. No kernel is evaluated or bounded beforehand, which makes this slow, and
an oracle that keeps the fast way honest. Source: "A Performance Model for Warp Specialization
Kernels", arXiv 2506.11209.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import z3

from wsjax import engine
from wsjax.deadlines import Deadline, until
from wsjax.engine import Inputs, floats, neutral_names, without
from wsjax.errors import InputError, UnfinishedError
from wsjax.model import PINGPONG, SERIAL, Pipeline, exchange_us, kernel
from wsjax.schema import KERNEL, Axis, Configuration, smem_bytes
from wsjax.search.criteria import Task, Terms, array_terms, number_terms, violations
from wsjax.spec import Logic, Predicate

STEPS_MAX = 1_024
KERNELS_MAX = 100_000
"""The most steps of a CTA, and kernels of a space, that are encoded."""
CTRL_C = ("interrupted from keyboard", "canceled")
"""Z3's reasons why it can't tell, before its time is up: it takes Ctrl-C for itself."""
PS_PER_US = 1e6
CHOICES = ("stages", "schedule", "dma_warps", "mma_in_flight")
"""What the recurrences read of a kernel's columns as they are; the rest follows."""
TOO_SHORT = "the time was too short for the encoding; give more"


def check_time(limit: Deadline) -> None:
    """Raise UnfinishedError once the time is up."""
    if limit.passed:
        raise UnfinishedError(TOO_SHORT)


class Rounded(NamedTuple):
    """Kernels as the recurrences see them, each duration in whole picoseconds (int64 arrays).

    `repeats`: how often the run of `pipeline` follows itself (`serial`: its waves). `rest`: the
    launch, and what a cold first and a partial last wave add.
    """

    pipeline: Pipeline
    repeats: np.ndarray
    rest: np.ndarray


def rounded(task: Task, numbers: np.ndarray) -> Rounded:
    """The kernels of these numbers."""
    inputs, rows = engine.columns(task.configurations(numbers), task.hardware)
    with jax.enable_x64(True):
        kernels = _pipelines(inputs, neutral_names(inputs.machine.parameters))
        pipeline, rest_us = jax.tree.map(lambda x: np.broadcast_to(x, rows), kernels)
    values = {
        name: _rounded(values * (PS_PER_US if name.endswith("_us") else 1))
        for name, values in pipeline._asdict().items()
        if values is not None
    }
    values.setdefault("queue_end_us", np.zeros(rows, np.int64))
    serial = values["schedule"] == SERIAL
    repeats = np.where(serial, values["tiles"], 1)
    values["tiles"] = np.where(serial, 1, values["tiles"])
    return Rounded(Pipeline(**values), repeats, _rounded(rest_us * PS_PER_US))


def _rounded(values: np.ndarray) -> np.ndarray:
    """int64; 0 for what is not finite, which no legal kernel has."""
    return np.rint(np.where(np.isfinite(values), values, 0.0)).astype(np.int64)


@partial(jax.jit, static_argnames="neutral")
def _pipelines(inputs: Inputs, neutral: tuple[str, ...]) -> tuple[Pipeline, jax.Array]:
    def row(i: Inputs) -> tuple[Pipeline, jax.Array]:
        parts = kernel(floats(i.configuration), without(i.machine, neutral))
        return parts.full, parts.launch_us + exchange_us(parts.full, parts.first, parts.last)

    return jax.vmap(row, in_axes=(inputs.axes,))(inputs)


class Encoded(NamedTuple):
    """A task for Z3: its constraints, the terms of a kernel's figures (ps, bytes), its number."""

    solver: z3.Solver
    figures: dict[str, Any]
    number: Any


class Solution(NamedTuple):
    """The kernel of a model, its figures in ps and bytes, and whether it is proved the best."""

    number: int
    figures: dict[str, int]
    proved: bool


@dataclass(frozen=True)
class _Kernels:
    """The kernels of a space as Z3 picks them: by its `free` columns, of which the others and all
    durations follow. `values`: the free columns of every kernel."""

    solver: z3.Solver
    free: Mapping[str, z3.ArithRef]
    values: Mapping[str, np.ndarray]
    limit: Deadline

    def follow(self, name: str, values: np.ndarray) -> Any:
        """A whole number that follows from free columns, given its value for every kernel."""
        if len(np.unique(values)) == 1:
            return int(values[0])
        needed = list(self.free)
        for column in self.free:
            others = [other for other in needed if other != column]
            if others and self._tell(others, values):
                needed = others
        keys = np.stack([self.values[column] for column in needed])
        distinct, first = np.unique(keys, axis=1, return_index=True)
        term = z3.Int(f"kernel's {name}")
        for key, at in zip(distinct.T, first, strict=True):
            check_time(self.limit)
            these = [self.free[c] == int(v) for c, v in zip(needed, key, strict=True)]
            self.solver.add(z3.Implies(z3.And(*these), term == int(values[at])))
        return term

    def _tell(self, columns: Sequence[str], values: np.ndarray) -> bool:
        """Whether `columns` alone determine the values."""
        keys = np.stack([self.values[column] for column in columns])
        both = np.concatenate([keys, values[None]])
        return np.unique(keys, axis=1).shape[1] == np.unique(both, axis=1).shape[1]


def check_size(task: Task) -> None:
    """Raise InputError for a space that is too large to encode."""
    count = len(task.space)
    if count > KERNELS_MAX:
        raise InputError(f"encoding events: {count:,} kernels; it can take {KERNELS_MAX:,}")


def encode(task: Task, limit: Deadline) -> Encoded:
    """The task's space, constraints and events.

    InputError where that is too large to encode, UnfinishedError where the time is too short.
    """
    check_size(task)
    count = len(task.space)
    numbers = np.arange(count)
    c, durations = task.configurations(numbers), until(limit, partial(rounded, task, numbers))
    if durations is None:
        raise UnfinishedError(TOO_SHORT)
    p, repeats, rest = durations
    terms = array_terms(c, task.hardware)
    out = (
        violations(
            terms, [constraint for constraint in task.constraints if not constraint.exact], count
        )
        > 0
    )
    if task.space.predicate is not None:
        out |= ~task.space.predicate.mask(terms.columns, count)
    runs = p.k_tiles * p.tiles
    steps = int(np.max(runs, where=violations(terms, task.constraints, count) == 0, initial=0))
    if steps > STEPS_MAX:
        raise InputError(f"encoding events: {steps:,} steps of a CTA; it can take {STEPS_MAX:,}")

    solver = z3.Solver()
    axes = [axis for axis in task.space.product.axes if len(axis) > 1]
    free = {name: z3.Int(name) for axis in axes for name in axis.names}
    kernels = _Kernels(solver, free, {name: getattr(c, name) for name in free}, limit)
    for name, column in free.items():
        solver.add(z3.Or(*(column == int(v) for v in np.unique(kernels.values[name]))))
    columns = {name: kernels.follow(name, getattr(c, name)) for name in KERNEL if name not in free}
    base = number_terms(task.problem, task.hardware)
    chosen = z3_terms(base, base.c._replace(**free, **columns))
    for constraint in task.constraints:
        if constraint.exact:
            solver.add(*map(as_term, constraint.conditions(chosen)))
    number = _number(axes, free)
    solver.add(*(number != int(at) for at in np.flatnonzero(out)))

    fields = {name: getattr(chosen.c, name) for name in CHOICES}
    fields |= {
        name: kernels.follow(name, values)
        for name, values in p._asdict().items()
        if name not in CHOICES
    }
    lengths = np.unique(p.k_tiles[runs <= steps]).tolist()
    run = kernels.follow("steps", runs)
    end, math_wait, dma_wait = _events(solver, Pipeline(**fields), lengths, run, steps, limit)
    if np.any(p.queue_end_us):
        end = _max(end, fields["queue_end_us"])
    waves = kernels.follow("repeats", repeats)
    repeated = partial(_times, waves, np.unique(repeats).tolist())
    figures = {
        "time_us": repeated(end) + kernels.follow("rest", rest),
        "math_wait_us": repeated(math_wait),
        "dma_wait_us": repeated(dma_wait),
        "smem_bytes": smem_bytes(chosen.c, chosen.facts, chosen.in_bytes, chosen.out_bytes),
    }
    return Encoded(solver, figures, number)


def _number(axes: Sequence[Axis], free: Mapping[str, z3.ArithRef]) -> Any:
    """The kernel's number in its space: positions on the axes, the last one fastest."""
    number: Any = z3.IntVal(0)
    for axis in axes:
        column = free[axis.names[0]]
        values = axis.take(np.arange(len(axis)))[axis.names[0]]
        position = _case(column, {int(value): at for at, value in enumerate(values)})
        number = number * len(axis) + position
    return number


def _events(
    solver: z3.Solver, p: Pipeline, lengths: Sequence[int], run: Any, steps: int, limit: Deadline
) -> tuple[Any, Any, Any]:
    """Assert the recurrences of `steps` steps -> the end of the last epilogue, MATH's and the DMA
    warps' waits, of a run of `run` steps. lengths: what a tile's k_tiles may be."""
    names = ("acquire_a", "acquire_b", "done_a", "done_b", "ready", "start", "end", "released")
    times = {name: z3.Array(name, z3.IntSort(), z3.IntSort()) for name in (*names, "epilogue")}
    one_warp, pingpong = p.dma_warps == 1, p.schedule == PINGPONG
    in_flight = _and(p.mma_in_flight == 1, p.stages >= 2)
    zero = z3.IntVal(0)

    def last(g: int) -> Any:
        return z3.Or(*(p.k_tiles == length for length in lengths if (g + 1) % length == 0))

    def at(name: str, g: int) -> Any:
        return z3.Select(times[name], g) if g >= 0 else zero

    turn, epilogue = zero, zero
    math_waits, dma_waits = [], []
    for g in range(steps):
        check_time(limit)
        free = z3.If(p.stages > g, zero, z3.Select(times["released"], g - p.stages))
        two_a = _max(at("acquire_a", g) + p.load_startup_us, at("done_b", g - 1)) + p.load_a_us
        two_b = _max(at("acquire_b", g) + p.load_startup_us, at("done_a", g)) + p.load_b_us
        both = 2 * p.load_startup_us + p.load_a_us + p.load_b_us
        done_one = at("acquire_b", g) + both
        end, ready = at("end", g), at("ready", g)
        drains = (
            end
            if g + 1 == steps
            else either(in_flight, z3.If(last(g), end, _max(end, at("ready", g + 1))), end)
        )
        values = {
            "acquire_a": _max(at("done_a", g - 1), free),
            "acquire_b": _max(at("done_b", g - 1), free),
            "done_a": either(one_warp, done_one, two_a),
            "done_b": either(one_warp, done_one, two_b),
            "ready": at("done_b", g) + p.load_latency_us,
            "start": _max(ready, turn),
            "end": at("start", g) + p.compute_us,
            "released": drains,
            "epilogue": z3.If(last(g), end + p.epilogue_us, epilogue),
        }
        solver.add(*(at(name, g) == value for name, value in values.items()))
        math_waits.append(z3.If(run > g, at("start", g) - turn, 0))
        wait_a = either(one_warp, 0, at("acquire_a", g) - at("done_a", g - 1))
        dma_wait = at("acquire_b", g) - at("done_b", g - 1) + wait_a
        dma_waits.append(z3.If(run > g, dma_wait, 0))
        crossed = either(pingpong, _max(end, epilogue), at("epilogue", g))
        turn, epilogue = z3.If(last(g), crossed, end), at("epilogue", g)
    return z3.Select(times["epilogue"], run - 1), z3.Sum(math_waits), z3.Sum(dma_waits)


def _max(a: Any, b: Any) -> Any:
    return z3.If(a >= b, a, b)


def _and(*conditions: Any) -> Any:
    return z3.And(*conditions) if any(map(z3.is_expr, conditions)) else all(conditions)


def _case(term: Any, results: Mapping[int, Any]) -> Any:
    """The result that belongs to the value of a term, which is one of those listed."""
    pairs = list(results.items())
    chosen = pairs[-1][1]
    for value, result in pairs[:-1]:
        chosen = z3.If(term == value, result, chosen)
    return chosen


def _times(count: Any, counts: Sequence[int], term: Any) -> Any:
    """count * term, without a product of unknowns."""
    return (
        _case(count, {value: value * term for value in counts})
        if z3.is_expr(count)
        else count * term
    )


def minimise(encoded: Encoded, goals: Sequence[Any], limit: Deadline) -> Solution | None:
    """The model with the least goals, the first one first; None if no kernel meets the constraints.

    Every model must beat the one before, until none does. Between equals the least shared memory
    and then the least number decide.
    """
    solver, best, proved = encoded.solver, None, True
    solver.push()
    for goal in (*goals, encoded.figures["smem_bytes"], encoded.number):
        if not z3.is_expr(goal):
            continue
        while True:
            solver.push()
            if best is not None:
                solver.add(goal < best.eval(goal, model_completion=True))
            if limit.left_s is not None:
                solver.set("timeout", int(limit.left_s * 1000) + 1)
            verdict = z3.unknown if limit.passed and best is not None else solver.check()
            model = solver.model() if verdict == z3.sat else None
            stopped = verdict == z3.unknown and not limit.passed
            limit.interrupted |= stopped and solver.reason_unknown() in CTRL_C
            solver.pop()
            if model is None:
                break
            best = model
        proved &= verdict == z3.unsat
        if best is None or not proved:
            break
        solver.add(goal == best.eval(goal, model_completion=True))
    solver.pop()
    if best is None:
        return None
    figures = {name: whole(best, term) for name, term in encoded.figures.items()}
    return Solution(whole(best, encoded.number), figures, proved)


def goals(task: Task, encoded: Encoded) -> list[Any]:
    """The terms that the objective minimises: of weighted sums in ps, and millionths of a byte."""
    scale = {name: 10**6 if name == "smem_bytes" else 1 for name in encoded.figures}

    def goal(part: Mapping[str, float]) -> Any:
        terms = [
            encoded.figures[name] * (scale[name] if len(part) > 1 else 1)
            if weight == 1
            else z3.RealVal(repr(weight)) * encoded.figures[name] * scale[name]
            for name, weight in part.items()
        ]
        return z3.Sum(terms) if len(terms) > 1 else terms[0]

    return [goal(part) for part in task.objective.parts]


def z3_terms(base: Terms, c: Configuration) -> Terms:
    """A problem's terms with kernel columns that Z3 may choose (numbers where it may not)."""
    return replace(base, c=c, choose=either, judge=_judge)


def either(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` or `no`, whichever the condition says; a term where Z3 is to find it out."""
    return z3.If(condition, yes, no) if z3.is_expr(condition) else (yes if condition else no)


def _judge(predicate: Predicate, columns: Mapping[str, Any]) -> Any:
    return predicate(columns, LOGIC)


def _floor_divide(a: Any, b: Any) -> Any:
    """Z3's division of whole numbers rounds down where the divisor is positive, as Python's."""
    return operator.truediv(a, b) if z3.is_expr(a) or z3.is_expr(b) else a // b


def as_term(condition: Any) -> z3.BoolRef:
    """A condition for Z3, whatever it is made of."""
    return condition if isinstance(condition, z3.BoolRef) else z3.BoolVal(bool(condition))


LOGIC = Logic(
    both=lambda a, b: z3.And(as_term(a), as_term(b)),
    either=lambda a, b: z3.Or(as_term(a), as_term(b)),
    negation=lambda a: z3.Not(as_term(a)),
    floor_divide=_floor_divide,
    is_among=lambda number, choices: z3.Or(*(as_term(number == choice) for choice in choices)),
)
"""A filter's over Z3 terms, of which some are numbers."""


def whole(model: z3.ModelRef, term: Any) -> int:
    """The value of a whole number in a model."""
    if not z3.is_expr(term):
        return int(term)
    return model.eval(term, model_completion=True).as_long()  # type: ignore[union-attr]
