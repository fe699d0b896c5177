"""When each load and compute happens, and why."""

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
