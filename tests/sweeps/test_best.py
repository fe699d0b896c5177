"""Best-of sweeps: the same rows, to the bit, as keeping all and sorting."""

import os
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

import wsjax
from wsjax.cli.main import main
from wsjax.spec.sweep_files import parse_spec
from wsjax.sweeps import Sizes, Summary, topk
from wsjax.sweeps.layout import ShardRows

TILES = """
block_m = [64, 128, 256]
block_n = [64, 128]
block_k = 64
"""
SIZES = """
m = [1, 300, 4096]
n = [256, 1000]
k = 640
"""
FILTERED = f"""
hardware = "a6000-paper"
[problems]
rows = [{{ name = "a", m = 64, n = 512, k = 512 }}, {{ name = "b", m = 4096, n = 512, k = 512 }}]
[columns]
l2_state = ["cold", "warm"]
{TILES}
schedule = ["serial", "persistent", "cooperative"]
grid_ctas = [0, 60]
[filter]
"""
SPECS = {
    "all terms": f"""
hardware = "h200"
[columns]
{SIZES}{TILES}
stages = {{ from = 2, to = 5, step = 1 }}
mma_in_flight = [0, 1]
schedule = ["serial", "persistent", "pingpong", "cooperative"]
group_m = [1, 4]
""",
    "ties": f"""
hardware = "toy"
[columns]
{SIZES}{TILES}
stages = [1, 2, 3, 4]
dma_warps = [1, 2]
schedule = ["serial", "persistent", "pingpong"]
group_m = [1, 2, 4]
write_back = ["tma", "direct"]
""",
    "machines and dtypes": f"""
hardware = ["a6000-paper", "toy"]
[columns]
m = [16, 2000]
n = 512
k = 1024
dtype_in = ["bf16", "fp8_e4m3", "fp16"]
dtype_out = ["bf16", "fp32"]
{TILES}
stages = [2, 4]
schedule = ["serial", "persistent"]
math_warps = [4, 8]
[hardware_parameters]
smem_bytes_per_sm = [50000, 102400]
sms = [16, 132]
load_latency_us = {{ from = 0.0, to = 0.5, step = 0.25 }}
""",
    "filter of both": FILTERED + "where = \"block_m <= m and (problem != 'a' or grid_ctas == 0)\"",
    "filter of problems": FILTERED + 'where = "m * n >= 50000"',
    "filter of kernels": FILTERED + 'where = "block_m * block_n <= 8192 and math_warps == 4"',
    "nothing passes": FILTERED + 'where = "stages > 32"',
    "serial": f"""
hardware = "a6000-paper"
[columns]
{SIZES}{TILES}
dma_warps = [1, 2]
schedule = "serial"
""",
    "nothing is tried": """
hardware = "toy"
[columns]
m = { from = 1, to = 5000, step = 7 }
n = 512
k = 512
block_m = 128
block_n = 128
block_k = 64
""",
}


SMALL = Sizes(
    shard_rows=ShardRows(least=250, most=250, candidates=3000),
    best=topk.Sizes((4,), 100, lanes=256, first=2, inner_rows=400),
)
"""Several shards, chunks, layouts and rounds, however few the rows."""


def swept(text: str, tmp_path, name: str) -> tuple[Summary, pd.DataFrame]:
    summary = wsjax.sweep(parse_spec(text, f"{name}.toml"), tmp_path / name, sizes=SMALL)
    return summary, pd.read_parquet(tmp_path / name)


def sorted_by_hand(every: pd.DataFrame, best: int) -> pd.DataFrame:
    """The first of each problem's rows on each machine by time, in a stable sort."""
    names = ["hardware", "load_latency_us", "sms", "smem_bytes_per_sm", "problem"]
    names += ["m", "n", "k", "dtype_in", "dtype_out", "l2_state"]
    names = [name for name in names if name in every.columns]
    every["_problem"] = every.groupby(names, observed=True, sort=False).ngroup()
    ranked = every.sort_values(["_problem", "time_us"], kind="stable")
    return ranked.groupby("_problem").head(best).drop(columns="_problem").reset_index(drop=True)


@pytest.mark.parametrize(("name", "best"), [("ties", 1), *((name, 7) for name in SPECS)])
def test_best_rows_are_those_of_a_sort(name, best, tmp_path):
    whole, every = swept(SPECS[name], tmp_path, "all")
    summary, found = swept(f"{SPECS[name]}\n[output]\nbest = {best}\n", tmp_path, "best")
    pd.testing.assert_frame_equal(found, sorted_by_hand(every, best), check_exact=True)
    assert summary.candidates == whole.candidates
    assert summary.filtered == whole.filtered
    assert summary.illegal == whole.illegal
    assert summary.rows + summary.beaten == whole.rows
    assert summary.evaluated + summary.bounded == whole.rows
    assert summary.fastest == whole.fastest


DIGEST = """
import hashlib, sys
from pathlib import Path
import jax
import numpy as np
from wsjax.engine import Candidates
from wsjax.spec import parse_spec
from wsjax.sweeps import sweep

digest = hashlib.sha256()
for number, text in enumerate(sys.argv[2:]):
    run = parse_spec(text, "devices.toml")
    folder = Path(sys.argv[1]) / str(number)
    sweep(run, folder)
    for path in sorted(folder.iterdir()):
        digest.update(path.read_bytes())
rows = Candidates(run.hardware[0], run.product(run.hardware[0])).packed(np.zeros(256, int))
print(len(rows.columns[0].sharding.device_set), digest.hexdigest())
"""


def test_two_devices_share_the_work_and_write_the_same_bytes(tmp_path):
    best = "\n[output]\nbest = 3\n"
    texts = [SPECS["serial"], SPECS["serial"] + best]

    def found(devices: int) -> list[str]:
        flags = f"--xla_force_host_platform_device_count={devices}"
        folder = tmp_path / str(devices)
        command = [sys.executable, "-c", DIGEST, str(folder), *texts]
        done = subprocess.run(
            command,
            env=os.environ | {"XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    one, two = found(1), found(2)
    assert (one[0], two[0]) == ("1", "2")
    assert one[1] == two[1]


def test_resumed_best_rows_are_the_same_bytes(tmp_path):
    sizes = replace(SMALL, shard_rows=ShardRows(250, 250, candidates=1000))
    run = parse_spec(SPECS["ties"] + "[output]\nbest = 3\n", "ties.toml")
    whole = wsjax.sweep(run, tmp_path / "whole", sizes=sizes)
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert len(files) == whole.shards == 6

    def stop_after(done, candidates):
        if done > candidates // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wsjax.sweep(run, tmp_path / "stopped", sizes=sizes, progress=stop_after)
    kept = list((tmp_path / "stopped").iterdir())
    assert 0 < len(kept) < 6
    again = wsjax.sweep(run, tmp_path / "stopped", sizes=sizes)
    assert again.resumed == len(kept)
    assert {p.name: p.read_bytes() for p in (tmp_path / "stopped").iterdir()} == files
    assert again.best == whole.best


def test_summary_of_best_rows(tmp_path, capsys):
    path = tmp_path / "ties.toml"
    path.write_text(SPECS["ties"] + "[output]\nbest = 3\n")
    assert main(["sweep", str(path), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "18 rows of 5,184 candidates" in shown
    assert "are not among the best of their problem" in shown
    assert "bounds alone ruled out" in shown
    assert "of the rows kept" in shown
