"""The scan of a space: the engine times every kernel, and the few that can win are kept.

Compiling the programs of a first call takes seconds, which nothing can interrupt. Where there is
less time, some kernels are timed first by their closed forms without compilation: NumPy runs the
operations that JAX traces, with the same results.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from wsjax import engine
from wsjax.deadlines import Deadline, until
from wsjax.engine import Inputs
from wsjax.hardware import LESS, Head
from wsjax.schema import KERNEL, Configuration, smem_bytes
from wsjax.search.criteria import NOT_MODELLED, Task, array_terms, violations

UNCOMPILED = 4_096
"""How many kernels are timed without compiled programs, at most."""
COMPILATION_S = 10.0
"""Where there is less time than that, kernels are timed without compiled programs first."""
_compiled: set[tuple[str, ...]] = set()
"""The figures that this process has programs for: those of objectives that it has timed."""
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "logistic": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "is_finite": np.isfinite,
    "eq": np.equal,
    "ne": np.not_equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "not": np.invert,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "select_n": lambda which, *cases: np.where(which, cases[-1], cases[0]),
}
"""NumPy's functions for JAX's primitives, by name. Others JAX runs itself, one by one."""
NESTED = ("jaxpr", "call_jaxpr")
"""Parameters of primitives that call a function."""
Block = tuple[np.ndarray, Configuration]
"""Kernels' numbers, and the kernels on the problem."""


class Candidate(NamedTuple):
    """A kernel of Z3's table. key: its scores, bytes of shared memory and number, by which kernels
    are ordered; violated: the constraints that it violates, as bits."""

    key: tuple[int, ...]
    violated: int
    figures: dict[str, float]


class Scan(NamedTuple):
    """What a space holds. candidates: in order; classes: what its kernels violate, as bits;
    complete: all kernels were timed, none left out for lack of time; bound: no kernel that meets
    the constraints has a lower first score, in the figure's unit."""

    candidates: list[Candidate]
    classes: set[int]
    complete: bool
    bound: float


def scan(task: Task, limit: Deadline) -> Scan:
    """Time the kernels of the space as long as there is time, and keep the candidates.

    Programs take seconds to compile: with little time some kernels are timed without them first.
    """
    seen: list[_Seen] = []
    bound = 0.0

    def few() -> _Seen:
        nonlocal bound
        block, all_of_them = _few(task)
        if block is None:
            return _Seen(None, frozenset(), complete=False)
        forms = closed_forms(task, block[1])
        least_us = forms.pop("least_us")
        if all_of_them:
            bound = _least_score(task, block[1], least_us)
        return next(_look(task, [block], lambda *_: forms))._replace(complete=False)

    def look() -> None:
        for now in _look(task, task.space.blocks(task.problem, task.hardware.facts), _predicted):
            seen[:] = [now]
            if limit.passed:
                return

    soon = limit.left_s is not None and limit.left_s < COMPILATION_S
    if soon and task.objective.columns not in _compiled:
        seen.append(few())
    until(limit, look)
    last = seen[0] if seen else few()
    return Scan(
        [] if last.rows is None else [*last.rows.candidates()],
        {*last.classes},
        last.complete,
        bound,
    )


class _Seen(NamedTuple):
    """What blocks of a space held: their best kernels, classes, and whether they were all."""

    rows: "_Rows | None"
    classes: frozenset[int]
    complete: bool


def _look(
    task: Task, blocks: Iterable[Block], timed: Callable[[Task, Configuration], dict[str, Any]]
) -> Iterator[_Seen]:
    """What is known after each block, and after them all. timed: their figures, NaN if unknown."""
    kept, classes = None, frozenset[int]()
    for numbers, c in blocks:
        violated = violations(array_terms(c, task.hardware), task.constraints, len(numbers))
        classes |= frozenset(np.unique(violated).tolist())
        rows = _rows(task, numbers, c, violated, timed(task, c))
        kept = rows.best(task) if kept is None else kept.joined(rows).best(task)
        yield _Seen(kept, classes, int(numbers[-1]) + 1 == len(task.space))
    yield _Seen(kept, classes, complete=True)


def _few(task: Task) -> tuple[Block | None, bool]:
    """Kernels of the first block, at equal distances, and whether they are all of the space."""
    blocks = task.space.blocks(task.problem, task.hardware.facts)
    first = next(blocks, None)
    if first is None:
        return None, True
    numbers, c = first
    some = np.s_[:: -(-len(numbers) // UNCOMPILED)]
    block = numbers[some], c._replace(**{name: getattr(c, name)[some] for name in KERNEL})
    return block, len(numbers) <= UNCOMPILED and next(blocks, None) is None


def _least_score(task: Task, c: Configuration, least_us: np.ndarray) -> float:
    """What no kernel that meets the constraints scores below, given bounds of their times."""
    terms = array_terms(c, task.hardware)
    memory = smem_bytes(c, terms.facts, terms.in_bytes, terms.out_bytes)
    figures = {"time_us": least_us, "smem_bytes": np.asarray(memory)}
    meets = violations(terms, task.constraints, len(least_us)) == 0
    scores = np.zeros(len(least_us))
    for name, weight in task.objective.parts[0].items():
        scores = scores + weight * figures.get(name, 0.0)
    return float(scores[meets].min()) if meets.any() else 0.0


def _predicted(task: Task, c: Configuration) -> dict[str, Any]:
    """Figures as `predict` gives them, of kernels too that the machine can't run."""
    names = dict.fromkeys(("time_us", "math_wait_us", *task.objective.columns))
    timed = tuple(name for name in names if name != "smem_bytes")
    prediction = engine.evaluate(c, task.hardware, legal_override=np.asarray(True), fields=timed)
    _compiled.add(task.objective.columns)
    return {name: getattr(prediction, name) for name in timed}


class _Rows(NamedTuple):
    """Kernels with finite figures. keys: (parts + 2, rows), as of `Candidate`; figures: columns."""

    keys: np.ndarray
    violated: np.ndarray
    figures: dict[str, np.ndarray]

    def take(self, rows: np.ndarray) -> "_Rows":
        figures = {name: values[rows] for name, values in self.figures.items()}
        return _Rows(self.keys[:, rows], self.violated[rows], figures)

    def joined(self, other: "_Rows") -> "_Rows":
        return _Rows(
            np.concatenate([self.keys, other.keys], axis=1),
            np.concatenate([self.violated, other.violated]),
            {name: np.concatenate([v, other.figures[name]]) for name, v in self.figures.items()},
        )

    def best(self, task: Task) -> "_Rows":
        """Those that can be an answer, in order: the front, or the first of each class and the
        second that meets all constraints."""
        if task.objective.pareto:
            meeting = self.take(np.flatnonzero(self.violated == 0))
            ordered = meeting.take(np.lexsort(meeting.keys[::-1]))
            return ordered.take(undominated(ordered.keys[:-2]))
        ordered = self.take(np.lexsort(self.keys[::-1]))
        firsts = np.unique(ordered.violated, return_index=True)[1]
        two = np.flatnonzero(ordered.violated == 0)[:2]
        return ordered.take(np.union1d(firsts, two).astype(int))

    def candidates(self) -> Iterator[Candidate]:
        for at, violated in enumerate(self.violated.tolist()):
            figures = {name: values[at].item() for name, values in self.figures.items()}
            yield Candidate(tuple(int(x) for x in self.keys[:, at]), violated, figures)


def _rows(
    task: Task, numbers: np.ndarray, c: Configuration, violated: np.ndarray, timed: dict[str, Any]
) -> _Rows:
    """A block's kernels, those too that the machine can't run: they say what its limits cost."""
    bit = 1 << [constraint.reason for constraint in task.constraints].index(NOT_MODELLED)
    terms = array_terms(c, task.hardware)
    memory = smem_bytes(c, terms.facts, terms.in_bytes, terms.out_bytes)
    figures = {**timed, "smem_bytes": memory}
    scores = task.objective.scores(figures)
    keys = np.concatenate([scores, [memory, numbers]])
    known = (violated & bit == 0) & np.isfinite(scores).all(axis=0)
    known &= np.isfinite(figures["time_us"])
    return _Rows(keys, violated, figures).take(np.flatnonzero(known))


def undominated(scores: np.ndarray) -> np.ndarray:
    """Positions of the front of scores (parts, rows) that are in lexicographic order: those that no
    other beats in one score without losing in another; of equal ones the first."""
    left = np.arange(scores.shape[1])
    front: list[int] = []
    while len(left):
        front.append(int(left[0]))
        left = left[np.any(scores[:, left] < scores[:, front[-1]][:, None], axis=0)]
    return np.asarray(front, dtype=int)


def closed_forms(task: Task, c: Configuration) -> dict[str, Any]:
    """Times and waits of kernels that the machine is taken to run, in µs: NaN where no closed form
    is proved. `least_us`: no kernel takes less."""
    inputs, rows = engine.columns(c, task.hardware, legal_override=np.asarray(True))
    with jax.enable_x64(True), np.errstate(all="ignore"):
        traced = _figures.trace(inputs, head=task.hardware.head)
        results = _run(traced.jaxpr, jax.tree.leaves(inputs))
    figures = jax.tree.unflatten(jax.tree.structure(traced.out_info), results)
    return {name: np.broadcast_to(np.asarray(x), rows) for name, x in figures.items()}


@partial(jax.jit, static_argnames="head")
def _figures(inputs: Inputs, head: Head | None) -> dict[str, Any]:
    def one(i: Inputs) -> dict[str, Any]:
        row = engine.predict_row(i.configuration, i.machine, i.legal)
        p = row.prediction
        time_us = p.time_us
        if head is not None:
            time_us *= engine.learned(head, i.configuration, i.machine, time_us)
        figures = {"time_us": time_us, "math_wait_us": p.math_wait_us}
        known = {name: jnp.where(row.time_exact, x, jnp.nan) for name, x in figures.items()}
        known["dma_wait_us"] = jnp.where(row.all_exact, p.dma_wait_us, jnp.nan)
        bounds = engine.bracket(i.configuration, i.machine)
        least_us = bounds.least_us * (math.exp(-LESS) if head else 1.0)
        return known | {"least_us": jnp.where(bounds.exact, time_us, least_us)}

    return jax.vmap(one, in_axes=(inputs.axes,))(inputs)


def _run(traced: core.ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
    """The results of a traced function."""
    jaxpr = traced.jaxpr
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*traced.consts, *arguments), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    for step in jaxpr.eqns:
        given = [read(atom) for atom in step.invars]
        values.update(zip(step.outvars, _step(step, given), strict=False))
    return [read(atom) for atom in jaxpr.outvars]


def _step(step: core.JaxprEqn, given: Sequence[Any]) -> list[Any]:
    primitive = step.primitive
    for name in NESTED:
        if name in step.params:
            return _run(step.params[name], given)
    if primitive.name == "optimization_barrier":
        return list(given)
    if operation := OPERATIONS.get(primitive.name):
        return [operation(*given)]
    clips = step.params.get("mode") == lax.GatherScatterMode.CLIP
    if primitive.name == "gather" and clips and {*step.params["slice_sizes"]} == {1}:
        shape = getattr(step.outvars[0].aval, "shape")  # noqa: B009 (no attribute of its type)
        return [_cells(*map(np.asarray, given)).reshape(shape)]
    if shaped := SHAPED.get(primitive.name):
        return [shaped(*map(np.asarray, given), **step.params)]
    found = primitive.bind(*map(jnp.asarray, given), **step.params)
    return list(map(np.asarray, found if primitive.multiple_results else [found]))


def _cells(table: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The cells of a table at (rows, dimensions) positions; those outside are the nearest inside,
    as `table[...]` of JAX takes them."""
    return table[tuple(np.clip(positions, 0, np.array(table.shape) - 1).T)]


def _broadcast(
    x: np.ndarray, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any
) -> np.ndarray:
    lengths = [1] * len(shape)
    for dimension, length in zip(broadcast_dimensions, x.shape, strict=True):
        lengths[dimension] = length
    return np.broadcast_to(x.reshape(lengths), shape)


SHAPED: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast,
    "bitcast_convert_type": lambda x, new_dtype: x.view(new_dtype),
    "concatenate": lambda *parts, dimension: np.concatenate(parts, axis=dimension),
    "convert_element_type": lambda x, new_dtype, **_: x.astype(new_dtype),
    "integer_pow": lambda x, y: x**y,
    "dot_general": lambda a, b, dimension_numbers, **_: np.tensordot(a, b, dimension_numbers[0]),
    "squeeze": lambda x, dimensions: np.squeeze(x, axis=dimensions),
}
"""The same of primitives with parameters."""
