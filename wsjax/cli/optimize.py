"""`wsjax optimize`: the best kernel for one problem, proved, under constraints."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, Token

from wsjax.cli.app import (
    AsJson,
    Batch,
    Dtype,
    DtypeOut,
    HardwareName,
    K,
    Layout,
    M,
    N,
    SpaceFile,
    Whole,
    app,
)
from wsjax.cli.terminal import (
    exit_code,
    on_machine,
    show_extrapolation,
    show_json,
    show_table,
    telling,
)
from wsjax.errors import UnfinishedError, gather

if TYPE_CHECKING:
    from wsjax.search import Answer, Chosen, Request


def texts(_: object, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Texts as they stand, one an option."""
    return tuple(token.value for token in tokens)


@app.command
def optimize(
    *,
    m: M = None,
    n: N = None,
    k: K = None,
    batch: Batch = None,
    dtype: Dtype = None,
    dtype_out: DtypeOut = None,
    layout: Layout = None,
    hardware: HardwareName = "h200",
    space: SpaceFile = None,
    objective: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="time; time,math_wait in this order; a sum, `0.7*time+0.3*math_wait`; "
            "pareto:time,smem_bytes for the front",
        ),
    ] = "time",
    where: Annotated[
        tuple[str, ...],
        Parameter(
            converter=texts,
            negative="",
            n_tokens=1,
            help='a condition, such as "stages <= 4"; may be repeated',
            show_default=False,
        ),
    ] = (),
    max_smem_bytes: Annotated[Whole, Parameter(help="shared memory a CTA, at most")] = None,
    timeout: Annotated[
        float | None, Parameter(help="seconds; then the best found so far is printed")
    ] = None,
    encoding: Annotated[
        str, Parameter(help="sweep, or events: the paper's own encoding, slower, to check with")
    ] = "sweep",
    json: AsJson = False,
) -> int:
    """The best kernel for one problem, proved, under constraints.

    wsjax optimize -m 4096 -n 4096 -k 4096 --where "stages <= 4" --max-smem-bytes 100000

    The answer comes with the condition that binds and the runner-up. Objectives: `time`;
    `time,math_wait`, in this order; `0.7*time+0.3*math_wait`; `pareto:time,smem_bytes`, the exact
    front. `--timeout` and Ctrl-C print the best so far with a bound; the exit code is then 4 or
    130, 0 if the answer is proved. It is 3 if no kernel meets all constraints: a smallest set of
    conditions that conflict is printed.

    A space file has the `[columns]` and `[filter]` of a sweep file (`wsjax sweep --help`), and
    replaces the default kernels. `--encoding events` solves by the paper's own encoding of event
    times in Z3, to check with: ten times slower and more.
    """
    from wsjax.deadlines import deadline
    from wsjax.schema import PROBLEM, from_keywords
    from wsjax.search import request

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
    numbers, asked = gather(lambda: from_keywords(problem, PROBLEM), lambda: request(**options))
    with deadline(asked.timeout_s) as limit:
        try:
            with telling("seeking the best kernel; Ctrl-C: the best so far", quiet=json):
                answers = asked.answers(numbers, limit)
        except UnfinishedError:
            if limit.interrupted:
                raise KeyboardInterrupt from None
            raise
        if json:
            records = [_record(answer, asked) for answer in answers]
            show_json(records if asked.objective.pareto else records[0])
        else:
            print(_heading(answers[0].choice.configuration, asked))
            chosen = [answer.choice.configuration for answer in answers]
            show_extrapolation(
                asked.hardware, {name: [c[name] for c in chosen] for name in chosen[0]}
            )
            if asked.objective.pareto:
                _show_front(answers, asked, len(asked.kernels(numbers)))
            else:
                _show(answers[0], len(asked.kernels(numbers)))
    return exit_code(proved=answers[0].proved, interrupted=limit.interrupted)


def _record(answer: "Answer", asked: "Request") -> dict[str, Any]:
    figures = answer.choice.figures
    second = answer.runner_up
    record: dict[str, Any] = {
        "configuration": answer.choice.configuration,
        "time_us": figures["time_us"],
        "math_wait_us": figures["math_wait_us"],
        "extrapolated": answer.choice.extrapolated,
        "proved": answer.proved,
        "runner_up": None
        if second is None
        else {"configuration": second.configuration, "time_us": second.figures["time_us"]},
        "solver_s": answer.solver_s,
    }
    if not answer.proved and answer.bound is not None:
        record["bound"] = answer.bound
    others = [name for name in asked.objective.columns if name not in record]
    return record | ({name: figures[name] for name in others} if asked.objective.pareto else {})


def _show(answer: "Answer", kernels: int) -> None:
    """The kernel, what proves it, what binds it, and the runner-up."""
    figures = answer.choice.figures
    pairs = [
        ("kernel", _kernel(answer.choice)),
        ("time", f"{figures['time_us']:,.3f} µs"),
        ("MATH warps wait", f"{figures['math_wait_us']:,.3f} µs"),
        ("shared memory", f"{figures['smem_bytes']:,.0f} B"),
    ]
    proved = "yes: the best of its space under the model" if answer.proved else "no"
    pairs.append(("proved", proved))
    if not answer.proved and answer.bound is not None:
        pairs.append(("bound", f"nothing scores below {answer.bound:,.3f}"))
    for better in answer.better[:1]:
        without = f"{' and '.join(better.breaks)}; without it"
        pairs.append(
            ("binds", f"{without} {_kernel(better.choice)}: {_time(better.choice, answer)}")
        )
    if answer.runner_up is not None:
        second = answer.runner_up
        pairs.append(("runner-up", f"{_kernel(second)}: {_time(second, answer)}"))
    pairs.append(("took", f"{answer.solver_s:.3f} s for {kernels:,} kernels"))
    show_table((), pairs, left=(0, 1))


def _show_front(answers: Sequence["Answer"], asked: "Request", kernels: int) -> None:
    """The front, a kernel a line."""
    names = asked.objective.columns
    rows = []
    for answer in answers:
        figures = (answer.choice.figures[name] for name in names)
        words = (f"{figure:,.3f}".removesuffix(".000") for figure in figures)
        rows.append([*words, _kernel(answer.choice)])
    show_table([*names, "kernel"], rows, left=(len(names),))
    proved = (
        "proved: the whole front" if answers[0].proved else "not proved: more time may add to it"
    )
    print(f"{len(answers)} kernels of {kernels:,}, {proved}, {answers[0].solver_s:.3f} s")


def _heading(c: Mapping[str, Any], asked: "Request") -> str:
    from wsjax.schema import sizes

    batch = f" x{c['batch']}" if c["batch"] > 1 else ""
    out = "" if c["dtype_out"] == c["dtype_in"] else f" to {c['dtype_out']}"
    return (
        f"{sizes(c, 'mnk')}{batch} {c['dtype_in']}{out} {c['layout']} {on_machine(asked.hardware)}"
    )


def _kernel(choice: "Chosen") -> str:
    """A kernel in a line: what is not as usual is said."""
    from wsjax.schema import BLOCKS, sizes

    c = choice.configuration
    unusual = {"mma_in_flight": 0, "accum": "f32", "group_m": 1, "grid_ctas": 0}
    unusual |= {"write_back": "tma"}
    warps = f"{c['dma_warps']} DMA and {c['math_warps']} MATH warps"
    words = [
        f"{sizes(c, BLOCKS)} {c['schedule']}",
        f"{c['stages']} stage{'s' * (c['stages'] != 1)}",
        warps,
        *(f"{name} {c[name]}" for name, usual in unusual.items() if c[name] != usual),
    ]
    return ", ".join(words)


def _time(choice: "Chosen", answer: "Answer") -> str:
    """A time, and how far it is from the answer's."""
    time_us, best_us = choice.figures["time_us"], answer.choice.figures["time_us"]
    change = (
        round(100 * (time_us / best_us - 1), 2) if best_us > 0 and math.isfinite(time_us) else 0.0
    )
    return f"{time_us:,.3f} µs" + (f" ({change:+.2f} %)" if change else "")
