"""Hooks for autotuners, with objects of the form of Triton's (`make autotuners`: its own)."""

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pandas as pd
import pytest

import wsjax
from wsjax.errors import InputError
from wsjax.triton import (
    Tuning,
    early_config_prune,
    perf_model,
    prune_configs_by,
    restriction,
)

SIZES = {"M": 4096, "N": 4096, "K": 2048}
TILES = {
    "BLOCK_SIZE_M": [64, 128, 256],
    "BLOCK_SIZE_N": [64, 256],
    "BLOCK_SIZE_K": [64, 128],
    "GROUP_SIZE_M": [8],
}


@dataclass(frozen=True)
class Config:
    """As `triton.Config`."""

    kwargs: dict[str, Any] = field(hash=False)
    num_warps: int = 4
    num_stages: int = 3

    def all_kwargs(self) -> dict[str, Any]:
        return {**self.kwargs, "num_warps": self.num_warps, "num_stages": self.num_stages}


class Tensor:
    """As a tensor of PyTorch's."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def data_ptr(self) -> int:
        return 0


def configs() -> list[Config]:
    tiles = [dict(zip(TILES, row, strict=True)) for row in product(*TILES.values())]
    return [Config(t, w, s) for t in tiles for w in (4, 8) for s in (2, 4)]


def row_of(c: Config, **columns: Any) -> dict[str, Any]:
    """The configuration in our words, written by hand."""
    sizes = {name.lower(): value for name, value in SIZES.items()}
    tile = {f"block_{x.lower()}": c.kwargs[f"BLOCK_SIZE_{x}"] for x in "MNK"}
    warps = {"math_warps": c.num_warps, "stages": c.num_stages}
    return sizes | tile | warps | {"group_m": 8, "schedule": "serial"} | columns


def expected(**columns: Any) -> list[float]:
    frame = pd.DataFrame([row_of(c, **columns) for c in configs()])
    return wsjax.predict(frame)["time_us"].fillna(math.inf).tolist()


def test_what_can_run_is_left_fastest_first():
    times = expected()
    left = early_config_prune(configs(), SIZES)
    assert 8 < len(left) < len(times)
    assert [perf_model(**SIZES, **c.all_kwargs()) for c in left] == sorted(times)[: len(left)]
    assert sorted(times)[len(left)] == math.inf
    by = prune_configs_by(top_k=3)
    assert by.keys() == {"early_config_prune"}
    assert by["early_config_prune"](configs(), SIZES) == left[:3]


def test_the_times_are_those_of_predict():
    assert [perf_model(**SIZES, **c.all_kwargs()) for c in configs()] == expected()


def test_types_schedules_and_other_columns():
    one = configs()[0]
    tensors = {"a": Tensor("torch.float8_e4m3fn"), "b": Tensor("torch.float8_e4m3fn")}
    tensors["c"] = Tensor("torch.bfloat16")
    tuning = Tuning("h200", columns={"layout": "nn"})
    given = {**tensors, **SIZES, "NUM_SMS": 132, **one.all_kwargs()}
    types = {"dtype_in": "fp8_e4m3", "dtype_out": "bf16", "schedule": "persistent", "layout": "nn"}
    frame = pd.DataFrame([row_of(one, **types)])
    assert tuning.perf_model(**given) == wsjax.predict(frame)["time_us"][0]


def test_names_of_ones_own():
    names = {"block_m": "ROWS", "m": "tokens"}
    tuning = Tuning(names=names)
    one = configs()[0].all_kwargs()
    renamed = {"ROWS": one.pop("BLOCK_SIZE_M"), "tokens": 4096, "N": 4096, "K": 2048, **one}
    assert tuning.perf_model(**renamed) == perf_model(**SIZES, **configs()[0].all_kwargs())
    with pytest.raises(InputError, match="block_m: no argument is called BLOCK_M or") as caught:
        perf_model(**SIZES, **one)
    assert "names={" in str(caught.value)
    with pytest.raises(InputError, match="blok_m: valid: m, n, k, block_m"):
        Tuning(names={"blok_m": "ROWS"}).perf_model(**SIZES)


def test_where_nothing_can_run_all_are_left():
    huge = [Config({**configs()[0].kwargs, "BLOCK_SIZE_M": 4096})]
    with pytest.warns(UserWarning, match="can run none"):
        assert early_config_prune(huge, SIZES) == huge


def test_what_is_not_modelled_is_said():
    given = {**configs()[0].all_kwargs(), **SIZES}
    assert perf_model(**given, SPLIT_K=1) == perf_model(**given)
    with pytest.warns(UserWarning, match="1 of 1 configurations are not modelled"):
        assert perf_model(**given, SPLIT_K=4) == math.inf
    whole, split = (
        [Config({**c.kwargs, "SPLIT_K": by}, c.num_warps, c.num_stages) for c in configs()]
        for by in (1, 4)
    )
    with pytest.warns(UserWarning, match="48 of 96 configurations are not modelled"):
        left = early_config_prune([*split, *whole], SIZES)
    assert left == early_config_prune(whole, SIZES)


def test_no_configurations_and_an_argument_that_is_none():
    assert early_config_prune([], SIZES) == []
    given = {**configs()[0].all_kwargs(), **SIZES}
    assert (
        perf_model(**given, NUM_SMS=None) == perf_model(**given) != perf_model(**given, NUM_SMS=8)
    )


def test_restrictions_of_kernel_tuner():
    parameters = {**TILES, "num_warps": [4, 8], "num_stages": [2, 4]}
    problem = {name.lower(): value for name, value in SIZES.items()}
    rule = restriction(parameters, problem, keep=0.25)
    rows = [dict(zip(parameters, row, strict=True)) for row in product(*parameters.values())]
    times = [perf_model(**SIZES, **row) for row in rows]
    able = sorted(time for time in times if time < math.inf)
    most = able[math.ceil(0.25 * len(able)) - 1]
    assert [rule(row) for row in rows] == [time <= most for time in times]
    with pytest.raises(InputError, match="keep: 0"):
        restriction(parameters, problem, keep=0.0)
