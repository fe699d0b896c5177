"""Optimal kernels for frames of problems: `optimize`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsjax import schema, tables
from wsjax.deadlines import Deadline, deadline
from wsjax.errors import InfeasibleError, InputError, UnfinishedError, gather, nearest
from wsjax.hardware import Hardware, family_defaults, load_hardware
from wsjax.schema import KERNEL, PROBLEM, shown
from wsjax.search.answers import Answer, solve
from wsjax.search.criteria import (
    PARETO,
    Constraint,
    Objective,
    Task,
    machine_limits,
    parse_objective,
    user_constraints,
)
from wsjax.spec import Space, load_space

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ANSWER_COLUMNS = (
    *KERNEL,
    "time_us",
    "math_wait_us",
    "smem_bytes",
    "extrapolated",
    "proved",
    "bound",
    "binding",
    "runner_up",
    "runner_up_time_us",
    "solver_s",
    "conflict",
)


ENCODINGS = ("sweep", "events")
KERNELS_MAX = 10**8
"""More are not looked at without a time limit: each takes memory, and 10**6 take seconds."""


@dataclass(frozen=True)
class Request:
    """All that is asked for but the problem. space: None for the default one of each problem."""

    hardware: Hardware
    space: Space | None
    objective: Objective
    constraints: tuple[Constraint, ...]
    timeout_s: float | None
    encoding: str

    def kernels(self, problem: Mapping[str, Any]) -> Space:
        """The space of one problem."""
        if self.space is not None:
            return self.space
        return load_space(None, self.hardware.span, {axis: int(problem[axis]) for axis in "mn"})

    def answers(self, problem: Mapping[str, Any], limit: Deadline) -> list[Answer]:
        """The answer for one problem (numbers and codes of its columns), or its whole front."""
        given = {**family_defaults(self.hardware), **problem}
        task = Task(self.kernels(problem), given, self.hardware, self.objective, self.constraints)
        return solve(task, limit, events=self.encoding == "events")


def request(
    hardware: str | Path | Hardware = "h200",
    *,
    space: str | Path | Space | None = None,
    objective: str = "time",
    where: str | Sequence[str] | None = None,
    max_smem_bytes: int | None = None,
    timeout_s: float | None = None,
    encoding: str = "sweep",
) -> Request:
    """The arguments of `optimize`, read. Raises InputError with all their mistakes."""
    machine, kernels, goal, conditions, seconds, _ = gather(
        partial(load_hardware, hardware),
        lambda: None if space is None else load_space(space),
        partial(parse_objective, objective),
        partial(user_constraints, where, max_smem_bytes),
        partial(_seconds, timeout_s),
        partial(_check_encoding, encoding, objective),
    )
    if kernels is not None and len(kernels) > KERNELS_MAX and seconds is None:
        raise InputError(
            f"space '{kernels.name}': {len(kernels):,} kernels; give fewer values, or a timeout"
        )
    constraints = (*conditions, *machine_limits(machine))
    return Request(machine, kernels, goal, constraints, seconds, encoding)


def optimize(
    problems: "Mapping[str, Any] | pd.DataFrame | pa.Table",
    hardware: str | Path | Hardware = "h200",
    *,
    space: str | Path | Space | None = None,
    objective: str = "time",
    where: str | Sequence[str] | None = None,
    max_smem_bytes: int | None = None,
    timeout_s: float | None = None,
    encoding: str = "sweep",
) -> Any:
    """The best kernel of a space for each problem, proved.

    problems: one problem, as a mapping such as {"m": 4096, "n": 4096, "k": 4096}, or a frame of
    them: a pandas DataFrame or an Arrow table with the columns `m n k`, and `batch dtype_in
    dtype_out layout l2_state` where their defaults won't do.

    space: a space's file, or a `Space`; by default the one of `wsjax.spec`, within what the machine
    was fitted to, with narrower tiles for narrower problems.
    objective: "time", "time,math_wait", "0.7*time+0.3*math_wait", "pareto:time,smem_bytes"
    (see `wsjax.search.criteria`).
    where: conditions, each a filter (`wsjax.spec.where`) over all configuration columns and the
    machine's facts; conjuncts that `and` joins count as conditions of their own.
    max_smem_bytes: the most shared memory a CTA may use, in bytes.
    timeout_s: seconds for each problem. When they are over, or at Ctrl-C, the best that was found
    is the answer, not `proved`; problems that Ctrl-C leaves over have none.

    encoding: "sweep", or "events" for the paper's own (`wsjax.search.z3_events`): slower, with
    durations rounded to picoseconds, and without `binding`.

    Returns a frame of the kind that was given: the problem's columns, and behind them
    `ANSWER_COLUMNS`: the kernel, its times in µs, whether they are `extrapolated`, whether it is
    `proved` to be the best, `bound` (nothing that meets the constraints has a lower first score),
    what is `binding`, the `runner_up`'s columns and its time, the seconds it took. A Pareto front
    has a row for each kernel. Where no kernel meets all constraints, `conflict` holds a smallest
    set that can't be met, and the other columns are null, as they are where the time was too short
    to find anything; of a single problem these are an InfeasibleError and an UnfinishedError.

    Raises InputError with all mistakes of the arguments at once.
    """
    import pandas as pd

    asked = request(
        hardware,
        space=space,
        objective=objective,
        where=where,
        max_smem_bytes=max_smem_bytes,
        timeout_s=timeout_s,
        encoding=encoding,
    )
    single = isinstance(problems, Mapping)
    frame = problems
    if isinstance(problems, Mapping):
        schema.from_keywords(problems, PROBLEM)
        frame = pd.DataFrame([dict(problems)])
    records: list[dict[str, Any]] = []
    sources: list[int] = []
    stopped = False
    for position, problem in enumerate(_problems(frame)):
        rows = [dict.fromkeys(ANSWER_COLUMNS)]
        if not stopped:
            with deadline(asked.timeout_s) as limit:
                try:
                    rows = [_record(answer) for answer in asked.answers(problem, limit)]
                except InfeasibleError as error:
                    if single:
                        raise
                    rows[0]["conflict"] = " and ".join(error.conflict)
                except UnfinishedError:
                    if single:
                        raise
                stopped = limit.interrupted
        records += rows
        sources += [position] * len(rows)
    return _joined(frame, records, sources)


def _problems(frame: Any) -> list[dict[str, int]]:
    """The problems of a frame, as numbers and codes; InputError with all its mistakes."""
    import pandas as pd

    if tables.is_arrow(frame):
        names = list(frame.column_names)
    elif isinstance(frame, pd.DataFrame):
        names = list(frame.columns)
    else:
        raise InputError(
            "optimize takes a problem as a mapping, a pandas DataFrame or an Arrow table, not "
            f"{type(frame).__name__}"
        )
    columns: dict[str, Any] = {
        name: tables.series(frame, name) if tables.is_arrow(frame) else frame[name]
        for name in PROBLEM
        if names.count(name) == 1
    }
    rows, _ = gather(
        partial(schema.read_rows, columns, len(frame), names, PROBLEM),
        partial(_check_names, names, len(frame)),
    )
    schema.warn_of_misspelling([*names, *KERNEL])
    return [
        {name: int(values[at]) for name, values in rows.columns.items()} for at in range(len(frame))
    ]


def _check_names(names: Sequence[Any], count: int) -> None:
    problems = [
        f"column '{name}' is the name of an answer; rename or drop it (conditions on kernels are "
        "a 'where' or a space)"
        for name in ANSWER_COLUMNS
        if name in names and name != "time_us"
    ]
    if not count:
        problems.append("no problems: the frame has no rows")
    if problems:
        raise InputError(problems)


def _record(answer: Answer) -> dict[str, Any]:
    """An answer as a row of `ANSWER_COLUMNS`."""
    record = {name: answer.choice.configuration[name] for name in KERNEL}
    figures = {name: answer.choice.figures[name] for name in ("time_us", "math_wait_us")}
    second = answer.runner_up
    record |= figures | {
        "smem_bytes": int(answer.choice.figures["smem_bytes"]),
        "extrapolated": answer.choice.extrapolated,
        "proved": answer.proved,
        "bound": answer.bound,
        "binding": " and ".join(answer.binding),
        "runner_up": None if second is None else {n: second.configuration[n] for n in KERNEL},
        "runner_up_time_us": None if second is None else second.figures["time_us"],
        "solver_s": answer.solver_s,
        "conflict": "",
    }
    return record


def _joined(frame: Any, records: Sequence[Mapping[str, Any]], sources: Sequence[int]) -> Any:
    """The rows `sources` of the frame with the records behind them."""
    import pandas as pd

    table = pd.DataFrame(list(records), columns=pd.Index(ANSWER_COLUMNS))
    if any(record["proved"] is None for record in records):
        table = table.convert_dtypes()
    if tables.is_arrow(frame):
        answers = tables.from_frame(table)
        columns = dict(zip(answers.column_names, answers.columns, strict=True))
        return tables.append(frame.take(list(sources)), columns)
    kept = frame.iloc[list(sources)]
    return pd.concat([kept, table.set_axis(kept.index, axis=0)], axis=1)


def _check_encoding(encoding: str, objective: str) -> None:
    problems = []
    if encoding not in ENCODINGS:
        problems.append(f"encoding: unknown word {shown(encoding)}{nearest(encoding, ENCODINGS)}")
    if encoding == "events" and str(objective).strip().startswith(PARETO):
        problems.append("objective: encoding events gives no front; take encoding sweep")
    if problems:
        raise InputError(problems)


def _seconds(timeout_s: float | None) -> float | None:
    if timeout_s is None:
        return None
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 < timeout_s < inf:
        raise InputError(f"timeout: expected seconds above 0, not {shown(timeout_s)}")
    return float(timeout_s)
