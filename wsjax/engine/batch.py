"""Many configurations -> their predicted times: the spine from columns of numbers to columns of µs.

Chunks of rows go through one compiled program (`programs.formulas`: legality, durations, closed
form) on two host threads; a few rows through the tape of the same function (`tapes`). Rows whose
closed form is not proved are gathered into queues of a few sizes, which go through the recurrences
by jumps (`wsjax.model.solve`); what jumps leave unfinished is scanned step by step. All arithmetic
is float64, unless closed forms are asked for in float32.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.engine.corrections import factor_of, factors
from wsjax.engine.programs import (
    KINDS,
    PAIRS,
    PARTS,
    UNPROVED,
    Form,
    Inputs,
    Packed,
    Prediction,
    fields_of,
    formulas,
    neutral_names,
    opened,
    pack,
    settled,
    tflops_of_few,
)
from wsjax.engine.rows import Candidates, host, lengthened, on_one_device, over_devices
from wsjax.engine.tapes import Tape
from wsjax.errors import WsjaxError
from wsjax.hardware import Hardware, Head, check_rates
from wsjax.model import SERIAL, Machine, Outcome, Pipeline, simulate_queue, solve
from wsjax.schema import DTYPE_BYTES, METHODS, Configuration, Facts, compiled, undivided

CHUNKS = (8_192, 65_536, 131_072)
THREADS = 2
ALIGNMENT_BYTES = 64
"""Columns that lie at a multiple of it are read in place, others are copied."""
SIZES = (64, 256, 4_096)
"""The lengths of queues."""
FEW_QUEUED = SIZES[1]
"""Up to so many rows one queue, of rings of any depth, is enough: few programs are compiled."""
DEPTHS = (4, 8, 16, 32)
"""The deepest rings of queues."""
TABLE = tuple(name for name in Prediction._fields if name not in PARTS)
"""What tables hold of a prediction."""
_fields, _opened, _factor = Tape(fields_of), Tape(opened), Tape(factor_of)


def evaluate(
    configurations: Configuration,
    hardware: Hardware,
    overrides: Mapping[str, Any] | None = None,
    legal_override: np.ndarray | None = None,
    *,
    single: bool = False,
    fields: tuple[str, ...] = Prediction._fields,
) -> Prediction:
    """Predict every row. Each field of `configurations` is an int array (rows,) or a scalar.

    overrides: hardware parameters and facts by name, each a scalar or an array (rows,), in place
    of the machine's own. legal_override: rows that are legal whatever `limits` says. single: closed
    forms in float32. fields: those that are computed; the others are None.
    """
    check_rates(hardware, (overrides or {}).keys())
    inputs, rows = columns(configurations, hardware, overrides, legal_override)
    head = None if overrides else hardware.head
    computed = _evaluate(_given(inputs, rows, head, single=single), fields)
    return Prediction(**{**dict.fromkeys(Prediction._fields), **computed})


def evaluate_rows(candidates: Candidates, numbers: np.ndarray) -> Prediction:
    """Predict rows by their numbers, as `evaluate` does by their columns, but for `PARTS`."""
    return Prediction(**dict.fromkeys(PARTS), **_evaluate(_numbered(candidates, numbers), TABLE))


def times_of_rows(candidates: Candidates, numbers: np.ndarray) -> np.ndarray:
    """The times that `evaluate_rows` finds, to the bit, in µs: by the same program."""
    return _evaluate(_numbered(candidates, numbers), PAIRS[0])["time_us"]


def times_on_device(candidates: Candidates, numbers: np.ndarray) -> tuple[jax.Array, np.ndarray]:
    """The times of rows that one program takes, in µs, where they were made, the last row's
    repeated; `UNPROVED` stands for some, whose positions these are."""
    _check_process()
    feed = _numbered(candidates, numbers)
    with jax.enable_x64(True):
        part = feed.part(0, feed.rows, feed.size)
        times = jnp.real(formulas(part, PAIRS[0], feed.form)[PAIRS[0]])
        if feed.head:
            times *= factors(part, times, feed.head)
        times = on_one_device(times, 0)
        unproved = np.unpackbits(np.asarray(jnp.packbits(times == UNPROVED)), count=feed.rows)
    return times, np.flatnonzero(unproved)


def times_us(
    configurations: Configuration,
    hardware: Hardware,
    overrides: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Only the time of every row, in µs, NaN where it is illegal: the hot path of `evaluate`."""
    check_rates(hardware, (overrides or {}).keys())
    inputs, rows = columns(configurations, hardware, overrides)
    head = None if overrides else hardware.head
    return _evaluate(_given(inputs, rows, head), ("time_us",))["time_us"]


def widening() -> int:
    """How many times as many rows as here an accelerator predicts at once."""
    return 1 if jax.default_backend() == "cpu" else 16


class _Feed(NamedTuple):
    """Rows for the programs."""

    rows: int
    """How many there are."""
    size: int
    """How many a program takes at once."""
    part: Callable[[int, int, int], Packed]
    """part(start, stop, size): rows start to stop, the last one repeated to `size`."""
    at: Callable[[np.ndarray], Inputs]
    """The rows at some positions, as columns in memory."""
    form: Form
    """The program that takes them."""
    head: Head | None
    """What corrects their times."""
    early: int = 0
    """Rows by which parts begin before multiples of the size."""
    few: Inputs | None = None
    """All rows, if they are so few that a tape takes them."""


def _given(inputs: Inputs, rows: int, head: Head | None, *, single: bool = False) -> _Feed:
    """Rows whose columns are in memory."""
    packed = pack(inputs)

    def part(start: int, stop: int, size: int) -> Packed:
        columns = (lengthened(column[start:stop], size) for column in packed.columns)
        return replace(packed, columns=tuple(map(over_devices, columns)))

    schedule = inputs.configuration.schedule
    alone = not np.ndim(schedule) and int(schedule) == SERIAL
    form = Form(alone, neutral_names(inputs.machine.parameters), single)
    size, early = _size(rows, CHUNKS), _early(packed.columns)
    few = inputs if rows < CHUNKS[0] else None
    return _Feed(rows, size, part, inputs.take, form, head, early, few)


def _early(columns: Sequence[np.ndarray]) -> int:
    """By how many rows parts begin early, so that there most columns are aligned."""
    past = [x.ctypes.data % ALIGNMENT_BYTES // x.itemsize for x in columns]
    return Counter(past).most_common(1)[0][0]


def _numbered(candidates: Candidates, numbers: np.ndarray) -> _Feed:
    """Rows that are made on the device from their numbers."""

    def part(start: int, stop: int, size: int) -> Packed:
        return candidates.packed(lengthened(numbers[start:stop], size))

    def at(rows: np.ndarray) -> Inputs:
        size = size_of(len(rows))
        full = lengthened(numbers[rows], -(-len(rows) // size) * size)
        return candidates.few(full).take(np.s_[: len(rows)])

    rows = len(numbers)
    form = Form(candidates.schedule == SERIAL, candidates.neutral, candidates.single)
    sizes = (*CHUNKS[:-1], CHUNKS[1] * widening())
    return _Feed(rows, _size(rows, sizes), part, at, form, candidates.head)


def _evaluate(feed: _Feed, fields: tuple[str, ...]) -> dict[str, np.ndarray]:
    """These fields of the prediction of every row."""
    _check_process()
    results = {name: np.empty(feed.rows, KINDS[name]) for name in fields}
    if feed.few is None:
        _formulas(feed, results)
    else:
        _taped(feed, feed.few, results)
    no_time = results["time_us"] == UNPROVED
    left = no_time
    if "dma_wait_us" in results:
        left = no_time | (results["dma_wait_us"] == UNPROVED)
    for at, prediction in _by_steps(feed, np.flatnonzero(left)):
        new = no_time[at]
        for name, column in results.items():
            if name in ("dma_wait_us", "method"):
                column[at] = getattr(prediction, name)
            else:
                column[at] = np.where(new, getattr(prediction, name), column[at])
    return results


def columns(
    configurations: Configuration,
    hardware: Hardware,
    overrides: Mapping[str, Any] | None = None,
    legal_override: np.ndarray | None = None,
) -> tuple[Inputs, int]:
    """What the programs take, as numpy columns and scalars, and the number of rows."""
    _check_process()
    given = dict(overrides or {})
    facts = hardware.facts._replace(**{k: given.pop(k) for k in Facts._fields if k in given})
    parameters = hardware.parameters._replace(**given)
    parameters = jax.tree.map(lambda x: np.asarray(x, float), parameters)
    sizes = np.asarray(DTYPE_BYTES)
    rates = np.asarray(hardware.rates)
    dtype_in, dtype_out = configurations.dtype_in, configurations.dtype_out
    facts = compiled(facts)
    machine = Machine(facts, parameters, sizes[dtype_in], sizes[dtype_out], rates[dtype_in])
    legal = False if legal_override is None else legal_override
    inputs = jax.tree.map(np.asarray, Inputs(undivided(configurations), machine, legal))
    lengths = {len(x) for x in jax.tree.leaves(inputs) if np.ndim(x)}
    if len(lengths) > 1:
        raise ValueError(f"columns of different lengths: {sorted(lengths)}")
    if not lengths:
        row = configurations._replace(m=np.atleast_1d(configurations.m))
        return inputs._replace(configuration=jax.tree.map(np.asarray, row)), 1
    return inputs, lengths.pop()


def _formulas(feed: _Feed, results: dict[str, np.ndarray]) -> None:
    """Fill columns by the closed form, in chunks, on several threads."""

    def run(start: int) -> None:
        stop = min(start + feed.size, feed.rows)
        start = max(start, 0)
        with jax.enable_x64(True):
            part = feed.part(start, stop, feed.size)
            computed = formulas(part, tuple(results), feed.form)
            times = next(x for names, x in computed.items() if names[0] == "time_us")
            factor = factors(part, times, feed.head) if feed.head else None
        for names, values in computed.items():
            held: Any = np.asarray(values)[: stop - start]
            for name, column in zip(names, (held.real, held.imag), strict=False):
                results[name][start:stop] = column
        if factor is not None:
            some = {name: column[start:stop] for name, column in results.items()}
            _correct(some, np.asarray(factor)[: stop - start])

    list(_threads().map(run, range(-feed.early, feed.rows, feed.size)))


def _taped(feed: _Feed, inputs: Inputs, results: dict[str, np.ndarray]) -> None:
    """The same by tapes, with no parameter's terms left out."""
    found = _fields(feed.rows, inputs, form=Form(single=feed.form.single))
    with np.errstate(all="ignore"):
        found["tflops"] = tflops_of_few(inputs.configuration, found["time_us"])
    for name, column in results.items():
        column[:] = found[name]
    if feed.head:
        _correct(results, _factor(feed.rows, inputs, found["time_us"], head=feed.head))


def _by_steps(feed: _Feed, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Prediction]]:
    """Predict rows that have no proved formula -> (rows, prediction)."""
    if not len(rows):
        return
    inputs = feed.at(rows)
    c = inputs.configuration
    stages = np.broadcast_to(c.stages, rows.shape)
    steps = np.broadcast_to(c.m * 1.0 * c.n * c.k / (c.block_m * c.block_n * c.block_k), rows.shape)

    def settle(queue: np.ndarray) -> tuple[np.ndarray, Prediction]:
        with jax.enable_x64(True), jax.default_device(host()):
            some, count = inputs.take(queue), len(queue)
            pipeline, prediction = _opened(count, some)
            full = jax.tree.map(lambda x: lengthened(x, size_of(count)), pipeline)
            outcome, scanned = jax.tree.map(itemgetter(slice(count)), outcomes(full, count))
            exact = settled(prediction, some.configuration, outcome)
            if feed.head:
                factor = _factor(count, some, exact.time_us, head=feed.head)
                exact = Prediction(**_correct(exact._asdict(), factor))
        method = np.where(scanned, METHODS.index("scan"), METHODS.index("periodic"))
        return rows[queue], exact._replace(method=method)

    todo = queues(stages, steps)
    yield from (_threads().map if len(todo) > 1 else map)(settle, todo)


def _correct(columns: dict[str, np.ndarray], factor: np.ndarray) -> dict[str, np.ndarray]:
    """Multiply times by a factor, in place; what it changes counts as steady."""
    if "steady_us" in columns:
        columns["steady_us"] += columns["time_us"] * (factor - 1.0)
    columns["time_us"] *= factor
    if "tflops" in columns:
        columns["tflops"] /= factor
    return columns


def size_of(rows: int) -> int:
    """The least size that holds so many rows, or the greatest."""
    return next((size for size in SIZES if rows <= size), SIZES[-1])


def queues(stages: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    """Rows in queues, each of rings that one depth holds and with most steps first; few rows in one
    queue, that few programs are compiled."""
    depth = np.searchsorted(DEPTHS, stages) if len(stages) > FEW_QUEUED else np.zeros(len(stages))
    order = np.lexsort((-steps, depth))
    return [
        queue
        for same in np.unique(depth)
        for queue in split_rows(order[depth[order] == same], SIZES[-1])
    ]


def outcomes(queue: Pipeline, rows: int) -> tuple[Outcome, np.ndarray]:
    """The outcomes of a queue of one of `SIZES`, exact for its first `rows` pipelines, and which of
    them are scanned."""
    few = len(queue.stages) <= FEW_QUEUED
    deepest = DEPTHS[-1] if few else np.asarray(queue.stages)[:rows].max()
    depth = next(depth for depth in DEPTHS if depth >= deepest)
    outcome, finished = jax.tree.map(np.array, solve(queue, rows, depth))
    for left in split_rows(np.flatnonzero(~finished[:rows]), FEW_QUEUED):
        rest = jax.tree.map(itemgetter(lengthened(left, size_of(len(left)))), queue)
        for column, exact in zip(outcome, simulate_queue(rest), strict=True):
            column[left] = exact[: len(left)]
    return outcome, ~finished


def split_rows(rows: np.ndarray, length: int) -> list[np.ndarray]:
    """Rows, so many at a time."""
    return [rows[start : start + length] for start in range(0, len(rows), length)]


def _check_process() -> None:
    """Raise WsjaxError in a process that was forked from one that had predicted: the threads of JAX
    and of this module are not there, and what waits for them waits for ever."""
    global _used
    _used = True
    if _forked:
        raise WsjaxError(
            "this process was forked from one that had predicted, whose threads it lacks; start "
            "processes by 'spawn': multiprocessing.get_context('spawn')"
        )


_forked = _used = False


def _note_fork() -> None:
    global _forked
    _forked = _used


os.register_at_fork(after_in_child=_note_fork)


@cache
def _threads() -> ThreadPoolExecutor:
    """One pool for good: memory that a thread has freed serves its next chunk."""
    return ThreadPoolExecutor(THREADS)


def _size(rows: int, sizes: Sequence[int]) -> int:
    """The greatest size of which the rows fill a quarter, or the least."""
    return max((size for size in sizes if size <= 4 * rows), default=sizes[0])
