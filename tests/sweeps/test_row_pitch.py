"""Problems whose rows TMA can't take, in sweeps: all rows, best rows, quantiles, many and few."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import wsjax
from wsjax.engine import Candidates
from wsjax.hardware import load_hardware
from wsjax.schema import Axis, Product
from wsjax.spec import Spec, parse_spec
from wsjax.sweeps import Sizes, topk
from wsjax.sweeps.layout import ShardRows

HARDWARE = ("h200", "a100-sxm")
PROBLEMS = {"m": [17, 64], "n": [512, 1001, 1004], "k": [256, 2047], "layout": ["nt", "nn", "tn"]}
KERNELS = {"block_m": [64, 128], "block_n": 64, "stages": [2, 3], "write_back": ["tma", "direct"]}
KEY = ["hardware", *PROBLEMS]
SMALL = Sizes(
    chunk_rows=37,
    shard_rows=ShardRows(least=100, most=100),
    best=topk.ON_CPU._replace(problems=(4,), inner_rows=5),
)


def spec(output: str, problems=PROBLEMS) -> Spec:
    columns = {**problems, **KERNELS, "block_k": 64}
    lines = [f"{name} = {values!r}" for name, values in columns.items()]
    return parse_spec(
        "\n".join([f"hardware = {[*HARDWARE]}", "[columns]", *lines, "[output]", output]), "x.toml"
    )


def expected() -> pd.DataFrame:
    """The rows that the rule leaves, by the rule in words."""
    names = ["hardware", *PROBLEMS, "block_m", "stages", "write_back"]
    tried = product(
        HARDWARE, *PROBLEMS.values(), KERNELS["block_m"], KERNELS["stages"], KERNELS["write_back"]
    )
    rows = pd.DataFrame(list(tried), columns=pd.Index(names))
    of_a = rows["m"].where(rows["layout"] == "tn", rows["k"])
    of_b = rows["k"].where(rows["layout"] == "nt", rows["n"])
    of_c = rows["n"].where(rows["write_back"] == "tma", 0)
    aligned = (of_a % 8 == 0) & (of_b % 8 == 0) & (of_c % 8 == 0)
    return rows.loc[aligned | (rows["hardware"] == "a100-sxm")]


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory) -> pd.DataFrame:
    directory = tmp_path_factory.mktemp("pitch") / "all"
    summary = wsjax.sweep(spec("keep = 'all'"), directory, sizes=SMALL)
    assert summary.illegal == {"row_pitch": 2 * 36 * 8 - len(expected())}
    return wsjax.open(directory).to_table().to_pandas()


def test_all_rows_but_these_are_written(all_rows):
    names = ["hardware", *PROBLEMS, "block_m", "stages", "write_back"]
    assert (
        all_rows[names].astype(object).values.tolist() == expected().astype(object).values.tolist()
    )
    assert (all_rows["time_us"] > 0).all()


def test_a_sweep_predicts_what_predict_does(all_rows):
    for name, rows in all_rows.groupby("hardware", observed=True):
        found = wsjax.predict(rows[[*PROBLEMS, *KERNELS, "block_k"]], hardware=str(name))
        assert all(found["legal"])


def test_best_rows_are_those_of_all_rows(all_rows, tmp_path):
    summary = wsjax.sweep(spec("best = 3"), tmp_path / "best", sizes=SMALL)
    assert summary.illegal == {"row_pitch": 2 * 36 * 8 - len(all_rows)}
    assert summary.rows + summary.beaten == len(all_rows)
    found = wsjax.open(tmp_path / "best").to_table().to_pandas()
    ordered = all_rows.sort_values("time_us", kind="stable")
    wanted = (
        ordered.groupby(KEY, observed=True).head(3).sort_values([*KEY, "time_us"], kind="stable")
    )
    found = found.sort_values([*KEY, "time_us"], kind="stable")
    assert found["time_us"].tolist() == wanted["time_us"].tolist()


def test_quantiles_count_legal_rows(all_rows, tmp_path):
    wsjax.sweep(spec("keep = 'quantiles'"), tmp_path / "quantiles", sizes=SMALL)
    found = wsjax.open(tmp_path / "quantiles").to_table().to_pandas()
    times = all_rows.groupby(KEY, observed=True, sort=False)["time_us"]
    wanted = times.agg(["size", "min", "max"]).reset_index()
    assert found[KEY].astype(str).equals(wanted[KEY].astype(str))
    assert found["rows"].tolist() == wanted["size"].tolist()
    assert found["time_us_min"].tolist() == wanted["min"].tolist()
    assert found["time_us_max"].tolist() == wanted["max"].tolist()


def test_what_is_legal_is_found_once_where_it_is_the_same_for_all_problems():
    def on(machine: str, **columns) -> Candidates:
        columns = {"n": [512, 1024], "k": [64, 4096], **columns, "block_m": [64, 128]}
        axes = (
            Axis((name,), (values if isinstance(values, range) else np.asarray(values),))
            for name, values in columns.items()
        )
        return Candidates(load_hardware(machine), Product(tuple(axes)))

    assert on("h200", m=[17, 33]).uniform
    assert on("h200", m=range(1, 4097), k=range(64, 10**9, 16)).uniform
    assert on("h200", m=[16, 32], layout=[1, 2]).uniform
    assert on("h200", m=[16], k=[2047, 2047]).uniform
    assert not on("h200", m=[17, 33], k=range(64, 10**9, 4)).uniform
    assert not on("h200", m=[16, 17], layout=[2]).uniform
    assert not on("h200", m=[16], k=[2047], layout=[0, 1, 2]).uniform
    assert on("a100-sxm", m=[16, 17], k=[2047, 5], layout=[1, 2]).uniform
