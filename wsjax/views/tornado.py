"""What changes of a machine save, as a tornado: a bar a change, the longest at the top."""

import math
from typing import TYPE_CHECKING

from wsjax.portfolio import round_step, svg, svg_line, svg_text

if TYPE_CHECKING:
    from wsjax.changes import Comparison

WIDTH, ROW, TOP, BOTTOM = 960, 20, 84, 28
MARGIN = 24
LETTER = 6.6
"""The width of a letter."""
NAME_MAX = 52
VALUE = 56
"""Room for a figure beside a bar."""
SAVED, LOST, INK, GRID = "#0072b2", "#d55e00", "#1c2128", "#d5dbe1"


def tornado_svg(comparison: "Comparison", most: int = 256) -> str:
    """The first `most` changes by the length of their bars: saved time in per cent of the
    workload's, each problem on its best kernel; a line across the bar: with the base's kernels; a
    circle: by the slopes at the base."""
    frame = comparison.changes
    finite = (row for row in frame.to_dict("records") if math.isfinite(row["saved_pct"]))
    rows = sorted(finite, key=lambda row: -abs(row["saved_pct"]))[:most]
    names = [_short(str(row["change"])) for row in rows]
    left = MARGIN + LETTER * max(map(len, names), default=0)
    values = [row["saved_pct"] for row in rows] + [row["same_kernels_pct"] for row in rows]
    low, high = min([0.0, *values]), max([0.0, *values])
    step = round_step(max(high - low, 1e-9))
    start = left + (VALUE if low < 0 else 8)
    scale = (WIDTH - MARGIN - VALUE - start) / max(high - low, 1e-9)
    bottom = TOP + ROW * len(rows)

    def at(pct: float) -> float:
        return start + scale * (min(max(pct, low), high) - low)

    parts = [
        svg_text(MARGIN, 24, f"What a change of {comparison.hardware.name} saves", "start", 16),
        svg_text(
            MARGIN,
            44,
            f"% of {comparison.time_us:,.1f} µs, each problem on its best kernel;",
            "start",
        ),
        svg_text(
            MARGIN, 60, "line: on the base's kernels; circle: by the gradient at the base", "start"
        ),
    ]
    for tick in range(int(low / step) - (low < 0), int(high / step) + 1):
        if low <= tick * step <= high:
            parts.append(svg_line(at(tick * step), TOP - 4, at(tick * step), bottom, GRID))
            parts.append(svg_text(at(tick * step), bottom + 16, f"{tick * step:.6g}", "middle"))
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        y, saved = TOP + ROW * place, row["saved_pct"]
        x1, x2 = sorted((at(0.0), at(saved)))
        parts.append(
            f'<rect x="{x1:.1f}" y="{y + 3}" width="{x2 - x1:.1f}" height="{ROW - 6}" '
            f'fill="{SAVED if saved >= 0 else LOST}"/>'
        )
        parts.append(svg_text(left, y + 14, name, "end"))
        beside, anchor = (x2 + 8, "start") if saved >= 0 else (x1 - 8, "end")
        parts.append(svg_text(beside, y + 14, f"{saved:+.2f}", anchor, 11))
        same, slope = row["same_kernels_pct"], row["gradient_pct"]
        parts.append(svg_line(at(same), y + 1, at(same), y + ROW - 1, INK))
        if low <= slope <= high:
            parts.append(
                f'<circle cx="{at(slope):.1f}" cy="{y + ROW / 2}" r="3.5" fill="white" '
                f'stroke="{INK}"/>'
            )
    parts.append(svg_line(at(0.0), TOP - 4, at(0.0), bottom, INK))
    return svg(WIDTH, bottom + BOTTOM, parts)


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 1]}…"
