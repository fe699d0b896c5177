"""Kernel Tuner: the cache of a run, finished or interrupted, and T4 results. Times in ms."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax.importers import texts, values
from wsjax.importers.formats import triton
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

NEEDS = ()
NAMES = {
    "block_m": ("MWG", "BLOCK_M", "BLOCK_SIZE_M", "block_m", "tile_m", "TILE_M"),
    "block_n": ("NWG", "BLOCK_N", "BLOCK_SIZE_N", "block_n", "tile_n", "TILE_N"),
    "block_k": ("KWG", "BLOCK_K", "BLOCK_SIZE_K", "block_k", "tile_k", "TILE_K"),
    "stages": ("num_stages", "stages", "STAGES"),
    "math_warps": ("num_warps", "NUM_WARPS"),
}
FAILED_MS = 1e20
"""What older caches wrote for the time of a configuration that failed."""
PRECISIONS = {16: "fp16", 32: "fp32"}
_PIECE = 50_000


def recognises(source: Source) -> bool:
    """Whether it is a cache, or T4's list of results."""
    head = source.head
    if head.lstrip()[:1] != "{":
        return False
    cache = '"cache"' in head and '"tune_params_keys"' in head
    return cache or ('"results"' in head and '"configuration"' in head)


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """One row a configuration; the size of the problem, device and kernel from the file's head."""
    import pandas as pd

    about: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for name, _, value in texts.parts(source, many=("cache", "results")):
        if name not in ("cache", "results"):
            about |= _about(name, value)
        elif isinstance(value, Mapping):
            rows.append(_t4(value) if name == "results" else _cached(value))
        else:
            rows.append({"status": "malformed"})
        if len(rows) == _PIECE:
            yield pd.DataFrame(rows).assign(**about)
            rows = []
    yield pd.DataFrame(rows, columns=None if rows else ["time"]).assign(**about)


def _about(name: str, value: Any) -> dict[str, Any]:
    if name == "problem_size":
        sizes = value if isinstance(value, list) else [value]
        whole = [int(size) for size in sizes if str(size).isdecimal()]
        return dict(zip("mnk", whole, strict=False)) if len(whole) > 1 else {}
    words = {"device_name": "device", "kernel_name": "kernel"}
    return {words[name]: value} if name in words and isinstance(value, str) else {}


def _cached(entry: Mapping[str, Any]) -> dict[str, Any]:
    row = {key: value for key, value in entry.items() if isinstance(value, int | float | str)}
    return row | _measured(entry.get("time"), entry.get("times"))


def _measured(time: Any, times: Any) -> dict[str, Any]:
    """A time in ms or a word of failure, with the spread of its repetitions."""
    if not isinstance(time, int | float) or isinstance(time, bool) or time >= FAILED_MS:
        return {"time": np.nan, "status": "failed" if time is not None else "ok"}
    found = {"time": time, "status": "ok"}
    runs = [t for t in times or [] if isinstance(t, int | float)]
    if len(runs) > 1:
        p10, p90 = np.percentile(runs, [10, 90])
        alike = min(runs) == max(runs)
        found |= {"reps": 1} if alike else {"reps": len(runs), "p10": p10, "p90": p90}
        found |= {"alike": int(alike)}
    return found


def _t4(result: Mapping[str, Any]) -> dict[str, Any]:
    """A T4 result: the measured time with its unit, else the mean of its runs."""
    row = dict(result.get("configuration") or {})
    runs = (result.get("times") or {}).get("runtimes") or []
    runs = [t for t in runs if isinstance(t, int | float)]
    time = float(np.mean(runs)) if runs else None
    for measurement in result.get("measurements") or []:
        if str(measurement.get("name")).lower() in ("time", "runtime", "kernel_time"):
            scale = values.US_PER.get(str(measurement.get("unit") or "ms").lower(), np.nan)
            given = measurement.get("value")
            number = isinstance(given, int | float)
            time = given * scale / values.US_PER["ms"] if number else given
    invalid = str(result.get("invalidity") or "correct").lower()
    row |= _measured(time, runs)
    right = invalid in ("correct", "valid", "none")
    if invalid == "correctness" or (right and result.get("correctness") == 0):
        row["status"] = "incorrect"
    elif not right:
        row["status"] = "failed"
    return {k: v for k, v in row.items() if isinstance(v, int | float | str)}


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Settings by the names that GEMM kernels use (CLBlast's MWG, NWG, KWG among them); k, when
    the file's head does not say it, from the rate that stands beside the time."""
    found = triton.settings(theirs)
    for ours, names in NAMES.items():
        name = next((name for name in names if name in theirs), None)
        if name is not None:
            found[ours] = values.numbers(theirs[name])
    found |= {c: values.numbers(theirs[c]) for c in "mnk" if c in theirs}
    if {"MDIMC", "NDIMC"} <= set(theirs) and "math_warps" not in found:
        threads = values.numbers(theirs["MDIMC"]) * values.numbers(theirs["NDIMC"])
        found["math_warps"] = (threads / 32).map(np.ceil)
        found["stages"] = threads * 0 + 1
    if "PRECISION" in theirs:
        word = theirs["PRECISION"].map(lambda bits: PRECISIONS.get(bits, f"{bits} bits"))
        found |= {"dtype_in": word, "dtype_out": word}
    for ours, name in (("", "time"), ("_p10", "p10"), ("_p90", "p90")):
        if name in theirs:
            scale = values.US_PER["ms"]
            found[f"time_us_measured{ours}"] = values.times_us(theirs[name], scale)
    if "GFLOP/s" in theirs and "k" not in found and {"m", "n"} <= set(found):
        flop = values.numbers(theirs["GFLOP/s"]) * found["time_us_measured"] * 1e3
        k = (flop / (2 * found["m"] * found["n"])).round()
        if "block_k" in found:  # some count the 2mn of alpha and beta, which is one k more
            k = k.where((k % found["block_k"] == 0) | ((k - 1) % found["block_k"] != 0), k - 1)
        found["k"] = k
    return {**found, **{c: theirs[c] for c in theirs if c not in found and c not in _DROPPED}}


_DROPPED = {"time", "times", "p10", "p90", "timestamp"} | {
    name for names in NAMES.values() for name in names
}
