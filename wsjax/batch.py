"""Many configurations -> their predicted times: the spine from columns of numbers to columns of µs.

Chunks of rows go through one compiled program (`_formulas`: legality, durations, closed form) on
two host threads. The rows whose closed form is not proved are gathered into queues of one size and
solved by jumps (`periodic`); what those leave unfinished is scanned step by step (`events`). All
arithmetic is float64. A column that is constant stays a scalar and costs nothing a row; only the
set of such columns, never the number of rows, makes a new program.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax import periodic
from wsjax.closed import closed, slopes
from wsjax.durations import Machine, pipeline
from wsjax.events import COOPERATIVE, PINGPONG, SERIAL, Outcome, isolate, simulate_queue
from wsjax.hardware import Hardware, Parameters
from wsjax.limits import REASONS, Facts, checks, smem_bytes
from wsjax.space import DTYPE_BYTES, DTYPES, Configuration

LIMITERS = ("load", "compute", "latency")
METHODS = ("closed", "periodic", "scan")
CHUNK_ROWS = 131_072
QUEUE_ROWS = 4_096
SCAN_ROWS = 256
THREADS = 2


class Prediction(NamedTuple):
    """One value a row; times in µs, NaN (and codes -1) where the row is illegal.

    launch + fill + steady + epilogue = time: `fill` passes before MATH has its first data,
    `epilogue` is what is not hidden under another tile's mainloop, `steady` the rest.
    `limiter`, `method` and `reason` are codes into LIMITERS, METHODS and limits.REASONS.
    """

    time_us: np.ndarray
    math_wait_us: np.ndarray
    dma_wait_us: np.ndarray
    launch_us: np.ndarray
    fill_us: np.ndarray
    steady_us: np.ndarray
    epilogue_us: np.ndarray
    waves: np.ndarray
    k_tiles: np.ndarray
    smem_bytes: np.ndarray
    tflops: np.ndarray
    limiter: np.ndarray
    method: np.ndarray
    reason: np.ndarray


class _Row(NamedTuple):
    """What a program returns for a row: the prediction's columns, and whether they are exact."""

    prediction: Prediction
    time_exact: Any
    all_exact: Any


def _reason(c: Configuration, machine: Machine, legal):
    """The code of the first check that fails, 0 where none does or the row is legal by definition."""
    reason = jnp.zeros((), jnp.int8)
    conditions = checks(
        c,
        machine.facts,
        in_bytes=machine.in_bytes,
        out_bytes=machine.out_bytes,
        math_groups=1 + (c.schedule == PINGPONG),
        groups_per_tile=1 + (c.schedule == COOPERATIVE),
        rate=machine.rate,
    )
    for name, holds in reversed(conditions):
        reason = jnp.where(holds, reason, jnp.int8(REASONS.index(name)))
    return jnp.where(legal & (machine.rate > 0), jnp.int8(0), reason)


def _row(c: Configuration, machine: Machine, legal, outcome: Outcome | None = None) -> _Row:
    """One configuration, predicted by the closed form, or described given its exact outcome."""
    numbers = jax.tree.map(lambda x: x * 1.0, c)._replace(schedule=c.schedule)
    p = pipeline(numbers, machine)
    once, repeats = isolate(p)
    q = slopes(once)
    time_exact = all_exact = jnp.bool_(True)
    if outcome is None:
        outcome, time_exact, all_exact = closed(p)
    reason = _reason(c, machine, legal)

    def known(x):
        return jnp.where(reason == 0, x, jnp.nan)

    launch_us = machine.parameters.launch_us * 1.0
    time_us = launch_us + outcome.end_us
    fill_us = (q.landing + p.load_latency_us) * repeats
    epilogue_us = p.epilogue_us * jnp.where(p.schedule == PINGPONG, 1.0, p.tiles)
    bound = jnp.where(p.compute_us >= q.load, LIMITERS.index("compute"), LIMITERS.index("load"))
    limiter = jnp.where(q.window_gain > 0, LIMITERS.index("latency"), bound)
    flop = 2.0 * numbers.m * numbers.n * numbers.k * numbers.batch
    prediction = Prediction(
        time_us=known(time_us),
        math_wait_us=known(outcome.math_wait_us),
        dma_wait_us=known(outcome.dma_wait_us),
        launch_us=known(launch_us),
        fill_us=known(fill_us),
        steady_us=known(outcome.end_us - fill_us - epilogue_us),
        epilogue_us=known(epilogue_us),
        waves=p.tiles.astype(int),
        k_tiles=p.k_tiles.astype(int),
        smem_bytes=smem_bytes(c, machine.facts, machine.in_bytes, machine.out_bytes),
        tflops=known(flop / time_us / 1e6),
        limiter=jnp.where(reason == 0, limiter, -1).astype(jnp.int8),
        method=jnp.where(reason == 0, METHODS.index("closed"), -1).astype(jnp.int8),
        reason=reason,
    )
    return _Row(prediction, time_exact, all_exact)


class _Inputs(NamedTuple):
    """What a row's prediction depends on; each leaf an array over the rows or a scalar."""

    configuration: Configuration
    machine: Machine
    legal: Any

    @property
    def axes(self):
        """vmap's in_axes: 0 for the columns that vary."""
        return jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, self)

    def take(self, rows) -> "_Inputs":
        """The columns at `rows` (a slice or an index array); scalars stay."""
        return jax.tree.map(lambda x: x[rows] if np.ndim(x) else x, self)

    def spread(self, rows) -> "_Inputs":
        """The columns at `rows`, scalars repeated, so that every queue has one form."""
        return jax.tree.map(
            lambda x: x[rows] if np.ndim(x) else np.full(len(rows), x), self
        )


@partial(jax.jit, static_argnames=("alone", "time_only"))
def _formulas(inputs: _Inputs, alone: bool, time_only: bool):
    """The closed form over a chunk. `alone` compiles the formulas of `serial` only."""

    def one(i: _Inputs):
        c = i.configuration._replace(schedule=SERIAL) if alone else i.configuration
        row = _row(c, i.machine, i.legal)
        prediction = row.prediction
        if time_only:
            return prediction.time_us, row.time_exact | (prediction.reason > 0)
        return prediction, row.all_exact | (prediction.reason > 0)

    return jax.vmap(one, in_axes=(inputs.axes,))(inputs)


@partial(jax.jit, static_argnames=("depth",))
def _jumps(inputs: _Inputs, rows, depth: int) -> tuple[Prediction, Any]:
    """A queue of full columns, the first `rows` of them solved by jumps -> (prediction, finished)."""
    outcome, finished = periodic.solve(_pipelines(inputs), rows, depth)
    return _describe(inputs, outcome), finished


@jax.jit
def _pipelines(inputs: _Inputs):
    numbers = jax.tree.map(lambda x: x * 1.0, inputs.configuration)
    p = jax.vmap(pipeline)(numbers, inputs.machine)
    whole = ("k_tiles", "tiles", "stages", "schedule", "dma_warps", "mma_in_flight")
    return p._replace(**{name: getattr(p, name).astype(int) for name in whole})


@jax.jit
def _describe(inputs: _Inputs, outcome: Outcome) -> Prediction:
    return jax.vmap(lambda i, o: _row(*i, o).prediction)(inputs, outcome)


def evaluate(
    configurations: Configuration,
    hardware: Hardware,
    overrides: Mapping[str, Any] | None = None,
    legal_override: np.ndarray | None = None,
) -> Prediction:
    """Predict every row. Each field of `configurations` is an int array (rows,) or a scalar.

    overrides: hardware parameters and facts by name, each a scalar or an array (rows,), in place
    of the machine's own. legal_override: rows that are legal whatever `limits` says.
    """
    inputs, rows = _inputs(configurations, hardware, overrides, legal_override)
    with jax.enable_x64(True):
        shapes = jax.eval_shape(lambda: _row(*jax.tree.map(jnp.asarray, inputs.take(0))).prediction)
    found = Prediction(*(np.empty(rows, s.dtype) for s in shapes))
    exact = np.empty(rows, bool)

    def chunk(start: int, stop: int, padded: _Inputs) -> None:
        prediction, exact[start:stop] = _trimmed(_formulas(padded, _alone(inputs), False), stop - start)
        for column, values in zip(found, prediction, strict=True):
            column[start:stop] = values

    _over_chunks(inputs, rows, chunk)
    for index, prediction, method in _stubborn(inputs, np.flatnonzero(~exact)):
        for column, values in zip(found, prediction, strict=True):
            column[index] = values
        found.method[index] = METHODS.index(method)
    return found


def times_us(
    configurations: Configuration,
    hardware: Hardware,
    overrides: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Only the time of every row, in µs, NaN where it is illegal: the hot path of `evaluate`."""
    inputs, rows = _inputs(configurations, hardware, overrides, None)
    found, exact = np.empty(rows), np.empty(rows, bool)

    def chunk(start: int, stop: int, padded: _Inputs) -> None:
        result = _trimmed(_formulas(padded, _alone(inputs), True), stop - start)
        found[start:stop], exact[start:stop] = result

    _over_chunks(inputs, rows, chunk)
    for index, prediction, _ in _stubborn(inputs, np.flatnonzero(~exact)):
        found[index] = prediction.time_us
    return found


def _inputs(configurations, hardware, overrides, legal_override) -> tuple[_Inputs, int]:
    given = dict(overrides or {})
    facts = hardware.facts._replace(**{k: given.pop(k) for k in Facts._fields if k in given})
    parameters = hardware.parameters._replace(**given)
    sizes = np.asarray(DTYPE_BYTES)
    rates = np.asarray([hardware.compute_ratio.get(name, 0.0) for name in DTYPES])
    dtype_in, dtype_out = (np.asarray(x) for x in configurations[4:6])
    machine = Machine(facts, parameters, sizes[dtype_in], sizes[dtype_out], rates[dtype_in])
    legal = False if legal_override is None else legal_override
    floats = machine._replace(parameters=Parameters(*(np.asarray(x, float) for x in parameters)))
    varying = configurations._replace(m=np.atleast_1d(configurations.m))
    if any(np.ndim(x) for x in jax.tree.leaves((configurations, floats, legal))):
        varying = configurations
    inputs = jax.tree.map(np.asarray, _Inputs(varying, floats, legal))
    lengths = {len(x) for x in jax.tree.leaves(inputs) if np.ndim(x)}
    if len(lengths) > 1:
        raise ValueError(f"columns of different lengths: {sorted(lengths)}")
    return inputs, lengths.pop()


def _alone(inputs: _Inputs) -> bool:
    schedule = inputs.configuration.schedule
    return not np.ndim(schedule) and int(schedule) == SERIAL


def _padded_rows(rows: int) -> int:
    """The few chunk sizes that programs are compiled for."""
    return next(size for size in (256, 8192, CHUNK_ROWS) if rows <= size or size == CHUNK_ROWS)


def _over_chunks(inputs: _Inputs, rows: int, chunk) -> None:
    """Call `chunk(start, stop, columns padded to a chunk's size)` over all rows, on host threads."""
    size = _padded_rows(rows)

    def run(start: int) -> None:
        stop = min(start + size, rows)
        part = inputs.take(np.s_[start:stop])
        if stop - start < size:
            part = part.take(np.minimum(np.arange(size), stop - start - 1))
        with jax.enable_x64(True):
            chunk(start, stop, part)

    if rows:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(run, range(0, rows, size)))


def _trimmed(result, rows: int):
    return jax.tree.map(lambda x: np.asarray(x)[:rows] if np.ndim(x) else np.asarray(x), result)


def _stubborn(inputs: _Inputs, index: np.ndarray):
    """Rows without a proved closed form -> (rows, their prediction, how it was found), in batches."""
    if not len(index):
        return
    c = inputs.take(index).configuration
    turn = np.broadcast_to(np.asarray(c.stages - ((c.mma_in_flight == 1) & (c.stages >= 2))), index.shape)
    steps = np.broadcast_to(np.ceil(np.asarray(c.k / c.block_k)) * c.m * c.n, index.shape)
    depths = 2 ** np.ceil(np.log2(np.maximum(turn, 2))).astype(int)
    queues = []
    for depth in np.unique(depths):
        mine = np.flatnonzero(depths == depth)
        mine = index[mine[np.argsort(-steps[mine], kind="stable")]]
        queues += [(mine[i : i + QUEUE_ROWS], int(depth)) for i in range(0, len(mine), QUEUE_ROWS)]

    def run(queue):
        rows, depth = queue
        with jax.enable_x64(True):
            result = _jumps(_queue(inputs, rows, QUEUE_ROWS), len(rows), depth)
            return rows, *_trimmed(result, len(rows))

    left = []
    with ThreadPoolExecutor(THREADS) as pool:
        for rows, prediction, finished in pool.map(run, queues):
            left.append(rows[~finished])
            yield rows[finished], Prediction(*(x[finished] for x in prediction)), "periodic"
    left = np.concatenate(left)
    for rows in (left[i : i + SCAN_ROWS] for i in range(0, len(left), SCAN_ROWS)):
        with jax.enable_x64(True):
            queue = _queue(inputs, rows, SCAN_ROWS)
            outcome = simulate_queue(_pipelines(queue))
            yield rows, _trimmed(_describe(queue, outcome), len(rows)), "scan"


def _queue(inputs: _Inputs, rows: np.ndarray, capacity: int) -> _Inputs:
    return inputs.spread(rows[np.minimum(np.arange(capacity), len(rows) - 1)])
