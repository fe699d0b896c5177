"""When each load and compute of a kernel happens, and why.

**What it is for.** `trace` plays one configuration step by step and gives its events, its waits and
its critical path; `explain` says what limits it and what would make it faster; traced kernels are
laid beside predictions, and `replay_trace` asks the recurrences to explain a trace's waits.

**In order.** `steps`: the recurrences' own scan (`wsjax.model.played`) with every event kept, and
the critical path through them. `timeline`: these events stretched so that the cold first and the
partial last wave fit in, and the end is the predicted time. `slices`: a timeline as slices of time
on tracks, one a warp role, condensed where it is long. `scene`: what a picture shows, measured rows
under predicted ones. `traces`: traced kernels, read and checked. `replay`: traces against the
recurrences. `explaining`: elasticities, neighbours, resources, waves, roofline.

**What calls it.** `wsjax.views` draws slices and scenes; the verbs `trace`, `explain` and
`validate --trace` print them.

**What to read next.** `wsjax.model.events` for the recurrences; `wsjax.timelines.steps`, then
`wsjax.timelines.timeline`.
"""

from wsjax.timelines.explaining import MORE, Explanation, explain, explanation
from wsjax.timelines.replay import check, replay_trace, summary
from wsjax.timelines.scene import (
    Comparison,
    MeasuredScene,
    Scene,
    Window,
    compare,
    measured,
    over_ctas,
    parts,
    path_text,
    title,
)
from wsjax.timelines.scene import scene as scene_of
from wsjax.timelines.slices import (
    COLD,
    COMPUTE,
    EPILOGUE,
    KINDS,
    LAUNCH,
    LOAD,
    QUEUE,
    WAIT,
    WAVE,
    Slices,
    covered,
    filled_slots,
    tracks,
)
from wsjax.timelines.slices import slices as slices_of
from wsjax.timelines.steps import limiter_name
from wsjax.timelines.timeline import Timeline, trace
from wsjax.timelines.timeline import timeline as timeline_of
from wsjax.timelines.traces import Trace, configuration, read

__all__ = [
    "COLD",
    "COMPUTE",
    "EPILOGUE",
    "KINDS",
    "LAUNCH",
    "LOAD",
    "MORE",
    "QUEUE",
    "WAIT",
    "WAVE",
    "Comparison",
    "Explanation",
    "MeasuredScene",
    "Scene",
    "Slices",
    "Timeline",
    "Trace",
    "Window",
    "check",
    "compare",
    "configuration",
    "covered",
    "explain",
    "explanation",
    "filled_slots",
    "limiter_name",
    "measured",
    "over_ctas",
    "parts",
    "path_text",
    "read",
    "replay_trace",
    "scene_of",
    "slices_of",
    "summary",
    "timeline_of",
    "title",
    "trace",
    "tracks",
]
