"""Entries by key, in files."""

import hashlib
import os
import pickle
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from wsjax import __version__

COMPILED_SECONDS_MIN = "0.5"
"""Programs that JAX compiles faster are not kept by it."""
SETTINGS = ("XLA_FLAGS", "JAX_PLATFORMS")
"""What of the environment decides what a program becomes."""


@cache
def folder() -> Path | None:
    """Where to keep things: JAX_COMPILATION_CACHE_DIR if it is set, else `wsjax` in XDG_CACHE_HOME
    or ~/.cache, a folder for each host; None if that can't be written, or where
    JAX_ENABLE_COMPILATION_CACHE is false."""
    if os.environ.get("JAX_ENABLE_COMPILATION_CACHE", "").lower() in ("0", "false", "off"):
        return None
    try:
        given = os.environ.get("JAX_COMPILATION_CACHE_DIR")
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        place = Path(given) if given else base / "wsjax" / (platform.node() or "host")
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return place if os.access(place, os.W_OK) else None


def keep_compiled() -> None:
    """Tell JAX to keep what it compiles in `folder`, unless it was told of another place."""
    place = folder()
    if place is None or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    if jax := sys.modules.get("jax"):
        if jax.config.jax_compilation_cache_dir is None:
            least = float(COMPILED_SECONDS_MIN)
            jax.config.update("jax_compilation_cache_dir", str(place))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(place)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", COMPILED_SECONDS_MIN)


def identity(function: Callable[..., Any]) -> str:
    """What stands for a function in keys: the name of one of this package's modules, whose sources
    all keys hold; any other, or one inside another function, shares no entry."""
    name = f"{function.__module__}.{function.__qualname__}"
    own = name.startswith("wsjax.") and "<" not in name
    return name if own else f"{name} {uuid4().hex}"


def read(key: str) -> Any:
    """The value kept under a key, None if there is none."""
    path = _path(key)
    try:
        content = path.read_bytes() if path else b""
    except OSError:
        return None
    digest, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    whole = payload and hashlib.sha256(payload).digest() == digest
    return pickle.loads(payload) if whole else None


def write(key: str, value: Any) -> None:
    """Keep a value that can be pickled, whole or not at all; where there is no room, nothing."""
    import tempfile

    path = _path(key)
    if path is None:
        return
    payload = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False, suffix=".part") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
        os.replace(file.name, path)
    except OSError:
        return


_DIGEST_BYTES = hashlib.sha256().digest_size


def _path(key: str) -> Path | None:
    place = folder()
    name = hashlib.sha256(f"{_makers()}\n{key}".encode()).hexdigest()
    return place and place / f"wsjax-{name}"


@cache
def _makers() -> str:
    """This package's sources, and the versions, processor and settings that programs are for."""
    import jax
    import numpy as np
    from jaxlib.version import __version__ as jaxlib_version

    package = Path(__file__).parents[1]
    sources = hashlib.sha256()
    for path in sorted(map(str, package.rglob("*.py"))):
        sources.update(path.removeprefix(str(package)).encode() + Path(path).read_bytes())
    versions = (__version__, jax.__version__, jaxlib_version, np.__version__)
    python = sys.implementation.cache_tag or sys.version
    settings = [f"{name}={os.environ.get(name, '')}" for name in SETTINGS]
    return "\n".join([sources.hexdigest(), *versions, python, *settings, *_processor()])


def _processor() -> list[str]:
    """The kind of processor, and what it can do where the system tells."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        return [platform.machine()]
    told = ("model name", "flags", "Features", "CPU part")
    return [platform.machine(), *(x for x in first.splitlines() if x.startswith(told))]
