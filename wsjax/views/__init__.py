"""Timelines and results, drawn."""

from wsjax.views.chrome import write as write_chrome_trace
from wsjax.views.gantt import MOST_STEPS as MOST_STEPS_DRAWN
from wsjax.views.gantt import check_matplotlib, save
from wsjax.views.gantt import write as write_picture
from wsjax.views.gantt_grid import MOST, figure
from wsjax.views.gantt_page import MOST_STEPS as MOST_STEPS_ON_PAGE
from wsjax.views.gantt_page import write as write_timeline_page
from wsjax.views.pages import Report, report
from wsjax.views.pages.html import check_plotly
from wsjax.views.trace_view import lines

__all__ = [
    "MOST",
    "MOST_STEPS_DRAWN",
    "MOST_STEPS_ON_PAGE",
    "Report",
    "check_matplotlib",
    "check_plotly",
    "figure",
    "lines",
    "report",
    "save",
    "write_chrome_trace",
    "write_picture",
    "write_timeline_page",
]
