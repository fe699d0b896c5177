"""Every block of README.md runs, in its order, in a directory with the files that it speaks of."""

import gzip
import re
import shlex
import shutil
import tomllib
import warnings
from collections import Counter
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from paths import DATA, ROOT

from wsjax.cli.main import main
from wsjax.hardware.machine import load_hardware
from wsjax.spec.sweep_files import parse_spec
from wsjax.sweeps.run import sweep

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(kind, text) for kind, text in BLOCK.findall((ROOT / "README.md").read_text("utf-8"))]
ELSEWHERE = {
    "make demo": "makes a virtual environment; CI runs it",
    "make test": "runs this test",
    "wsjax calibrate measured.parquet --start h200-datasheet --out mine.toml": (
        "minutes; test_calibration has a smaller one"
    ),
    "wsjax measure plan.csv --out measured.csv": "needs a GPU; test_measure has an engine without",
}
"""Lines that are not run here, and why."""
KERNELS = {"block_m": [64, 128], "block_n": [128, 256], "block_k": 64}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What the reader has by then: tables, a machine's file, results of a (smaller) quickstart."""
    folder = tmp_path_factory.mktemp("readme")
    excerpt = DATA / "h200_cutlass_ws_problems.csv.gz"
    shutil.copy(excerpt, folder / "measured.csv.gz")
    (folder / "profiler.csv").write_bytes(gzip.decompress(excerpt.read_bytes()))
    (folder / "mine.toml").write_text(load_hardware("h200").text)
    shapes = pd.DataFrame({"m": [16, 4096], "n": 4096, "k": 4096, **KERNELS})
    shapes.to_csv(folder / "shapes.csv", index=False)
    workload = pd.DataFrame({"m": [16, 512, 4096], "n": 4096, "k": 4096, "weight": [100, 5, 1]})
    workload.to_csv(folder / "workload.csv", index=False)
    text = (ROOT / "sweeps" / "quickstart.toml").read_text("utf-8")
    small = re.sub(r" {4}\{ name = .*(405|70|1|3)b.*\n", "", text)
    small = small.replace("to = 8192, factor = 2 }", "to = 4096, factor = 64 }")
    small = small.replace('["serial", "persistent", "pingpong", "cooperative"]', '["serial"]')
    assert sweep(parse_spec(small, "quickstart.toml"), folder / "results/quickstart").rows > 500
    return folder


def shell(text: str) -> None:
    """Run lines of a shell: those of wsjax here, without what the list names."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        command = shlex.join(words).replace('"', "'")
        if words and command not in {shlex.join(shlex.split(text)) for text in ELSEWHERE}:
            assert words[0] == "wsjax", line
            assert main(words[1:]) == 0, line


def sweep_file(text: str) -> None:
    """A sweep file, or sections of one, or of a space."""
    table = tomllib.loads(text)
    if "hardware" in table:
        Path("my.toml").write_text(text)
    elif "output" in table:
        parse_spec(Path("my.toml").read_text() + text, "my.toml")
    else:
        Path("space.toml").write_text(text)
        shell("wsjax optimize -m 4096 -n 4096 -k 4096 --space space.toml")


def query(text: str) -> None:
    assert len(duckdb.connect().execute(text).df()) > 1


RUN = {
    "python": lambda text: exec(compile(text, "README.md", "exec"), {}),
    "sh": shell,
    "sql": query,
    "toml": sweep_file,
    "text": lambda text: None,
}


def test_it_is_read_in_five_minutes():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 250


def test_all_blocks_are_of_a_kind_that_runs():
    kinds = Counter(kind for kind, _ in BLOCKS)
    assert set(kinds) == set(RUN)
    written = "\n".join(text for kind, text in BLOCKS if kind == "sh")
    assert [line for line in ELSEWHERE if line not in written] == []


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=lambda i: f"{i}-{BLOCKS[i][0]}")
def test_readme(number, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    kind, text = BLOCKS[number]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RUN[kind](text)
    assert "Traceback" not in capsys.readouterr().err
