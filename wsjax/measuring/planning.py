"""Which kernels to measure: a workload and a space -> the rows that tell most (`fit.design`)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import schema
from wsjax.errors import InputError
from wsjax.hardware import PARAMETERS, Hardware, load_hardware, resolve
from wsjax.measuring.runner import read_rows
from wsjax.schema import COLUMNS, PROBLEM, Configuration
from wsjax.spec import load_space

if TYPE_CHECKING:
    import pandas as pd

    from wsjax.fit import Design

POOL = 2_048
"""Rows that are weighed against each other: a sample of all pairs of problem and kernel."""
GLUON = Path(__file__).with_name("gluon.toml")
OVERHEAD_S = 0.02
"""What a row takes on the GPU beside its runs: operands, the reference, L2 overwritten."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Rows to measure, best first, and what they are expected to tell.

    frame: configuration columns, `expected_error_pct` of the workload once a row and those before
    it are measured, and `measuring_s`. error_pct: that error before any row, and after all.
    parameters: a name, and the standard error of its logarithm before and after. untold: parameters
    on which no row of the pool tells more than the machine's file. together: pairs that all rows
    only tell together.
    """

    frame: "pd.DataFrame"
    error_pct: tuple[float, float]
    parameters: tuple[tuple[str, float, float], ...]
    untold: tuple[str, ...]
    together: tuple[tuple[str, str], ...]
    problems: int
    pool: int
    kernel_s: float
    seconds: float


def plan(
    workload: Any,
    hardware: str | Path | Hardware = "h200-datasheet",
    *,
    space: Any = None,
    rows: int = 100,
    budget_s: float = np.inf,
    measured: Sequence[Any] = (),
    seed: int = 0,
) -> Plan:
    """The rows whose measurement lowers the expected error on a workload most.

    workload: a table of problems (`m n k`, `weight`), to be run on the kernels of `space` (a space
    file; default: those of engine gluon); or a table that names kernels too, whose rows are the
    only ones to choose from. hardware: what is known of the machine. budget_s: what the runs may
    take on the GPU. measured: tables of rows that are known already. seed: of the sample.

    Raises InputError for what cannot be read, or if no kernel can run.
    """
    from wsjax import fit, portfolio

    began = time.perf_counter()
    if rows < 1:
        raise InputError(f"--rows {rows}: give a whole number from 1, such as 100")
    if not budget_s > 0:
        raise InputError(f"--budget {budget_s:g}: give seconds above 0, such as 60s")
    machine = load_hardware(hardware).physics
    pool, weight = _pool(workload, machine, space, np.random.default_rng(seed))
    known = np.zeros(len(weight), dtype=bool)
    for table in measured:
        there = read_rows(portfolio.read_frame(table, machine), machine)
        pool = Configuration(*(np.concatenate(two) for two in zip(pool, there, strict=True)))
        known = np.append(known, np.ones(len(there.m), dtype=bool))
    weight = np.append(weight, np.zeros(len(known) - len(weight)))
    problem = np.unique(
        np.stack([getattr(pool, name) for name in PROBLEM]), axis=1, return_inverse=True
    )[1]
    found = fit.design(
        pool,
        problem,
        weight,
        machine,
        rows=rows,
        budget_s=budget_s,
        overhead_s=OVERHEAD_S,
        known=known,
        seed=seed,
    )
    return Plan(
        frame=_frame(pool, found),
        error_pct=(100 * float(found.error[0]), 100 * float(found.error[-1])),
        parameters=tuple(
            (name, float(before), float(after))
            for name, before, after in zip(PARAMETERS, found.before, found.after, strict=True)
            if before
        ),
        untold=found.untold,
        together=found.together,
        problems=len(np.unique(problem[found.chosen])),
        pool=len(weight),
        kernel_s=float(found.seconds.sum()),
        seconds=time.perf_counter() - began,
    )


def _frame(pool: Configuration, found: "Design") -> "pd.DataFrame":
    import pandas as pd

    columns = {name: values[found.chosen] for name, values in pool._asdict().items()}
    return pd.DataFrame(
        schema.spelled(columns)
        | {"expected_error_pct": 100 * found.error[1:], "measuring_s": found.seconds}
    ).round({"expected_error_pct": 3, "measuring_s": 4})


def _pool(
    workload: Any, machine: Hardware, space: Any, chooser: np.random.Generator
) -> tuple[Configuration, np.ndarray]:
    """A sample of the pairs of problem and kernel that can run, as many of each problem, and how
    much each counts."""
    from wsjax import engine, portfolio

    frame = portfolio.read_frame(workload, machine)
    with portfolio.naming(workload):
        problems, problem = portfolio.read_problems(frame)
    if portfolio.has_kernels(frame) and space is None:
        read = {str(name): column for name, column in frame.items() if name in COLUMNS}
        given = schema.read_rows(read, len(frame), list(read)).columns
    else:
        kernels, passing = portfolio.space_kernels(load_space(space or GLUON), problems, machine)
        each = -(-2 * POOL // len(problems))
        pairs = [
            (at, kernel)
            for at, passes in enumerate(passing)
            for kernel in chooser.permutation(np.flatnonzero(passes))[:each]
        ]
        problem, kernel = np.asarray(pairs).T
        given = {name: values[problem] for name, values in problems.columns.items()}
        given |= {name: values[kernel] for name, values in kernels.columns.items()}
    c = resolve(given, machine)
    c = Configuration(*(np.ascontiguousarray(np.broadcast_to(x, len(problem))) for x in c))
    kept = chooser.permutation(np.flatnonzero(np.isfinite(engine.times_us(c, machine))))[:POOL]
    if not len(kept):
        raise InputError(f"no kernel of the space can run on {machine.name}; widen it")
    weight = (problems.weights / np.bincount(problem[kept], minlength=len(problems)).clip(1))[
        problem[kept]
    ]
    return Configuration(*(x[kept] for x in c)), weight
