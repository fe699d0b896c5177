"""Functions of one row as NumPy programs for many rows, which start at once.

XLA takes seconds to compile a function of some thousand operations, and a good part of one to load
what it compiled; for some thousand rows NumPy runs the same operations, one by one, in
milliseconds. JAX traces the function for one row, its operations become lines of a Python function
(`recording`), the *tape*, and that is kept between processes (`wsjax.kept`).

Results are the same, to the bit, as of a program that XLA compiles without fusing operations
(`BRIEF`). What depends on operations that are not rounded exactly (logarithms, products of
matrices, ...) is left to such a program for `ROWS` rows, the *rest*.
"""

import marshal
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax

from wsjax import kept
from wsjax.engine.programs import BRIEF
from wsjax.engine.recording import Recorded, record
from wsjax.engine.rows import host, lengthened

ROWS = 256
"""Rows of the programs that XLA runs."""
BLOCK = 1_024
"""Rows that a tape takes at once: its numbers stay in a processor's cache."""


class _Entry(NamedTuple):
    """A tape as it is kept."""

    code: bytes
    """Of a module with the function `run`."""
    names: dict[str, Any]
    """NumPy's functions and the constants that it calls by name."""
    rest: tuple[str, ...] | None
    """The kinds of numbers that the rest takes, in order; None where there is no rest."""
    structure: Any
    """What the function returns, with positions in place of results."""


class Tape:
    """A function of one row, for many: the leaves of its arguments are NumPy arrays (rows,) or
    scalars, those of its results arrays (rows,). Named arguments are static."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._loaded: dict[Any, _Loaded] = {}
        self._lock = Lock()

    def __call__(self, rows: int, *arguments: Any, **static: Any) -> Any:
        leaves, tree = jax.tree.flatten(arguments)
        leaves = [np.asarray(x)[()] for x in leaves]
        kinds = tuple(x.dtype for x in leaves)
        key = (tree, kinds, *static.items())
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = _Loaded(partial(self._function, **static), tree, kinds)
        loaded = self._loaded[key]
        if rows == 0:
            one = [np.ones(1, x.dtype) if np.ndim(x) else x for x in leaves]
            none = [np.ravel(x)[:0] for x in loaded.run(one)]
            return jax.tree.unflatten(loaded.structure, none)
        results: list[np.ndarray] = []
        for start in range(0, rows, BLOCK):
            block = np.s_[start : min(start + BLOCK, rows)]
            columns = loaded.run([x[block] if np.ndim(x) else x for x in leaves])
            results = results or [np.empty(rows, np.asarray(x).dtype) for x in columns]
            for result, column in zip(results, columns, strict=True):
                result[block] = column
        return jax.tree.unflatten(loaded.structure, results)


class _Loaded:
    """A tape for arguments of one tree and kinds of numbers."""

    def __init__(self, function: Any, tree: Any, kinds: Sequence[np.dtype]) -> None:
        self._function, self._tree, self._kinds = function, tree, kinds
        name = kept.identity(function.func)
        self._key = f"tape {name} {tree} {kinds} {function.keywords}"
        entry = kept.read(self._key)
        if entry is None:
            code = marshal.dumps(compile(self._recorded.source, name, "exec"))
            structure = jax.tree.unflatten(*self._recorded.structure)
            entry = _Entry(code, self._recorded.names, self._recorded.rest_kinds, structure)
            kept.write(self._key, entry)
        names = dict(entry.names)
        exec(marshal.loads(entry.code), names)
        self._run, self._rest = names["run"], entry.rest
        self.structure = jax.tree.structure(entry.structure)

    @cached_property
    def _recorded(self) -> Recorded:
        one = [jax.ShapeDtypeStruct((), kind) for kind in self._kinds]
        with jax.enable_x64(True):
            return record(self._function, jax.tree.unflatten(self._tree, one))

    @cached_property
    def _program(self) -> Callable[..., Any]:
        """The rest for `ROWS` rows: one array (numbers, ROWS) of each kind -> the results left."""
        kinds = self._rest or ()

        def rest(*stacks: Any) -> Any:
            return jax.vmap(lambda *row: self._recorded.rest(_parted(kinds, row)), 1)(*stacks)

        stacks = [np.ones((kinds.count(kind), ROWS), kind) for kind in _each(kinds)]
        if kept.alone():
            return kept.program(f"rest {self._key}", rest, stacks, BRIEF)
        return jax.jit(rest, compiler_options=BRIEF)

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """The results of some rows, arrays or scalars."""
        with np.errstate(all="ignore"):
            results, left = self._run(_elementary, *leaves)
        kinds = self._rest
        if kinds is None:
            return list(results)
        rows = max(np.size(x) for x in leaves)
        columns: dict[str, list[Any]] = {kind: [] for kind in _each(kinds)}
        for kind, x in zip(kinds, left, strict=True):
            columns[kind].append(np.broadcast_to(x, rows))
        stacks = [np.stack(x) for x in columns.values()]
        parts = []
        with jax.enable_x64(True), jax.default_device(host()):
            for start in range(0, rows, ROWS):
                some = [lengthened(x[:, start : start + ROWS].T, ROWS).T for x in stacks]
                parts.append(self._program(*some))
        found = iter([np.concatenate(x)[:rows] for x in zip(*parts, strict=True)])
        return [next(found) if x is None else x for x in results]


def _elementary(name: str, x: Any) -> Any:
    """An elementary function of JAX's, by XLA."""
    column = np.atleast_1d(x)
    with jax.enable_x64(True), jax.default_device(host()):
        made = _elementary_program(name, column.dtype)
        starts = range(0, len(column), ROWS)
        parts = [made(lengthened(column[start : start + ROWS], ROWS)) for start in starts]
    found = np.concatenate(parts)[: len(column)]
    return found if np.ndim(x) else found[0]


@cache
def _elementary_program(name: str, kind: np.dtype) -> Callable[..., Any]:
    function = getattr(lax, name)
    if not kept.alone():
        return jax.jit(function, compiler_options=BRIEF)
    return kept.program(f"elementary {name}", function, [np.ones(ROWS, kind)], BRIEF)


def _each(kinds: Sequence[str]) -> list[str]:
    return sorted({*kinds})


def _parted(kinds: Sequence[str], stacks: Sequence[Any]) -> list[Any]:
    """The numbers in stacks of each kind, in their order."""
    numbers = {kind: iter(stack) for kind, stack in zip(_each(kinds), stacks, strict=True)}
    return [next(numbers[kind]) for kind in kinds]
