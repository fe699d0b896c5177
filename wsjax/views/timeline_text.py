"""A timeline as a few lines of text: the whole kernel, and its first steps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from wsjax.timelines import (
    COLD,
    COMPUTE,
    EPILOGUE,
    LAUNCH,
    LOAD,
    QUEUE,
    WAIT,
    WAVE,
    Scene,
    Slices,
    Window,
    covered,
)

if TYPE_CHECKING:
    from rich.text import Text

LABEL = 23
STYLES = {
    LAUNCH: "bright_black",
    WAVE: "bright_black",
    COLD: "yellow",
    WAIT: "bright_black",
    QUEUE: "cyan",
    LOAD: "blue",
    COMPUTE: "green",
    EPILOGUE: "magenta",
}
MARKS = {LAUNCH: "-", COLD: "~", WAIT: "·", QUEUE: "░", LOAD: "█", COMPUTE: "█", EPILOGUE: "▓"}
WORDS = {
    LAUNCH: "launch",
    LOAD: "load",
    COMPUTE: "compute",
    EPILOGUE: "epilogue",
    QUEUE: "queue for the transfer",
    WAIT: "wait",
    COLD: "cold first wave",
}
HEIGHTS = " ▁▂▃▄▅▆▇█"
PATH_STYLE = "bold bright_red"
LETTERS = {LOAD: "L", COMPUTE: "C", EPILOGUE: "E"}
SHARE = 0.02
"""Less of a column does not show."""


def timeline_text(scene: Scene, width: int) -> Iterator["Text"]:
    """The whole kernel and its first steps, in lines of at most `width` columns."""
    from rich.text import Text

    columns = width - LABEL
    yield _heading("the whole kernel", 0.0, scene.time_us, width)
    edges = np.linspace(0.0, scene.time_us, columns + 1)
    yield _labelled("output tiles", _tiles(scene, edges))
    for track, label in enumerate(scene.labels[1:], start=1):
        yield _labelled(label, _busy(scene.slices.take(scene.slices.track == track), edges))
    window = scene.windows[0]
    edges = np.linspace(window.begin_us, window.end_us, columns + 1)
    yield Text()
    yield _heading(window.name, window.begin_us, window.end_us, width)
    for track, label in enumerate(scene.labels[1:], start=1):
        row = scene.slices.take(scene.slices.track == track)
        yield _labelled(label, _steps(row, edges, scene.k_tiles))
    yield _labelled("ring slots filled", _ring(scene, edges))
    yield _labelled("critical path", _path(scene, edges))
    yield from _measured(scene, window, edges)
    yield Text()
    yield from _legend(scene)


def _labelled(label: str, drawn: "Text") -> "Text":
    from rich.text import Text

    return Text(f"{label:<{LABEL}}"[:LABEL]) + drawn


def _heading(name: str, begin_us: float, end_us: float, width: int) -> "Text":
    from rich.text import Text

    begin, end = f"{begin_us:,.2f}", f"{end_us:,.2f} µs"
    between = " " * max(width - LABEL - len(begin) - len(end), 1)
    return Text(f"{name:<{LABEL}}"[:LABEL], "bold") + Text(f"{begin}{between}{end}", "dim")


def _tiles(scene: Scene, edges: np.ndarray) -> "Text":
    """The CTA's output tiles with their numbers, where there is room; else how many there are."""
    from rich.text import Text

    waves = scene.slices.take(scene.slices.kind == WAVE)
    at = np.searchsorted(edges, waves.begin_us, side="right") - 1
    count = int(waves.steps.sum()) // scene.k_tiles
    sizes = np.diff(np.append(at, len(edges) - 1))
    start = Text("-" * int(at[0]), STYLES[LAUNCH])
    if sizes.min() < len(str(count)) + 1:
        return start + Text(f"{count:,} tiles".center(len(edges) - 1 - int(at[0]), "─"))
    return start + Text("").join(
        Text(f"│{f'{number}'.center(size - 1, '─')}") for number, size in enumerate(sizes, start=1)
    )


def _coverage(row: Slices, edges: np.ndarray, kinds: tuple[int, ...]) -> np.ndarray:
    """The share of each column that the slices of each kind take."""
    spent = [covered(row.take(row.kind == kind), edges) for kind in kinds]
    return np.stack(spent) / np.diff(edges)


def _busy(row: Slices, edges: np.ndarray) -> "Text":
    """How busy a track is, as the height of blocks in the colour of what it mostly does."""
    kinds = (LOAD, COMPUTE, EPILOGUE, QUEUE)
    share = _coverage(row, edges, kinds)
    levels = np.rint(np.clip(share.sum(axis=0), 0, 1) * (len(HEIGHTS) - 1)).astype(int)
    marks = [HEIGHTS[level] for level in levels]
    return _styled(marks, [STYLES[kinds[most]] for most in share.argmax(axis=0)])


def _steps(row: Slices, edges: np.ndarray, k_tiles: int) -> "Text":
    """What a track does in each column; a step begins with the last digit of its number."""
    kinds = (LOAD, COMPUTE, EPILOGUE, QUEUE, WAIT, COLD)
    share = _coverage(row, edges, kinds)
    most = share.argmax(axis=0)
    marks = [
        MARKS[kinds[place]] if amount > SHARE else " "
        for place, amount in zip(most, share.max(axis=0), strict=True)
    ]
    styles = [STYLES[kinds[place]] for place in most]
    starts = row.take((row.kind == LOAD) | (row.kind == COMPUTE))
    begins = np.searchsorted(edges, starts.begin_us + np.diff(edges)[0] / 2, side="right") - 1
    for column, kind, step in zip(begins, starts.kind, starts.step, strict=True):
        if 0 <= column < len(marks) and kinds[most[column]] == kind and marks[column] != " ":
            marks[column] = f"{step % k_tiles % 10}"
            styles[column] = f"bold white on {STYLES[kind]}"
    return _styled(marks, styles)


def _ring(scene: Scene, edges: np.ndarray) -> "Text":
    from rich.text import Text

    times, filled, _ = scene.ring
    middle = (edges[:-1] + edges[1:]) / 2
    at = np.searchsorted(times, middle, side="right") - 1
    levels = np.where(at >= 0, filled[np.maximum(at, 0)], 0)
    return Text("".join(f"{level}" if level < 10 else "+" for level in levels), "dim")


def _path(scene: Scene, edges: np.ndarray) -> "Text":
    """What the critical path does in each column; where it is none of these, it is latency."""
    kinds = tuple(LETTERS)
    share = _coverage(scene.slices.take(scene.slices.critical), edges, kinds)
    line = scene.line.time_us
    within = np.minimum(edges[1:], line.max(initial=0.0)) - np.maximum(
        edges[:-1], line.min(initial=np.inf)
    )
    within = within / np.diff(edges)
    letters = [
        " " if part < SHARE else LETTERS[kinds[most]] if amount >= 0.5 * part else "="
        for part, most, amount in zip(within, share.argmax(axis=0), share.max(axis=0), strict=True)
    ]
    return _styled(letters, [PATH_STYLE] * len(letters))


def _measured(scene: Scene, window: Window, edges: np.ndarray) -> Iterator["Text"]:
    for cta, shift in zip(scene.measured, window.shift_us, strict=True):
        moved = cta.slices.moved(shift)
        for track, label in enumerate(cta.labels):
            row = moved.take(moved.track == track)
            yield _labelled(f"{label}, measured", _steps(row, edges, scene.k_tiles))


def _legend(scene: Scene) -> Iterator["Text"]:
    from rich.text import Text

    shown = set(scene.slices.kind.tolist())
    parts = [
        Text.assemble((MARKS[kind], STYLES[kind]), f" {word}")
        for kind, word in WORDS.items()
        if kind in shown
    ]
    yield Text("   ").join(parts)
    yield Text("critical path: L load, C compute, E epilogue, = latency", PATH_STYLE)


def _styled(marks: list[str], styles: list[str]) -> "Text":
    """Marks in their styles, neighbours of one style together."""
    from rich.text import Text

    text = Text()
    begin = 0
    for place in range(1, len(marks) + 1):
        if place == len(marks) or styles[place] != styles[begin]:
            text.append("".join(marks[begin:place]), styles[begin])
            begin = place
    return text
