"""`wsjax explain`: why one configuration takes its time, and what would make it shorter."""

import math
from typing import TYPE_CHECKING, Any

from wsjax.cli.app import NOTHING_GIVEN, AsJson, ConfigurationOptions, HardwareName, app
from wsjax.cli.terminal import on_machine, show_extrapolation, show_json, show_table, telling
from wsjax.errors import gather

if TYPE_CHECKING:
    from wsjax.hardware import Hardware
    from wsjax.timelines import Explanation

LEAST_ELASTICITY, LEAST_CHANGE = 0.002, 0.001
"""What matters less is not shown."""
MOST_PARAMETERS, MOST_CHOICES = 12, 14
BAR = 20


@app.command
def explain(
    *,
    configuration: ConfigurationOptions = NOTHING_GIVEN,
    hardware: HardwareName = "h200",
    json: AsJson = False,
) -> int:
    """Say why one configuration takes its time, and what would make it shorter.

    wsjax explain -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4

    Resources: what each would take alone of a step, and how much it has to spare. Then the effect
    of each of the machine's parameters and of one more or less stage, tile size or warp; waves; and
    the time over the roofline's.
    """
    from wsjax import schema, timelines
    from wsjax.hardware import load_hardware, resolve_one

    machine, numbers = gather(
        lambda: load_hardware(hardware), lambda: schema.from_options(configuration.given())
    )
    with telling("explaining the kernel", quiet=json):
        explanation = timelines.explanation(resolve_one(numbers, machine), machine)
    if json:
        show_json(record(explanation))
    else:
        _show(explanation, machine)
    return 0


def record(e: "Explanation") -> dict[str, Any]:
    """All figures, as JSON has them."""
    from wsjax.schema import LIMITERS
    from wsjax.timelines import parts

    return {
        "time_us": e.timeline.predicted_us,
        "recurrences_us": e.timeline.time_us,
        "limiter": LIMITERS[e.timeline.figures["limiter"]],
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


def _sentence(e: "Explanation") -> str:
    from wsjax.schema import LIMITERS
    from wsjax.timelines import limiter_name

    return limiter_name(e.timeline.pipeline, LIMITERS[e.timeline.figures["limiter"]])


def _show(e: "Explanation", machine: "Hardware") -> None:
    from wsjax import schema
    from wsjax.hardware import PARAMETERS
    from wsjax.timelines import MORE, path_text

    c = e.timeline.configuration
    print(f"{schema.problem_words(c)} {on_machine(machine)}\n{schema.kernel_words(c)}")
    show_extrapolation(machine, c._asdict())
    t = e.timeline
    print(f"{t.predicted_us:,.3f} µs, {_sentence(e)}")
    corrected = t.predicted_us != t.time_us
    if corrected:
        change = _percent(t.predicted_us / t.time_us - 1.0)
        print(
            f"the learned correction is {change} of it; all below but other choices is by the "
            f"recurrences alone, {t.time_us:,.3f} µs"
        )
    print(f"{path_text(t)}\n")
    resources = [
        (
            one.name,
            f"{one.step_us:.3f}",
            f"{one.step_us / e.period_us:.0%}",
            "█" * round(BAR * min(one.step_us / e.period_us, 1.0)),
            f"{max(one.slack_us, 0.0):.3f}",
        )
        for one in e.resources
        if e.period_us
    ]
    show_table(
        ("resource", "µs", "share", "", "slack µs"),
        resources,
        left=(0, 3),
        title=f"a step takes {e.period_us:.3f} µs; of it, each resource alone",
    )
    felt = [one for one in e.elasticities if abs(one.elasticity) >= LEAST_ELASTICITY]
    felt.sort(key=lambda one: -abs(one.elasticity))
    parameters = [
        (
            one.name,
            f"{one.elasticity:+.2f} %",
            _percent(one.more),
            _percent(one.without),
            PARAMETERS[one.name].meaning,
        )
        for one in felt[:MOST_PARAMETERS]
    ]
    show_table(
        ("parameter", "+1 %", f"+{MORE:.0%}".replace("%", " %"), "without it", "meaning"),
        parameters,
        left=(0, 4),
        spare=(4,),
        title="the time, if one parameter of the machine changes (+1 %: by its gradient)",
    )
    steps = [one for one in e.steps if abs(one.change) >= LEAST_CHANGE]
    steps.sort(key=lambda one: one.change)
    show_table(
        ("choice", "time µs", "change"),
        [(one.name, f"{one.time_us:,.3f}", _percent(one.change)) for one in steps[:MOST_CHOICES]],
        title="the time, if one choice changes",
    )
    for line in _closing(e, machine):
        print(line)


def _closing(e: "Explanation", machine: "Hardware") -> list[str]:
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


def _percent(change: float) -> str:
    return f"{change:+.1%}".replace("%", " %") if math.isfinite(change) else "-"


def _share(part_us: float, whole_us: float) -> str:
    return f"{part_us / whole_us:.1%}" if whole_us else "0.0%"
