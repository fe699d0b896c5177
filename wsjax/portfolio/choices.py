"""A choice of kernels as frames: the set, which kernel each problem gets, and the loss."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsjax import tables
from wsjax.hardware import Hardware


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
        own = {"excess_pct": self.excess_pct, "picked_excess_pct": self.picked_excess_pct}
        return {**self._asdict(), "hindsight": list(self.hindsight), **own}


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
    cutlass_filter, triton_configs: the set as those tools take it (`wsjax.kernel_lists`);
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
            "hardware": self.hardware.name,
            "measured": None if self.measured is None else self.measured.record(),
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }


def slower_pct(time_us: float, best_us: float) -> float:
    """By how many per cent a time is above another; 0 where both are 0."""
    return 100 * (time_us / best_us - 1) if best_us else 0.0
