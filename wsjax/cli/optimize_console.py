"""What `wsjax optimize` prints."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from wsjax.cli.terminal import INTERRUPTED, telling
from wsjax.deadlines import deadline
from wsjax.errors import UnfinishedError, gather
from wsjax.search import Answer, Chosen, Request, one_problem, request


def run_optimize(problem: Mapping[str, Any], options: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the answer to one problem; the exit code, `INTERRUPTED` after Ctrl-C."""
    numbers, asked = gather(lambda: one_problem(problem), lambda: request(**options))
    with deadline(asked.timeout_s) as limit:
        try:
            with telling("seeking the best kernel; Ctrl-C: the best so far", quiet=as_json):
                answers = asked.answers(numbers, limit)
        except UnfinishedError:
            if limit.interrupted:
                raise KeyboardInterrupt from None
            raise
        if as_json:
            records = [_record(answer, asked) for answer in answers]
            shown = records if asked.objective.pareto else records[0]
            print(json.dumps(shown, allow_nan=False))
        elif asked.objective.pareto:
            _show_front(answers, asked)
        else:
            _show(answers[0], asked)
    return INTERRUPTED if limit.interrupted else 0


def _record(answer: Answer, asked: Request) -> dict[str, Any]:
    figures = answer.choice.figures
    second = answer.runner_up
    record: dict[str, Any] = {
        "configuration": answer.choice.configuration,
        "time_us": figures["time_us"],
        "math_wait_us": figures["math_wait_us"],
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


def _show(answer: Answer, asked: Request) -> None:
    """The kernel, what proves it, what binds it, and the runner-up."""
    from rich.console import Console
    from rich.table import Table

    print(_heading(answer.choice.configuration, asked))
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    figures = answer.choice.figures
    table.add_row("kernel", _kernel(answer.choice))
    table.add_row("time", f"{figures['time_us']:,.3f} µs")
    table.add_row("MATH warps wait", f"{figures['math_wait_us']:,.3f} µs")
    table.add_row("shared memory", f"{figures['smem_bytes']:,.0f} B")
    table.add_row("proved", "yes: the best of its space under the model" if answer.proved else "no")
    if not answer.proved and answer.bound is not None:
        table.add_row("bound", f"nothing scores below {answer.bound:,.3f}")
    for better in answer.better[:1]:
        without = f"{' and '.join(better.breaks)}; without it"
        table.add_row(
            "binds", f"{without} {_kernel(better.choice)}: {_time(better.choice, answer)}"
        )
    if answer.runner_up is not None:
        table.add_row(
            "runner-up", f"{_kernel(answer.runner_up)}: {_time(answer.runner_up, answer)}"
        )
    table.add_row("took", f"{answer.solver_s:.3f} s for {len(asked.space):,} kernels")
    Console(markup=False, emoji=False).print(table)


def _show_front(answers: Sequence[Answer], asked: Request) -> None:
    """The front, a kernel a line."""
    from rich.console import Console
    from rich.table import Table

    print(_heading(answers[0].choice.configuration, asked))
    names = asked.objective.columns
    table = Table(*names, "kernel")
    for answer in answers:
        figures = (answer.choice.figures[name] for name in names)
        table.add_row(
            *(f"{figure:,.3f}".removesuffix(".000") for figure in figures), _kernel(answer.choice)
        )
    Console(markup=False, emoji=False).print(table)
    proved = (
        "proved: the whole front" if answers[0].proved else "not proved: more time may add to it"
    )
    print(f"{len(answers)} kernels of {len(asked.space):,}, {proved}, {answers[0].solver_s:.3f} s")


def _heading(c: Mapping[str, Any], asked: Request) -> str:
    batch = f" x{c['batch']}" if c["batch"] > 1 else ""
    out = "" if c["dtype_out"] == c["dtype_in"] else f" to {c['dtype_out']}"
    data = "calibrated" if asked.hardware.calibrated else "not calibrated"
    return (
        f"{c['m']}x{c['n']}x{c['k']}{batch} {c['dtype_in']}{out} {c['layout']} "
        f"on {asked.hardware.name} ({data})"
    )


def _kernel(choice: Chosen) -> str:
    """A kernel in a line: what is not as usual is said."""
    c = choice.configuration
    unusual = {"mma_in_flight": 0, "group_m": 1, "grid_ctas": 0, "write_back": "tma"}
    warps = f"{c['dma_warps']} DMA and {c['math_warps']} MATH warps"
    words = [
        f"{c['block_m']}x{c['block_n']}x{c['block_k']} {c['schedule']}",
        f"{c['stages']} stage{'s' * (c['stages'] != 1)}",
        warps,
        *(f"{name} {c[name]}" for name, usual in unusual.items() if c[name] != usual),
    ]
    return ", ".join(words)


def _time(choice: Chosen, answer: Answer) -> str:
    """A time, and how far it is from the answer's."""
    own, best = choice.figures["time_us"], answer.choice.figures["time_us"]
    change = round(100 * (own / best - 1), 2) if best > 0 and math.isfinite(own) else 0.0
    return f"{own:,.3f} µs" + (f" ({change:+.2f} %)" if change else "")
