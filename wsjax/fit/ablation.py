"""What each term of the model earns on problems that no fit saw: `ablate`.

A term is left out by setting its parameters to their neutral values, with which it vanishes
(`parameters`). The other fitted parameters are fitted again from where they are, so that they may
take over what they can, and the held-out problems are predicted. A term whose absence costs nothing
there has no place in the model.

A neutral value is a number like others to the compiled programs: none is compiled for a term.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from wsjax.errors import InputError
from wsjax.fit import least_squares as fit
from wsjax.fit import measured, priors, rounds
from wsjax.fit.calibration import SAMPLE_ROWS, Calibration
from wsjax.fit.measured import Measured
from wsjax.hardware import PARAMETERS, Hardware, Parameters

MAX_STEPS = 15
GROUPS: Mapping[str, tuple[str, ...]] = {
    "launch by kernel": ("launch_per_stage_us", "launch_wide_us", "launch_saved_us"),
    "DRAM latency": ("dram_latency_first_us", "dram_latency_us"),
    "latency by load": ("latency_throughput_bytes_per_us", "crowding_latency_us"),
    "softness of both": ("softness", "dram_softness"),
    "stores": (
        "store_throughput_bytes_per_us",
        "direct_throughput_bytes_per_us",
        "drain_throughput_bytes_per_us",
        "epilogue_startup_us",
    ),
}
"""Parameters that make one term together. Those that a calibration has not fitted stay."""


class Ablated(NamedTuple):
    """The held-out problems without one term: absolute errors in %, and by how many points their
    mean rises (`earned_pct`). The first of a table is the whole model, without `parameters`."""

    term: str
    parameters: tuple[str, ...]
    mape_pct: float
    median_ape_pct: float
    p95_ape_pct: float
    earned_pct: float


def ablate(
    found: Calibration, table: Any, *, held_out: float = 0.2, seed: int = 0
) -> list[Ablated]:
    """What each term of the model earns on problems that no fit saw.

    A term is left out by setting its parameters to values with which it vanishes; the other fitted
    parameters are fitted again, and the held-out problems predicted. Terms are each fitted
    parameter, and groups of several that make one term together.

    found: what `wsjax.calibrate` made of `table` with the same `held_out` and `seed`.
    Returns tuples (term, parameters, mape_pct, median_ape_pct, p95_ape_pct, earned_pct): absolute
    errors of held-out rows in %, and by how many points their mean rises without the term; the
    whole model first (term ""), then what earns most.

    Raises InputError if no problem is held out.
    """
    machine = found.hardware.physics
    fitted = [p.name for p in found.parameters if p.status == "fitted"]
    rows = measured.read(table, machine.facts, seed=seed)
    rows = rows.take(rounds.modelled(rows, machine))
    training, unseen = rows.take(rows.share >= held_out), rows.take(rows.share < held_out)
    if not len(unseen):
        raise InputError(
            "no problem is held out, and what a term earns shows there; raise --held-out"
        )
    with jax.enable_x64(True):
        return _ablate(measured.sample(training, SAMPLE_ROWS, seed), unseen, machine, fitted)


def terms(fitted: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What to leave out, by name: each fitted parameter, and groups of several."""
    fitted = tuple(fitted)
    groups = {
        name: tuple(member for member in members if member in fitted)
        for name, members in GROUPS.items()
    }
    return {name: (name,) for name in fitted} | {
        name: members for name, members in groups.items() if len(members) > 1
    }


def _ablate(
    rows: Measured, unseen: Measured, machine: Hardware, fitted: list[str]
) -> list[Ablated]:
    whole = priors.prior_of(machine, fitted)
    z = np.zeros(len(PARAMETERS))
    sample = rounds.sample_of(rows, machine, rounds.FIRST_ERROR, np.zeros(len(rows)))
    sample, _ = rounds.renewed(rows, machine, sample, whole, z)
    found = [_figures("", (), unseen, machine, whole, z)]
    for name, members in terms(fitted).items():
        left = [other for other in fitted if other not in members]
        neutral = {member: PARAMETERS[member].neutral for member in members}
        without = replace(machine, parameters=machine.parameters._replace(**neutral))
        prior = whole._replace(
            free=np.isin(tuple(PARAMETERS), left), held=np.asarray(without.parameters, float)
        )
        again = fit.solve(np.where(prior.free, z, 0.0), prior, sample, MAX_STEPS)
        found.append(_figures(name, members, unseen, machine, prior, again))
    first, *others = found
    others = [x._replace(earned_pct=x.mape_pct - first.mape_pct) for x in others]
    return [first, *sorted(others, key=lambda x: -x.earned_pct)]


def _figures(
    term: str,
    members: tuple[str, ...],
    unseen: Measured,
    machine: Hardware,
    prior: fit.Prior,
    z: np.ndarray,
) -> Ablated:
    """The errors of the held-out rows."""
    values = Parameters(*np.asarray(prior.values(z)).tolist())
    predicted = rounds.exact_times(unseen, replace(machine, parameters=values))
    ape = np.abs(predicted / unseen.time_us - 1) * 100
    median, high = np.quantile(ape, [0.5, 0.95]).tolist()
    return Ablated(term, members, float(ape.mean()), median, high, 0.0)
