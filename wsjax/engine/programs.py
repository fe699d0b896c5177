"""The compiled programs of a batch: one row's prediction, vmapped over chunks and queues of rows.

A row is a configuration on a machine; `Inputs` holds many. A column that is constant stays a scalar
and costs nothing a row; which columns are constant, never how many rows there are, makes a program.
Each array costs a call, and a machine has fifty numbers: `Packed` inputs have two arrays of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Int8, Num

from wsjax import kept
from wsjax.hardware import PARAMETERS, Parameters
from wsjax.model import (
    COOPERATIVE,
    PINGPONG,
    SERIAL,
    Machine,
    Outcome,
    Pipeline,
    divides,
    exchange_us,
    isolate,
    kernel,
    slopes,
)
from wsjax.model import closed_form as closed
from wsjax.schema import LIMITERS, METHODS, REASONS, Configuration, checks, divided, smem_bytes

WIDE = {"xla_cpu_prefer_vector_width": 512, "xla_cpu_enable_fast_min_max": True}
"""For programs of nothing but arithmetic: XLA takes vectors half as wide on CPUs that have these,
and half a dozen instructions for a maximum, so that it is NaN where either number is."""
BRIEF = {"xla_cpu_enable_fast_min_max": True, "xla_disable_hlo_passes": "fusion"}
Column = Any
"""A scalar in a program for one row, an array (rows,) outside."""


class Inputs(NamedTuple):
    """What a row's prediction depends on; each leaf an array over the rows or a scalar.

    legal: whether the row is legal whatever `limits` says; None where it was found to be.
    """

    configuration: Configuration
    machine: Machine
    legal: Any

    @property
    def axes(self) -> "Inputs":
        """vmap's in_axes: 0 for the columns that vary."""
        return jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, self)

    def take(self, rows: Any) -> "Inputs":
        """The columns at `rows` (a slice or an index array); scalars stay."""
        return jax.tree.map(lambda x: x[rows] if np.ndim(x) else x, self)

    def spread(self, rows: Int[np.ndarray, " rows"]) -> "Inputs":
        """The columns at `rows`, scalars repeated, so that every queue has one form."""
        return jax.tree.map(lambda x: x[rows] if np.ndim(x) else np.full(len(rows), x), self)


class Layout(NamedTuple):
    """How `Inputs` lie in arrays: positions of leaves, and each leaf's type if it is a scalar."""

    positions: Inputs
    scalars: tuple[np.dtype | None, ...]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("columns", "floats", "integers"),
    meta_fields=("layout",),
)
@dataclass(frozen=True)
class Packed:
    """`Inputs` as columns and two arrays of scalars: float64, and whole numbers as int64."""

    columns: tuple[Any, ...]
    floats: Any
    integers: Any
    layout: Layout


def pack(inputs: Inputs) -> Packed:
    """The inputs as few arrays, in a program or as numpy's."""
    leaves, tree = jax.tree.flatten(inputs)
    types = tuple(None if np.ndim(x) else np.dtype(getattr(x, "dtype", type(x))) for x in leaves)
    kinds = [None if dtype is None else dtype.kind == "f" for dtype in types]
    columns, floats, integers = (
        [x for x, kind in zip(leaves, kinds, strict=True) if kind is wanted]
        for wanted in (None, True, False)
    )
    array = jnp.asarray if any(isinstance(x, Tracer) for x in floats + integers) else np.asarray
    return Packed(
        tuple(columns),
        array(floats, dtype=np.float64),
        array(integers, dtype=np.int64),
        Layout(jax.tree.unflatten(tree, range(len(leaves))), types),
    )


def unpack(packed: Packed) -> Inputs:
    """The inputs again."""
    columns, floats, integers = iter(packed.columns), iter(packed.floats), iter(packed.integers)
    leaves = [
        next(columns)
        if dtype is None
        else next(floats if dtype.kind == "f" else integers).astype(dtype)
        for dtype in packed.layout.scalars
    ]
    return jax.tree.unflatten(jax.tree.structure(packed.layout.positions), leaves)


class Prediction(NamedTuple):
    """One value a row; times in µs, NaN (and codes -1) where the row is illegal.

    launch + fill + steady + epilogue = time: `fill` passes before MATH has its first data,
    `epilogue` is what is not hidden under another tile's mainloop, `steady` the rest.
    `limiter`, `method` and `reason` are codes into LIMITERS, METHODS and limits.REASONS.
    """

    time_us: Column
    """The kernel's time, launch included."""
    math_wait_us: Column
    """MATH waits for data, summed over the busiest CTA's steps."""
    dma_wait_us: Column
    """The DMA warps wait for slots, summed over steps and warps."""
    launch_us: Column
    """Before the first wave."""
    fill_us: Column
    """Before MATH has its first data."""
    steady_us: Column
    """What is neither launch, fill nor epilogue."""
    epilogue_us: Column
    """Epilogues that no mainloop hides."""
    waves: Column
    """Output tiles of the busiest CTA; of a serial kernel, waves of CTAs."""
    k_tiles: Column
    """Steps an output tile."""
    smem_bytes: Column
    """Shared memory of a CTA."""
    tflops: Column
    """The flop rate of the whole problem, in TFLOP/s."""
    limiter: Column
    """What sets a step's period."""
    method: Column
    """How the row was computed."""
    reason: Column
    """Why the row is illegal, 0 where it is legal."""


_KINDS = (*[float] * 7, *[int] * 3, float, *[np.int8] * 3)
KINDS: dict[str, Any] = dict(zip(Prediction._fields, _KINDS, strict=True))
"""The numpy type of each field of a prediction."""
PARTS = ("fill_us", "steady_us", "epilogue_us")
"""What only a close look at one configuration asks for."""


class Row(NamedTuple):
    """What a program returns for a row: the prediction's columns, and whether they are exact."""

    prediction: Prediction
    time_exact: Any
    all_exact: Any


def reason_of(c: Configuration, machine: Machine, legal: Any = False) -> Int8[Array, ""]:
    """The code of the first check that fails, 0 where none does.

    A row that is legal by definition may still not be modelled.
    """
    reason = jnp.zeros((), jnp.int8)
    conditions = checks(
        floats(divided(c)),
        jax.tree.map(lambda x: x * 1.0, machine.facts),
        in_bytes=machine.in_bytes,
        out_bytes=machine.out_bytes,
        math_groups=1 + (c.schedule == PINGPONG),
        groups_per_tile=1 + (c.schedule == COOPERATIVE),
        rate=machine.rate,
        divides=divides,
    )
    for name, holds in reversed(conditions):
        reason = jnp.where(holds, reason, jnp.int8(REASONS.index(name)))
    return jnp.where(legal & (reason != REASONS.index("not_modelled")), jnp.int8(0), reason)


def floats(c: Configuration) -> Configuration:
    """The configuration's numbers as floats, as the formulas take them."""
    return jax.tree.map(lambda x: x * 1.0, c)._replace(schedule=c.schedule)


def in_single(numbers: Any) -> Any:
    """Numbers of any kind as float32."""
    return jax.tree.map(lambda x: jnp.asarray(x).astype(jnp.float32), numbers)


def predict_row(
    c: Configuration,
    machine: Machine,
    legal: Any,
    outcome: Outcome | None = None,
    *,
    single: bool = False,
) -> Row:
    """One configuration, predicted by the closed form, or described given its exact outcome.

    legal: as `reason_of` takes it; None where the row was found to be legal before. single: in
    float32, but for legality.
    """
    numbers = floats(c)
    timed = kernel(in_single(numbers), in_single(machine)) if single else kernel(numbers, machine)
    p = timed.full
    once, repeats = isolate(p)
    q = slopes(once)
    time_exact = all_exact = jnp.bool_(True)
    if outcome is None:
        outcome, time_exact, all_exact = closed(p)
    reason = jnp.int8(0) if legal is None else reason_of(c, machine, legal)

    def known(x: Column) -> Column:
        return x if legal is None else jnp.where(reason == 0, x, jnp.nan)

    end_us = outcome.end_us + exchange_us(timed.full, timed.first, timed.last)
    time_us = timed.launch_us + end_us
    fill_us = (q.landing + p.load_latency_us) * repeats
    epilogue_us = p.epilogue_us * jnp.where(p.schedule == PINGPONG, 1.0, p.tiles)
    bound = jnp.where(p.compute_us >= q.load, LIMITERS.index("compute"), LIMITERS.index("load"))
    limiter = jnp.where(q.window_gain > 0, LIMITERS.index("latency"), bound)
    prediction = Prediction(
        time_us=known(time_us),
        math_wait_us=known(outcome.math_wait_us),
        dma_wait_us=known(outcome.dma_wait_us),
        launch_us=known(timed.launch_us),
        fill_us=known(fill_us),
        steady_us=known(end_us - fill_us - epilogue_us),
        epilogue_us=known(epilogue_us),
        waves=p.tiles.astype(int),
        k_tiles=p.k_tiles.astype(int),
        smem_bytes=smem_bytes(c, machine.facts, machine.in_bytes, machine.out_bytes),
        tflops=known(tflops(numbers, time_us)),
        limiter=jnp.where(reason == 0, limiter, -1).astype(jnp.int8),
        method=jnp.where(reason == 0, METHODS.index("closed"), -1).astype(jnp.int8),
        reason=reason,
    )
    return Row(prediction, time_exact, all_exact)


def neutral_names(parameters: Parameters) -> tuple[str, ...]:
    """Parameters that are neutral in all rows, so that their terms may be left out."""
    return tuple(
        name
        for name, value in parameters._asdict().items()
        if not np.ndim(value) and value == PARAMETERS[name].neutral
    )


def without(machine: Machine, neutral: tuple[str, ...]) -> Machine:
    """The machine with Python numbers for the parameters whose terms are to be left out."""
    known = {name: PARAMETERS[name].neutral for name in neutral}
    return machine._replace(parameters=machine.parameters._replace(**known))


UNPROVED = -1.0
"""Stands for a time for which no formula is proved."""


class Form(NamedTuple):
    """What a program is compiled for: `alone`, the formulas of `serial` only; without the terms of
    the parameters named in `neutral`; `single`, as `predict_row` takes it."""

    alone: bool = False
    neutral: tuple[str, ...] = ()
    single: bool = False


PAIRS = (("time_us", "math_wait_us"), ("dma_wait_us", "limiter"), ("fill_us", "steady_us"))
"""Fields of long formulas. What several results share a CPU computes for each of them anew, or
keeps in memory in between: so each pair is a program of its own, whose result is one complex
number. One program of all fields takes three times as long."""


def fields_of(i: Inputs, form: Form) -> dict[str, Any]:
    """One row's prediction by the closed form but for `tflops`; `UNPROVED` as `formulas` says."""
    c = i.configuration._replace(schedule=SERIAL) if form.alone else i.configuration
    machine = without(i.machine, form.neutral)
    row = predict_row(c, machine, i.legal, single=form.single)
    columns = row.prediction._asdict()
    del columns["tflops"]
    for name, exact in (("time_us", row.time_exact), ("dma_wait_us", row.all_exact)):
        known = exact | (row.prediction.reason > 0)
        columns[name] = jnp.where(known, columns[name], UNPROVED)
    return columns


@partial(jax.jit, static_argnames="form")
def _fields(packed: Packed, form: Form) -> dict[str, Any]:
    """All fields but `tflops`, for programs that drop what they do not return: traced but once."""
    inputs = unpack(packed)

    return jax.vmap(partial(fields_of, form=form), in_axes=(inputs.axes,))(inputs)


def _some(packed: Packed, fields: tuple[str, ...], form: Form) -> dict[str, Any]:
    columns = _fields(packed, form)
    return {name: columns[name] for name in fields}


_many = kept.jit(_some, static_argnames=("fields", "form"), compiler_options=WIDE)


@partial(kept.jit, static_argnames=("fields", "form"), compiler_options=WIDE)
def _pair(packed: Packed, fields: tuple[str, str], form: Form) -> Any:
    columns = _fields(packed, form)
    first, second = (columns[name] for name in fields)
    return lax.complex(first, second.astype(first.dtype))


def formulas(packed: Packed, fields: Sequence[str], form: Form) -> dict[tuple[str, ...], Any]:
    """These fields of a chunk's prediction by the closed form, by name; or by two names, as the
    parts of complex numbers.

    `UNPROVED` stands for the time of a row where no formula is proved, and for its DMA wait where
    that is not exact.
    """
    pairs = [pair for pair in PAIRS if {*pair} <= {*fields}]
    results: dict[tuple[str, ...], Any] = {pair: _pair(packed, pair, form) for pair in pairs}
    left = tuple(name for name in fields if name not in {"tflops", *chain(*pairs)})
    if left:
        results |= {(name,): x for name, x in _many(packed, left, form).items()}
    if "tflops" in fields:
        times = next(x for names, x in results.items() if names[0] == "time_us")
        results["tflops",] = _rates(packed, times)
    return results


def tflops(c: Configuration, time_us: Column) -> Column:
    """The rate of a configuration (numbers as floats) that takes a time."""
    return _flop(c) / time_us / 1e6


def tflops_of_few(c: Configuration, times_us: np.ndarray) -> np.ndarray:
    """The same of NumPy's columns, rounded as in `formulas`: XLA multiplies by 1 / 1e6."""
    return np.asarray(_flop(c), times_us.dtype) / times_us * times_us.dtype.type(1e-6)


def _flop(c: Configuration) -> Column:
    return 2.0 * c.m * c.n * c.k * c.batch


@kept.jit
def _rates(packed: Packed, times_us: Num[Array, " rows"]) -> Float[Array, " rows"]:
    """The `tflops` of a chunk, of times that are alone or the first of a pair."""
    inputs = unpack(packed)
    axes = (inputs.axes.configuration, 0)
    rate = jax.vmap(lambda c, time_us: tflops(floats(c), time_us), in_axes=axes)
    return rate(inputs.configuration, jnp.real(times_us))


WHOLE_NUMBERS = ("k_tiles", "tiles", "stages", "schedule", "dma_warps", "mma_in_flight")
"""Of a pipeline, for the recurrences."""


class Open(NamedTuple):
    """Rows whose outcome is not known: their pipelines, and what they are predicted if the
    recurrences take no time."""

    pipeline: Pipeline
    prediction: Prediction


def opened(i: Inputs) -> Open:
    """One row, for `settled`."""
    p = kernel(floats(i.configuration), i.machine).full
    p = p._replace(**{name: getattr(p, name).astype(int) for name in WHOLE_NUMBERS})
    none = Outcome(0.0, 0.0, 0.0)
    return Open(p, predict_row(i.configuration, i.machine, i.legal, none).prediction)


def settled(rows: Prediction, c: Configuration, outcome: Outcome) -> Prediction:
    """The predictions of `Open` rows, numpy columns as c, whose outcomes are known."""
    time_us = rows.time_us + outcome.end_us
    with np.errstate(divide="ignore"):
        rate = tflops(c, time_us)
    return rows._replace(
        time_us=time_us,
        math_wait_us=rows.math_wait_us + outcome.math_wait_us,
        dma_wait_us=rows.dma_wait_us + outcome.dma_wait_us,
        steady_us=rows.steady_us + outcome.end_us,
        tflops=rate,
    )
