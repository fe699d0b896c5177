"""Tables of traced kernels beside their predictions: the period of a step, and its error."""

from collections.abc import Sequence

import numpy as np

from wsjax.schema import SCHEDULES, Configuration
from wsjax.timelines import Comparison, over_ctas

LISTED = 24
"""More kernels of several problems are shown as configurations by problems."""


def show(compared: Sequence[Sequence[Comparison]]) -> None:
    """Print the kernels' periods, the measured ones as means over their CTAs."""
    problems = {_problem(one[0].timeline.configuration): None for one in compared}
    if len(compared) > LISTED and len(problems) > 1:
        _print(*_by_problem(compared, list(problems)))
    else:
        _print(*_listed(compared))
    errors = np.array([error(one) for one in compared])
    errors = errors[np.isfinite(errors)]
    if len(errors) > 1:
        print(
            f"error of a step's period: mean {np.mean(errors):+.1%}, "
            f"mean absolute {np.mean(np.abs(errors)):.1%}, "
            f"from {errors.min():+.1%} to {errors.max():+.1%}"
        )


def error(one: Sequence[Comparison]) -> float:
    """Of a kernel's predicted period, relative to the mean over its CTAs."""
    return over_ctas(one).error


def _listed(compared: Sequence[Sequence[Comparison]]) -> tuple[list[str], list[list[str]]]:
    headings = ["problem", *_HEADINGS, "CTAs", "step, predicted", "measured", "error"]
    rows = []
    for one in compared:
        c = one[0].timeline.configuration
        mean = over_ctas(one)
        figures = [
            f"{mean.predicted_us:.3f} µs",
            f"{mean.measured_us:.3f} µs",
            f"{error(one):+.1%}",
        ]
        rows.append([_problem(c), *_cells(c), f"{len(one)}", *figures])
    return headings, rows


def _by_problem(
    compared: Sequence[Sequence[Comparison]], problems: list[str]
) -> tuple[list[str], list[list[str]]]:
    """Errors: a row a configuration, a column a problem."""
    print("error of a step's period, predicted to measured")
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for one in compared:
        c = one[0].timeline.configuration
        found.setdefault(tuple(_cells(c)), {})[_problem(c)] = error(one)
    rows = [
        [
            *cells,
            *(f"{own[name]:+.1%}" if name in own else "" for name in problems),
            f"{np.nanmean(np.abs(list(own.values()))):.1%}",
        ]
        for cells, own in found.items()
    ]
    return [*_HEADINGS, *problems, "mean absolute"], rows


_HEADINGS = ("tile", "stages", "DMA", "MATH", "schedule")


def _cells(c: Configuration) -> list[str]:
    tile = f"{c.block_m}x{c.block_n}x{c.block_k}"
    return [tile, f"{c.stages}", f"{c.dma_warps}", f"{c.math_warps}", SCHEDULES[c.schedule]]


def _problem(c: Configuration) -> str:
    return f"{c.m}x{c.n}x{c.k}"


def _print(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    import sys

    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        left = heading in ("problem", "tile", "schedule")
        table.add_column(heading, justify="left" if left else "right")
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 140
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)
