"""A traced function of one row -> lines of a Python function that NumPy runs for many rows.

In the lines a number of the traced function is a scalar or an array over rows. Each operation is
written once, however often it was traced; those of constants are done at once; a variable's name
is used again when its number is no longer needed, so that memory is, too.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core

EXACT: dict[str, np.ufunc] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.absolute,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
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
}
"""NumPy's functions for JAX's primitives that are rounded exactly, or not at all."""
ELEMENTARY = ("exp", "exp2", "expm1", "log", "log1p", "logistic", "tanh", "sin", "cos", "rsqrt")
"""Primitives that are not rounded exactly, by the names of functions of `lax`."""
CALLS = {"jit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}
"""Primitives that call a function, and the parameter that holds it."""
SAME = ("copy", "optimization_barrier", "stop_gradient")
"""Primitives that return what they are given."""


class Recorded(NamedTuple):
    """A function of one row, recorded."""

    source: str
    """`run(elementary, *leaves)` -> the results, None for those of the rest, and what the rest
    takes; elementary(name, x): a function of `ELEMENTARY`, by XLA."""
    names: dict[str, Any]
    """What `run` calls by name."""
    rest_kinds: tuple[str, ...] | None
    """The kinds of the numbers that the rest takes; None where there is no rest."""
    rest: Callable[[Sequence[Any]], list[Any]]
    """These numbers -> the results that are left, traced by JAX."""
    structure: tuple[Any, range]
    """The tree of the results, and their positions."""


class _Variable(int):
    """A number that is computed, or an argument."""


class _Step(NamedTuple):
    """An operation on variables and constants."""

    primitive: Any
    params: dict[str, Any]
    given: tuple[Any, ...]
    made: tuple[_Variable, ...]
    taken_types: tuple[Any, ...]
    types: tuple[Any, ...]
    """The shape and dtype of what it takes, and of each result."""


def record(function: Callable[..., Any], arguments: Any) -> Recorded:
    """Trace a function for arguments of these types, each of shape ()."""
    traced, outputs = jax.make_jaxpr(function, return_shape=True)(*arguments)
    leaves = [_Variable(i) for i in range(len(traced.jaxpr.invars))]
    steps: list[_Step] = []
    results = _inline(traced, leaves, steps, count(len(leaves)))
    types = dict(zip(leaves, (x.dtype for x in traced.in_avals), strict=True))
    types |= {x: t.dtype for s in steps for x, t in zip(s.made, s.types, strict=True)}
    program = _Program(leaves, _needed(steps, results), results)
    taken, left = program.taken, [x for x in program.results if x in program.rest]
    return Recorded(
        source=program.source,
        names=program.names,
        rest_kinds=tuple(types[x].str for x in taken) if program.left else None,
        rest=partial(_replayed, program.left, taken, left),
        structure=(jax.tree.structure(outputs), range(len(results))),
    )


def _inline(
    traced: Any, given: Sequence[Any], steps: list[_Step], numbers: Iterator[int]
) -> list[Any]:
    """Append a function's operations, and those of the functions that it calls."""
    jaxpr = traced.jaxpr
    values = dict(zip(jaxpr.constvars, map(np.array, traced.consts), strict=True))
    values |= dict(zip(jaxpr.invars, given, strict=True))

    def read(atom: Any) -> Any:
        if isinstance(atom, core.Literal):
            return np.asarray(atom.val, getattr(atom.aval, "dtype"))[()]  # noqa: B009
        return values[atom]

    for step in jaxpr.eqns:
        inputs = [read(atom) for atom in step.invars]
        name = step.primitive.name
        if name in CALLS:
            results: Sequence[Any] = _inline(step.params[CALLS[name]], inputs, steps, numbers)
        elif name in SAME:
            results = inputs
        else:
            results = made = tuple(_Variable(next(numbers)) for _ in step.outvars)
            types = (tuple(x.aval for x in atoms) for atoms in (step.invars, step.outvars))
            steps.append(_Step(step.primitive, step.params, tuple(inputs), made, *types))
        values.update(zip(step.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _needed(steps: Sequence[_Step], results: Sequence[Any]) -> list[_Step]:
    """The operations that results depend on."""
    needed = {*_variables(results)}
    found = []
    for step in reversed(steps):
        if needed & {*step.made}:
            needed |= {*_variables(step.given)}
            found.append(step)
    return found[::-1]


def _early(steps: Sequence[_Step], results: Sequence[Any]) -> set[_Variable]:
    """What elementary functions make on which, through NumPy's operations, results or further ones
    depend: what is left would hold all of these if XLA were not asked for them early."""
    feeding = {*_variables(results)}
    for step in reversed(steps):
        if step.types[0].shape:
            continue
        if feeding & {*step.made} or step.primitive.name in ELEMENTARY:
            feeding |= {*_variables(step.given)}
    return {x for s in steps if s.primitive.name in ELEMENTARY for x in s.made if x in feeding}


def _variables(values: Sequence[Any]) -> list[_Variable]:
    return [x for x in values if isinstance(x, _Variable)]


class _Program:
    """Operations parted: NumPy's as lines, and those that are left."""

    def __init__(self, leaves: list[_Variable], steps: list[_Step], results: list[Any]) -> None:
        self.names: dict[str, Any] = {}
        self.left: list[_Step] = []
        self.rest: set[_Variable] = set()
        self._lines: list[tuple[str, tuple[Any, ...], _Variable]] = []
        self._stands: dict[_Variable, Any] = {}
        self._known: dict[Any, Any] = {}
        self._early = _early(steps, results)
        for step in steps:
            self._add(step._replace(given=tuple(map(self._value, step.given))))
        self.results = [self._value(x) for x in results]
        taken = (x for step in self.left for x in _variables(step.given))
        self.taken = [x for x in dict.fromkeys(taken) if x not in self.rest]
        self.source = self._written(leaves)

    def _value(self, x: Any) -> Any:
        return self._stands.get(x, x) if isinstance(x, _Variable) else x

    def _add(self, step: _Step) -> None:
        """A line for an operation, or what stands for its result, or one more that is left."""
        text = None if self.rest & {*_variables(step.given)} else self._text(step)
        if text is None:
            self.left.append(step)
            self.rest |= {*step.made}
            return
        (made,) = step.made
        if text == "{0}":
            self._stands[made] = step.given[0]
            return
        key = (text, *map(_identity, step.given))
        if key not in self._known and _variables(step.given):
            self._known[key] = made
            self._lines.append((text, step.given, made))
        elif key not in self._known:
            given = {f"x{i}": x for i, x in enumerate(step.given)}
            with np.errstate(all="ignore"):
                constant = eval(text.format(*given), {**self.names, **given})
            self._known[key] = np.asarray(constant)[()]
        self._stands[made] = self._known[key]

    def _text(self, step: _Step) -> str | None:
        """An operation in NumPy's words, {i} in place of what it takes; None if NumPy has none."""
        name, params, (result, *more) = step.primitive.name, step.params, step.types
        if more:
            return None
        if name == "dynamic_slice":
            table = step.given[0]
            cell = {*params["slice_sizes"]} == {1} and not isinstance(table, _Variable)
            return self._called(_cell, len(step.given)) if cell else None
        if result.shape:
            return None
        if name in ("squeeze", "reshape", "broadcast_in_dim"):
            return "{0}"
        if name == "convert_element_type":
            same = step.taken_types[0].dtype == result.dtype
            return "{0}" if same else "{0}.astype(" + self._name(result.dtype) + ")"
        if name == "bitcast_convert_type":
            return "{0}.view(" + self._name(result.dtype) + ")"
        if name == "integer_pow" and params["y"] in (2, -2):
            square = self._called(np.multiply, 1).replace("{0}", "{0}, {0}")
            if params["y"] == 2:
                return square
            one = self._name(result.dtype.type(1))
            return self._called(np.divide, 2).replace("{0}, {1}", f"{one}, {square}")
        if name == "select_n" and len(step.given) == 3:
            return self._called(np.where, 3).replace("{1}, {2}", "{2}, {1}")
        if step.made[0] in self._early and _variables(step.given):
            return f"elementary('{name}', {{0}})"
        if name == "div" and result.dtype.kind != "f":
            return None
        return self._called(EXACT[name], len(step.given)) if name in EXACT else None

    def _called(self, function: Any, arguments: int) -> str:
        self.names[function.__name__] = function
        return f"{function.__name__}({', '.join(f'{{{i}}}' for i in range(arguments))})"

    def _name(self, constant: Any) -> str:
        """A name for a constant."""
        kind = getattr(constant, "dtype", constant)
        if isinstance(constant, np.dtype):
            name = f"dtype_{kind.name}"
        else:
            known = {_identity(x): name for name, x in self.names.items() if name[:2] == "k_"}
            name = known.get(_identity(constant), f"k_{len(self.names)}")
        self.names[name] = constant
        return name

    def _written(self, leaves: list[_Variable]) -> str:
        """The lines; a variable's name is used again when its number is no longer needed."""
        names = {x: f"a{x}" for x in leaves}
        last = {x: at for at, (_, given, _) in enumerate(self._lines) for x in _variables(given)}
        last |= dict.fromkeys(_variables([*self.results, *self.taken]), len(self._lines))
        free: list[str] = []
        lines = [f"def run({', '.join(['elementary', *(names[x] for x in leaves)])}):"]

        def spelled(x: Any) -> str:
            return names[x] if isinstance(x, _Variable) else self._name(x)

        for at, (text, given, made) in enumerate(self._lines):
            call = text.format(*map(spelled, given))
            ended = {x for x in _variables(given) if last[x] == at} - {*leaves}
            free += sorted(names[x] for x in ended)
            names[made] = free.pop() if free else f"v{len(names)}"
            lines.append(f"    {names[made]} = {call}")
        results = ("None" if x in self.rest else spelled(x) for x in self.results)
        tuples = (
            f"({''.join(f'{x}, ' for x in them)})" for them in (results, map(spelled, self.taken))
        )
        return "\n".join([*lines, f"    return {', '.join(tuples)}"]) + "\n"


def _identity(x: Any) -> Any:
    """What tells a variable or a constant from others."""
    if isinstance(x, _Variable):
        return x
    return (str(x.dtype), x.shape, np.asarray(x).tobytes())


def _cell(table: np.ndarray, *positions: Any) -> Any:
    """The cells of a table at positions; the nearest ones inside for those outside."""
    last = (length - 1 for length in table.shape)
    return table[tuple(np.clip(x, 0, end) for x, end in zip(positions, last, strict=True))]


def _replayed(
    steps: Sequence[_Step], taken: Sequence[_Variable], results: Sequence[_Variable], given: Any
) -> list[Any]:
    """The results of operations on what they take, by JAX."""
    values = dict(zip(taken, given, strict=True))

    def read(x: Any) -> Any:
        return values[x] if isinstance(x, _Variable) else x

    for step in steps:
        found = step.primitive.bind(*map(read, step.given), **step.params)
        made = found if step.primitive.multiple_results else [found]
        values.update(zip(step.made, made, strict=True))
    return [values[x] for x in results]
