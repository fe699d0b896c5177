"""One HTML file that needs nothing else: style, script, plotly.js and data in it."""

import base64
import html
import json
from collections.abc import Iterable, Mapping
from importlib import resources
from string import Template
from typing import Any, NamedTuple

import numpy as np

from wsjax import __version__
from wsjax.errors import InputError
from wsjax.tables import finite

EXTRA = "pages are drawn with plotly, which is not installed: pip install 'wsjax[report]'"
TYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "f4": np.float32, "f8": np.float64}


class Section(NamedTuple):
    """A heading and what to say under it; `body` is "figure" or "table". The script fills the
    body of section `name` by its function of that name."""

    name: str
    title: str
    lead: str
    body: str = "figure"


def check_plotly() -> None:
    """Raise InputError if plotly is not there, before any work is done."""
    from importlib.util import find_spec

    if find_spec("plotly") is None:
        raise InputError(EXTRA)


def page(
    title: str,
    sections: Iterable[Section],
    data: Mapping[str, Any],
    scripts: Iterable[str],
    closing: str,
) -> str:
    """The page. `data`: what the scripts (files of `pages/`) read, JSON with arrays as `packed`
    makes them. `closing`: HTML behind the last section."""
    from plotly.offline import get_plotlyjs

    folder = resources.files("wsjax.views") / "pages"
    return Template(_text(folder, "page.html")).substitute(
        title=html.escape(title),
        style=_text(folder, "page.css"),
        sections="\n".join(_section(section) for section in sections),
        closing=closing,
        data=_json(data),
        plotly=get_plotlyjs(),
        script="\n".join(_text(folder, name) for name in ("page.js", *scripts)),
        version=__version__,
    )


def packed(values: np.ndarray, kind: str) -> dict[str, str]:
    """Numbers as bytes in base64, little-endian; `kind`: one of `TYPES`."""
    plain = np.ascontiguousarray(values, np.dtype(TYPES[kind]).newbyteorder("<"))
    return {"type": kind, "bytes": base64.b64encode(plain.tobytes()).decode()}


def folded(summary: str, text: str) -> str:
    """Text as it is, under a line that opens it."""
    return (
        f"<details><summary>{html.escape(summary)}</summary>"
        f"<pre>{html.escape(text.strip())}</pre></details>"
    )


def _section(section: Section) -> str:
    title, lead = html.escape(section.title), html.escape(section.lead)
    return (
        f'<section id="{section.name}"><h2>{title}</h2><p class="lead">{lead}</p>'
        f'<div class="controls"></div><div class="{section.body}"></div></section>'
    )


def _text(folder: Any, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def _json(data: Mapping[str, Any]) -> str:
    """JSON that may stand in a script element: no "<", and null for what is no number."""
    text = json.dumps(finite(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
