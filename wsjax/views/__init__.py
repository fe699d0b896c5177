"""Timelines and results, drawn.

Timelines: `timeline_text` is one in lines for a terminal, `write_timeline` one in a file (Chrome's
trace format for Perfetto, an HTML page, a still picture; `check_timeline_file` beforehand), and
`write_comparisons` several traced kernels under their predictions in one picture.

Results: `report` makes one HTML page of a sweep's directory, or of the directory that `calibrate`
or `validate` wrote with --report. A page is one file with its style, scripts, plotly.js and data in
it. Python reduces the tables to what fits a page (`sweep_rows`: the fastest row of each kernel,
problem and machine; `fit_page`: measured rows, or bins of them) and packs numbers as base64; the
scripts of `pages/` draw and filter them.

`tornado_svg` draws what changes of a machine save.

The verbs `trace`, `compare` and `report` call this package. Read next: `wsjax.timelines` (what a
timeline is), `sweep_page`, `pages/page.js` (what all pages share).
"""

from wsjax.views.report import Report, report
from wsjax.views.timeline_files import (
    KERNELS_MOST,
    check_timeline_file,
    write_comparisons,
    write_timeline,
)
from wsjax.views.timeline_text import timeline_text
from wsjax.views.tornado import tornado_svg

__all__ = [
    "KERNELS_MOST",
    "Report",
    "check_timeline_file",
    "report",
    "timeline_text",
    "tornado_svg",
    "write_comparisons",
    "write_timeline",
]
