"""`choose`: frames and files in, frames and files out."""

import json
import re
import sys
import types
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from paths import DATA

import wsjax
from wsjax.cli.main import main
from wsjax.errors import InfeasibleError, InputError
from wsjax.hardware import load_hardware
from wsjax.importers import kernel_names
from wsjax.portfolio import choosing
from wsjax.portfolio.export import Point, cutlass_patterns, loss_svg
from wsjax.tables.parquet import read_metadata

MEASURED = DATA / "h200_cutlass_ws_problems.csv.gz"
WORKLOAD = pd.DataFrame(
    {
        "problem": ["qkv", "o", "decode", "qkv"],
        "m": [4096, 4096, 16, 4096],
        "n": [6144, 4096, 6144, 6144],
        "k": [4096, 4096, 4096, 4096],
        "weight": [2.0, 1.0, 500.0, 3.0],
    }
)
KERNELS = pd.DataFrame(
    {
        "block_m": [64, 128, 128, 256, 64],
        "block_n": [64, 128, 256, 128, 256],
        "block_k": 64,
        "stages": [8, 4, 3, 3, 30],
        "schedule": ["serial", "pingpong", "cooperative", "cooperative", "persistent"],
        "mma_in_flight": 1,
        "build_cost": [10, 20.5, 30, 30, 1],
    }
)
NAMES = [
    "64x64x64_s8_serial_f1",
    "128x128x64_s4_pingpong_f1",
    "128x256x64_s3_cooperative_f1",
    "256x128x64_s3_cooperative_f1",
    "64x256x64_s30_persistent_f1",
]


def predicted(workload, kernels):
    """(problems, kernels) in µs, pair by pair, with `predict`; NaN where it is not legal."""
    pairs = workload.drop_duplicates(list("mnk"))[list("mnk")].merge(
        kernels.drop(columns="build_cost"), how="cross"
    )
    return wsjax.predict(pairs, "h200")["time_us"].to_numpy().reshape(-1, len(kernels))


def test_frames():
    choice = wsjax.choose(WORKLOAD, 2, "h200", kernels=KERNELS)
    times, weights = predicted(WORKLOAD, KERNELS), np.array([5.0, 1.0, 500.0])
    assert np.isnan(times[:, 4]).all()
    best = {
        k: min(
            (float(weights @ np.nanmin(times[:, s], axis=1)), s) for s in combinations(range(4), k)
        )
        for k in (1, 2)
    }
    assert choice.proved
    assert choice.gap_pct == 0
    assert choice.time_us == pytest.approx(best[2][0])
    assert set(choice.names) == {NAMES[j] for j in best[2][1]}
    every = float(weights @ np.nanmin(times, axis=1))
    assert choice.all_us == pytest.approx(every)
    assert choice.available == 4
    assert list(choice.loss["k"]) == [1, 2]
    assert choice.loss["time_us"].to_list() == pytest.approx([best[1][0], best[2][0]])
    assert choice.loss["loss_pct"].iloc[0] == pytest.approx(100 * (best[1][0] / every - 1))
    alone = times[:, best[1][1][0]] / np.nanmin(times, axis=1)
    assert choice.loss["worst_pct"].iloc[0] == pytest.approx(100 * (alone.max() - 1))
    table = choice.assignment
    assert table["problem"].to_list() == ["qkv", "o", "decode"]
    assert table["weight"].to_list() == [5, 1, 500]
    at = [NAMES.index(name) for name in table["kernel"]]
    assert table["time_us"].to_numpy() == pytest.approx(times[range(3), at])
    assert table["best_time_us"].to_numpy() == pytest.approx(np.nanmin(times, axis=1))
    assert choice.kernels["problems"].sum() == 3
    assert choice.kernels["time_share_pct"].sum() == pytest.approx(100)
    assert choice.kernels["time_share_pct"].is_monotonic_decreasing
    assert choice.measured is None


def test_arrow_and_defaults():
    """An Arrow table gives Arrow tables; the default space, and a kernel without stages."""
    small = pa.table({"m": [64], "n": [128], "k": [256]})
    choice = wsjax.choose(small, 1)
    assert isinstance(choice.assignment, pa.Table)
    assert isinstance(choice.kernels, pa.Table)
    assert choice.record()["loss"][0]["k"] == 1
    tile = pd.DataFrame({"block_m": [64], "block_n": [64], "block_k": [64], "group_m": [8]})
    choice = wsjax.choose(small, 3, kernels=tile)
    assert choice.names == ("64x64x64_persistent_g8",)
    assert len(choice.loss) == 3
    assert "num_stages=" in choice.triton_configs


def test_constraints():
    free = wsjax.choose(WORKLOAD, 2, kernels=KERNELS)
    without = wsjax.choose(WORKLOAD, 2, kernels=KERNELS, exclude=[free.names[0]])
    assert free.names[0] not in without.names
    assert without.time_us > free.time_us
    assert without.available == 3
    left = next(n for n in NAMES[:4] if n not in free.names)
    assert left in wsjax.choose(WORKLOAD, 2, kernels=KERNELS, include=[left]).names
    assert len(wsjax.choose(WORKLOAD, 3, kernels=KERNELS, exclude=["*cooperative*"]).names) == 2
    cheap = wsjax.choose(WORKLOAD, 4, kernels=KERNELS, budget=30.5)
    assert set(cheap.names) == set(NAMES[:2])
    assert cheap.kernels["build_cost"].sum() == 30.5
    renamed = KERNELS.rename(columns={"build_cost": "minutes"})
    other = wsjax.choose(WORKLOAD, 4, kernels=renamed, budget=30.5, build_cost="minutes")
    assert other.names == cheap.names
    worst = wsjax.choose(WORKLOAD, 1, kernels=KERNELS).loss["worst_pct"].iloc[0]
    assert wsjax.choose(WORKLOAD, 4, kernels=KERNELS, within_pct=0).loss["k"].min() > 1
    with pytest.raises(InfeasibleError, match=r"at most 1 kernel \(the others can be met with"):
        wsjax.choose(WORKLOAD, 1, kernels=KERNELS, within_pct=min(0.001, worst / 2))


def test_measured_table():
    """Six kernels chosen from predictions cost at most 3 % more measured time than six chosen with
    hindsight: with the best of the set, and with the one that predictions pick."""
    choice = wsjax.choose(MEASURED, 6)
    assert choice.measured is not None
    assert choice.proved
    assert choice.measured.proved
    assert 0 <= choice.measured.excess_pct <= choice.measured.picked_excess_pct <= 3
    hindsight = wsjax.choose(MEASURED, 6, measured=True)
    assert hindsight.time_us == pytest.approx(choice.measured.hindsight_us)
    assert set(hindsight.names) == set(choice.measured.hindsight)
    assert hindsight.all_us == pytest.approx(choice.measured.all_us)
    table = choice.assignment
    picked_us = (table["weight"] * table["time_us_measured"]).sum()
    assert picked_us == pytest.approx(choice.measured.picked_us)
    rows: Any = pd.read_csv(MEASURED)
    keys = [*list("mnk"), "block_m", "block_n", "block_k", "stages", "schedule"]
    once = rows.groupby(keys, as_index=False)["time_us_median"].mean()
    best = once.groupby(list("mnk"))["time_us_median"].min()
    assert hindsight.all_us == pytest.approx(best.sum())
    assert len(once) == choice.available * len(best)


def test_a_table_with_kernels_counts_each_problem_once():
    pairs = WORKLOAD[list("mnk")].drop_duplicates().merge(KERNELS, how="cross")
    pairs["weight"] = np.repeat([5.0, 1.0, 500.0], len(KERNELS))
    choice = wsjax.choose(wsjax.predict(pairs), 2)
    assert choice.measured is None
    assert choice.time_us == pytest.approx(wsjax.choose(WORKLOAD, 2, kernels=KERNELS).time_us)
    pairs.loc[1, "weight"] = 7.0
    with pytest.raises(InputError, match=r"row 1 \(from 0\) says 7, row 0 5 of the same"):
        wsjax.choose(pairs, 2)


def test_space_filter_by_type(tmp_path):
    space = tmp_path / "space.toml"
    space.write_text(
        "[columns]\nblock_m = 64\nblock_n = [64, 128]\nblock_k = 128\n"
        '[filter]\nwhere = "stages >= 6"\n'
    )
    workload = pd.DataFrame({"m": 64, "n": 128, "k": 256, "dtype_in": ["bf16", "fp8_e4m3"]})
    choice = wsjax.choose(workload, 2, space=space)
    table = choice.assignment.set_index("dtype_in")
    assert table.loc["bf16", "kernel"] == "64x64x128_persistent"
    assert len(choice.names) <= 2


def test_files(tmp_path, capsys, monkeypatch):
    source, kernels, out = tmp_path / "w.parquet", tmp_path / "k.csv", tmp_path / "out"
    WORKLOAD.to_parquet(source)
    KERNELS.to_csv(kernels, index=False)
    command = ["choose", source, "-k", "2", "--kernels", kernels, "--out", out]
    assert main([str(word) for word in command]) == 0
    shown = capsys.readouterr().out
    assert "2 of 4 kernels for 3 problems on h200 (calibrated)" in shown
    assert f"left out: {NAMES[4]} can run no problem: shared memory: " in shown
    assert "save no time" not in shown
    assert "proved: no set of 2 takes less" in shown
    assert "cutlass_filter.txt leaves out what CUTLASS has not" not in shown
    choice = wsjax.choose(WORKLOAD, 2, kernels=KERNELS)
    assert pd.read_parquet(out / "assignment.parquet").equals(choice.assignment)
    assert "h200" in read_metadata(out / "assignment.parquet")["hardware"]
    assert pd.read_csv(out / "kernels.csv")["kernel"].to_list() == list(choice.names)
    assert pd.read_csv(out / "loss.csv")["k"].to_list() == [1, 2]
    assert ElementTree.parse(out / "loss.svg").getroot().tag.endswith("svg")
    assert (out / "cutlass_filter.txt").read_text() == choice.cutlass_filter
    triton = types.ModuleType("triton")
    triton.Config = lambda settings, **numbers: (settings, numbers)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", triton)
    made: dict = {}
    exec((out / "triton_configs.py").read_text(), made)
    rows = choice.kernels.to_dict("records")
    assert [c[0]["BLOCK_SIZE_M"] for c in made["CONFIGS"]] == [row["block_m"] for row in rows]
    assert [c[1]["num_stages"] for c in made["CONFIGS"]] == [row["stages"] for row in rows]
    assert all(c[1]["num_warps"] in (4, 8) for c in made["CONFIGS"])


def test_kernels_that_save_nothing_are_told_once(tmp_path, capsys):
    source, kernels = tmp_path / "w.csv", tmp_path / "k.csv"
    WORKLOAD[:1].to_csv(source, index=False)
    KERNELS[:4].to_csv(kernels, index=False)
    assert main(["choose", str(source), "-k", "3", "--kernels", str(kernels)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if "worst problem %" in line)
    assert [line.split()[0] for line in lines[at + 2 :] if line.endswith("yes ")] == ["1"]
    assert "more than k = 1 kernels save no time" in lines
    assert not any(line.startswith("left out") for line in lines)


def test_json(tmp_path, capsys):
    source = tmp_path / "w.csv"
    WORKLOAD.to_csv(source, index=False)
    command = f"choose {source} -k 1 --exclude *_s2_*,256x* --json"
    assert main(command.split()) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["proved"]
    assert record["gap_pct"] == 0
    assert record["problems"] == 3
    assert record["measured"] is None
    assert len(record["kernels"]) == 1


def test_what_is_not_proved_is_said(monkeypatch, capsys, tmp_path):
    source, kernels = tmp_path / "w.csv", tmp_path / "k.csv"
    WORKLOAD.to_csv(source, index=False)
    KERNELS.to_csv(kernels, index=False)
    found = choosing.choose_sets

    def short(*arguments, **options):
        chosen = found(*arguments, **options)
        assert chosen is not None
        last = chosen.sets[-1]
        last = last._replace(proved=False, bound_us=0.98 * last.time_us)
        return chosen._replace(sets=(*chosen.sets[:-1], last), interrupted=True)

    monkeypatch.setattr(choosing, "choose_sets", short)
    command = f"choose {source} -k 2 --kernels {kernels} --out {tmp_path / 'out'}"
    assert main(command.split()) == 130
    shown = capsys.readouterr().out
    assert "not proved (interrupted" in shown
    assert "no set of 2 takes more than 2 % less" in shown
    assert 'fill="white" stroke' in (tmp_path / "out" / "loss.svg").read_text()


MISTAKES = {
    "negative": (WORKLOAD.assign(weight=-1.0), {}, "column 'weight': negative in 4 rows"),
    "nan": (WORKLOAD.assign(weight=np.nan), {}, "'weight': no number in 4 rows, first in row 0"),
    "huge": (WORKLOAD.assign(weight=1e30), {}, "'weight': above 1e+15 in 4 rows"),
    "zeros": (WORKLOAD.assign(weight=0), {}, "all weights are 0"),
    "empty": (WORKLOAD.iloc[:0], {}, "the workload has no rows"),
    "no m": (WORKLOAD.drop(columns="m"), {}, "column 'm' is missing"),
    "no frame": ([1], {}, "expected a file's name, a DataFrame or an Arrow table, not list"),
    "k": (WORKLOAD, {"k": 0}, "k: expected a whole number from 1"),
    "k is no number": (WORKLOAD, {"k": 1.5}, "k: expected a whole number from 1"),
    "within": (WORKLOAD, {"within_pct": float("nan")}, "within_pct: expected a finite number"),
    "budget": (WORKLOAD, {"budget": -1}, "budget: expected a finite number from 0"),
    "timeout": (WORKLOAD, {"timeout_s": 0}, "timeout_s: expected a finite number above 0"),
    "costs": (WORKLOAD, {"budget": 1, "kernels": KERNELS.iloc[:, :3]}, "budget: needs what each"),
    "cost column": (WORKLOAD, {"build_cost": "minuts"}, "the kernels have no column 'minuts'"),
    "cost": (WORKLOAD, {"kernels": KERNELS.assign(build_cost=-2)}, "'build_cost': negative in 5"),
    "include": (WORKLOAD, {"include": ["64x64x64"]}, f"'64x64x64'; did you mean '{NAMES[0]}'?"),
    "one text": (WORKLOAD, {"include": "abc"}, "include: expected a list of kernels' names"),
    "no list": (WORKLOAD, {"include": None}, "include: expected a list of kernels' names, not"),
    "illegal": (WORKLOAD, {"include": [NAMES[4]]}, "can run no problem; leave it out"),
    "exclude": (WORKLOAD, {"exclude": ["7*"]}, "exclude: unknown kernel '7*'; valid: 64x64x64"),
    "both": (WORKLOAD, {"include": NAMES[:1], "exclude": ["64*"]}, "both in include and in"),
    "too many": (WORKLOAD, {"k": 1, "include": NAMES[:2]}, "2 kernels are more than k = 1"),
    "too dear": (WORKLOAD, {"include": NAMES[:1], "budget": 9}, "alone cost 10 to build"),
    "nothing left": (WORKLOAD, {"exclude": ["*"]}, "all kernels that can run it are excluded"),
    "not legal": (WORKLOAD, {"kernels": KERNELS.iloc[4:]}, "no kernel is legal (1 shared_memory)"),
    "two sources": (WORKLOAD, {"space": "s.toml"}, "both say which kernels there are"),
    "measured": (WORKLOAD, {"measured": True}, "leave space, kernels out"),
    "no times": (WORKLOAD, {"measured": True, "kernels": None}, "has no measured times"),
}


@pytest.mark.parametrize(("workload", "options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(workload, options, message):
    options = {"k": 2, "kernels": KERNELS, **options}
    with pytest.raises(InputError, match=re.escape(message)):
        wsjax.choose(workload, **options)


@pytest.mark.parametrize("name", ["wieght", "Weights", "count"])
def test_a_weight_of_another_name_is_no_weight(name):
    with pytest.warns(UserWarning, match=f"'{name}' has no effect.* call it 'weight'"):
        choice = wsjax.choose(WORKLOAD.rename(columns={"weight": name}), 1, kernels=KERNELS)
    assert choice.assignment["weight"].to_list() == [2, 1, 1]
    assert len(repr(choice)) < 1000


def test_a_misspelt_column_of_a_problem_is_told():
    with pytest.warns(UserWarning, match="'dtypein' has no effect, and 'dtype_in' takes its"):
        wsjax.choose(WORKLOAD.assign(dtypein="fp16"), 1, kernels=KERNELS)


def test_exit_codes(tmp_path, capsys):
    source, kernels = tmp_path / "w.csv", tmp_path / "k.csv"
    WORKLOAD.assign(weight=[1, 2, "x", -4]).to_csv(source, index=False)
    KERNELS.to_csv(kernels, index=False)

    def said(command, code):
        assert main(["choose", *command.split()]) == code
        return capsys.readouterr().err

    text = said(f"{source} -k 2", 2)
    assert f"{source}: column 'weight': no number in 1 row, first in row 2 (from 0): x" in text
    assert f"{source}: column 'weight': negative in 1 row, first in row 3 (from 0): -4" in text
    assert "-k: missing" in said(f"{source}", 2)
    assert "is a file; give a directory" in said(f"{source} -k 2 --out {source}", 2)
    WORKLOAD.to_csv(source, index=False)
    text = said(f"{source} -k 1 --kernels {kernels} --budget 5", 3)
    assert "infeasible: no set of kernels meets all of" in text
    assert "  build costs of at most 5" in text


def matches(pattern, name):
    """CUTLASS's rule: the pieces between * are found in order."""
    for piece in pattern.split("*"):
        at = name.find(piece)
        if at < 0:
            return False
        name = name[at + len(piece) :]
    return True


CUTLASS = "cutlass3x_sm90_tensorop_{}_{}x1x1_{}_{}_align{}_warpspecialized{}"
HOPPER = load_hardware("h200").facts
KERNEL = {
    **{"block_m": 128, "block_n": 256, "block_k": 64, "stages": 3, "schedule": "serial"},
    **{"dma_warps": 1, "split_k": 1, "cluster_m": 2, "cluster_n": 1, "write_back": "tma"},
    **{"dtype_in": "bf16", "dtype_out": "bf16", "layout": "nt"},
}
DEEPEST = 4
"""The stages of such a kernel that fit an H200; `0` in CUTLASS's names."""


@pytest.mark.parametrize("instruction", ["gemm", "s64x128x16gemm"])
@pytest.mark.parametrize("schedule", ["serial", "pingpong", "cooperative"])
@pytest.mark.parametrize("stages", [3, DEEPEST])
def test_cutlass_patterns(instruction, schedule, stages):
    kernel = KERNEL | {"schedule": schedule, "stages": stages}
    (pattern,) = cutlass_patterns(kernel, HOPPER)
    told_stages = 0 if stages == DEEPEST else stages
    types_ = f"{instruction}_bf16_bf16_f32_bf16_bf16_128x256x64"
    words = {"serial": "", "pingpong": "_pingpong", "cooperative": "_cooperative"}
    for other, word in words.items():
        for write in ("_epi_tma", "_epi_nosmem"):
            name = CUTLASS.format(types_, 2, told_stages, "tnn", 8, word + write)
            assert matches(pattern, name) == (other == schedule and write == "_epi_tma")
            assert kernel_names.parse(name)["schedule"] == other
    name = CUTLASS.format(types_, 2, told_stages, "tnt", 8, words[schedule] + "_epi_tma")
    assert matches(pattern, name)
    told = kernel_names.parse(name)
    assert all(told[key] == kernel[key] for key in kernel.keys() & told.keys())
    assert not matches(pattern, name.replace("2x1x1", "1x1x1"))
    assert not matches(pattern, name.replace(f"_{told_stages}_tnt", "_2_tnt"))
    assert not matches(pattern, name.replace("align8", "align8_stream_k"))
    (divided,) = cutlass_patterns({**kernel, "split_k": 4}, HOPPER)
    assert matches(divided, name.replace("align8", "align8_stream_k"))
    assert not matches(divided, name)
    assert not cutlass_patterns({**kernel, "schedule": "persistent"}, HOPPER)
    (eight,) = cutlass_patterns({**kernel, "dtype_in": "fp8_e4m3", "dtype_out": "fp16"}, HOPPER)
    fp8 = "gemm_e4m3_e4m3_f32_f32_f16_128x256x64"
    assert matches(eight, CUTLASS.format(fp8, 2, stages, "tnn", 16, words[schedule] + "_epi_tma"))


def test_names_follow_the_architecture():
    """CUTLASS 2 on Ampere and Ada, 3 on Hopper and Blackwell, none elsewhere."""
    kernel = KERNEL | {"cluster_m": 1, "block_n": 128}
    ampere = load_hardware("a100-sxm").facts
    (pattern,) = cutlass_patterns(kernel, ampere)
    assert matches(pattern, "cutlass_tensorop_bf16_s16816gemm_bf16_128x128_64x3_tn_align8")
    assert not matches(pattern, "cutlass_tensorop_bf16_s16816gemm_bf16_128x128_64x4_tn_align8")
    assert not matches(pattern, "cutlass_tensorop_s16816gemm_bf16_128x128_64x3_tn_align8")
    assert not cutlass_patterns(kernel | {"schedule": "pingpong"}, ampere)
    blackwell = load_hardware("b200").facts
    (pattern,) = cutlass_patterns(kernel | {"schedule": "persistent"}, blackwell)
    assert pattern.startswith("cutlass3x_sm100_tensorop_")
    assert not cutlass_patterns(kernel, load_hardware("mi300x").facts)


def test_imported_names_are_exported(tmp_path):
    names = [
        CUTLASS.format("s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64", 1, 0, "tnn", 8, word)
        for word in ("_pingpong_epi_tma", "_cooperative_epi_tma")
    ]
    kernels = KERNELS.iloc[[1, 2]].assign(kernel=names, block_n=128, group_m=1)
    choice = wsjax.choose(WORKLOAD, 2, kernels=kernels, include=names)
    assert set(choice.names) == set(names)
    assert set(choice.cutlass_filter.split(",")) == set(names)
    assert all(f"# {name}" in choice.triton_configs for name in names)
    twice = pd.concat([kernels, KERNELS.iloc[[1]].assign(kernel=names[0], group_m=8)])
    choice = wsjax.choose(WORKLOAD, 3, kernels=twice, include=[names[1]])
    assert names[1] in choice.names, "a name that two kernels have is no one's; others keep theirs"


HOSTILE = [
    "x\n__import__('pathlib').Path('WRITTEN').touch() and None,  # ",
    '=cmd|"/C calc"!A0',
    "<b>c</b></script>",
    "+1\r\n@SUM(A1)\u2028\x1b[2J",
    "cutlass*,\n--kernels=all",
]


def test_names_from_a_table_are_data(tmp_path, capsys, monkeypatch):
    """No name is code to Python, a formula to a spreadsheet, or a command to a terminal."""
    monkeypatch.chdir(tmp_path)
    rows = KERNELS.iloc[[0, 1, 2, 3, 3]].assign(group_m=[1, 1, 1, 1, 2], kernel=HOSTILE)
    rows.to_csv("kernels.csv", index=False)
    WORKLOAD.assign(problem=HOSTILE[:4]).to_csv("w.csv", index=False)
    names = wsjax.choose("w.csv", 5, kernels="kernels.csv").kernels["kernel"].to_list()
    command = ["choose", "w.csv", "-k", "5", "--kernels", "kernels.csv", "--out", "out"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    triton = types.ModuleType("triton")
    triton.Config = lambda settings, **numbers: (settings, numbers)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", triton)
    text = Path("out/triton_configs.py").read_text()
    made: dict = {}
    exec(text, made)
    assert len(made["CONFIGS"]) == len(names)
    assert all(line.isprintable() for line in text.splitlines())
    assert not Path("WRITTEN").exists()
    for name in ("kernels.csv", "loss.csv"):
        cells: Any = pd.read_csv(Path("out") / name, dtype=str)
        for column in cells:
            assert not cells[column].dropna().str.match(r"[=+\-@\t\r]").any()
    written = Path("out/cutlass_filter.txt")
    assert not written.exists() or "\n" not in written.read_text()
    ElementTree.parse("out/loss.svg")


def test_a_kernel_of_a_sampled_table_is_there_for_every_problem(capsys, tmp_path):
    """Of a table that holds few of the kernels on each problem, predictions choose as of the whole
    one; measured times take only what was measured, and the error says so."""
    pairs = WORKLOAD[list("mnk")].drop_duplicates().merge(KERNELS.iloc[:4], how="cross")
    times = wsjax.predict(pairs.drop(columns="build_cost"))["time_us"]
    pairs = pairs.drop(columns="build_cost").assign(time_us_measured=times)
    sampled = pairs.iloc[[0, 1, 4 + 2, 8 + 3]]
    whole, part = wsjax.choose(pairs, 2), wsjax.choose(sampled, 2)
    assert part.names == whole.names
    assert part.time_us == pytest.approx(whole.time_us)
    assert part.available == 4
    assert wsjax.choose(sampled, 3, measured=True).time_us > part.time_us
    with pytest.raises(InfeasibleError, match="problems only on kernels measured on them"):
        wsjax.choose(sampled, 1, measured=True)
    file = tmp_path / "sampled.csv"
    sampled.to_csv(file, index=False)
    assert main(["choose", str(file), "-k", "3", "--measured"]) == 0
    title = capsys.readouterr().out.splitlines()[0]
    assert title.endswith("kernels for 3 problems by measured times, of measured pairs only")
    assert main(["choose", str(file), "-k", "3", "--measured", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hardware"] is None


def test_loss_picture():
    points = [Point(1, 11.8, 11.8, True), Point(2, 0.0, 0.0, True)]
    root = ElementTree.fromstring(loss_svg(points, "<a & b>"))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert texts[0] == "<a & b>"
    assert {"0", "5", "10", "15", "11.8"} <= set(texts)
    assert ElementTree.fromstring(loss_svg(points[1:], "no loss")) is not None


def test_kernels_that_cutlass_has_not(tmp_path, capsys):
    source, kernels = tmp_path / "w.csv", tmp_path / "k.csv"
    WORKLOAD.to_csv(source, index=False)
    command = f"choose {source} -k 2 --kernels {kernels} --out {tmp_path}"
    KERNELS.iloc[:1].assign(schedule="persistent").to_csv(kernels, index=False)
    assert main(command.split()) == 0
    assert "no cutlass_filter.txt: CUTLASS has none of these" in capsys.readouterr().out
    assert not (tmp_path / "cutlass_filter.txt").exists()
    both = f"{command} --include 64x64x64_s8_persistent_f1,128x256x64_s3_cooperative_f1"
    rows = KERNELS.iloc[[0, 2]].assign(schedule=["persistent", "cooperative"])
    rows.to_csv(kernels, index=False)
    assert main(both.split()) == 0
    left_out = "leaves out what CUTLASS has not: 64x64x64_s8_persistent_f1"
    assert left_out in capsys.readouterr().out
    assert "cooperative" in (tmp_path / "cutlass_filter.txt").read_text()


def test_a_problem_that_tma_cannot_take_is_refused_with_the_sizes_that_would_do():
    workload = pd.DataFrame({"m": 512, "n": [1024, 1001], "k": 512})
    with pytest.raises(InputError, match=r"row_pitch.* n = 1001 puts rows of C .* nearest 1000"):
        wsjax.choose(workload, 1, kernels=KERNELS.iloc[:2], hardware="h200")
    direct = KERNELS.iloc[:2].assign(write_back="direct")
    choice = wsjax.choose(workload, 1, kernels=direct, hardware="h200")
    assert (choice.assignment["time_us"] > 0).all()
