"""Triton's autotuning results: `<function>.autotune.json`, and what a tuning's settings mean."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax.hardware import KERNELS
from wsjax.importers import texts, values
from wsjax.importers.source import Source
from wsjax.schema import DTYPES

if TYPE_CHECKING:
    import pandas as pd

NEEDS = ("p50",)
SETTINGS = {
    "block_m": ("BLOCK_M", "BLOCK_SIZE_M", "BM", "TILE_M"),
    "block_n": ("BLOCK_N", "BLOCK_SIZE_N", "BN", "TILE_N"),
    "block_k": ("BLOCK_K", "BLOCK_SIZE_K", "BK", "TILE_K"),
    "group_m": ("GROUP_M", "GROUP_SIZE_M"),
    "split_k": ("SPLIT_K",),
    "math_warps": ("num_warps",),
    "stages": ("num_stages",),
    "cluster_m": ("num_ctas",),
}
"""Ours, and what kernels call it."""
PERSISTENT = ("NUM_SMS", "num_sms")
_NAME = re.compile(r"\.autotune(?:\.json)?(?:\.gz)?$")


def recognises(source: Source) -> bool:
    """Whether it is JSON with the timings of configurations."""
    return source.head.lstrip()[:1] == "{" and '"configs_timings"' in source.head


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """The timed configurations: settings, percentiles (ms), and the key's values as key_0, ….

    The first three numbers of the key are taken for m, n, k, the order that kernels list them in;
    the file does not say.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    key: list[Any] = []
    for name, _, value in texts.parts(source, many=("configs_timings",)):
        if name == "key":
            key = value if isinstance(value, list) else [value]
            key = key[0] if len(key) == 1 and isinstance(key[0], list) else key
        elif name == "configs_timings" and isinstance(value, list) and len(value) == 2:
            rows.append(_row(*value))
        elif name == "configs_timings":
            rows.append({"status": "malformed"})
    sizes = [part for part in key if type(part) is int][:3]
    types = [part for part in key if isinstance(part, str) and values.dtype(part) in DTYPES]
    if len(sizes) == 3:
        source.notes.append(
            f"the key has no names: m, n, k = {', '.join(map(str, sizes))} by its order; "
            "--map n=key_2 --map k=key_1 reads it otherwise"
        )
    given = {f"key_{i}": part for i, part in enumerate(key)}
    given |= dict(zip("mnk", sizes, strict=False)) if len(sizes) == 3 else {}
    given |= {"dtype": types[0]} if types else {}
    kernel = _NAME.sub("", source.path.name)
    frame = pd.DataFrame([{**given, "kernel": kernel, **row} for row in rows])
    yield frame if rows else pd.DataFrame(columns=["kernel", "p50"])


def _row(config: Any, timing: Any) -> dict[str, Any]:
    settings = dict(config) if isinstance(config, Mapping) else {}
    settings |= settings.pop("kwargs", None) or {}
    timing = timing if isinstance(timing, list) else [timing]
    row: dict[str, Any] = {k: v for k, v in settings.items() if isinstance(v, int | float | str)}
    return row | dict(zip(("p50", "p20", "p80"), timing, strict=False))


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Percentiles 20 and 80 are kept as such: they are not the 10 and 90 of our columns."""
    found = of_triton(theirs)
    found |= {c: theirs[c] for c in "mnk" if c in theirs}
    if "dtype" in theirs:
        found["dtype_in"] = found["dtype_out"] = theirs["dtype"].map(values.dtype)
    for ours, name in (("time_us_measured", "p50"), ("time_us_p20", "p20"), ("time_us_p80", "p80")):
        if name in theirs:
            found[ours] = values.times_us(theirs[name], values.US_PER["ms"])
    found["status"] = failed_if_infinite(theirs["p50"])
    if "status" in theirs:
        found["status"] = theirs["status"].where(theirs["status"].notna(), found["status"])
    return {**found, **{c: theirs[c] for c in theirs if c not in found and c not in _USED}}


_USED = {"p50", "p20", "p80", "dtype", *(name for names in SETTINGS.values() for name in names)}


def failed_if_infinite(times: "pd.Series") -> "pd.Series":
    """`failed` where a tuner gave an infinite time, or none: the configuration did not run."""
    import pandas as pd

    number = values.numbers(times)
    return pd.Series(np.where(np.isposinf(number), "failed", "ok"), index=times.index)


def of_triton(theirs: Mapping[str, "pd.Series"]) -> dict[str, "pd.Series"]:
    """`settings` and what all kernels of the family have in common."""
    usual = KERNELS["triton_async"].columns
    common = {name: values.everywhere(theirs, value) for name, value in usual.items()}
    return common | settings(theirs)


def settings(theirs: Mapping[str, "pd.Series"]) -> dict[str, "pd.Series"]:
    """Our configuration columns of a Triton kernel's settings.

    One CTA a tile, unless it is told the number of SMs. `stages` is Triton's num_stages, on Ampere
    one more than the ring has slots (`Facts.pipelined`).
    """
    found: dict[str, pd.Series] = {}
    for ours, names in SETTINGS.items():
        name = next((name for name in names if name in theirs), None)
        if name is not None:
            found[ours] = values.numbers(theirs[name])
    if "stages" in found:
        found["stages"] = found["stages"].clip(lower=1)
    schedule = values.everywhere(theirs, "serial")
    for name in PERSISTENT:
        if name in theirs:
            schedule = schedule.mask(theirs[name].notna(), "persistent")
    return {**found, "schedule": schedule}
