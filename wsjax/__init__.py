"""wsjax: how long warp-specialised GEMM kernels take, for millions of configurations a second."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsjax.errors import InfeasibleError, InputError, WsjaxError
    from wsjax.fit import Calibration, Validation, ablate, calibrate, validate
    from wsjax.hardware import Hardware, format_hardware, hardware_names, load_hardware
    from wsjax.importers import import_table
    from wsjax.portfolio import Choice, choose
    from wsjax.predictions import predict
    from wsjax.search import optimize
    from wsjax.sweeps import open, sweep
    from wsjax.timelines import Explanation, Timeline, explain, replay_trace, trace
    from wsjax.views import Report, report

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

_PACKAGES = {
    "Calibration": "fit",
    "Choice": "portfolio",
    "Explanation": "timelines",
    "Timeline": "timelines",
    "Validation": "fit",
    "ablate": "fit",
    "calibrate": "fit",
    "choose": "portfolio",
    "explain": "timelines",
    "validate": "fit",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "import_table": "importers",
    "WsjaxError": "errors",
    "open": "sweeps",
    "optimize": "search",
    "predict": "predictions",
    "Report": "views",
    "replay_trace": "timelines",
    "report": "views",
    "sweep": "sweeps",
    "trace": "timelines",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: jax, pandas and pyarrow take seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'wsjax' has no attribute '{name}'")
    return getattr(import_module(f"wsjax.{_PACKAGES.get(name, 'hardware')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
