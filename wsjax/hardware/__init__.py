"""What a machine is: its facts, its parameters and their spread, in TOML."""

from wsjax.hardware.checks import fact, parameter
from wsjax.hardware.intervals import (
    Errors,
    backing,
    bounds,
    extrapolation,
    family_defaults,
    out_of_span,
    outside,
    resolve,
    resolve_one,
    spread,
)
from wsjax.hardware.kernels import KERNELS
from wsjax.hardware.machine import (
    BASIS_KEYS,
    FACTS,
    Hardware,
    check_rates,
    format_hardware,
    hardware_names,
    load_hardware,
    parse_hardware,
)
from wsjax.hardware.parameters import INF, PARAMETERS, Parameters
from wsjax.hardware.peaks import Peaks, fact_ratios
from wsjax.hardware.residual import FEATURES, LESS, MORE, Head, Network, Residual, residual_of
from wsjax.hardware.sections import unused_key
from wsjax.hardware.starting import NewFacts, new_machine

__all__ = [
    "BASIS_KEYS",
    "FACTS",
    "FEATURES",
    "INF",
    "KERNELS",
    "LESS",
    "MORE",
    "PARAMETERS",
    "Errors",
    "Hardware",
    "Head",
    "Network",
    "NewFacts",
    "Parameters",
    "Peaks",
    "Residual",
    "backing",
    "bounds",
    "check_rates",
    "extrapolation",
    "fact",
    "fact_ratios",
    "family_defaults",
    "format_hardware",
    "hardware_names",
    "load_hardware",
    "new_machine",
    "out_of_span",
    "outside",
    "parameter",
    "parse_hardware",
    "residual_of",
    "resolve",
    "resolve_one",
    "spread",
    "unused_key",
]
