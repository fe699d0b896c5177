"""Distributions of times against NumPy's quantiles and counts over all rows."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wsjax
from wsjax.cli.main import main
from wsjax.engine import batch
from wsjax.errors import InputError
from wsjax.spec.sweep_files import parse_spec
from wsjax.sweeps import Sizes
from wsjax.sweeps.quantiles import GRID, QUANTILES, by_group, columns, distributions
from wsjax.tables import rows as rows_at

SPEC = """
hardware = ["toy", "a6000-paper"]
[problems]
rows = [
    { name = "up", m = 16, n = 512, k = 256 },
    { name = "down", m = 300, n = 512, k = 512 },
    { name = "head", m = 4096, n = 512, k = 256 },
]
[columns]
block_m = [64, 128, 256]
block_n = [64, 128, 256]
block_k = 64
stages = [1, 2, 3, 4]
schedule = ["serial", "persistent"]
l2_state = ["cold", "warm"]
[hardware_parameters]
load_latency_us = [0.0, 0.5]
[filter]
where = "problem != 'head' or block_m > 256 or stages == 2"
"""
KEYS = ["hardware", "load_latency_us", "problem", "l2_state"]


def described(times: np.ndarray) -> dict:
    """The same by sorting: what a row of a distribution must say."""
    bins = Counter(math.floor(GRID * math.log2(time)) for time in times)
    return {
        "rows": len(times),
        "time_us_min": times.min(),
        "time_us_max": times.max(),
        "bin_us": [2 ** (i / GRID) for i in sorted(bins)],
        "bin_rows": [bins[i] for i in sorted(bins)],
    }


def check(found: dict, times: np.ndarray) -> None:
    for name, value in described(times).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-15)
    for name, q in QUANTILES.items():
        exact = np.quantile(times, q, method="inverted_cdf")
        ratio = found[f"time_us_{name}"] / exact
        assert 2 ** (-1 / (2 * GRID)) - 1e-12 < ratio < 2 ** (1 / (2 * GRID)) + 1e-12
        assert times.min() <= found[f"time_us_{name}"] <= times.max()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(1e-3, 1e6)), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_pieces_do_not_matter(rows, size):
    rows.sort(key=lambda pair: pair[0])
    groups = np.array([group for group, _ in rows])
    times = np.array([time for _, time in rows])
    pieces = []
    for start in range(0, len(rows), size):
        some = slice(start, start + size)
        pieces += [distributions(groups[some], times[some]), []]
    found = [one for some in by_group(pieces, 2) for one in some]
    table = columns(found)
    assert [one.group for one in found] == np.unique(groups).tolist()
    for position, group in enumerate(np.unique(groups)):
        check(rows_at(table, [position])[0], times[groups == group])


def test_free_rows_have_a_bin():
    (found,) = by_group([distributions(np.zeros(2, int), np.zeros(2))], 1)
    table = columns(found)
    assert rows_at(table, [0])[0]["time_us_p50"] == 0.0
    assert rows_at(table, [0])[0]["bin_us"] == [2.0**-40]
    assert [*by_group([], 1)] == [[]]
    assert columns([])["bin_rows"].to_pylist() == []


@pytest.fixture(scope="module")
def every(tmp_path_factory) -> pd.DataFrame:
    out = tmp_path_factory.mktemp("all") / "out"
    wsjax.sweep(parse_spec(SPEC, "all.toml"), out)
    return wsjax.open(out).to_table().to_pandas()


@pytest.mark.parametrize("partition", ["", 'partition_by = ["problem", "l2_state"]'])
@pytest.mark.parametrize(("block", "widening"), [(100, 1), (2**16, 1), (100, 2)])
def test_rows_tell_what_all_rows_have(every, partition, block, widening, tmp_path, monkeypatch):
    """On an accelerator (`widening` > 1) histograms are made where times are."""
    sizes = Sizes(chunk_rows=block)
    monkeypatch.setattr(batch, "widening", lambda: widening)
    run = parse_spec(f'{SPEC}[output]\nkeep = "quantiles"\n{partition}\n', "small.toml")
    summary = wsjax.sweep(run, tmp_path / "out", shard_rows=3, sizes=sizes)
    found = wsjax.open(tmp_path / "out").to_table().to_pandas()
    groups = {key: group["time_us"].to_numpy() for key, group in every.groupby(KEYS, observed=True)}
    assert len(found) == len(groups) == summary.rows == 24
    assert summary.rows + summary.beaten == len(every)
    assert summary.candidates == len(every) + summary.filtered + sum(summary.illegal.values())
    assert summary.best == []
    assert summary.fastest is None
    for _, one in found.iterrows():
        check(one.to_dict(), groups[tuple(one[key] for key in KEYS)])
    shapes = {"up": (16, 512, 256), "down": (300, 512, 512), "head": (4096, 512, 256)}
    assert all(shapes[one["problem"]] == (one["m"], one["n"], one["k"]) for one in found.iloc)
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.parquet")}
    assert len(before) == summary.shards >= 8
    lost = sorted(before)[1]
    lost.unlink()
    again = wsjax.sweep(run, tmp_path / "out", sizes=sizes)
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.parquet")} == before
    assert again == summary._replace(resumed=summary.shards - 1)


def test_problems_without_a_legal_row_have_no_row(tmp_path, capsys):
    path = tmp_path / "few.toml"
    path.write_text(SPEC.replace("or stages == 2", "") + '[output]\nkeep = "quantiles"\n')
    assert main(["sweep", str(path), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "16 rows of 1,728 candidates" in shown
    assert "the rows tell how their times are spread" in shown
    found = wsjax.open(tmp_path / "out").to_table().to_pandas()
    assert set(found["problem"]) == {"up", "down"}


def test_best_and_quantiles_exclude_each_other():
    with pytest.raises(InputError, match='best: not with keep = "quantiles"'):
        parse_spec(f'{SPEC}[output]\nkeep = "quantiles"\nbest = 3\n', "small.toml")
