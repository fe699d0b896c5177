"""Verbs that decide: optimize, choose."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from wsjax.cli.options import HardwareName, Names, Whole, app


def texts(_: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Texts as they stand, one an option."""
    return tuple(token.value for token in tokens)


Conditions = Annotated[tuple[str, ...], Parameter(converter=texts, negative="", n_tokens=1)]


@app.command
def optimize(
    *,
    m: Annotated[Whole, Parameter(name="-m", help="rows of A and C")] = None,
    n: Annotated[Whole, Parameter(name="-n", help="columns of B and C")] = None,
    k: Annotated[Whole, Parameter(name="-k", help="columns of A, rows of B")] = None,
    batch: Annotated[Whole, Parameter(help="GEMMs of one launch; default: 1")] = None,
    dtype: Annotated[str | None, Parameter(help="of A, B and C; default: bf16")] = None,
    dtype_out: Annotated[str | None, Parameter(help="of C, if it is another")] = None,
    layout: Annotated[
        str | None, Parameter(help="nt (default), nn, tn or tt: how A and B are stored")
    ] = None,
    hardware: HardwareName = "h200",
    space: Annotated[
        Path | None, Parameter(help="a space file (.toml): the kernels to choose from")
    ] = None,
    objective: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="time; time,math_wait in this order; a sum, `0.7*time+0.3*math_wait`; "
            "pareto:time,smem_bytes for the front",
        ),
    ] = "time",
    where: Annotated[
        Conditions,
        Parameter(help='a condition, such as "stages <= 4"; may be repeated', show_default=False),
    ] = (),
    max_smem_bytes: Annotated[Whole, Parameter(help="shared memory a CTA, at most")] = None,
    timeout: Annotated[
        float | None, Parameter(help="seconds; then the best found so far is printed")
    ] = None,
    encoding: Annotated[
        str, Parameter(help="sweep, or events: the paper's own encoding, slower, to check with")
    ] = "sweep",
    json: Annotated[bool, Parameter(negative="", help="print one JSON object")] = False,
) -> int:
    """The best kernel for one problem, proved, under constraints.

    wsjax optimize -m 4096 -n 4096 -k 4096 --where "stages <= 4" --max-smem-bytes 100000

    The exit code is 3 if no kernel meets all constraints.
    """
    from wsjax.cli.optimize_console import run_optimize

    given = {
        "m": m,
        "n": n,
        "k": k,
        "batch": batch,
        "dtype_in": dtype,
        "dtype_out": dtype_out if dtype_out is not None else dtype,
        "layout": layout,
    }
    options = {
        "hardware": hardware,
        "space": space,
        "objective": objective,
        "where": where,
        "max_smem_bytes": max_smem_bytes,
        "timeout_s": timeout,
        "encoding": encoding,
    }
    problem = {name: value for name, value in given.items() if value is not None}
    return run_optimize(problem, options, as_json=json)


@app.command
def choose(
    workload: Annotated[
        Path, Parameter(help="problems with weights (CSV, Parquet), or a measured table")
    ],
    /,
    *,
    k: Annotated[Whole, Parameter(name="-k", help="how many kernels, at most")] = None,
    hardware: HardwareName = "h200",
    space: Annotated[
        Path | None, Parameter(help="a space file (.toml): the kernels to choose from")
    ] = None,
    kernels: Annotated[
        Path | None, Parameter(help="a table of kernels to choose from, instead (CSV, Parquet)")
    ] = None,
    include: Annotated[Names, Parameter(help="kernels that must be in: NAME,NAME,...")] = (),
    exclude: Annotated[
        Names, Parameter(help="kernels that must not: NAME,NAME,...; * stands for any letters")
    ] = (),
    within_pct: Annotated[
        float | None,
        Parameter(help="per cent that no problem may be slower than on its best kernel"),
    ] = None,
    budget: Annotated[
        float | None, Parameter(help="what building the set may cost, at most")
    ] = None,
    build_cost: Annotated[
        str | None, Parameter(help="the kernels' column of build costs; default: build_cost")
    ] = None,
    measured: Annotated[
        bool, Parameter(negative="", help="choose by the table's measured times, not predictions")
    ] = False,
    timeout: Annotated[
        float, Parameter(help="seconds; then the best found so far is printed, with its bound")
    ] = 120.0,
    out: Annotated[
        Path | None,
        Parameter(help="a directory for the set, the assignment, the loss, and lists for tools"),
    ] = None,
    json: Annotated[bool, Parameter(negative="", help="print one JSON object")] = False,
) -> int:
    """The few kernels to ship: with which a workload takes the least time, proved.

    wsjax choose workload.csv -k 8 --hardware h200 --out chosen

    A workload has columns m, n, k, and where needed batch, dtype_in, dtype_out, layout, weight (how
    often the problem comes) and problem (its name). The exit code is 3 if no set of kernels meets
    all constraints.
    """
    from wsjax.cli.choose_console import run_choose

    return run_choose(
        workload,
        k,
        out,
        as_json=json,
        hardware=hardware,
        space=space,
        kernels=kernels,
        include=include,
        exclude=exclude,
        within_pct=within_pct,
        budget=budget,
        build_cost=build_cost,
        measured=measured,
        timeout_s=timeout,
    )
