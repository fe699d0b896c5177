"""What `optimize` minimises: one figure, figures in order, their weighted sum, or a Pareto front.

    time                        the fastest kernel
    time,math_wait              of the fastest those whose MATH warps wait least
    0.7*time+0.3*math_wait      a weighted sum: µs and bytes as they are
    pareto:time,smem_bytes      all kernels that no other beats in one figure and equals in the rest

Scores are whole numbers: millionths of a figure's unit, which are picoseconds for times. Figures
that differ by less are equal, so that ties break alike on every machine.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsjax.errors import InputError, nearest

FIGURES = {
    "time": "time_us",
    "math_wait": "math_wait_us",
    "dma_wait": "dma_wait_us",
    "smem_bytes": "smem_bytes",
}
"""What can be minimised, and the prediction's column of it."""
MILLION = 1e6
ROUNDING = 1e-9
"""How far, relatively, rounding may lift a lower bound over the exact value."""
PARETO = "pareto:"
TERM = re.compile(r"(?:(?P<weight>[^*]*)\*)?(?P<name>[^*]*)")


@dataclass(frozen=True)
class Objective:
    """`parts` in order of importance, each a weighted sum of columns; `pareto`: none is first."""

    text: str
    parts: tuple[dict[str, float], ...]
    pareto: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The prediction's columns that are read."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part))

    def scores(self, figures: Mapping[str, Any]) -> np.ndarray:
        """(parts, rows): whole numbers in float64, from the prediction's columns."""
        return np.stack([np.rint(_sum(part, figures) * MILLION) for part in self.parts])

    def bounds(self, figures: Mapping[str, Any]) -> np.ndarray:
        """(parts, rows): whole numbers that `scores` does not go below; absent figures are >= 0."""
        known = {name: figures.get(name, 0.0) for name in self.columns}
        rows = np.shape(next(iter(figures.values())))
        least = [_sum(part, known) * MILLION * (1.0 - ROUNDING) for part in self.parts]
        return np.stack([np.broadcast_to(np.floor(values), rows) for values in least])


def _sum(part: Mapping[str, float], figures: Mapping[str, Any]) -> np.ndarray:
    terms = [weight * np.asarray(figures[name], float) for name, weight in part.items()]
    return np.asarray(sum(terms[1:], terms[0]))


def parse_objective(text: str) -> Objective:
    """Read an objective. Raises InputError with all its mistakes."""
    if not isinstance(text, str):
        raise InputError(f"objective: expected text such as 'time', not {text!r}")
    stripped = text.strip()
    pareto = stripped.startswith(PARETO)
    body = stripped.removeprefix(PARETO)
    problems: list[str] = []
    parts = tuple(_part(piece, problems) for piece in body.split(","))
    names = [tuple(part) for part in parts]
    if not problems and len(set(names)) < len(names):
        problems.append("a figure is there twice; leave one out")
    if not problems and pareto and len(parts) < 2:
        problems.append("a front needs two figures or more, such as pareto:time,smem_bytes")
    if problems:
        raise InputError(f"objective '{text}': {problem}" for problem in problems)
    return Objective(stripped, parts, pareto)


def _part(text: str, problems: list[str]) -> dict[str, float]:
    """One part: figures with weights, `+` between them."""
    part: dict[str, float] = {}
    for term in re.split(r"(?<![0-9.][eE])\+", text):
        match = TERM.fullmatch(term.strip())
        if match is None:
            problems.append(f"'{term.strip()}' is no weight * figure, such as 0.7*time")
            continue
        name = match["name"].strip().removesuffix("_us")
        if name not in FIGURES:
            problems.append(f"'{match['name'].strip()}' can't be minimised{nearest(name, FIGURES)}")
            continue
        weight = 1.0 if match["weight"] is None else _weight(match["weight"].strip(), problems)
        if FIGURES[name] in part:
            problems.append(f"'{name}' is in one sum twice; add its weights")
        part[FIGURES[name]] = weight
    return part


def _weight(text: str, problems: list[str]) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        problems.append(f"'{text}' is no weight: it must be a finite number above 0")
        return 1.0
    return weight
