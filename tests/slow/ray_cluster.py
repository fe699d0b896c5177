"""Sweeps on a Ray cluster of two machines' worth on this one (make ray): a killed worker, a killed
driver, and local and Ray runs that complete each other; always the same bytes.

pytest finds it only by its name: it takes longer than a test should, and needs the group `ray`.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports] (in group ray)

import wsjax
from wsjax.cli.main import main
from wsjax.sweeps import Summary, engines

SPEC = """
hardware = ["toy", "a6000-paper"]
[columns]
m = { from = 64, to = 2048, step = 64 }
n = [1024, 4096]
k = [512, 1024]
block_m = [64, 128]
block_n = [64, 128]
block_k = 32
stages = [1, 2, 3]
schedule = ["serial", "persistent", "pingpong"]
[output]
partition_by = "hardware"
"""
ROWS = 500
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """A cluster of two nodes, each of one CPU: of one worker."""
    os.environ.update(ENVIRONMENT)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(tmp_path_factory.mktemp("compiled"))
    node: dict[str, Any] = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    cluster.add_node(**node)
    cluster.wait_for_nodes()
    yield str(cluster.address)
    cluster.shutdown()


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "small.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def whole(spec, tmp_path_factory) -> tuple[Summary, dict[str, bytes]]:
    """The sweep as this process makes it alone."""
    out = tmp_path_factory.mktemp("whole") / "out"
    summary = wsjax.sweep(spec, out, shard_rows=ROWS)
    assert summary.shards == 20
    return summary, files(out)


def files(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def workers() -> list[int]:
    """The processes at work on a task of ours, below the cluster that this process started."""
    parents, titles = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            titles[int(folder.name)] = (folder / "cmdline").read_text()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat[1])

    def ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and ours(parents[process]))

    return [n for n, title in titles.items() if title.startswith("ray::make") and ours(n)]


def killer(count: int, killed: list[int]):
    """A progress function that kills a worker after each of the first files."""

    def progress(done: int, total: int) -> None:
        if len(killed) < count and (found := workers()):
            killed.append(found[0])
            os.kill(found[0], signal.SIGKILL)

    return progress


def test_a_killed_worker_costs_nothing(address, spec, whole, tmp_path):
    killed: list[int] = []
    out = tmp_path / "out"
    summary = wsjax.sweep(
        spec, out, shard_rows=ROWS, engine="ray", address=address, progress=killer(2, killed)
    )
    assert len({*killed}) == 2
    assert files(out) == whole[1]
    assert summary == whole[0]._replace(directory=out)


def test_local_and_cluster_complete_each_other(address, spec, whole, tmp_path):
    def stop_after(rows):
        def progress(done, candidates):
            if done > rows:
                raise KeyboardInterrupt

        return progress

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        wsjax.sweep(spec, out, shard_rows=ROWS, progress=stop_after(2000))
    local = len(files(out))
    assert 0 < local < 20
    with pytest.raises(KeyboardInterrupt):
        wsjax.sweep(spec, out, engine="ray", address=address, progress=stop_after(4000))
    both = sum(name.endswith(".parquet") and "/." not in name for name in files(out))
    assert local < both < 20
    last = max(name for name in files(out) if "/." not in name)
    (out / last).write_bytes((out / last).read_bytes()[:-9])
    with pytest.warns(UserWarning, match="is damaged; it is made again"):
        summary = wsjax.sweep(spec, out, engine="ray", address=address)
    assert files(out) == whole[1]
    assert 0 < summary.resumed < 20
    same = {"directory": 0, "resumed": 0}
    assert summary._replace(**same) == whole[0]._replace(**same)
    assert wsjax.sweep(spec, out).resumed == 20


def test_best_rows_are_the_same(address, spec, tmp_path):
    spec = tmp_path / "best.toml"
    spec.write_text(f"{SPEC}best = 3\n".replace('"toy", ', ""))
    local = wsjax.sweep(spec, tmp_path / "local", shard_rows=96)
    there = wsjax.sweep(spec, tmp_path / "there", shard_rows=96, engine="ray", address=address)
    assert local.shards == 4
    assert files(tmp_path / "there") == files(tmp_path / "local")
    assert there._replace(directory=local.directory) == local


def test_a_killed_driver_loses_nothing(address, spec, whole, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "wsjax.cli", "sweep", str(spec), "--out", str(out)]
    command += ["--engine", "ray", "--address", address, "--shard-rows", str(ROWS)]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(out.rglob("part-*.parquet")):
        assert driver.poll() is None
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    for path in out.rglob("part-*.parquet"):
        assert path.read_bytes() == whole[1][path.relative_to(out).as_posix()]
    assert main([*command[3:-2], "--quiet"]) == 0
    assert files(out) == whole[1]


def test_what_a_worker_cannot_do_is_said(address, spec, tmp_path, capsys, monkeypatch):
    """A worker's error is the driver's; so is its place, or another version of wsjax there."""
    arguments = ["sweep", str(spec), "--engine", "ray", "--address", address, "--out"]
    write = engines.make_task

    def elsewhere(task: engines.Task):
        return write(task._replace(place=f"{task.place}-elsewhere"))

    def older(task: engines.Task):
        return write(task._replace(texts={**task.texts, "wsjax.version": "0.0.0"}))

    def full(task: engines.Task):
        raise OSError(28, "No space left on device", task.name)

    for name, function, code, message in (
        ("a", elsewhere, 2, "a worker wrote it, but it is not here; give --out a directory that"),
        ("b", older, 1, "the driver 0.0.0; install one everywhere"),
        ("c", full, 1, "hardware=toy/part-00000.parquet: No space left on device"),
    ):
        monkeypatch.setattr(engines, "make_task", function)
        assert main([*arguments, str(tmp_path / name)]) == code
        shown = capsys.readouterr().err
        assert message in shown
        assert "Traceback" not in shown


@pytest.mark.parametrize("where", ["127.0.0.1:1", "ray://127.0.0.1:1", "no such place"])
def test_no_cluster_there(where, spec, tmp_path, capsys):
    arguments = ["sweep", str(spec), "--out", str(tmp_path / "out"), "--engine", "ray"]
    started = time.monotonic()
    assert main([*arguments, "--address", where]) == 2
    assert time.monotonic() - started < 20
    assert f"--address {where}: no Ray cluster answers there" in capsys.readouterr().err
