"""Few kernels for a whole workload: `choose`, and what each problem takes on each kernel."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import engine, tables
from wsjax.errors import InputError, gather, nearest
from wsjax.hardware import Hardware, load_hardware, resolve, resolve_one
from wsjax.importers import TIME
from wsjax.portfolio import workloads
from wsjax.portfolio.choices import Choice, Measured, choice, users_of
from wsjax.portfolio.sets import Chosen, Demand, choose_sets, conflict, not_found
from wsjax.portfolio.workloads import Kernels, Offer, Problems
from wsjax.schema import REASONS, Configuration, shown, why
from wsjax.spec import load_space

if TYPE_CHECKING:
    import pandas as pd

TIMEOUT_S = 120.0
CELLS_MAX = 50_000_000
"""Pairs of problems and kernels, at most."""
ROWS = 2**18
"""Rows that are predicted at once."""
BUILD_COST = "build_cost"
NAMES_SHOWN = 12
PROBLEMS_SHOWN = 5


def choose(
    workload: Any,
    k: int,
    hardware: str | Path | Hardware = "h200",
    *,
    space: Any = None,
    kernels: Any = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    within_pct: float | None = None,
    budget: float | None = None,
    build_cost: str | None = None,
    measured: bool = False,
    timeout_s: float | None = TIMEOUT_S,
) -> Choice:
    """The at most k kernels with which a workload takes the least time, each problem on the best of
    them.

    workload: a DataFrame, an Arrow table, or a file: problems (`m n k`, where needed `batch
    dtype_in dtype_out layout l2_state`), how often each comes (`weight`) and what it is called
    (`problem`); or a table of measurements, or of predictions, which names kernels too.

    Kernels are those of `kernels` (a table with `block_m block_n block_k` …, one kernel a row), or
    of `space` (a space file or `Space`), or the workload's own, or the default space's.

    include, exclude: names of kernels that must be among them, or must not; of those excluded,
    patterns such as "*_serial*" too. within_pct: on no problem may the set be more per cent slower
    than the best available kernel. budget: what building the set may cost, `build_cost` being the
    column of `kernels` with each one's cost (default: build_cost).

    measured: take the workload's measured times, not predictions, and only the pairs of problem and
    kernel that were measured; else any kernel of the table is there for every problem that it can
    run. timeout_s: seconds for the
    search, None for no limit; when they are over, or at Ctrl-C, the best found is the answer, with
    its bound.

    Raises InputError with all mistakes of the arguments, InfeasibleError if no set will do, and
    UnfinishedError if the time was too short to find one.
    """
    machine, *_ = gather(
        partial(load_hardware, hardware),
        partial(_check_numbers, k, within_pct, budget, timeout_s),
        partial(_check_sources, space, kernels, measured),
    )
    offer = read_offer(workload, machine, space, kernels, build_cost)
    if measured and offer.measured_us is None:
        raise InputError(
            "measured: the workload has no measured times of kernels; give a measured table, or "
            "leave it out to take predictions"
        )
    if budget is not None and offer.kernels.builds is None:
        raise InputError(
            "budget: needs what each kernel costs to build: a table of kernels with a column "
            f"'{BUILD_COST}', or with the one that build_cost names"
        )
    times = offer.measured_us if measured and offer.measured_us is not None else offer.predicted_us
    demand = _demand(offer, times, include, exclude, within_pct, budget, k)
    _check_served(offer, demand, machine, measured)
    chosen = choose_sets(demand, k, timeout_s)
    if chosen is None:
        raise conflict(demand, k, offer.kernels.names, measured=measured)
    if not chosen.sets:
        raise not_found(demand, k, offer.kernels.names, chosen.seconds)
    against = None
    if not measured and offer.measured_us is not None and not chosen.interrupted:
        against = _against(demand, chosen, k, offer, timeout_s)
    arrow = tables.is_arrow(workload)
    named = kernels is not None and not measured
    return choice(
        offer,
        demand,
        chosen,
        machine,
        against,
        by_measured=measured,
        unable=_unable(offer, machine) if named else {},
        arrow=arrow,
    )


def read_offer(
    workload: Any, machine: Hardware, space: Any, kernels: Any, build_cost: str | None
) -> Offer:
    """Read the tables, and predict. build_cost: the column of build costs; by default
    `BUILD_COST`, if the kernels have it.

    Raises InputError with all mistakes of one table.
    """
    frame = workloads.read_frame(workload, machine)
    from_workload = workloads.has_kernels(frame) and space is None and kernels is None
    source = frame if from_workload else None
    if kernels is not None:
        source = workloads.read_frame(kernels, machine)
    with workloads.naming(workload):
        problems, problem = workloads.read_problems(frame)
    if source is None:
        narrowest = {axis: int(problems.columns[axis].min()) for axis in "mn"}
        offered = load_space(space, machine.span, narrowest)
        available, passing = workloads.space_kernels(offered, problems, machine)
        predicted = predicted_us(problems, available, machine)
        return Offer(problems, available, np.where(passing, predicted, np.inf), None)
    if build_cost is None and BUILD_COST in source:
        build_cost = BUILD_COST
    with workloads.naming(workload if from_workload else kernels):
        available, kernel = workloads.read_kernels(source, build_cost)
    if not from_workload or TIME not in frame:
        return Offer(problems, available, predicted_us(problems, available, machine), None)
    measured = measured_us(frame, problem, kernel, (len(problems), len(available)))
    return Offer(
        problems,
        available,
        predicted_us(problems, available, machine, np.isfinite(measured)),
        measured,
    )


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
    times_us = np.empty((len(problems), len(kernels)))
    step = max(1, ROWS // len(kernels))
    for start in range(0, len(problems), step):
        part = np.s_[start : start + step]
        times_us[part] = _part(problems, kernels, machine, part, ran)
    return np.where(np.isnan(times_us), np.inf, times_us)


def _part(
    problems: Problems, kernels: Kernels, machine: Hardware, part: slice, ran: np.ndarray | None
) -> np.ndarray:
    count = len(problems.weights[part])
    columns = {name: np.repeat(v[part], len(kernels)) for name, v in problems.columns.items()}
    columns |= {name: np.tile(v, count) for name, v in kernels.columns.items()}
    c = resolve(columns, machine)
    rows = count * len(kernels)
    # columns all, whatever was given: one compiled program for every workload
    c = Configuration(*(np.ascontiguousarray(np.broadcast_to(values, rows)) for values in c))
    if ran is None:
        times = engine.times_us(c, machine)
    else:
        times = engine.evaluate(c, machine, legal_override=ran[part].ravel()).time_us
    return times.reshape(count, len(kernels))


def _unable(offer: Offer, machine: Hardware) -> dict[str, str]:
    """The kernels that can run no problem, and why not the first one."""
    found = {}
    problem = {name: int(values[0]) for name, values in offer.problems.columns.items()}
    for at in np.flatnonzero(~np.isfinite(offer.predicted_us).any(axis=0)):
        kernel = {name: int(values[at]) for name, values in offer.kernels.columns.items()}
        c = resolve_one(problem | kernel, machine)
        row = Configuration(*(np.full(1, x) for x in c))
        reason = int(engine.evaluate(row, machine).reason[0])
        found[offer.kernels.names[at]] = why(reason, c, machine.facts)
    return found


def reasons(problems: Problems, kernels: Kernels, machine: Hardware, problem: int) -> str:
    """Why no kernel is legal for a problem: how many fail for what."""
    columns = {name: np.repeat(v[problem], len(kernels)) for name, v in problems.columns.items()}
    c = resolve({**columns, **kernels.columns}, machine)
    reason = engine.evaluate(c, machine).reason
    codes, counts = np.unique(reason, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    found = ", ".join(f"{counts[at]:,} {REASONS[codes[at]] or 'filtered'}" for at in order)
    pitched = np.flatnonzero(reason == REASONS.index("row_pitch"))
    if not len(pitched):
        return found
    rows = len(kernels)
    first = Configuration(*(int(np.broadcast_to(x, rows)[pitched[0]]) for x in c))
    return f"{found}; {why('row_pitch', first, machine.facts)}"


def measured_us(
    frame: "pd.DataFrame", problem: np.ndarray, kernel: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """(problems, kernels) in µs from a measured table's rows, inf where it has none; the mean of
    several."""
    times = frame[TIME].to_numpy(float)
    total, count = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (problem, kernel), times)
    np.add.at(count, (problem, kernel), 1)
    return np.divide(total, count, out=np.full(shape, np.inf), where=count > 0)


def _demand(
    offer: Offer,
    times_us: np.ndarray,
    include: Sequence[str],
    exclude: Sequence[str],
    within_pct: float | None,
    budget: float | None,
    k: int,
) -> Demand:
    """What is asked of a set; InputError for unknown kernels and for what contradicts itself."""
    names = offer.kernels.names
    required, excluded = gather(
        partial(_positions, "include", include, names, False),
        partial(_positions, "exclude", exclude, names, True),
    )
    problems = [
        f"kernel '{names[kernel]}' is both in include and in exclude; leave it out of one"
        for kernel in required
        if kernel in excluded
    ]
    problems += [
        f"include: kernel '{names[kernel]}' can run no problem; leave it out"
        for kernel in required
        if not np.isfinite(times_us[:, kernel]).any()
    ]
    if len(required) > k:
        problems.append(f"include: {len(required)} kernels are more than k = {k}; raise k")
    builds = offer.kernels.builds
    if builds is not None and budget is not None:
        cost = float(builds[list(required)].sum())
        if cost > budget:
            problems.append(
                f"include: these kernels alone cost {cost:g} to build, more than the budget "
                f"{budget:g}; raise it"
            )
    if problems:
        raise InputError(problems)
    within = None if within_pct is None else within_pct / 100
    weights = offer.problems.weights
    return Demand(times_us, weights, required, excluded, within, builds, budget)


def _positions(
    option: str, words: Sequence[str], names: Sequence[str], patterns: bool
) -> tuple[int, ...]:
    """The kernels that names (or patterns) mean, in order."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise InputError(f"{option}: expected a list of kernels' names, not {shown(words)}")
    positions: set[int] = set()
    problems = []
    for word in words:
        mine = {
            at
            for at, name in enumerate(names)
            if name == word or (patterns and fnmatchcase(name, word))
        }
        positions |= mine
        if not mine:
            hint = nearest(word, names)
            if len(names) > NAMES_SHOWN and "did you mean" not in hint:
                hint = f"; names look like '{names[0]}'"
            problems.append(f"{option}: unknown kernel '{word}'{hint}")
    if problems:
        raise InputError(problems)
    return tuple(sorted(positions))


def _check_served(offer: Offer, demand: Demand, machine: Hardware, measured: bool) -> None:
    """Raise InputError if a problem has no kernel that can run it."""
    problems = []
    for at in np.flatnonzero(~np.isfinite(demand.best_us))[:PROBLEMS_SHOWN]:
        name = offer.problems.label(int(at))
        if np.isfinite(demand.times_us[at]).any():
            problems.append(f"problem {name}: all kernels that can run it are excluded")
        elif measured:
            problems.append(f"problem {name}: no kernel was measured on it")
        else:
            why = reasons(offer.problems, offer.kernels, machine, int(at))
            problems.append(f"problem {name}: no kernel is legal ({why}); give others")
    if problems:
        raise InputError(problems)


def _against(
    demand: Demand, chosen: Chosen, k: int, offer: Offer, timeout_s: float | None
) -> Measured | None:
    """The set in measured times, beside the best set that measurements would have chosen; None if
    some problem was not measured on the kernel that it would get."""
    names, measured_us = offer.kernels.names, offer.measured_us
    assert measured_us is not None
    real = replace(demand, times_us=measured_us)
    best = choose_sets(real, k, timeout_s, least=k)
    if best is None or not best.sets:
        return None
    mine, theirs = chosen.sets[-1], best.sets[-1]
    picked_us = measured_us[np.arange(len(measured_us)), users_of(demand, mine.kernels)]
    if not np.isfinite(picked_us).all():
        return None
    return Measured(
        time_us=real.total_us(mine.kernels),
        picked_us=float(demand.weights @ picked_us),
        hindsight_us=theirs.time_us,
        all_us=best.all_us,
        hindsight=tuple(names[kernel] for kernel in theirs.kernels),
        proved=theirs.proved,
    )


def _check_sources(space: Any, kernels: Any, measured: bool) -> None:
    problems = []
    if space is not None and kernels is not None:
        problems.append("space, kernels: both say which kernels there are; leave one out")
    if measured and (space is not None or kernels is not None):
        problems.append(
            "measured: kernels are those of the measured table; leave space, kernels out"
        )
    if problems:
        raise InputError(problems)


def _check_numbers(k: Any, within_pct: Any, budget: Any, timeout_s: Any) -> None:
    problems = []
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        problems.append(f"k: expected a whole number from 1, how many kernels to choose; not {k}")
    for name, value, above in (
        ("within_pct", within_pct, "from 0"),
        ("budget", budget, "from 0"),
        ("timeout_s", timeout_s, "above 0"),
    ):
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < inf or (value == 0 and above != "from 0"):
            problems.append(f"{name}: expected a finite number {above}, not {value}")
    if problems:
        raise InputError(problems)
