"""Functions that are compiled once a machine: what other processes load needs no tracing.

A compiled program is kept as XLA's executable, by name, types of the arguments, and static
arguments. It is loaded on CPUs with one device; elsewhere `jit` is jax.jit, which keeps its own.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from threading import Lock
from typing import Any
from uuid import uuid4

from wsjax.kept import files

Program = Callable[..., Any]
"""What is compiled: arrays -> a tree of arrays."""


def program(
    key: str,
    function: Callable[..., Any],
    arrays: Sequence[Any],
    options: dict[str, Any] | None = None,
) -> Program:
    """The compiled program of a function, for arguments like `arrays`; key: all that it depends on
    but for their types. What it returns must be a tree that can be pickled."""
    import jax
    from jax.experimental import serialize_executable

    key = f"program {key}\n{[type_of(x) for x in arrays]}\n{options}\n{_x64()}"
    entry = files.read(key)
    if entry is not None:
        trees = jax.tree.structure((tuple(arrays), {})), jax.tree.structure(entry["outputs"])
        return serialize_executable.deserialize_and_load(entry["program"], *trees)

    def anew(*arrays: Any) -> Any:
        return function(*arrays)

    anew.__name__ = f"kept_{uuid4().hex}"  # what JAX's own cache gives back can't be saved again
    compiled = jax.jit(anew, compiler_options=options).lower(*arrays).compile()
    saved, _, tree = serialize_executable.serialize(compiled)
    outputs = jax.tree.unflatten(tree, range(tree.num_leaves))
    files.write(key, {"program": saved, "outputs": outputs})
    return compiled


class jit:  # noqa: N801 (it stands for jax.jit)
    """jax.jit of a function whose compiled programs are kept, and loaded without tracing.

    `jitted` is jax.jit's own. What it returns must be a tree that can be pickled.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        static_argnames: Sequence[str] = (),
        compiler_options: dict[str, Any] | None = None,
    ) -> None:
        import jax

        update_wrapper(self, function)
        self._function, self._options = function, compiler_options
        self._static = static_argnames
        self._signature = inspect.signature(function)
        self.jitted = jax.jit(
            function, static_argnames=static_argnames, compiler_options=compiler_options
        )
        self._programs: dict[Any, Program] = {}
        self._lock = Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax
        from jax.core import Tracer

        given = self._signature.bind(*args, **kwargs).arguments
        static = {name: given.pop(name) for name in self._static if name in given}
        arrays, tree = jax.tree.flatten(given)
        if any(isinstance(x, Tracer) for x in arrays) or not alone():
            return self.jitted(*args, **kwargs)
        key = (tree, tuple(map(type_of, arrays)), *static.items(), _x64())
        if key not in self._programs:
            with self._lock:
                if key not in self._programs:
                    self._programs[key] = self._load(static, arrays, tree)
        return self._programs[key](*arrays)

    def _load(self, static: Mapping[str, Any], arrays: Sequence[Any], tree: Any) -> Program:
        import jax

        def flat(*arrays: Any) -> Any:
            return self._function(**jax.tree.unflatten(tree, arrays), **static)

        name = files.identity(self._function)
        return program(f"{name} {static} {tree}", flat, arrays, self._options)


def _x64() -> bool:
    """Whether numbers have 64 bits, in this thread."""
    import jax.numpy as jnp

    return jnp.result_type(float) == "float64"


def alone() -> bool:
    """Whether JAX computes on one CPU device."""
    import jax

    return jax.default_backend() == "cpu" and jax.local_device_count() == 1


def type_of(array: Any) -> tuple[tuple[int, ...], str]:
    """The shape and the kind of numbers of an array, or of a Python number."""
    import numpy as np

    return np.shape(array), str(getattr(array, "dtype", type(array).__name__))
