"""wsjax: how long warp-specialised GEMM kernels take, for millions of configurations a second."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsjax.ablation import ablate
    from wsjax.calibration import Calibration, calibrate
    from wsjax.choices import Choice
    from wsjax.choosing import choose
    from wsjax.errors import InfeasibleError, InputError, WsjaxError
    from wsjax.explaining import Explanation, explain
    from wsjax.hardware import Hardware, format_hardware, hardware_names, load_hardware
    from wsjax.importers import import_table
    from wsjax.optimization import optimize
    from wsjax.pages import Report, report
    from wsjax.predictions import predict
    from wsjax.replay import replay_trace
    from wsjax.results import open
    from wsjax.sweeps import sweep
    from wsjax.timeline import Timeline, trace
    from wsjax.validation import Validation, validate

__version__ = "0.1.0"

__all__ = [
    "Calibration",
    "Choice",
    "Explanation",
    "Hardware",
    "InfeasibleError",
    "InputError",
    "Report",
    "Timeline",
    "Validation",
    "WsjaxError",
    "ablate",
    "calibrate",
    "choose",
    "explain",
    "format_hardware",
    "hardware_names",
    "import_table",
    "load_hardware",
    "open",
    "optimize",
    "predict",
    "replay_trace",
    "report",
    "sweep",
    "trace",
    "validate",
]

_MODULES = {
    "Calibration": "calibration",
    "Choice": "choices",
    "Explanation": "explaining",
    "Timeline": "timeline",
    "Validation": "validation",
    "ablate": "ablation",
    "calibrate": "calibration",
    "choose": "choosing",
    "explain": "explaining",
    "validate": "validation",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "import_table": "importers",
    "WsjaxError": "errors",
    "open": "results",
    "optimize": "optimization",
    "predict": "predictions",
    "Report": "pages",
    "replay_trace": "replay",
    "report": "pages",
    "sweep": "sweeps",
    "trace": "timeline",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: jax, pandas and pyarrow take seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'wsjax' has no attribute '{name}'")
    return getattr(import_module(f"wsjax.{_MODULES.get(name, 'hardware')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
