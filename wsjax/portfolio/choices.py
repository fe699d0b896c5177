"""A choice of kernels as frames: the set, which kernel each problem gets, and the loss."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import schema, tables
from wsjax.hardware import Hardware, resolve
from wsjax.portfolio import export
from wsjax.portfolio.sets import Chosen, Demand
from wsjax.portfolio.workloads import Offer
from wsjax.schema import PROBLEM

if TYPE_CHECKING:
    import pandas as pd

KIND = ("dtype_in", "dtype_out", "layout")
"""The columns of a problem that a compiled kernel is made for."""


class Measured(NamedTuple):
    """A set chosen from predictions, in measured times, in µs.

    time_us: each problem on what is really the best of the set; picked_us: on the one of the set
    that is predicted to be the best. hindsight_us: of the best set that measurements would have
    chosen, `hindsight`, which is `proved` to be that. all_us: with every kernel.
    """

    time_us: float
    picked_us: float
    hindsight_us: float
    all_us: float
    hindsight: tuple[str, ...]
    proved: bool

    @property
    def excess_pct(self) -> float:
        """By how many per cent the set takes more than the one chosen with hindsight."""
        return slower_pct(self.time_us, self.hindsight_us)

    @property
    def picked_excess_pct(self) -> float:
        """The same where predictions also pick each problem's kernel."""
        return slower_pct(self.picked_us, self.hindsight_us)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        excess = {"excess_pct": self.excess_pct, "picked_excess_pct": self.picked_excess_pct}
        return {**self._asdict(), "hindsight": list(self.hindsight), **excess}


@dataclass(frozen=True)
class Choice:
    """At most k kernels for a workload, and what they cost.

    Frames of the kind that the workload was (pandas or Arrow): `kernels`: those chosen, the one
    that takes the most time first: name, columns, how many problems use it, its share of the time
    in per cent, its build cost. `assignment`: each problem with its kernel and time, the best of
    all available kernels with its time, and how much slower the problem is than on that, in per
    cent. `loss`: for each number of kernels up to k with which there is a set: its time, the bound
    of it, by how much it is slower than with all available kernels, and by how much on the worst
    problem, both in per cent, whether it is proved to be the best, and its kernels.

    time_us: weighted, of all problems; no set takes less than `bound_us`; `proved`: this one takes
    no more, but for `rounding_us`. all_us: with all available kernels. available, candidates: how
    many kernels can run anything, and are left without those that others can stand for.
    by_measured: whether times are measured ones; the machine is then not used. unable: the kernels
    that can run no problem, of those that the user named, and why not the first problem.
    cutlass_filter, triton_configs: the set as those tools take it (`wsjax.portfolio.export`);
    not_in_cutlass: the kernels that CUTLASS has not.
    interrupted: by Ctrl-C.
    """

    hardware: Hardware = field(repr=False)
    kernels: Any = field(repr=False)
    assignment: Any = field(repr=False)
    loss: Any = field(repr=False)
    names: tuple[str, ...]
    k: int
    time_us: float
    bound_us: float
    proved: bool
    all_us: float
    rounding_us: float
    available: int
    candidates: int
    measured: Measured | None
    by_measured: bool
    unable: Mapping[str, str] = field(repr=False)
    cutlass_filter: str = field(repr=False)
    not_in_cutlass: tuple[str, ...]
    triton_configs: str = field(repr=False)
    seconds: float
    interrupted: bool

    @property
    def gap_pct(self) -> float:
        """By how many per cent of its time a set could be better, at most."""
        return 100 * (1 - self.bound_us / self.time_us) if self.time_us else 0.0

    @property
    def loss_pct(self) -> float:
        """By how many per cent the set is slower than all available kernels."""
        return slower_pct(self.time_us, self.all_us)

    def record(self) -> dict[str, Any]:
        """For JSON: the figures, the kernels' names, and the loss."""
        loss = self.loss.to_pandas() if tables.is_arrow(self.loss) else self.loss
        names = ("k", "time_us", "loss_pct", "worst_pct", "proved")
        return {
            "kernels": list(self.names),
            "time_us": self.time_us,
            "bound_us": self.bound_us,
            "gap_pct": self.gap_pct,
            "proved": self.proved,
            "all_us": self.all_us,
            "loss_pct": self.loss_pct,
            "loss": loss[list(names)].to_dict("records"),
            "problems": len(self.assignment),
            "available": self.available,
            "candidates": self.candidates,
            "rounding_us": self.rounding_us,
            "hardware": None if self.by_measured else self.hardware.name,
            "measured": None if self.measured is None else self.measured.record(),
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }


def slower_pct(time_us: float, best_us: float) -> float:
    """By how many per cent a time is above another; 0 where both are 0."""
    return 100 * (time_us / best_us - 1) if best_us else 0.0


def choice(
    offer: Offer,
    demand: Demand,
    chosen: Chosen,
    machine: Hardware,
    measured: Measured | None,
    *,
    by_measured: bool,
    unable: Mapping[str, str],
    arrow: bool,
) -> Choice:
    """A choice with its frames: Arrow tables, or pandas DataFrames."""
    best, names = chosen.sets[-1], offer.kernels.names
    users = users_of(demand, best.kernels)
    times_us = demand.weights * demand.times_us[np.arange(len(users)), users]
    shares = np.bincount(users, times_us, minlength=len(names)) / (best.time_us or 1.0)
    order = sorted(best.kernels, key=lambda kernel: (-shares[kernel], kernel))
    lists = [
        (names[kernel], kind) for kernel in order for kind in _kinds(offer, machine, kernel, users)
    ]
    parts = (
        _kernels(offer, order, users, 100 * shares),
        _assignment(offer, demand, users),
        _loss(offer, demand, chosen),
    )
    return Choice(
        machine,
        *(tables.from_frame(part) if arrow else part for part in parts),
        names=tuple(names[kernel] for kernel in order),
        k=best.k,
        time_us=best.time_us,
        bound_us=best.bound_us,
        proved=best.proved,
        all_us=chosen.all_us,
        rounding_us=chosen.rounding_us,
        available=int(np.isfinite(demand.available_us).any(axis=0).sum()),
        candidates=chosen.candidates,
        measured=measured,
        by_measured=by_measured,
        unable=unable,
        cutlass_filter=export.cutlass_filter((kind for _, kind in lists), machine.facts),
        not_in_cutlass=export.not_in_cutlass(lists, machine.facts),
        triton_configs=export.triton_configs(lists),
        seconds=chosen.seconds,
        interrupted=chosen.interrupted,
    )


def users_of(demand: Demand, kernels: tuple[int, ...]) -> np.ndarray:
    """The best of a set's kernels for each problem, the first of equals."""
    return np.asarray(kernels)[demand.times_us[:, list(kernels)].argmin(axis=1)]


def _kernels(
    offer: Offer, order: list[int], users: np.ndarray, shares: np.ndarray
) -> "pd.DataFrame":
    import pandas as pd

    kernels = offer.kernels
    columns: dict[str, Any] = {"kernel": [kernels.names[kernel] for kernel in order]}
    columns |= schema.spelled({name: values[order] for name, values in kernels.columns.items()})
    columns["problems"] = np.bincount(users, minlength=len(kernels))[order]
    columns["time_share_pct"] = shares[order]
    if kernels.builds is not None:
        columns["build_cost"] = kernels.builds[order]
    return pd.DataFrame(columns)


def _assignment(offer: Offer, demand: Demand, users: np.ndarray) -> "pd.DataFrame":
    import pandas as pd

    problems, names = offer.problems, np.asarray(offer.kernels.names, dtype=object)
    rows = np.arange(len(users))
    best = demand.available_us.argmin(axis=1)
    columns: dict[str, Any] = {"problem": problems.names} if any(problems.names) else {}
    columns |= schema.spelled({name: v for name, v in problems.columns.items() if name in PROBLEM})
    columns["weight"] = problems.weights
    columns["kernel"] = names[users]
    columns["time_us"] = demand.times_us[rows, users]
    if offer.measured_us is not None:
        measured_us = offer.measured_us[rows, users]
        columns["time_us_measured"] = np.where(np.isfinite(measured_us), measured_us, np.nan)
    columns["best_kernel"] = names[best]
    columns["best_time_us"] = demand.best_us
    columns["loss_pct"] = _slower_each(columns["time_us"], demand.best_us)
    return pd.DataFrame(columns)


def _loss(offer: Offer, demand: Demand, chosen: Chosen) -> "pd.DataFrame":
    import pandas as pd

    names = offer.kernels.names
    rows = []
    for kernel_set in chosen.sets:
        own_us = demand.times_us[:, list(kernel_set.kernels)].min(axis=1)
        rows.append(
            {
                "k": kernel_set.k,
                "time_us": kernel_set.time_us,
                "bound_us": kernel_set.bound_us,
                "loss_pct": slower_pct(kernel_set.time_us, chosen.all_us),
                "worst_pct": float(_slower_each(own_us, demand.best_us).max()),
                "proved": kernel_set.proved,
                "kernels": " ".join(names[kernel] for kernel in kernel_set.kernels),
            }
        )
    return pd.DataFrame(rows)


def _slower_each(times_us: np.ndarray, best_us: np.ndarray) -> np.ndarray:
    ratio = np.divide(times_us, best_us, out=np.ones_like(best_us), where=best_us > 0)
    return 100 * (ratio - 1)


def _kinds(offer: Offer, machine: Hardware, kernel: int, users: np.ndarray) -> list[dict[str, Any]]:
    """A kernel's configurations, in words, one for each kind of problem that uses it (all kinds, if
    none does); `stages` resolved."""
    problems = np.flatnonzero(users == kernel)
    if not len(problems):
        problems = np.arange(len(users))
    columns = {name: v[problems] for name, v in offer.problems.columns.items()}
    columns |= {
        name: np.repeat(values[kernel], len(problems))
        for name, values in offer.kernels.columns.items()
    }
    c = resolve(columns, machine)
    full = {name: np.broadcast_to(v, (len(problems),)) for name, v in c._asdict().items()}
    keys = np.stack([full[name] for name in (*KIND, "stages")], axis=1)
    first = np.sort(np.unique(keys, axis=0, return_index=True)[1])
    words = schema.spelled({name: values[first] for name, values in full.items()})
    return [
        dict(zip(words, row, strict=True), imported=offer.kernels.imported[kernel])
        for row in zip(*(values.tolist() for values in words.values()), strict=True)
    ]
