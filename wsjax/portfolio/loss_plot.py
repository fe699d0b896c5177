"""A picture of what few kernels cost: the loss against every kernel available, as SVG."""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 56, 48
TICKS = 5


class Point(NamedTuple):
    """With `k` kernels the loss is `loss_pct`, and no set has less than `bound_pct`."""

    k: int
    loss_pct: float
    bound_pct: float
    proved: bool


def loss_svg(points: Sequence[Point], title: str) -> str:
    """An SVG file's text. Full dots are proved to be the best; of others a bar shows how much
    better they could be."""
    step = _step(max((point.loss_pct for point in points), default=0.0))
    top = step * max(1, ceil(max(point.loss_pct for point in points) / step))
    last = max(point.k for point in points)
    across = (WIDTH - LEFT - RIGHT) / max(last, 1)
    up = (HEIGHT - TOP - BOTTOM) / top

    def place(k: int, pct: float) -> tuple[float, float]:
        return LEFT + across * (k - 0.5), HEIGHT - BOTTOM - up * pct

    parts = [
        _text(LEFT, 22, title, "start", 15),
        _text(LEFT, 42, "time above that with every kernel available, %", "start"),
        _text(WIDTH - RIGHT, HEIGHT - 10, "kernels", "end"),
    ]
    for number in range(round(top / step) + 1):
        _, y = place(1, number * step)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "#ddd"))
        parts.append(_text(LEFT - 8, y + 4, f"{number * step:.6g}", "end"))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(p.k, p.loss_pct) for p in points))
    parts.append(f'<polyline points="{path}" fill="none" stroke="#1f6feb" stroke-width="2"/>')
    every = ceil(last / 20)
    for point in points:
        x, y = place(point.k, point.loss_pct)
        fill = "#1f6feb" if point.proved else "white"
        if not point.proved:
            parts.append(_line(x, y, x, place(point.k, point.bound_pct)[1], "#1f6feb"))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="#1f6feb"/>')
        if point.k % every == 0 or point.k == 1:
            parts.append(_text(x + 6, y - 6, f"{point.loss_pct:.3g}", "start"))
            parts.append(_text(x, HEIGHT - BOTTOM + 18, str(point.k), "middle"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" role="img">\n<rect width="100%" height="100%" fill="white"/>\n'
        f"{body}\n</svg>\n"
    )


def _step(greatest: float) -> float:
    """A round distance between lines: 1, 2 or 5 times a power of ten."""
    if greatest <= 0:
        return 1.0
    raw = greatest / TICKS
    power = 10.0 ** floor(log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )
