"""Few kernels for a whole workload: `choose`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from wsjax import tables
from wsjax.errors import InputError, gather, nearest
from wsjax.hardware import Hardware, load_hardware
from wsjax.portfolio.choices import Choice, Measured, choice, users_of
from wsjax.portfolio.sets import Chosen, Demand, choose_sets, conflict, not_found
from wsjax.portfolio.workloads import BUILD_COST, Offer, read_offer, reasons
from wsjax.schema import shown

TIMEOUT_S = 120.0
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
    found = choose_sets(demand, k, timeout_s)
    if found is None:
        raise conflict(demand, k, offer.kernels.names, measured=measured)
    if not found.sets:
        raise not_found(demand, k, offer.kernels.names, found.seconds)
    against = None
    if not measured and offer.measured_us is not None and not found.interrupted:
        against = _against(demand, found, k, offer, timeout_s)
    arrow = tables.is_arrow(workload)
    return choice(offer, demand, found, machine, against, by_measured=measured, arrow=arrow)


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
    found: set[int] = set()
    problems = []
    for word in words:
        mine = {
            at
            for at, name in enumerate(names)
            if name == word or (patterns and fnmatchcase(name, word))
        }
        found |= mine
        if not mine:
            hint = nearest(word, names)
            if len(names) > NAMES_SHOWN and "did you mean" not in hint:
                hint = f"; names look like '{names[0]}'"
            problems.append(f"{option}: unknown kernel '{word}'{hint}")
    if problems:
        raise InputError(problems)
    return tuple(sorted(found))


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
    demand: Demand, found: Chosen, k: int, offer: Offer, timeout_s: float | None
) -> Measured | None:
    """The set in measured times, beside the best set that measurements would have chosen; None if
    some problem was not measured on the kernel that it would get."""
    names, measured_us = offer.kernels.names, offer.measured_us
    assert measured_us is not None
    real = replace(demand, times_us=measured_us)
    best = choose_sets(real, k, timeout_s, least=k)
    if best is None or not best.sets:
        return None
    mine, theirs = found.sets[-1], best.sets[-1]
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
