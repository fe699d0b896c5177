"""Which keys the tables of a hardware file hold, and what is checked of each."""

from collections.abc import Mapping
from typing import NamedTuple

from wsjax.hardware import checks
from wsjax.hardware.parameters import PARAMETERS as REGISTRY
from wsjax.hardware.peaks import Peaks
from wsjax.schema import COLUMNS, DTYPES, LIMITERS, SCHEDULES, Facts

PARAMETERS = tuple(REGISTRY)
FACTS = Facts._fields
BASIS_KEYS = {
    "flops": "compute_throughput_flop_per_us",
    "bytes": "compute_throughput_bytes_per_us",
}
FAMILY = tuple(name for name, known in REGISTRY.items() if known.family)
REGIONS = tuple(f"{schedule}_{limiter}" for schedule in SCHEDULES for limiter in LIMITERS)
"""Where the spread of times is told apart, see `wsjax.intervals`."""
SPREAD = dict.fromkeys(("all", *REGIONS), checks.interval) | {"parameters": checks.error}


class Section(NamedTuple):
    """A table's keys with their checks, and where keys belong that stand in it by mistake."""

    checks: Mapping[str, checks.Check]
    elsewhere: Mapping[str, str]


def unused_key(basis: str) -> str:
    """The compute throughput that a machine of this basis has not."""
    return BASIS_KEYS["bytes" if basis == "flops" else "flops"]


_AT_TOP = dict.fromkeys((*FACTS, *Peaks._fields), "at the top, above the tables")
_UNDER = dict.fromkeys(PARAMETERS, "under [parameters]")
_UNDER |= dict.fromkeys(FAMILY, "under [family]")
CALIBRATION: dict[str, checks.Check] = {
    "table": checks.text,
    "fingerprint": checks.text,
    "start": checks.text,
    "date": checks.text,
    "wsjax": checks.text,
    "rows": checks.count,
    "problems": checks.count,
    "held_out_rows": checks.count,
    "held_out_problems": checks.count,
    "held_out_mape_pct": checks.error,
    "held_out_median_ape_pct": checks.error,
    "held_out_p95_ape_pct": checks.error,
    "physics_mape_pct": checks.error,
    "undetermined": checks.words,
}
TABLES = {
    "parameters": Section(dict.fromkeys(PARAMETERS, checks.parameter), _AT_TOP),
    "family": Section(dict.fromkeys(FAMILY, checks.parameter), _UNDER | _AT_TOP),
    "peak_flop_per_us": Section(dict.fromkeys(DTYPES, checks.ratio), {}),
    "compute_ratio": Section(dict.fromkeys(DTYPES, checks.ratio), {}),
    "standard_errors": Section(dict.fromkeys(PARAMETERS, checks.error), _AT_TOP),
    "calibration": Section(CALIBRATION, {}),
    "span": Section(dict.fromkeys(COLUMNS, checks.span), {}),
    "spread": Section(SPREAD, {}),
    "residual": Section(
        {"inputs": checks.words, "widths": checks.widths, "numbers": checks.text}, {}
    ),
}
TOP = Section(
    dict.fromkeys(FACTS, checks.fact)
    | dict.fromkeys(Peaks._fields, checks.ratio)
    | {
        "name": checks.name,
        "base": checks.name,
        "like": checks.name,
        "note": checks.text,
        "kernels": checks.kernels,
        "calibrated": checks.boolean,
        "compute_basis": checks.basis,
    }
    | dict.fromkeys(TABLES, checks.table),
    _UNDER,
)
