"""`compare`: exact best kernels, slopes, and why figures differ."""

import json

import numpy as np
import pandas as pd
import pytest

import wsjax
from wsjax.changes.machines import read_changes
from wsjax.cli import main
from wsjax.errors import InputError
from wsjax.hardware import load_hardware
from wsjax.schema import COLUMNS
from wsjax.spec import load_space
from wsjax.tables import finite

WORKLOAD = pd.DataFrame(
    {
        "m": [16, 1000, 4096, 4096],
        "n": [4096, 4096, 4096, 6144],
        "k": [4096, 1024, 512, 4096],
        "dtype_in": ["bf16", "bf16", "fp8_e4m3", "bf16"],
        "dtype_out": "bf16",
        "weight": [32.0, 4.0, 0.0, 1.0],
        "layer": ["decode", "mixed", "mixed", "prefill"],
    }
)
CHANGES = [
    "sms=+25%",
    "dram_bytes_per_us=2x",
    "smem_bytes_per_sm=-50%",
    "sms=100, load_latency_us=2x",
]


@pytest.fixture(scope="module")
def compared(small_space):
    return wsjax.compare(
        WORKLOAD,
        "h200",
        CHANGES,
        machines=["h100-sxm", "h200-gluon"],
        pairs=True,
        by="layer",
        space=small_space,
    )


def test_best_kernels_are_those_of_every_prediction(compared, small_space):
    base = load_hardware("h200").physics
    own = [change.machine for change in read_changes(base, CHANGES)]
    others = [load_hardware(name).physics for name in ("h100-sxm", "h200-gluon")]
    kernels = load_space(small_space).product
    columns = kernels.take(np.arange(len(kernels)))
    words = {
        name: np.asarray(COLUMNS[name].choices)[x] if COLUMNS[name].choices else x
        for name, x in columns.items()
    }
    names = [base.name, *CHANGES_NAMED, "h100-sxm", "h200-gluon"]
    for name, machine in zip(names, [base, *own, *others], strict=True):
        mine = compared.problems[compared.problems["change"] == name]
        assert len(mine) == len(WORKLOAD)
        for problem, time_us in zip(WORKLOAD.to_dict("records"), mine["time_us"], strict=True):
            given = {x: problem[x] for x in ("m", "n", "k", "dtype_in", "dtype_out")}
            rows = wsjax.predict(pd.DataFrame(words | given), hardware=machine)
            assert time_us == rows["time_us"].min()


CHANGES_NAMED = [
    "sms +25%",
    "dram_bytes_per_us x2",
    "smem_bytes_per_sm x0.5",
    "sms -24.2%, load_latency_us x2",
]


def test_what_is_saved_adds_up(compared):
    base = compared.problems.iloc[: len(WORKLOAD)]
    assert compared.time_us == pytest.approx((base["time_us"] * base["weight"]).sum())
    changes = compared.changes.set_index("change")
    assert list(changes["saved_pct"]) == sorted(changes["saved_pct"], reverse=True)
    for name, rows in compared.problems.groupby("change"):
        if name in changes.index:
            total = (rows["time_us"] * rows["weight"]).sum()
            assert changes.loc[name, "time_us"] == pytest.approx(total)
            saved = compared.time_us - total
            assert changes.loc[name, "saved_us"] == pytest.approx(saved)
            groups = compared.groups[compared.groups["change"] == name]
            parts = groups["share_pct"] * groups["saved_pct"] / 100
            assert parts.sum() == pytest.approx(100 * saved / compared.time_us)
    assert (changes["same_kernels_pct"] <= changes["saved_pct"] + 1e-9).all()


def test_pairs_are_changes_together(compared, small_space):
    pairs = compared.pairs.set_index(["change", "other"])
    assert len(pairs) == 5  # sms is in two changes
    one = pairs.loc["sms +25%", "dram_bytes_per_us x2"]
    both = wsjax.compare(
        WORKLOAD, "h200", ["sms=+25%, dram_bytes_per_us=2x"], space=small_space
    ).changes.iloc[0]
    assert one["saved_pct"] == both["saved_pct"]
    saved = compared.changes.set_index("change")["saved_pct"]
    alone = saved["sms +25%"] + saved["dram_bytes_per_us x2"]
    assert one["interaction_pct"] == pytest.approx(one["saved_pct"] - alone)


def test_a_small_change_is_its_gradient(small_space):
    names = ["dram_bytes_per_us", "clock_mhz", "load_latency_us", "launch_us", "l2_bytes"]
    small = wsjax.compare(
        WORKLOAD, "h200", [f"{name}=+0.001%" for name in names], space=small_space
    ).changes
    assert len(small) == len(names)
    np.testing.assert_allclose(small["elasticity"], small["finite_elasticity"], atol=2e-4)
    np.testing.assert_allclose(small["gradient_pct"], small["saved_pct"], atol=1e-6)
    assert np.count_nonzero(small["elasticity"].abs() > 1e-3) >= 4
    assert set(small["why"]) == {""}


def test_why_figures_differ(compared):
    changes = compared.changes.set_index("change")
    for name, row in changes.iterrows():
        switch = row["saved_pct"] - row["same_kernels_pct"]
        assert ("another kernel is best" in row["why"]) == (switch >= 0.1), name
        if np.isfinite(row["gradient_pct"]) and "boundary" in row["why"]:
            assert row["waves"]
    assert changes.loc["sms +25%", "waves"] > 0
    halved = changes.loc["smem_bytes_per_sm x0.5"]
    assert halved["illegal"] > 0
    assert halved["elasticity"] == 0


def test_machines_are_compared_on_one_footing(small_space):
    same = wsjax.compare(WORKLOAD, "h200", machines=["h200"], space=small_space)
    assert same.corrected
    assert same.changes["saved_pct"].tolist() == [0.0]
    assert same.changes["gradient_pct"].tolist() == [0.0]
    assert not wsjax.compare(WORKLOAD, "h100-sxm", ["sms=2x"], space=small_space).corrected


def test_a_record_is_json(compared):
    record = json.loads(json.dumps(finite(compared.record()), allow_nan=False))
    assert [row["change"] for row in record["changes"]] == list(compared.changes["change"])
    assert record["learned_correction_left_out"] is True


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "nothing to compare with"),
        ({"changes": ["sms=2x"], "by": "layr"}, "no column 'layr'; did you mean 'layer'?"),
        ({"each_by": ["25"]}, "--each 25: expected a relative change"),
        ({"machines": ["h20000"]}, "no machine is called 'h20000'"),
    ],
)
def test_mistakes(given, words):
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        wsjax.compare(WORKLOAD, "h200", **given)


def test_a_problem_in_two_groups_is_refused():
    twice = pd.concat([WORKLOAD, WORKLOAD.assign(layer="other")])
    with pytest.raises(InputError, match=r"rows 0 and 4 .* 'decode' and 'other'; make them agree"):
        wsjax.compare(twice, "h200", ["sms=2x"], by="layer")


def test_a_problem_without_a_kernel_is_named(space_file):
    space_file.write_text("[columns]\nblock_m = 256\nblock_n = 256\nblock_k = 128\nstages = 8\n")
    with pytest.raises(InputError, match="4 of 4 problems have no legal kernel on h200"):
        wsjax.compare(WORKLOAD, "h200", ["sms=2x"], space=space_file)


def test_the_command_line(tmp_path, capsys, small_space):
    WORKLOAD.to_csv(tmp_path / "w.csv", index=False)
    options = ["--change", "sms=+25%", "--each", "+25%", "--by", "layer", "--space"]
    command = ["compare", str(tmp_path / "w.csv"), *options, str(small_space)]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "without the learned correction" in printed
    assert printed.count("sms +25%") == 2  # ranked, and by group
    names = ["changes.csv", "groups.csv", "problems.parquet", "tornado.svg"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    changes = pd.read_csv(tmp_path / "out" / "changes.csv")
    assert main([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["change"] for row in record["changes"]] == list(changes["change"])
    picture = (tmp_path / "out" / "tornado.svg").read_text()
    assert all(f">{name}<" in picture for name in changes["change"])
    assert main([*command[:2], "--change", "smss=2x"]) == 2
    assert "did you mean 'sms'?" in capsys.readouterr().err
