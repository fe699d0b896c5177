"""Autotuners that time only what is worth it: hooks for Triton and Kernel Tuner.

    from wsjax.triton import prune_configs_by

    @triton.autotune(configs, key=["M", "N", "K"], prune_configs_by=prune_configs_by(top_k=8))
    @triton.jit
    def matmul(a_ptr, b_ptr, c_ptr, M, N, K, ..., BLOCK_SIZE_M: tl.constexpr, ...):

`early_config_prune` and `perf_model` are such hooks for the H200 and Triton's usual names. Triton
is not imported: a configuration is whatever has `all_kwargs()`, as `triton.Config` has.

Kernel Tuner takes `restriction` among its `restrictions`. TorchInductor has no public hook: what
chooses its configurations (`torch._inductor.choices`) is private to PyTorch and changes with it; to
use a choice there, write the kernel with `triton.autotune`, or import Inductor's log of timings.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from wsjax.errors import InputError
from wsjax.hardware import Hardware

PROBLEM = {"m": ("M", "m"), "n": ("N", "n"), "k": ("K", "k")}
"""Ours, and what kernels call it; for the others see `importers.TRITON_SETTINGS`."""
NUMBERS_OF_SMS = ("NUM_SMS", "num_sms")
"""With one of these arguments a kernel is persistent; else a CTA computes one tile."""


@dataclass(frozen=True)
class Tuning:
    """What a kernel's arguments mean, and the machine.

    names: configuration columns (`wsjax.schema.COLUMNS`) and which argument or meta-parameter holds
    each, where it is none of the usual names: {"block_m": "TILE_ROWS"}. columns: columns that no
    argument holds: {"schedule": "pingpong", "layout": "nn"}. top_k: how many configurations are
    left to time; all that the machine can run if None.
    """

    hardware: str | Path | Hardware = "h200"
    names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    top_k: int | None = None

    def early_config_prune(
        self, configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any
    ) -> list[Any]:
        """The configurations that the machine can run, the fastest `top_k` of them first.

        If it can run none, all are left, with a warning: Triton will say why.
        """
        if not configs:
            return []
        times = self.times_us([{**named_args, **kwargs, **c.all_kwargs()} for c in configs])
        order = sorted(range(len(configs)), key=times.__getitem__)
        able = [configs[at] for at in order if times[at] < math.inf]
        if not able:
            warnings.warn(
                "wsjax: the machine can run none of the configurations; all are left", stacklevel=2
            )
            return list(configs)
        return able[: self.top_k]

    def perf_model(self, **arguments: Any) -> float:
        """The predicted time of one configuration, in µs; infinite if the machine can't run it."""
        return self.times_us([arguments])[0]

    def times_us(self, calls: Sequence[Mapping[str, Any]]) -> list[float]:
        """The predicted times of calls with these arguments; infinite where illegal.

        Infinite too, with a warning, where the machine may run what wsjax has no model of: Triton's
        own split-K (atomic additions) is such, with SPLIT_K above 1.
        """
        import pandas as pd

        from wsjax.predictions import predict

        found = predict(pd.DataFrame([self._row(call) for call in calls]), self.hardware)
        if unknown := int(found["reason"].str.contains("not_modelled").sum()):
            warnings.warn(
                f"wsjax: {unknown} of {len(calls)} configurations are not modelled and are left "
                "out, though the machine may run them; time these apart",
                stacklevel=2,
            )
        return found["time_us"].fillna(math.inf).tolist()

    def _row(self, call: Mapping[str, Any]) -> dict[str, Any]:
        from wsjax.importers import TRITON_SETTINGS

        usual = PROBLEM | TRITON_SETTINGS
        if unknown := self.names.keys() - usual.keys():
            raise InputError(f"names: {sorted(unknown)[0]}: valid: {', '.join(usual)}")
        row: dict[str, Any] = _dtypes(call)
        for ours, theirs in usual.items():
            looked = (self.names[ours],) if ours in self.names else theirs
            name = next((name for name in looked if call.get(name) is not None), None)
            if name is not None:
                row[ours] = int(call[name])
            elif ours in (*PROBLEM, "block_m", "block_n", "block_k") and ours not in self.columns:
                raise InputError(
                    f"{ours}: no argument is called {' or '.join(looked)}; say which one it is: "
                    f'names={{"{ours}": "..."}}; there are: {", ".join(map(str, call))}'
                )
        persistent = any(call.get(name) is not None for name in NUMBERS_OF_SMS)
        return row | {"schedule": "persistent" if persistent else "serial"} | dict(self.columns)


def _dtypes(call: Mapping[str, Any]) -> dict[str, str]:
    """The element types of A and C: of the first and the third argument that has any."""
    from wsjax.importers import dtype_word

    tensors = [x for x in call.values() if hasattr(x, "dtype") and hasattr(x, "data_ptr")]
    found = [str(dtype_word(str(x.dtype).rpartition(".")[2])) for x in tensors[:3]]
    return dict(zip(("dtype_in", "dtype_out"), found[::2], strict=False))


def prune_configs_by(
    hardware: str | Path | Hardware = "h200",
    *,
    top_k: int | None = 8,
    names: Mapping[str, str] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The argument of that name of `triton.autotune`: the `top_k` configurations that are predicted
    to be the fastest of those that the machine can run. See `Tuning`."""
    tuning = Tuning(hardware, names or {}, columns or {}, top_k)
    return {"early_config_prune": tuning.early_config_prune}


_USUAL = Tuning()
early_config_prune = _USUAL.early_config_prune
perf_model = _USUAL.perf_model


def restriction(
    tune_params: Mapping[str, Sequence[Any]],
    problem: Mapping[str, Any],
    hardware: str | Path | Hardware = "h200",
    *,
    keep: float = 0.1,
    names: Mapping[str, str] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Callable[[Mapping[str, Any]], bool]:
    """One of Kernel Tuner's `restrictions`: whether a configuration of `tune_params` is among the
    share `keep` that is predicted to be the fastest of those that the machine can run.

    problem: {"m": 4096, "n": 4096, "k": 4096}, and other columns of a problem. names, columns: see
    `Tuning`.
    """
    if not 0.0 < keep <= 1.0:
        raise InputError(f"keep: {keep}: expected a share above 0, at most 1")
    sizes = {name: value for name, value in problem.items() if name in PROBLEM}
    fixed = {**(columns or {}), **problem}
    tuning = Tuning(hardware, names or {}, fixed)
    settings = [dict(zip(tune_params, x, strict=True)) for x in product(*tune_params.values())]
    times = tuning.times_us([{**sizes, **setting} for setting in settings])
    able = sorted(time for time in times if time < math.inf)
    most = able[math.ceil(keep * len(able)) - 1] if able else -math.inf
    good = {tuple(s.values()) for s, time in zip(settings, times, strict=True) if time <= most}

    def is_good(setting: Mapping[str, Any]) -> bool:  # a lambda would be read as source
        return tuple(setting[name] for name in tune_params) in good

    return is_good
