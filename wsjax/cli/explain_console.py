"""What the command line prints of an explanation."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from shutil import get_terminal_size
from typing import Any

from wsjax import schema, timelines
from wsjax.cli.terminal import telling
from wsjax.errors import gather
from wsjax.hardware import PARAMETERS, Hardware, load_hardware
from wsjax.schema import LIMITERS
from wsjax.tables import finite_values as finite
from wsjax.timelines import MORE, Explanation, explanation, parts, path_text

PIPE_WIDTH, ROOMY = 120, 100
"""Columns when there is no terminal; fewer have no room for what parameters mean."""
LEAST_ELASTICITY, LEAST_CHANGE = 0.002, 0.001
"""What matters less is not shown."""
MOST_PARAMETERS, MOST_CHOICES = 12, 14
BAR = 20


def run_explain(options: Mapping[str, int | str], hardware: str, *, as_json: bool) -> int:
    """Explain one configuration."""
    machine, numbers = gather(
        partial(load_hardware, hardware), partial(schema.from_options, options)
    )
    with telling("explaining the kernel", quiet=as_json):
        found = explanation(schema.resolve_one(numbers, machine.facts), machine)
    if as_json:
        print(json.dumps(finite(record(found)), allow_nan=False))
    else:
        _show(found, machine)
    return 0


def record(e: Explanation) -> dict[str, Any]:
    """All figures, as JSON has them."""
    figures = e.timeline.figures
    return {
        "time_us": e.timeline.time_us,
        "limiter": LIMITERS[figures["limiter"]],
        "sentence": _sentence(e),
        "critical_path": parts(e.timeline),
        "step_us": e.period_us,
        "resources": [one._asdict() for one in e.resources],
        "parameters": [one._asdict() for one in e.elasticities],
        "choices": [one._asdict() for one in e.steps],
        "waves": e.waves._asdict(),
        "roofline": e.roof._asdict(),
        "clock_us": e.clock_us,
    }


def _sentence(e: Explanation) -> str:
    return timelines.limiter_name(e.timeline.pipeline, LIMITERS[e.timeline.figures["limiter"]])


def _show(e: Explanation, machine: Hardware) -> None:
    c = e.timeline.configuration
    data = "calibrated" if machine.calibrated else "not calibrated"
    print(f"{schema.problem_words(c)} on {machine.name} ({data})\n{schema.kernel_words(c)}")
    print(f"{e.timeline.time_us:,.3f} µs, {_sentence(e)}")
    print(f"{path_text(e.timeline)}\n")
    _table(
        f"a step takes {e.period_us:.3f} µs; of it, each resource alone",
        ("resource", "µs", "share", "", "slack µs"),
        [
            (
                one.name,
                f"{one.step_us:.3f}",
                f"{one.step_us / e.period_us:.0%}",
                "█" * round(BAR * min(one.step_us / e.period_us, 1.0)),
                f"{max(one.slack_us, 0.0):.3f}",
            )
            for one in e.resources
            if e.period_us
        ],
        left=(0, 3),
    )
    felt = [one for one in e.elasticities if abs(one.elasticity) >= LEAST_ELASTICITY]
    felt.sort(key=lambda one: -abs(one.elasticity))
    headings = ("parameter", "+1 %", f"+{MORE:.0%}".replace("%", " %"), "without it", "meaning")
    shown = len(headings) if _width() >= ROOMY else len(headings) - 1
    _table(
        "the time, if one parameter of the machine changes (+1 %: by its gradient)",
        headings[:shown],
        [
            (
                one.name,
                f"{one.elasticity:+.2f} %",
                _percent(one.more),
                _percent(one.without),
                PARAMETERS[one.name].meaning,
            )[:shown]
            for one in felt[:MOST_PARAMETERS]
        ],
        left=(0, 4),
    )
    steps = [one for one in e.steps if abs(one.change) >= LEAST_CHANGE]
    steps.sort(key=lambda one: one.change)
    _table(
        "the time, if one choice changes",
        ("choice", "time µs", "change"),
        [(one.name, f"{one.time_us:,.3f}", _percent(one.change)) for one in steps[:MOST_CHOICES]],
        left=(0,),
    )
    for line in _closing(e, machine):
        print(line)


def _closing(e: Explanation, machine: Hardware) -> list[str]:
    """The waves, the roofline and the clock, in a line each."""
    w, time_us = e.waves, e.timeline.time_us
    idle = f"{w.idle:.1%} of the SMs' time is idle"
    if w.waves == 1:
        lines = [f"waves: 1, of {w.last:,} CTAs where {w.slots:,} could run: {idle}"]
    else:
        lost = f"{w.lost_us:,.3f} µs ({_share(w.lost_us, time_us)})"
        each = f"{w.waves:,} of {w.slots:,} CTAs, the last of {w.last:,}"
        lines = [f"waves: {each}: {idle}, which costs at most {lost}"]
    roofs = [(e.roof.compute_us, "flop"), (e.roof.dram_us, "A, B and C through DRAM once")]
    known = [(us, name) for us, name in roofs if us == us]
    if known:
        rates = ", ".join(f"{us:,.3f} µs for {name}" for us, name in known)
        lines.append(
            f"roofline of {machine.name}'s rates: {rates}; the kernel is at "
            f"{_share(max(us for us, _ in known), time_us)} of it"
        )
    if machine.parameters.clock_drop:
        lines.append(
            f"clock: falling under the load, it costs {e.clock_us:,.3f} µs "
            f"({_share(e.clock_us, time_us)})"
        )
    return lines


def _width() -> int:
    return get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def _percent(change: float) -> str:
    return f"{change:+.1%}".replace("%", " %") if math.isfinite(change) else "-"


def _share(part_us: float, whole_us: float) -> str:
    return f"{part_us / whole_us:.1%}" if whole_us else "0.0%"


def _table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    table.title_style = "bold"
    for place, heading in enumerate(headings):
        side = "left" if place in left else "right"
        table.add_column(heading, justify=side, no_wrap=place < len(headings) - 1)
    for row in rows:
        table.add_row(*row)
    Console(width=_width(), markup=False, emoji=False, highlight=False).print(table)
