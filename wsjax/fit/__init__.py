"""Measurements -> a machine's parameters."""

from wsjax.fit.ablation import ablate
from wsjax.fit.calibration import Calibration, calibrate, few_problems
from wsjax.fit.design import Design, design
from wsjax.fit.measured import excluded_text, tensor_core_note
from wsjax.fit.metrics import Metrics
from wsjax.fit.priors import PRIOR_HEADINGS, prior_cells
from wsjax.fit.reports import (
    ABLATION_HEADINGS,
    DIGITS,
    PARAMETER_HEADINGS,
    REPLAY_HEADINGS,
    SHORT,
    WORST_HEADINGS,
    ablation_cells,
    cells,
    metrics_rows,
    parameter_cells,
    prepare,
    replay_cells,
    worst_cells,
    write_calibration,
    write_replay,
    write_validation,
)
from wsjax.fit.validation import Validation, validate

__all__ = [
    "ABLATION_HEADINGS",
    "DIGITS",
    "PARAMETER_HEADINGS",
    "PRIOR_HEADINGS",
    "REPLAY_HEADINGS",
    "SHORT",
    "WORST_HEADINGS",
    "Calibration",
    "Design",
    "Metrics",
    "Validation",
    "ablate",
    "ablation_cells",
    "calibrate",
    "cells",
    "design",
    "excluded_text",
    "few_problems",
    "metrics_rows",
    "parameter_cells",
    "prepare",
    "prior_cells",
    "replay_cells",
    "tensor_core_note",
    "validate",
    "worst_cells",
    "write_calibration",
    "write_replay",
    "write_validation",
]
