"""Four ways to the same optimum: `make crosscheck`.

Each of the 256 problems of sweeps/paper.toml is solved by the paper's encoding (Z3 over events), by
the event simulator of `reference`, by the scan of `wsjax.events` and by the closed form, the last
three over every kernel of the paper's space: tiles, stages, DMA warps. All use durations in whole
picoseconds and must agree to the integer. `wsjax optimize` must choose the same kernel, its time
apart by no more than the rounding of the durations.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from paths import SWEEPS
from reference import Case, simulate
from rich.console import Console
from rich.table import Table

from wsjax.deadlines import Deadline
from wsjax.hardware.machine import load_hardware
from wsjax.model import events
from wsjax.model.closed import closed
from wsjax.schema import KERNEL
from wsjax.schema.columns import COLUMNS, SCHEDULES, Axis, Product
from wsjax.schema.limits import smem_bytes
from wsjax.search.answers import solve
from wsjax.search.criteria import (
    Task,
    array_terms,
    machine_limits,
    parse_objective,
    violations,
)
from wsjax.search.z3_events import Rounded, encode, goals, minimise, rounded
from wsjax.spec.axes import column_axis
from wsjax.spec.spaces import Space
from wsjax.spec.sweep_files import load_spec

PAPER = SWEEPS / "paper.toml"
LARGE = {
    "block_m": {"from": 64, "to": 256, "step": 64},
    "block_n": {"from": 16, "to": 256, "step": 8},
    "block_k": {"from": 16, "to": 128, "factor": 2},
    "stages": {"from": 1, "to": 12, "step": 1},
    "dma_warps": [1, 2],
    "mma_in_flight": [0, 1],
    "schedule": list(SCHEDULES),
    "group_m": [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32],
    "write_back": ["tma", "direct"],
}
"""The [columns] of a large space."""
WAYS = ("encoding", "simulator", "scan", "exhaustive", "optimize")
closed_rows = jax.jit(jax.vmap(closed))


class Optimum(NamedTuple):
    """The best kernel's number, and its time and MATH wait in ps."""

    number: int
    time: int
    math_wait: int


class Agreement(NamedTuple):
    """What the ways found for one problem, and the seconds that they took."""

    found: dict[str, Optimum]
    seconds: dict[str, float]
    rounding: int


def paper_space() -> Space:
    """The kernels of the paper's sweep, with every number of stages and of DMA warps."""

    axes = {axis.names[0]: axis for axis in load_spec(PAPER).axes}
    more = {"stages": {"from": 1, "to": 12, "step": 1}, "dma_warps": [1, 2]}
    axes |= {name: _axis(name, values) for name, values in more.items()}
    return Space("paper", Product(tuple(axes[name] for name in KERNEL if name in axes)))


def _axis(name: str, values: Any) -> Axis:
    def refuse(key: str, text: str) -> None:
        raise AssertionError(f"{key}: {text}")

    axis = column_axis(name, values, refuse)
    assert axis is not None
    return axis


def paper_problems() -> list[dict[str, int]]:
    """The problems of the paper's sweep."""
    axes = tuple(axis for axis in load_spec(PAPER).axes if axis.names[0] in ("m", "n", "k"))
    product = Product(axes)
    rows = product.rows(0, len(product))
    return [{name: int(rows[name][at]) for name in rows} for at in range(len(product))]


def paper_task(problem: dict[str, int]) -> Task:
    """One problem on the paper's machine."""
    machine = load_hardware("a6000-paper")
    limits = tuple(machine_limits(machine))
    return Task(paper_space(), problem, machine, parse_objective("time,math_wait"), limits)


def compare(task: Task, ways: Sequence[str] = WAYS) -> Agreement:
    """One problem, by these ways."""
    numbers = np.arange(len(task.space))
    c = task.configurations(numbers)
    terms = array_terms(c, task.hardware)
    legal = violations(terms, task.constraints, len(numbers)) == 0
    memory = smem_bytes(c, terms.facts, terms.in_bytes, terms.out_bytes)
    seconds: dict[str, float] = {}
    found: dict[str, Optimum] = {}

    def timed(name: str, way: Callable[[], Optimum]) -> None:
        start_s = time.perf_counter()
        found[name] = way()
        seconds[name] = time.perf_counter() - start_s

    def best(times: np.ndarray, waits: np.ndarray) -> Optimum:
        order = np.lexsort((numbers, memory, waits, times))
        at = int(order[legal[order]][0])
        return Optimum(at, int(times[at]), int(waits[at]))

    kernels = rounded(task, numbers)

    def encoding() -> Optimum:
        encoded = encode(task, Deadline())
        solution = minimise(encoded, goals(task, encoded), Deadline())
        assert solution is not None
        assert solution.proved
        figures = solution.figures
        return Optimum(solution.number, figures["time_us"], figures["math_wait_us"])

    def simulator() -> Optimum:
        runs = {at: simulate(case(kernels, at)) for at in np.flatnonzero(legal).tolist()}
        times, waits = np.zeros(len(numbers), int), np.zeros(len(numbers), int)
        for at, run in runs.items():
            times[at] = int(run.time) * int(kernels.repeats[at]) + int(kernels.rest[at])
            waits[at] = int(run.math_wait) * int(kernels.repeats[at])
        return best(times, waits)

    def scan() -> Optimum:
        with jax.enable_x64(True):
            whole = kernels.pipeline._asdict()
            floats = {k: v * 1.0 if k.endswith("_us") else v for k, v in whole.items()}
            outcome = events.simulate_queue(events.Pipeline(**floats))
        return best(*_totals(kernels, outcome))

    def exhaustive() -> Optimum:
        with jax.enable_x64(True):
            floats = jax.tree.map(lambda x: x * 1.0, kernels.pipeline)
            outcome, proved, _ = closed_rows(floats)
        assert np.all(proved)
        return best(*_totals(kernels, outcome))

    def optimize() -> Optimum:
        (answer,) = solve(task, Deadline())
        assert answer.proved
        chosen = answer.choice.configuration
        columns = {name: np.asarray(getattr(c, name)) for name in KERNEL}
        words = {name: COLUMNS[name].choices for name in KERNEL}
        codes = {n: w.index(chosen[n]) if (w := words[n]) else chosen[n] for n in KERNEL}
        (at,) = np.flatnonzero(np.all([columns[n] == codes[n] for n in KERNEL], axis=0))
        figures = answer.choice.figures
        times = [round(figures[name] * 1e6) for name in ("time_us", "math_wait_us")]
        return Optimum(int(at), *times)

    for way in (encoding, simulator, scan, exhaustive, optimize):
        if way.__name__ in ways:
            timed(way.__name__, way)
    p = kernels.pipeline
    at = found["exhaustive"].number
    rounding = 1 + int(p.k_tiles[at] * kernels.repeats[at]) * 4
    return Agreement(found, seconds, rounding)


def case(kernels: Rounded, at: int) -> Case:
    """A kernel for the simulator, in ps; `serial` one tile of it."""
    p = {name: int(values[at]) for name, values in kernels.pipeline._asdict().items()}
    schedule, _ = SCHEDULES[p.pop("schedule")], p.pop("queue_end_us")
    return Case(schedule=schedule, **{name.removesuffix("_us"): value for name, value in p.items()})


def _totals(kernels: Rounded, outcome: events.Outcome) -> tuple[np.ndarray, np.ndarray]:
    times = np.rint(np.asarray(outcome.end_us)).astype(np.int64) * kernels.repeats + kernels.rest
    return times, np.rint(np.asarray(outcome.math_wait_us)).astype(np.int64) * kernels.repeats


def agrees(agreement: Agreement) -> bool:
    """Whether all ways are equal, `optimize` but for rounding."""
    own = agreement.found["exhaustive"]
    exact = [optimum for name, optimum in agreement.found.items() if name != "optimize"]
    fast = agreement.found.get("optimize", own)
    return (
        all(optimum == own for optimum in exact)
        and fast.number == own.number
        and abs(fast.time - own.time) <= agreement.rounding
        and abs(fast.math_wait - own.math_wait) <= agreement.rounding
    )


def main() -> int:
    problems = paper_problems()
    compare(paper_task(problems[0]))
    for problem in problems:  # what is timed below is compiled
        solve(paper_task(problem), Deadline())
    agreements = []
    for number, problem in enumerate(problems, 1):
        agreements.append(compare(paper_task(problem)))
        print(f"\r{number} of {len(problems)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    table = Table("way, seconds a problem", "median", "most", "for m, n, k")
    for name in agreements[0].seconds:
        seconds = [agreement.seconds[name] for agreement in agreements]
        slowest = problems[seconds.index(max(seconds))]
        figures = (f"{statistics.median(seconds):.4f}", f"{max(seconds):.4f}")
        table.add_row(name, *figures, ", ".join(map(str, slowest.values())))
    Console().print(table)
    same = [agrees(agreement) for agreement in agreements]
    print(f"same optimum, to the picosecond: {sum(same)} of {len(same)} problems")
    for problem, agreement, good in zip(problems, agreements, same, strict=True):
        if not good:
            print(problem, agreement.found)
    million()
    return 0 if all(same) else 1


def million() -> None:
    """Print what a space of over 10**6 legal kernels takes on the H200."""
    task = Task(
        Space("large", Product(tuple(_axis(name, values) for name, values in LARGE.items()))),
        {"m": 4096, "n": 4096, "k": 4096},
        h200 := load_hardware("h200"),
        parse_objective("time"),
        tuple(machine_limits(h200)),
    )
    solve(task, Deadline())
    c = task.configurations(np.arange(len(task.space)))
    terms = array_terms(c, task.hardware)
    legal = int((violations(terms, task.constraints, len(task.space)) == 0).sum())
    start_s = time.perf_counter()
    (answer,) = solve(task, Deadline())
    seconds = time.perf_counter() - start_s
    proved = "proved" if answer.proved else "not proved"
    print(f"{len(task.space):,} kernels, {legal:,} legal: {seconds:.1f} s, {proved}")


if __name__ == "__main__":
    sys.exit(main())
