"""Kill running sweeps at random moments, resume each, and compare with one left alone (make kill).

Every second one is killed twice: its resumption too.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

SPEC = """
hardware = ["h200", "toy"]
[columns]
m = { from = 64, to = 4096, step = 64 }
n = [1024, 2048, 4096, 8192]
k = [1024, 4096]
block_m = [64, 128]
block_n = [64, 128, 256]
block_k = [32, 64]
stages = [2, 3, 4]
schedule = ["serial", "persistent", "pingpong"]
[output]
partition_by = ["hardware", "n"]
"""


def sweep(spec: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "wsjax.cli", "sweep", str(spec), "--quiet"]
    return subprocess.Popen([*command, "--out", str(out), "--shard-rows", "2000"])


def finish(spec: Path, out: Path) -> None:
    if code := sweep(spec, out).wait():
        sys.exit(f"a sweep that nobody killed ended with {code}")


def files(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def kill(spec: Path, out: Path, seconds: float) -> str:
    """Kill a sweep after some seconds; what is left, all of which can be read."""
    process = sweep(spec, out)
    time.sleep(seconds)
    process.kill()
    process.wait()
    left = files(out) if out.is_dir() else {}
    shards = [name for name in left if not name.rpartition("/")[2].startswith(".")]
    for name in shards:
        pq.read_table(out / name)
    return f"{len(shards)} files and {len(left) - len(shards)} half ones"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp())
    spec = folder / "kill.toml"
    spec.write_text(SPEC)
    finish(spec, folder / "whole")
    shutil.rmtree(folder / "whole")
    started = time.monotonic()
    finish(spec, folder / "whole")
    length = time.monotonic() - started
    whole = files(folder / "whole")
    print(f"{len(whole)} files in {length:.1f} s")
    same = 0
    for number in range(given.moments):
        out = folder / str(number)
        moments = [chance.uniform(0, length) for _ in range(1 + number % 2)]
        left = [kill(spec, out, seconds) for seconds in moments]
        finish(spec, out)
        alike = files(out) == whole
        same += alike
        told = ", ".join(f"{s:.2f} s: {text}" for s, text in zip(moments, left, strict=True))
        print(f"killed after {told}; {'the same bytes' if alike else 'OTHER BYTES'}", flush=True)
        shutil.rmtree(out)
    shutil.rmtree(folder)
    print(f"{same} of {given.moments} have the same bytes")
    sys.exit(same < given.moments)


if __name__ == "__main__":
    main()
