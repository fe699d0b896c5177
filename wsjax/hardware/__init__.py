"""What a machine is: its facts, its parameters and their spread, in TOML."""

from wsjax.hardware.checks import fact, parameter
from wsjax.hardware.intervals import Errors, backing, bounds, extrapolation, outside, spread
from wsjax.hardware.machine import (
    BASIS_KEYS,
    FACTS,
    Hardware,
    format_hardware,
    hardware_names,
    load_hardware,
    parse_hardware,
)
from wsjax.hardware.parameters import INF, PARAMETERS, Parameters
from wsjax.hardware.sections import unused_key

__all__ = [
    "BASIS_KEYS",
    "FACTS",
    "INF",
    "PARAMETERS",
    "Errors",
    "Hardware",
    "Parameters",
    "backing",
    "bounds",
    "extrapolation",
    "fact",
    "format_hardware",
    "hardware_names",
    "load_hardware",
    "outside",
    "parameter",
    "parse_hardware",
    "spread",
    "unused_key",
]
