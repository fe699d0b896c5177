"""wsjax: how long warp-specialised GEMM kernels take, for millions of configurations a second."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsjax.calibration import Calibration, calibrate
    from wsjax.errors import InputError, WsjaxError
    from wsjax.hardware import Hardware, format_hardware, hardware_names, load_hardware
    from wsjax.importers import import_table
    from wsjax.predictions import predict
    from wsjax.sweeps import sweep
    from wsjax.validation import Validation, validate

__version__ = "0.1.0"

__all__ = [
    "Calibration",
    "Hardware",
    "InputError",
    "Validation",
    "WsjaxError",
    "calibrate",
    "format_hardware",
    "hardware_names",
    "import_table",
    "load_hardware",
    "predict",
    "sweep",
    "validate",
]

_MODULES = {
    "Calibration": "calibration",
    "Validation": "validation",
    "calibrate": "calibration",
    "validate": "validation",
    "InputError": "errors",
    "import_table": "importers",
    "WsjaxError": "errors",
    "predict": "predictions",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: jax, pandas and pyarrow take seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'wsjax' has no attribute '{name}'")
    return getattr(import_module(f"wsjax.{_MODULES.get(name, 'hardware')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
