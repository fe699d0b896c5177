"""What each problem of a workload takes on each kernel: predicted, or measured."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import engine, schema
from wsjax.errors import InputError
from wsjax.hardware import Hardware
from wsjax.importers.mapping import TIMES
from wsjax.portfolio import workloads
from wsjax.portfolio.workloads import Kernels, Problems
from wsjax.schema import REASONS, Configuration
from wsjax.spec import load_space

if TYPE_CHECKING:
    import pandas as pd

BUILD_COST = "build_cost"
CELLS_MAX = 50_000_000
ROWS = 2**18
"""Rows that are predicted at once."""
ONES = ("cluster_m", "cluster_n", "split_k")
"""Columns that the model covers at 1 only, whatever was measured."""


@dataclass(frozen=True, eq=False)
class Offer:
    """A workload, the kernels for it, and the times of each on each, in µs (inf: can't run).

    measured_us: where the workload is a measured table; None else.
    """

    problems: Problems
    kernels: Kernels
    predicted_us: np.ndarray
    measured_us: np.ndarray | None


def read_offer(
    workload: Any, machine: Hardware, space: Any, kernels: Any, build_cost: str | None
) -> Offer:
    """Read the tables, and predict. build_cost: the column of build costs; by default
    `BUILD_COST`, if the kernels have it.

    Raises InputError with all mistakes of one table.
    """
    frame = workloads.read_frame(workload)
    own = workloads.has_kernels(frame) and space is None and kernels is None
    source = frame if own else None if kernels is None else workloads.read_frame(kernels)
    with workloads.naming(workload):
        problems, problem = workloads.read_problems(frame)
    if source is None:
        found, passing = workloads.space_kernels(load_space(space), problems, machine.facts)
        predicted = predicted_us(problems, found, machine)
        return Offer(problems, found, np.where(passing, predicted, np.inf), None)
    if build_cost is None and BUILD_COST in source:
        build_cost = BUILD_COST
    with workloads.naming(workload if own else kernels):
        found, kernel = workloads.read_kernels(source, build_cost)
    if not own or TIMES[0] not in frame:
        return Offer(problems, found, predicted_us(problems, found, machine), None)
    measured = measured_us(frame, problem, kernel, (len(problems), len(found)))
    ran = np.isfinite(measured)
    predicted = predicted_us(problems, found, machine, ran)
    return Offer(problems, found, np.where(ran, predicted, np.inf), measured)


def predicted_us(
    problems: Problems, kernels: Kernels, machine: Hardware, ran: np.ndarray | None = None
) -> np.ndarray:
    """(problems, kernels) in µs, inf where a kernel is not legal.

    ran: which pairs were measured, and are legal by definition.
    """
    size = len(problems) * len(kernels)
    if size > CELLS_MAX:
        raise InputError(
            f"{len(problems):,} problems on {len(kernels):,} kernels are {size:,} times, at most "
            f"{CELLS_MAX:,} can be compared; give fewer kernels"
        )
    found = np.empty((len(problems), len(kernels)))
    step = max(1, ROWS // len(kernels))
    for start in range(0, len(problems), step):
        part = np.s_[start : start + step]
        found[part] = _part(problems, kernels, machine, part, ran)
    return np.where(np.isnan(found), np.inf, found)


def _part(
    problems: Problems, kernels: Kernels, machine: Hardware, part: slice, ran: np.ndarray | None
) -> np.ndarray:
    count = len(problems.weights[part])
    columns = {name: np.repeat(v[part], len(kernels)) for name, v in problems.columns.items()}
    columns |= {name: np.tile(v, count) for name, v in kernels.columns.items()}
    c = schema.resolve(columns, machine.facts)
    rows = count * len(kernels)
    # columns all, whatever was given: one compiled program for every workload
    c = Configuration(*(np.ascontiguousarray(np.broadcast_to(values, rows)) for values in c))
    if ran is None:
        times = engine.times_us(c, machine)
    else:
        legal = ran[part].ravel()
        for name in ONES:
            legal = legal & (getattr(c, name) == 1)
        times = engine.evaluate(c, machine, legal_override=legal).time_us
    return times.reshape(count, len(kernels))


def reasons(problems: Problems, kernels: Kernels, machine: Hardware, problem: int) -> str:
    """Why no kernel is legal for a problem: how many fail for what."""
    columns = {name: np.repeat(v[problem], len(kernels)) for name, v in problems.columns.items()}
    c = schema.resolve({**columns, **kernels.columns}, machine.facts)
    codes, counts = np.unique(engine.evaluate(c, machine).reason, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{counts[at]:,} {REASONS[codes[at]] or 'filtered'}" for at in order)


def measured_us(
    frame: "pd.DataFrame", problem: np.ndarray, kernel: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """(problems, kernels) in µs from a measured table's rows, inf where it has none; the mean of
    several."""
    times = frame[TIMES[0]].to_numpy(float)
    total, count = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (problem, kernel), times)
    np.add.at(count, (problem, kernel), 1)
    return np.divide(total, count, out=np.full(shape, np.inf), where=count > 0)
