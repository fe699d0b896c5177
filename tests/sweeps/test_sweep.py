"""Sweeps: what a directory holds, that it can be resumed and repeated, and what is refused."""

import json
import re
import shutil
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import wsjax
from wsjax.cli.main import main
from wsjax.errors import InputError, WsjaxError
from wsjax.hardware.machine import load_hardware
from wsjax.schema.columns import COLUMNS, PREDICTION_COLUMNS
from wsjax.spec.sweep_files import parse_spec
from wsjax.sweeps import Sizes, Summary, dataset
from wsjax.sweeps import shards as shards_module
from wsjax.sweeps.layout import ShardRows
from wsjax.sweeps.rows import _repeated
from wsjax.sweeps.summary import Highlights, reduced
from wsjax.tables import parquet as tables
from wsjax.tables import store

SPEC = """
name = "small"
hardware = ["toy", "mine.toml"]
[problems]
file = "shapes.csv"
[columns]
block_m = [64, 128]
block_n = [64, 128]
block_k = 64
stages = { from = 1, to = 3, step = 1 }
schedule = ["serial", "persistent", "pingpong", "cooperative"]
[hardware_parameters]
load_latency_us = [0.0, 0.5]
sms = { scale = [1, 2] }
[filter]
where = "block_m * block_n <= 8192 or problem == 'wide'"
"""
SHAPES = "name,m,n,k\nwide,256,4096,512\ntall,4096,256,512\nodd,100,200,300\n"
SMALL = Sizes(chunk_rows=100, shard_rows=ShardRows(least=256, most=256))
"""Several shards, and several chunks in each."""
CANDIDATES = 2 * 3 * 2 * 2 * 3 * 4 * 2 * 2


@pytest.fixture
def spec(tmp_path) -> Path:
    """A sweep with a problem file, a machine of its own, swept hardware, a filter."""
    folder = tmp_path / "spec"
    folder.mkdir()
    mine = load_hardware("toy").text.replace('"toy"', '"mine"').replace("1.0", "1.5")
    (folder / "mine.toml").write_text(mine)
    (folder / "shapes.csv").write_text(SHAPES)
    (folder / "small.toml").write_text(SPEC)
    return folder / "small.toml"


def sweep(spec, out, **options) -> Summary:
    return wsjax.sweep(spec, out, sizes=SMALL, **options)


def shards(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_rows_are_those_that_predict_finds(spec, tmp_path):
    summary = sweep(spec, tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out")
    assert summary.candidates == CANDIDATES
    assert summary.rows == len(found)
    assert summary.rows + summary.filtered + sum(summary.illegal.values()) == CANDIDATES
    assert summary.illegal.keys() == {"shared_memory"}
    swept = ["sms", "load_latency_us"]
    assert list(found.columns[: len(COLUMNS)]) == list(COLUMNS)
    assert list(found.columns[len(COLUMNS) :]) == [
        "problem",
        "hardware",
        *sorted(swept),
        *PREDICTION_COLUMNS,
    ]
    assert np.all(found["legal"] & found["extrapolated"] & (found["time_us"] > 0))
    area = found["block_m"] * found["block_n"]
    assert np.all((area <= 8192) | (found["problem"] == "wide"))
    assert set(found["sms"]) == {4, 8}
    toy = load_hardware("toy")
    rows = found[(found["hardware"] == "toy") & (found["load_latency_us"] == 0.5)]
    for sms in (4, 8):
        group = rows[rows["sms"] == sms]
        parameters = toy.parameters._replace(load_latency_us=0.5)
        machine = wsjax.Hardware("x", toy.facts._replace(sms=sms), parameters)
        again = wsjax.predict(group[list(COLUMNS)], machine)
        np.testing.assert_array_equal(again["time_us"], group["time_us"])
        np.testing.assert_array_equal(again["waves"], group["waves"])


def test_every_reader_opens_it(spec, tmp_path):
    out = tmp_path / "out"
    rows = sweep(spec, out).rows
    query = f"SELECT count(*), min(time_us), any_value(schedule) FROM '{out}/*.parquet'"
    counted = duckdb.connect().execute(query).fetchall()[0]
    frames = [pd.read_parquet(out), pq.read_table(out).to_pandas()]
    frames += [pl.read_parquet(path).to_pandas() for path in (out, out / "*.parquet")]
    for frame in frames:
        assert (len(frame), frame["time_us"].min()) == (rows, counted[1])
    assert counted[0] == rows
    assert isinstance(counted[2], str)


def test_files_are_the_same_each_time_and_when_resumed(spec, tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    first = sweep(spec, whole)
    assert first.shards == 6
    assert first.resumed == 0

    def stop_after(done, candidates):
        if done > 700:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(spec, resumed, progress=stop_after)
    kept = shards(resumed)
    assert 0 < len(kept) < first.shards
    assert len(pd.read_parquet(resumed)) > 0
    second = sweep(spec, resumed)
    assert second.resumed == len(kept)
    assert second._replace(directory=whole, resumed=0) == first
    assert shards(resumed) == shards(whole)
    assert sweep(spec, whole).resumed == first.shards


def test_a_table_alone_repeats_the_sweep(spec, tmp_path):
    sweep(spec, tmp_path / "out")
    part = (tmp_path / "out" / "part-00003.parquet").rename(tmp_path / "alone.parquet")
    for path in spec.parent.iterdir():
        path.unlink()
    sweep(part, tmp_path / "again")
    part.rename(tmp_path / "out" / "part-00003.parquet")
    assert shards(tmp_path / "again") == shards(tmp_path / "out")
    assert sweep(tmp_path / "again", tmp_path / "again").resumed == 6


def test_progress_and_best(spec, tmp_path):
    calls = []
    summary = sweep(spec, tmp_path / "out", progress=lambda *call: calls.append(call))
    assert calls == sorted(calls)
    assert calls[-1] == (CANDIDATES, CANDIDATES)
    found = pd.read_parquet(tmp_path / "out")
    assert summary.fastest is not None
    assert summary.fastest["tflops"] == found["tflops"].max()
    assert len(summary.best) == 8
    assert {best.row["problem"] for best in summary.best} == {"wide", "tall", "odd"}
    assert {best.row["hardware"] for best in summary.best} == {"toy", "mine"}
    for row, alike in summary.best:
        same = found
        for key in ("problem", "hardware", "sms", "load_latency_us"):
            same = same[same[key] == row[key]]
        assert row["time_us"] == same["time_us"].min()
        assert alike == (same["time_us"] == row["time_us"]).sum()
        assert row.keys() == set(found.columns)


def test_one_problem_shows_its_few_best(tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(
        'hardware = "toy"\n[columns]\nm = 512\nn = 512\nk = 256\nblock_m = [64, 128]\n'
        'block_n = [64, 128]\nblock_k = 64\nschedule = ["serial", "persistent"]\n'
    )
    summary = wsjax.sweep(path, tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out").sort_values("time_us", kind="stable")
    times = found.groupby("time_us", sort=True)
    assert len(times) >= 3
    firsts = times.first().head(5)
    assert [best.row["time_us"] for best in summary.best] == firsts.index.tolist()
    assert [best.alike for best in summary.best] == times.size().tolist()[:5]
    for name in ("block_m", "block_n", "schedule"):
        assert [best.row[name] for best in summary.best] == firsts[name].tolist()


@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("problems", [1, 3, 12, 100, 500])
def test_best_is_the_same_whatever_the_pieces(each, problems):
    random = np.random.default_rng(0)
    columns = {
        "problem": np.unique(random.integers(0, problems, 500), return_inverse=True)[1]
        if problems < 500
        else np.arange(500),
        "time_us": random.integers(1, 20, 500).astype(float),
        "tflops": random.integers(1, 20, 500).astype(float),
    }
    columns["problem"].sort()

    def whole_rows(start, positions):
        at = [start + i for i in positions]
        return [{name: v[i] for name, v in columns.items()} | {"row": i} for i in at]

    def run(size):
        best = Highlights()
        for start in range(0, 500, size):
            piece = {name: values[start : start + size] for name, values in columns.items()}
            best = best.followed_by(reduced(piece, ("problem",), each, partial(whole_rows, start)))
        return best

    whole = run(500)
    count = columns["problem"].max() + 1
    shown = {int(leader.row["problem"]): leader for leader in whole.leaders()}
    assert len(shown) == min(count, 8)
    assert min(shown) == 0
    assert max(shown) == count - 1
    for problem in shown:
        rows = np.flatnonzero(columns["problem"] == problem)
        times, firsts, sizes = np.unique(
            columns["time_us"][rows], return_index=True, return_counts=True
        )
        leaders = [x for x in whole.leaders() if x.row["problem"] == problem]
        assert [x.row["time_us"] for x in leaders] == times[:each].tolist()
        assert [x.row["row"] for x in leaders] == rows[firsts[:each]].tolist()
        assert [x.alike for x in leaders] == sizes[:each].tolist()
    assert whole.fastest is not None
    assert whole.fastest["row"] == columns["tflops"].argmax()
    for size in (1, 7, 250):
        assert run(size).leaders() == whole.leaders()
        assert run(size).fastest == whole.fastest


def test_a_sweep_over_launch_time_has_one_such_column(tmp_path):
    path = tmp_path / "launch.toml"
    path.write_text(
        'hardware = "toy"\n[columns]\nm = 512\nn = 512\nk = 256\nblock_m = 128\nblock_n = 128\n'
        "block_k = 64\n[hardware_parameters]\nlaunch_us = [1.0, 3.0]\n"
    )
    wsjax.sweep(path, tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out")
    assert found["launch_us"].tolist() == [1.0, 3.0]
    assert found.columns.tolist() == [*COLUMNS, "hardware", *PREDICTION_COLUMNS]
    assert found["time_us"].diff().iloc[1] == pytest.approx(2.0)


@pytest.mark.parametrize("where", ["m > 4096", "stages == 3 and block_m * block_n == 16384"])
def test_no_rows_are_left(spec, tmp_path, where):
    """All are filtered away, or all that are left are illegal: the table is there, and empty."""
    spec.write_text(SPEC[: SPEC.index("[filter]")] + f'[filter]\nwhere = "{where}"\n')
    summary = sweep(spec, tmp_path / "out")
    assert summary.rows == 0
    assert summary.best == []
    found = pd.read_parquet(tmp_path / "out")
    assert len(found) == 0
    assert "time_us" in found.columns


def test_other_directories_are_refused(spec, tmp_path):
    with pytest.raises(InputError, match="is a file; give a directory"):
        wsjax.sweep(spec, spec)
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.doc").write_text("years of work")
    with pytest.raises(InputError, match=r"holds files that no sweep wrote: thesis\.doc"):
        wsjax.sweep(spec, out)
    assert (out / "thesis.doc").read_text() == "years of work"
    (out / "thesis.doc").rename(out / "part-00000.parquet")
    with pytest.raises(InputError, match=r"no sweep wrote: part-00000\.parquet"):
        wsjax.sweep(spec, out)
    pl.DataFrame({"a": [1]}).write_parquet(out / "part-00000.parquet")
    with pytest.raises(InputError, match=r"no sweep wrote: part-00000\.parquet"):
        wsjax.sweep(spec, out)
    (out / "part-00000.parquet").unlink()
    wsjax.sweep(spec, out)
    (out / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"notes\.txt"):
        wsjax.sweep(spec, out)
    (out / "notes.txt").unlink()
    before = shards(out)
    spec.write_text(SPEC.replace("512", "513").replace("[64, 128]", "[64]"))
    with pytest.raises(
        InputError, match=r"belongs to another sweep \(the sweep file has changed"
    ) as error:
        wsjax.sweep(spec, out)
    assert str(error.value).endswith(f"to go on with that one: wsjax sweep {out} --out {out}")
    assert main(["sweep", str(out), "--out", str(out), "--quiet"]) == 0
    spec.write_text(SPEC)
    machine = spec.parent / "mine.toml"
    machine.write_text(machine.read_text() + "\n")
    with pytest.raises(InputError, match="a hardware file has changed"):
        wsjax.sweep(spec, out)
    assert shards(out) == before


def test_shards_that_are_too_many_are_refused(spec, tmp_path):
    out = tmp_path / "out"
    sweep(spec, out)
    shutil.copy(out / "part-00000.parquet", out / "part-00006.parquet")
    with pytest.raises(InputError, match=r"part-00006\.parquet: is no shard of this sweep, which"):
        sweep(spec, out)


def edit(path: Path, change) -> None:
    """Write a shard again with other rows or metadata."""
    table = pq.read_table(path)
    texts = dict(pq.read_metadata(path).metadata)
    texts.pop(b"ARROW:schema")
    table, texts = change(table, texts)
    pq.write_table(table.replace_schema_metadata(texts), path, compression="zstd")


def other_counts(table, texts):
    shard = json.loads(texts[b"wsjax.shard"])
    return table, texts | {b"wsjax.shard": json.dumps(shard | {"filtered": -1}).encode()}


def flip(path: Path, position: int) -> None:
    """Change bytes in the middle of a file, and leave its footer as it is."""
    data = bytearray(path.read_bytes())
    data[position : position + 64] = bytes(64)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(bytes(len(path.read_bytes()))),
        lambda path: flip(path, 100),
        lambda path: edit(path, lambda table, texts: (table.slice(1), texts)),
        lambda path: edit(path, other_counts),
        lambda path: edit(path, lambda table, texts: (table, texts | {b"wsjax.shard": b"[1]"})),
        lambda path: shutil.copy(path.with_name("part-00002.parquet"), path),
    ],
    ids=["short", "empty", "zeros", "pages", "row lost", "counts", "no shard", "another"],
)
def test_a_damaged_shard_is_made_again(spec, tmp_path, damage):
    out = tmp_path / "out"
    whole = sweep(spec, out)
    before = shards(out)
    damage(out / "part-00001.parquet")
    assert shards(out) != before
    with pytest.warns(UserWarning, match=r"part-00001\.parquet: is damaged; it is made again"):
        summary = sweep(spec, out)
    assert shards(out) == before
    assert summary == whole._replace(resumed=5)


def test_two_sweeps_at_once_are_refused(tmp_path):
    with (
        dataset.open_dataset(store(tmp_path / "d"), {"a": "b"}, ["part-00000.parquet"]),
        pytest.raises(WsjaxError, match="another sweep is writing here"),
        dataset.open_dataset(store(tmp_path / "d"), {"a": "b"}, ["part-00000.parquet"]),
    ):
        pass


def test_a_lost_file_is_written_again(spec, tmp_path):
    sweep(spec, tmp_path / "out")
    before = shards(tmp_path / "out")
    (tmp_path / "out" / "part-00001.parquet").unlink()
    assert sweep(spec, tmp_path / "out").resumed == 5
    assert shards(tmp_path / "out") == before


def test_a_table_that_no_sweep_wrote(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no sweep wrote this table"):
        wsjax.sweep(tmp_path / "t.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_command_line(spec, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", str(spec)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert f"of {CANDIDATES:,} candidates in results/small" in shown.out
    assert "illegal: shared_memory" in shown.out
    assert "wide 256x4096x512" in shown.out
    assert main(["sweep", str(spec), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["sweep", str(spec), "--out", str(spec.parent)]) == 2
    assert "holds files that no sweep wrote" in capsys.readouterr().err
    with store(tmp_path / "results" / "small").held():
        assert main(["sweep", str(spec)]) == 1
        assert "results/small: another sweep is writing here" in capsys.readouterr().err
    assert main(["sweep", str(spec), "--engine", "rey", "--shard-rows", "0"]) == 2
    assert "--engine: unknown word 'rey'; did you mean 'ray'?" in capsys.readouterr().err
    assert main(["sweep", str(spec), "--address", "auto"]) == 2
    assert "--address: only with --engine ray" in capsys.readouterr().err


def test_ray_is_an_extra(spec, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", str(spec), "--out", str(tmp_path / "out"), "--engine", "ray"]) == 2
    assert capsys.readouterr().err == (
        "wsjax: --engine ray: ray is not installed; pip install 'wsjax[ray]'\n"
    )
    assert not (tmp_path / "out").exists()


KILLED = """
import os, signal, sys
from wsjax import sweeps
from wsjax.cli import main
from wsjax.sweeps import Sizes
from wsjax.sweeps.layout import ShardRows
small = Sizes(chunk_rows=100, shard_rows=ShardRows(least=256, most=256))
sweep = sweeps.sweep
def stop(done, candidates):
    if done > 700:
        os.kill(os.getpid(), int(sys.argv[3]))
if sys.argv[3] == "9":
    sweep(sys.argv[1], sys.argv[2], progress=stop, sizes=small)
else:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    sweeps.sweep = lambda *a, **k: sweep(*a, **k | {"progress": stop, "sizes": small})
    sys.exit(main(["sweep", sys.argv[1], "--out", sys.argv[2]]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_stopped_can_be_resumed(spec, tmp_path, number):
    out, whole = tmp_path / "out", tmp_path / "whole"
    command = [sys.executable, "-c", KILLED, str(spec), str(out), str(int(number))]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False)
    if number == signal.SIGKILL:
        assert stopped.returncode == -9
    else:
        assert stopped.returncode == 130
        assert "repeat the command to go on" in stopped.stderr
        assert "Traceback" not in stopped.stderr
    assert len(pd.read_parquet(out)) > 0
    assert 0 < sweep(spec, out).resumed < 6
    sweep(spec, whole)
    left = {name for name in shards(out) if not name.startswith(".")}
    assert {name: shards(out)[name] for name in left} == shards(whole)


FULL = """
import resource, sys
from wsjax import sweeps
from wsjax.cli import main
from wsjax.sweeps import Sizes
from wsjax.sweeps.layout import ShardRows
small = Sizes(chunk_rows=100, shard_rows=ShardRows(least=256, most=256))
sweep = sweeps.sweep
def fill(done, candidates):
    if done > 700:
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))
sweeps.sweep = lambda *a, **k: sweep(*a, **k | {"progress": fill, "sizes": small})
sys.exit(main(["sweep", sys.argv[1], "--out", sys.argv[2]]))
"""


def test_a_disk_that_is_full_is_named_and_loses_nothing(spec, tmp_path):
    out, whole = tmp_path / "out", tmp_path / "whole"
    command = [sys.executable, "-c", FULL, str(spec), str(out)]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert stopped.returncode == 1
    assert re.fullmatch(rf"wsjax: {out}/part-0000[2-5]\.parquet: File too large\n", stopped.stderr)
    kept = shards(out)
    assert 0 < sweep(spec, out).resumed == len(kept) < 6
    sweep(spec, whole)
    assert shards(out) == shards(whole)


def test_memory_does_not_grow_with_rows(tmp_path):
    """Python's and NumPy's peak, at 10 times the rows, in chunks of one size."""
    small = Sizes(chunk_rows=2**11, shard_rows=ShardRows(least=2**13, most=2**13))
    peaks = []
    for sizes in (1, 2, 20):
        path = tmp_path / f"{len(peaks)}.toml"
        path.write_text(
            f'hardware = "toy"\n[columns]\nm = {{ from = 1, to = {sizes * 1000}, step = 1 }}\n'
            "n = [128, 256, 384]\nk = 64\nblock_m = 128\nblock_n = 128\nblock_k = 64\n"
            'stages = [1, 2]\nschedule = ["serial", "persistent"]\n'
        )
        tracemalloc.start()
        rows = wsjax.sweep(path, tmp_path / str(len(peaks)), sizes=small).rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert rows == sizes * 12_000
    assert peaks[2] < 1.6 * peaks[1]


def test_memory_follows_the_rows_of_a_file(tmp_path):
    path = tmp_path / "wide.toml"
    path.write_text(
        'hardware = "toy"\n[columns]\nm = { from = 1, to = 4000, step = 1 }\n'
        "n = [128, 256, 384]\nk = 64\nblock_m = 128\nblock_n = 128\nblock_k = 64\n"
        'stages = [1, 2]\nschedule = ["serial", "persistent"]\n'
    )
    peaks = []
    for rows in (2**12, 2**16):
        wsjax.sweep(path, tmp_path / f"compiled {rows}", shard_rows=rows)
        tracemalloc.start()
        wsjax.sweep(path, tmp_path / str(rows), shard_rows=rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 0.5 * peaks[1]


def test_shards_say_what_they_are(spec, tmp_path):
    summary = sweep(spec, tmp_path / "out")
    texts = [tables.read_metadata(path) for path in sorted((tmp_path / "out").iterdir())]
    found = [json.loads(text.pop("shard")) for text in texts]
    assert len(found) == summary.shards
    assert sum(shard["rows"] for shard in found) == summary.rows
    half = CANDIDATES // 2
    bounds = [*range(0, half, 256), half]
    expected = [(bounds[i], bounds[i + 1]) for i in range(len(bounds) - 1)]
    ranges = [(shard["hardware"], shard["start"], shard["stop"]) for shard in found]
    assert ranges == [(name, *pair) for name in ("toy", "mine") for pair in expected]
    assert all(text == texts[0] for text in texts)
    assert texts[0].keys() == {"schema_version", "version", "hardware", "name", "spec"}


def test_large_sweeps_are_warned_of(spec, tmp_path):
    with pytest.warns(UserWarning, match=r"1,152 candidates: 6 files in .*out"):
        wsjax.sweep(spec, tmp_path / "out", sizes=replace(SMALL, many=1000))


def test_names_are_no_markup(spec, tmp_path, capsys):
    names = ["[/]", "[red]x[/red]", ":smile:"]
    rows = [
        f'{{ name = "{name}", m = {64 * i}, n = 64, k = 64 }}' for i, name in enumerate(names, 1)
    ]
    problems = f"[problems]\nrows = [{', '.join(rows)}]\n"
    spec.write_text(
        SPEC.replace('[problems]\nfile = "shapes.csv"\n', problems).split("[filter]")[0]
    )
    assert main(["sweep", str(spec), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in names)


def test_a_machine_without_rates_is_refused_unless_they_are_swept(spec, tmp_path):
    free = "sms = 4\nsmem_bytes_per_sm = 102400\nwarp_size = 32\n"
    (spec.parent / "mine.toml").write_text(free)
    spec.write_text(SPEC.replace('"toy", ', "").split("[hardware_parameters]")[0])
    with pytest.raises(InputError, match="hardware: mine: has no rates"):
        sweep(spec, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    rates = "[hardware_parameters]\ncompute_throughput_flop_per_us = [1e6, 2e6]\n"
    spec.write_text(f"{spec.read_text()}{rates}")
    assert sweep(spec, tmp_path / "out").rows > 0


@pytest.mark.parametrize("source", [None, 3, {"m": 1}])
def test_what_is_no_sweep(source):
    with pytest.raises(InputError, match="a sweep is a file's name or a Spec"):
        wsjax.sweep(source)


def test_places_where_nothing_can_be_made(spec, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "out", tmp_path / ("x" * 300), Path("/proc/none")):
        assert main(["sweep", str(spec), "--out", str(place)]) == 2
        shown = capsys.readouterr().err
        assert str(place) in shown
        assert ".tmp" not in shown


@pytest.mark.parametrize("output", ["", "best = 3", 'keep = "quantiles"'])
def test_a_sweep_of_too_many_files_is_refused_at_once(output, tmp_path):
    path = tmp_path / "huge.toml"
    many = "{ from = 1, to = 1000000, step = 1 }"
    path.write_text(
        f'hardware = "toy"\n[columns]\nm = {many}\nn = {many}\nk = 64\nblock_m = [64, 128]\n'
        f"block_n = 64\nblock_k = 64\n[output]\n{output}\n"
    )
    with pytest.raises(InputError, match=r"2,000,000,000,000 candidates would be .*files") as error:
        wsjax.sweep(path, tmp_path / "out", shard_rows=1000)
    assert str(error.value).endswith("give fewer values, or a larger --shard-rows")
    assert not (tmp_path / "out").exists()
    path.write_text(path.read_text().replace("\nk = 64", f"\nk = {many}"))
    with pytest.raises(InputError, match=r"more than 100,000; give fewer values$"):
        wsjax.sweep(path, tmp_path / "out")


def test_files_made_at_once_are_those_made_one_by_one(tmp_path):
    """And progress never goes back."""
    path = tmp_path / "many.toml"
    path.write_text(
        'hardware = ["toy", "a6000-paper"]\n[columns]\nm = { from = 64, to = 4096, step = 64 }\n'
        "n = [512, 640]\nk = 256\nblock_m = [64, 128]\nblock_n = 64\nblock_k = 64\n"
    )
    summaries, done = [], []
    for files in (1, 3):
        out, sizes = tmp_path / str(files), Sizes(files=files)
        progress = lambda now, of: done.append(now / of)  # noqa: E731
        summary = wsjax.sweep(path, out, shard_rows=40, progress=progress, sizes=sizes)
        summaries.append(summary)
        assert done == sorted(done)
        assert done.pop() == 1
        done.clear()
    one, several = (sorted((tmp_path / name).iterdir()) for name in "13")
    assert len(one) == summaries[0].shards == 14
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in several]
    assert summaries[0]._replace(directory="") == summaries[1]._replace(directory="")


def test_a_file_that_fails_is_told_and_the_others_stay(tmp_path, monkeypatch):
    path = tmp_path / "many.toml"
    path.write_text(
        'hardware = "toy"\n[columns]\nm = { from = 64, to = 4096, step = 64 }\nn = 512\nk = 256\n'
        "block_m = 128\nblock_n = 64\nblock_k = 64\n"
    )
    write = shards_module.write

    def failing(place, texts, shard, *rest):
        if shard.start == 40:
            raise OSError(28, "No space left on device", "part-00002.parquet")
        return write(place, texts, shard, *rest)

    monkeypatch.setattr(shards_module, "write", failing)
    with pytest.raises(OSError, match="No space"):
        wsjax.sweep(path, tmp_path / "out", shard_rows=20, sizes=Sizes(files=3))
    names = {file.name for file in (tmp_path / "out").iterdir() if file.suffix == ".parquet"}
    assert {"part-00000.parquet", "part-00001.parquet"} <= names
    assert "part-00002.parquet" not in names
    monkeypatch.setattr(shards_module, "write", write)
    summary = wsjax.sweep(path, tmp_path / "out", shard_rows=20)
    assert summary.rows == 64
    assert summary.resumed == len(names)


def test_a_sweep_in_float32_has_the_same_rows_and_nearly_their_times(tmp_path):
    sizes = "m = [128, 1000, 4096]\nn = [256, 5000]\nk = [64, 4100]\n"
    tiles = 'block_m = [64, 128]\nblock_n = 128\nblock_k = 64\nschedule = ["serial", "pingpong"]\n'
    text = f'hardware = "h200"\n[columns]\n{sizes}{tiles}'
    tables = []
    for precision in ("float64", "float32"):
        run = parse_spec(f'{text}[output]\nprecision = "{precision}"\n', "s.toml")
        wsjax.sweep(run, tmp_path / precision)
        tables.append(pd.read_parquet(tmp_path / precision))
    double, single = tables
    pd.testing.assert_frame_equal(single, double, rtol=1e-5)
    assert np.mean(single["time_us"] != double["time_us"]) > 0.5
    with pytest.raises(InputError, match="the sweep file has changed"):
        wsjax.sweep(parse_spec(text, "s.toml"), tmp_path / "float32")


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_verdicts_that_repeat_are_those_of_each_row(size):
    known = np.random.default_rng(size).integers(-1, 4, size).astype(np.int8)
    for start, stop in [(0, 1), (3, 250), (250, 251), (0, 3000), (999, 2001), (1000, 2000)]:
        found = np.resize(known, stop)[start:]
        kept = _repeated(known, start, stop)
        np.testing.assert_array_equal(kept.numbers, start + np.flatnonzero(found == 0))
        assert kept.filtered == np.sum(found == -1)
        assert kept.illegal[:4].tolist() == [np.sum(found == code) for code in range(4)]
