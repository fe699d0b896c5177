"""Compiled programs kept from one command to the next: JAX's own cache, in the user's folder."""

import os
import sys
from pathlib import Path

SECONDS_MIN = "0.5"
"""What compiles faster is not kept."""


def keep_compiled() -> None:
    """Tell JAX, before it is imported, where to keep what it compiles.

    JAX_COMPILATION_CACHE_DIR, if it is set, stays; else `wsjax` in XDG_CACHE_HOME or ~/.cache, if
    that can be written. One folder a host: programs are made for its processor.
    """
    if "jax" in sys.modules or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    import platform

    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "wsjax" / (platform.node() or "host")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return
    if os.access(folder, os.W_OK):
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", SECONDS_MIN)
