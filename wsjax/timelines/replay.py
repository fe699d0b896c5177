"""The recurrences against traced kernels: given how long each step took, do they say when?

From a trace come the durations of each step: `durations`. The recurrences (`events.step`, the
definition) are run with them, and every start of a compute is compared with the traced one. What
they have to explain is the waiting: for a slot, for data, for the step before, for an epilogue.
Modes: `step`, each step's own durations; `latency`, its own latency and the means of all else;
`mean`, the means of all, which is what the closed form knows. A mean step ends too early: where
latencies vary, the next step waits for a late one and gains nothing from an early one.

In events of a trace (`traces`), step g of a CTA with D slots:

    turn[g]      MATH comes for the data: data_wait_start, and the time a successful wait takes
    start[g]     its MMA begins: data_ready_math_start; with an MMA in flight, inside a tile, when
                 the one before is retired: math_end[g-1] - issue, never earlier. issue is the least
                 time from a step's data to math_end of the step before.
    compute      start[g] to math_end[g] (to start[g+1] inside a tile with an MMA in flight). Where
                 that was set by step g+1's data, compute is unknown: at most that, or the median.
    done[g]      the DMA warps come to step g+1: the last slot_wait_start
    load         max(done[g-1], math_end[g-D]) to done[g]
    latency      done[g] to start[g] where MATH waited. Where it did not, the data came at some time
                 before, unknown: the latency is at most that, or the median of the others.
    epilogue     math_end of a tile to the turn of the next (writeback_issued in a ping-pong)

A trace shows when a load is issued and when its data is seen, nothing in between: of a load's time,
transfer and latency cannot be told apart step by step. `latency` here holds the transfer, too, and
`load` is the DMA warps' own time.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wsjax.errors import InputError
from wsjax.model import MAX_STAGES, PERSISTENT, PINGPONG, Pipeline, played, start_carry
from wsjax.timelines import traces
from wsjax.timelines.traces import Trace

if TYPE_CHECKING:
    import pandas as pd

NO_WAIT_US = 0.1
"""What MATH's time stamps and a wait for data that is there may take."""
SAME_US = 0.02
"""Events so close count as one."""
LENGTH = 256
"""Scans are a multiple of so many steps long, so that few programs are compiled."""
MODES = ("step", "latency", "mean")
FIGURES = ("median_ns", "p95_ns", "median_pct", "p95_pct", "end_pct")


class Durations(NamedTuple):
    """How long each step of a trace took, and when its compute started, in µs: arrays (steps,).

    `epilogue_us` is 0 but at the last steps of tiles. `begin_us` is when the first load began.
    """

    load_us: np.ndarray
    latency_us: np.ndarray
    compute_us: np.ndarray
    epilogue_us: np.ndarray
    start_us: np.ndarray
    begin_us: float


def durations(trace: Trace) -> Durations:
    """What the module's text says, of one traced CTA."""
    seen = trace.events
    came, ready, retired = (seen[name] for name in traces.MATH)
    last = trace.in_tile == trace.k_tiles - 1
    waited = ready - came > NO_WAIT_US
    check_us = 0.0 if waited.all() else float(np.median((ready - came)[~waited]))
    turn = np.minimum(ready, came + check_us)
    start, end, known = _computes(trace, ready, retired, waited)
    if trace.math_groups == 2:
        end[:-1] = np.where(last[:-1], turn[1:], end[:-1])
    compute = _imputed(end - start, known)

    comes = seen["slot_wait_start"].max(axis=0)
    free = np.concatenate([np.full(trace.stages, -np.inf), end])[: len(end)]
    begins = np.maximum(comes, free)
    load = np.maximum(np.append(comes[1:], np.nan) - begins, 0.0)
    load[-1] = np.median(load[:-1]) if len(load) > 1 else 0.0
    data = np.where(start <= ready + SAME_US, start, ready)
    latency = np.maximum(_imputed(data - begins - load, waited), 0.0)

    epilogue = np.zeros(len(end))
    tile = np.flatnonzero(last)
    epilogue[tile] = seen["writeback_issued"][np.arange(len(tile))] - end[tile]
    if trace.math_groups == 1:
        following = tile[tile < len(end) - 1]
        epilogue[following] = turn[following + 1] - end[following]
    epilogue = np.maximum(np.nan_to_num(epilogue), 0.0)
    return Durations(load, latency, compute, epilogue, start, float(comes[0]))


def _computes(
    trace: Trace, ready: np.ndarray, retired: np.ndarray, waited: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(start, end, whether the end is known) of each step's MMA."""
    start, end, known = ready.copy(), retired.copy(), np.ones(len(ready), dtype=bool)
    inside = np.flatnonzero(trace.in_tile > 0)
    if trace.mma_in_flight:
        after = retired[inside - 1] - ready[inside]
        start[inside] = retired[inside - 1] - after.min()
        end[inside - 1] = start[inside]
        known[inside - 1] = ~waited[inside] | (after > after.min() + SAME_US)
    return start, end, known


def _imputed(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Values with what is known only to be smaller at the median of the known, or at its bound."""
    if not known.any():
        return values
    return np.where(known, values, np.minimum(values, np.median(values[known])))


@partial(jax.jit, static_argnames="length")
def _starts(pipelines: Pipeline, length: int) -> jax.Array:
    """The starts of computes of pipelines whose times are arrays over steps."""

    def starts(p: Pipeline) -> jax.Array:
        times = {name: x for name, x in p._asdict().items() if np.ndim(x)}
        return played(p, start_carry(MAX_STAGES, 0.0), length, times)[1].start

    return jax.vmap(starts)(pipelines)


def starts(timed: Sequence[tuple[Trace, Durations]]) -> list[np.ndarray]:
    """When the recurrences start the compute of each step of traces, in µs since their CTAs began,
    given its durations."""
    length = -(-max(trace.steps for trace, _ in timed) // LENGTH) * LENGTH
    rows = [_pipeline(trace, durations, length) for trace, durations in timed]
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *column: np.stack(column), *rows)
        times = np.asarray(_starts(jax.tree.map(jnp.asarray, stacked), length))
    return [
        row[: trace.steps] + timing.begin_us
        for row, (trace, timing) in zip(times, timed, strict=True)
    ]


def _pipeline(trace: Trace, timing: Durations, length: int) -> Pipeline:
    """What `step` takes, its times arrays of `length` steps, idle behind the last.

    With one DMA warp its time is a transfer; two are busy at the same time, as with start-ups.
    """

    def column(values: np.ndarray) -> np.ndarray:
        return np.pad(values, (0, length - len(values)))

    load, none = column(timing.load_us), np.zeros(length)
    one_warp = trace.dma_warps == 1
    return Pipeline(
        k_tiles=trace.k_tiles,
        tiles=length,
        stages=trace.stages,
        load_a_us=load if one_warp else none,
        load_b_us=none,
        load_startup_us=none if one_warp else load,
        load_latency_us=column(timing.latency_us),
        compute_us=column(timing.compute_us),
        epilogue_us=column(timing.epilogue_us),
        schedule=PINGPONG if trace.math_groups == 2 else PERSISTENT,
        dma_warps=trace.dma_warps,
        mma_in_flight=trace.mma_in_flight,
    )


def mean(trace: Trace, timing: Durations) -> Durations:
    """Every step with the mean durations of all."""
    last = trace.in_tile == trace.k_tiles - 1
    means = {
        name: np.full(trace.steps, getattr(timing, name).mean())
        for name in ("load_us", "latency_us", "compute_us")
    }
    epilogue = timing.epilogue_us[last].mean() if last.any() else 0.0
    return timing._replace(**means, epilogue_us=np.where(last, epilogue, 0.0))


def check(path: str | Path) -> "pd.DataFrame":
    """Events of traced kernels against the recurrences: given how long each step took, do they say
    when? A row for each CTA and each of three modes.

    path: CSV or Parquet with columns `config_id m n k group_m cta role wave kstep slot event t_ns`,
    a row an event. Modes (column `durations`): `step`, each step's own durations; `latency`, its
    own latency and the means of all else; `mean`, the means of all, which is what the closed form
    knows.
    Other columns: `config_id m n k group_m cta`, `steps`, `period_ns` (the mean from one compute's
    start to the next); median and 95th percentile of the absolute error of all starts, in ns
    and in % of the period: `median_ns p95_ns median_pct p95_pct`; `end_pct`: the error of the last
    compute's end in % of the time up to it.

    Raises InputError for a file that is no traced table, or for rings of more than 32 slots.
    """
    import pandas as pd

    read = traces.read(path)
    if deep := [trace for trace in read if trace.stages > MAX_STAGES]:
        raise InputError(
            f"{path}: {trace.kernel[0]} has slot {trace.stages - 1}; rings have at most "
            f"{MAX_STAGES} slots"
            for trace in deep
        )
    timings = [durations(trace) for trace in read]
    constant = [mean(trace, timing) for trace, timing in zip(read, timings, strict=True)]
    varying = [
        means._replace(latency_us=timing.latency_us)
        for means, timing in zip(constant, timings, strict=True)
    ]
    rows = []
    for mode, used in zip(MODES, (timings, varying, constant), strict=True):
        predicted = starts(list(zip(read, used, strict=True)))
        rows += [
            dict(zip(traces.KERNEL, trace.kernel, strict=True))
            | {"steps": trace.steps, "durations": mode}
            | _figures(trace, timing, start)
            for trace, timing, start in zip(read, used, predicted, strict=True)
        ]
    return pd.DataFrame(rows)


replay_trace = check
"""`check` under its public name."""


def _figures(trace: Trace, timing: Durations, predicted: np.ndarray) -> dict[str, float]:
    error = np.abs(predicted - timing.start_us)
    period = float(np.ptp(timing.start_us)) / max(trace.steps - 1, 1)
    end = trace.events["math_end"][-1]
    late = predicted[-1] + timing.compute_us[-1] - end
    median, high = np.quantile(error, [0.5, 0.95]).tolist()
    return {
        "period_ns": period * 1000,
        "median_ns": median * 1000,
        "p95_ns": high * 1000,
        "median_pct": median / period * 100 if period else 0.0,
        "p95_pct": high / period * 100 if period else 0.0,
        "end_pct": late / (end - timing.begin_us) * 100,
    }


def summary(checked: "pd.DataFrame") -> "pd.DataFrame":
    """The mean over the CTAs of each configuration, and of all, by mode; of `end_pct` the mean of
    its absolute values."""
    import pandas as pd

    figures = checked.assign(end_pct=checked["end_pct"].abs())
    names = ["period_ns", *FIGURES]
    rows = []
    for name, group in [*figures.groupby("config_id", sort=False), ("all", figures)]:
        for mode in MODES:
            part = group[group["durations"] == mode]
            head = {"config_id": name, "ctas": len(part), "durations": mode}
            rows.append(head | {name: float(part[name].mean()) for name in names})
    return pd.DataFrame(rows)
