"""`compare`: the best kernel of each problem on each machine, and why the times differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax.changes.machines import Changed, each, read_changes, together
from wsjax.changes.searching import Timed, best_kernels, timed
from wsjax.changes.slopes import logarithms, slopes
from wsjax.errors import InputError, gather, nearest
from wsjax.hardware import Hardware, load_hardware
from wsjax.portfolio import Problems, kernel_name, naming, read_frame, read_problems
from wsjax.schema import KERNEL, LIMITERS, Configuration
from wsjax.spec import load_space

if TYPE_CHECKING:
    import pandas as pd

MACHINES_MAX = 4_096
PROBLEMS_SHOWN = 5
TELLING = 0.1
"""Figures that differ by fewer per cent points are not explained."""


@dataclass(frozen=True)
class Comparison:
    """What changes of a machine save of a workload's time on it, as pandas frames.

    `changes`, what saves most first: `time_us` of the workload, `saved_us` and `saved_pct`, each
    problem on its best kernel; `same_kernels_pct` with the base's best kernels, `gradient_pct` by
    the slopes of their times; `elasticity`: per cent of time for one per cent more of what is
    changed, by the slopes, and `finite_elasticity` by what was saved; of how many problems another
    kernel is the best (`switched`), and the base's one has another number of waves (`waves`) or
    another limiter (`limiter`), or is not legal (`illegal`); `why` the three figures differ.

    `problems`: a row a change and problem, the base's first. `groups`: what each change saves in
    each group of problems. `pairs`: what two changes save together, and `interaction_pct`: how much
    more that is than both alone.

    time_us: of the workload on the base. corrected: whether the base has a learned correction,
    which is left out everywhere. kernels: of the space.
    """

    hardware: Hardware = field(repr=False)
    time_us: float
    corrected: bool
    kernels: int
    changes: "pd.DataFrame" = field(repr=False)
    problems: "pd.DataFrame" = field(repr=False)
    groups: "pd.DataFrame" = field(repr=False)
    pairs: "pd.DataFrame" = field(repr=False)

    def record(self) -> dict[str, Any]:
        """For JSON: all but the problems."""
        return {
            "hardware": self.hardware.name,
            "time_us": self.time_us,
            "learned_correction_left_out": self.corrected,
            "kernels": self.kernels,
            **{x: getattr(self, x).to_dict("records") for x in ("changes", "groups", "pairs")},
        }


def compare(
    workload: Any,
    hardware: str | Path | Hardware = "h200",
    changes: Sequence[str] = (),
    *,
    machines: Sequence[str | Path | Hardware] = (),
    each_by: Sequence[str] = (),
    pairs: bool = False,
    by: str | None = None,
    space: Any = None,
) -> Comparison:
    """What changes of a machine would save of a workload's time, each problem on its best kernel.

    workload: a table of problems as `choose` takes it, with weights. changes: each a machine, such
    as "sms=+25%" or "sms=+25%, dram_bytes_per_us=2x" (`python -m pydoc wsjax.changes.machines`).
    machines: others, by name or file. each_by: all that an architect can set, one by one, better by
    an amount such as "+25%". pairs: also every two changes together. by: a column of the workload
    that tells groups of problems. space: the kernels (a space file or `Space`).

    Raises InputError with all mistakes of the arguments.
    """
    given = load_hardware(hardware)
    base = given.physics
    own, others, *more = gather(
        partial(read_changes, base, changes),
        lambda: [Changed(m.name, m.physics, {}) for m in map(load_hardware, machines)],
        *(partial(each, base, amount) for amount in each_by),
    )
    listed = [*own, *others, *(change for some in more for change in some)]
    singles = [*{change.name: change for change in listed}.values()]
    if not singles:
        raise InputError("nothing to compare with; give a change, a machine, or an amount for each")
    two = list(combinations(range(len(singles)), 2)) if pairs else []
    both = [together(base, singles[i], singles[j]) for i, j in two]
    every = [
        Changed(base.name, base, {}),
        *singles,
        *(change for change in both if change is not None),
    ]
    if len(every) > MACHINES_MAX:
        raise InputError(f"{len(every):,} machines, at most {MACHINES_MAX:,} are compared at once")
    frame = read_frame(workload, base)
    with naming(workload):
        problems, codes = read_problems(frame)
        group = _groups(frame, codes, by)
    kernels = load_space(space, base.span)
    machines_ = [change.machine for change in every]
    best = best_kernels(kernels, problems, machines_)
    _check_served(best, problems, base)
    same = timed(kernels, problems, machines_, np.broadcast_to(best.number[0], best.number.shape))
    slope = slopes(Configuration(*(x[0] for x in best.c)), base)
    along = logarithms(machines_, base) @ slope.T
    table = _Table(problems, every, len(singles), best, same, along)
    return Comparison(
        hardware=base,
        time_us=float(table.total_us[0]),
        corrected=given.residual is not None,
        kernels=len(kernels),
        changes=table.changes(),
        problems=table.by_problem(),
        groups=table.by_group(group),
        pairs=table.pairs([pair for pair, x in zip(two, both, strict=True) if x is not None]),
    )


def _groups(frame: "pd.DataFrame", codes: np.ndarray, by: str | None) -> np.ndarray | None:
    """The group of each problem, by a column on which all its rows agree."""
    if by is None:
        return None
    if by not in frame:
        raise InputError(f"by: the workload has no column '{by}'{nearest(by, map(str, frame))}")
    values = frame[by].astype(str).to_numpy()
    first = np.unique(codes, return_index=True)[1]
    other = np.flatnonzero(values != values[first][codes])
    if len(other):
        row, where = int(other[0]), int(first[codes[other[0]]])
        raise InputError(
            f"by: rows {where} and {row} (from 0) are one problem, but column '{by}' says "
            f"'{values[where]}' and '{values[row]}'; make them agree"
        )
    return values[first]


def _check_served(best: Timed, problems: Problems, base: Hardware) -> None:
    unserved = np.flatnonzero(best.number[0] < 0)
    if len(unserved):
        names = ", ".join(problems.label(int(at)) for at in unserved[:PROBLEMS_SHOWN])
        raise InputError(
            f"{len(unserved)} of {len(problems)} problems have no legal kernel on {base.name}, "
            f"such as {names}; widen the space, or leave them out"
        )


class _Table(NamedTuple):
    """What was found, the base first, then `singles` changes, then pairs of them.

    along: (machines, problems) the logarithm of times by the slopes.
    """

    problems: Problems
    every: Sequence[Changed]
    singles: int
    best: Timed
    same: Timed
    along: np.ndarray

    @property
    def total_us(self) -> np.ndarray:
        """Of each machine, each problem on its best kernel."""
        return self.best.time_us @ self.problems.weights

    def saved_pct(self, time_us: np.ndarray) -> np.ndarray:
        """Of the base's time, by times (machines, problems)."""
        return 100 * (1 - time_us @ self.problems.weights / self.total_us[0])

    @property
    def same_us(self) -> np.ndarray:
        """On the base's kernels, as far as they are legal."""
        return np.where(np.isinf(self.same.time_us), self.best.time_us, self.same.time_us)

    def changes(self) -> "pd.DataFrame":
        """`Comparison.changes`."""
        import pandas as pd

        some = np.s_[1 : 1 + self.singles]
        best, same = self.best, self.same
        line_us = best.time_us[0] * np.exp(self.along)
        share = self.problems.weights * best.time_us[0] / self.total_us[0]
        illegal = np.isinf(same.time_us)
        waves, limiter = (~illegal & (x[0] != x) for x in (same.waves, same.limiter))
        ratio = np.array([_ratio(change) for change in self.every])
        with np.errstate(divide="ignore", invalid="ignore"):
            finite = np.log(self.total_us / self.total_us[0]) / np.log(ratio)
            slope = (self.along @ share) / np.log(ratio)
        crossed = np.where(
            waves, "wave boundary", np.where(limiter, "another limiter", "curvature")
        )
        figures = {
            "time_us": self.total_us,
            "saved_us": self.total_us[0] - self.total_us,
            "saved_pct": self.saved_pct(best.time_us),
            "same_kernels_pct": self.saved_pct(self.same_us),
            "gradient_pct": self.saved_pct(line_us),
            "elasticity": slope,
            "finite_elasticity": finite,
            "switched": np.sum(best.number != best.number[0], axis=1),
            "waves": np.sum(waves, axis=1),
            "limiter": np.sum(limiter, axis=1),
            "illegal": np.sum(illegal, axis=1),
        }
        frame = pd.DataFrame({"change": [x.name for x in self.every[some]]})
        frame["values"] = [_values(change) for change in self.every[some]]
        frame = frame.assign(**{name: values[some] for name, values in figures.items()})
        frame["why"] = [
            self._why(at, line_us[at], crossed[at]) for at in range(1, 1 + self.singles)
        ]
        return frame.sort_values("saved_pct", ascending=False, kind="stable", ignore_index=True)

    def _why(self, at: int, line_us: np.ndarray, crossed: np.ndarray) -> str:
        """Why a change's figures differ, what matters most first."""
        if without := int(np.sum(self.best.number[at] < 0)):
            return f"{without} problems have no legal kernel"
        points = 100 * self.problems.weights / self.total_us[0]
        switch = points * (self.same_us[at] - self.best.time_us[at])
        gaps = {"another kernel is best": (switch, switch != 0)}
        if np.isfinite(line_us).all():
            bent = points * (line_us - self.same_us[at])
            gaps |= {
                word: (bent, crossed == word)
                for word in ("wave boundary", "another limiter", "curvature")
            }
        found = [
            (float(gap[rows].sum()), int(rows.sum()), word) for word, (gap, rows) in gaps.items()
        ]
        return "; ".join(
            f"{word}: {count} problem{'s' * (count != 1)}, {gap:+.1f} points"
            for gap, count, word in sorted(found, key=lambda one: -abs(one[0]))
            if abs(gap) >= TELLING
        )

    def by_problem(self) -> "pd.DataFrame":
        """`Comparison.problems`."""
        import pandas as pd

        count, best = 1 + self.singles, self.best
        kernels = np.full((count, len(self.problems)), "", object)
        for at in zip(*np.nonzero(best.number[:count] >= 0), strict=True):
            kernels[at] = kernel_name({x: int(getattr(best.c, x)[at]) for x in KERNEL})
        base_us = np.tile(best.time_us[0], count)
        time_us = best.time_us[:count].ravel()
        labels = [self.problems.label(at) for at in range(len(self.problems))]
        return pd.DataFrame(
            {
                "change": np.repeat(
                    [change.name for change in self.every[:count]], len(self.problems)
                ),
                "problem": labels * count,
                "weight": np.tile(self.problems.weights, count),
                "time_us": time_us,
                "saved_pct": 100 * (1 - time_us / base_us),
                "same_kernel_us": self.same.time_us[:count].ravel(),
                "gradient_us": base_us * np.exp(self.along[:count].ravel()),
                "kernel": kernels.ravel(),
                "waves": best.waves[:count].ravel(),
                "limiter": [
                    "" if np.isnan(code) else LIMITERS[int(code)]
                    for code in best.limiter[:count].ravel()
                ],
            }
        )

    def by_group(self, group: np.ndarray | None) -> "pd.DataFrame":
        """`Comparison.groups`."""
        import pandas as pd

        rows = []
        for name in () if group is None else dict.fromkeys(group):
            mine = group == name
            total = self.best.time_us[:, mine] @ self.problems.weights[mine]
            share = 100 * total[0] / self.total_us[0]
            rows += [
                {
                    "change": self.every[at].name,
                    "group": name,
                    "share_pct": share,
                    "time_us": total[at],
                    "saved_pct": 100 * (1 - total[at] / total[0]),
                }
                for at in range(1, 1 + self.singles)
            ]
        return pd.DataFrame(rows)

    def pairs(self, parts: Sequence[tuple[int, int]]) -> "pd.DataFrame":
        """`Comparison.pairs`; parts: the two changes of each, counted from 0."""
        import pandas as pd

        saved = self.saved_pct(self.best.time_us)
        rows = [
            {
                "change": self.every[1 + i].name,
                "other": self.every[1 + j].name,
                "saved_pct": saved[at],
                "interaction_pct": saved[at] - saved[1 + i] - saved[1 + j],
            }
            for at, (i, j) in enumerate(parts, 1 + self.singles)
        ]
        return (
            pd.DataFrame(rows).sort_values(
                "saved_pct", ascending=False, kind="stable", ignore_index=True
            )
            if rows
            else pd.DataFrame()
        )


def _ratio(change: Changed) -> float:
    """By what factor a change of one number changes it; NaN for others."""
    if len(change.parts) != 1:
        return np.nan
    ((before, after),) = change.parts.values()
    return after / before if before else np.nan


def _values(change: Changed) -> str:
    return ", ".join(f"{before:.6g} to {after:.6g}" for before, after in change.parts.values())
