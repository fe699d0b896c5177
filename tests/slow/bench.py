"""Speed on this machine: `make bench`. Rates are the best of several runs after compilation.

Compare figures of one run with each other; a lone figure says as much about the machine's load.
`python tests/slow/bench.py WORDS` prints only the lines that hold all the words; with `--gpu` the
lines that an accelerator is for.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import count
from operator import truediv
from pathlib import Path
from statistics import median
from typing import NamedTuple

import jax
import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from wsjax.engine import batch
from wsjax.engine.programs import Form, formulas
from wsjax.engine.rows import Candidates
from wsjax.hardware.machine import load_hardware
from wsjax.model import events
from wsjax.model.events import Pipeline
from wsjax.schema.columns import COLUMNS, Configuration, with_defaults
from wsjax.spec.sweep_files import Spec, load_spec, parse_spec
from wsjax.sweeps import sweep
from wsjax.sweeps.shards import in_order
from wsjax.sweeps.topk import TopK
from wsjax.tables.parquet import shard_options

SWEEPS = Path(__file__).parents[2] / "sweeps"
QUICKSTART, BILLION = SWEEPS / "quickstart.toml", SWEEPS / "billion.toml"
ROWS = 2_000_000
SCAN_ROWS, SCAN_CHUNK = 262_144, 8_192
ON_DEVICE = 4_194_304
COMPILED = "/jax/core/compile/backend_compile_duration"


class Figure(NamedTuple):
    """A number and what it counts; and, once known, what it must be."""

    value: float
    unit: str
    must: str = ""


def turns(*runs: Callable[[], object], times: int) -> list[list[float]]:
    """The seconds of each, after a first time that compiles; they take turns, so that all see the
    same load."""
    for run in runs:
        run()
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(times):
        for run, spent in zip(runs, found, strict=True):
            start = time.perf_counter()
            run()
            spent.append(time.perf_counter() - start)
    return found


def seconds(*runs: Callable[[], object], times: int = 5) -> list[float]:
    """The best seconds of each, by turns."""
    return [min(spent) for spent in turns(*runs, times=times)]


def million(rows: float, must: str = "", what: str = "rows") -> Figure:
    """So many a second, as a figure."""
    return Figure(rows / 1e6, f"M {what}/s", must)


def quickstart_columns(rows: int) -> Configuration:
    """The quickstart sweep's rows as columns in memory, repeated to about `rows`."""
    product = load_spec(QUICKSTART).product(load_hardware("h200"))
    columns = product.rows(0, len(product))
    repeats = max(1, rows // len(product))
    filled = with_defaults({k: np.tile(v, repeats) for k, v in columns.items() if k in COLUMNS})
    constant = {k: v[0] for k, v in filled.items() if np.ndim(v) and np.all(v == v[0])}
    return Configuration(**{name: (filled | constant)[name] for name in COLUMNS})


def serial_columns(rows: int) -> Configuration:
    """Random problems and tiles, one schedule: serial."""
    rng = np.random.default_rng(0)
    sizes = {name: rng.integers(1, 16_384, rows) for name in "mnk"}
    tiles = {
        "block_m": rng.choice([64, 128], rows),
        "block_n": rng.choice([64, 128], rows),
        "block_k": rng.choice([32, 64], rows),
        "stages": rng.integers(1, 7, rows),
        "dma_warps": rng.integers(1, 3, rows),
        "schedule": 0,
    }
    filled = with_defaults(sizes | tiles)
    return Configuration(**{name: filled[name] for name in COLUMNS})


@cache
def rate(kind: str, machine: str) -> float:
    """Columns in memory -> times, rows a second."""
    columns = serial_columns(ROWS) if kind == "serial" else quickstart_columns(ROWS)
    rows, hardware = max(np.size(x) for x in columns), load_hardware(machine)
    return rows / seconds(lambda: batch.times_us(columns, hardware))[0]


def times(kind: str, machine: str, must: str = "") -> Iterator[Figure]:
    """`rate` as a figure."""
    yield million(rate(kind, machine), must)


def scan() -> Iterator[Figure]:
    """64 k-tiles, one DMA warp, persistent, depth 4: all choices static, durations data."""

    def row(load_us, compute_us, latency_us):
        pipeline = Pipeline(64, 1, 4, load_us, load_us, 0.01, latency_us, compute_us, 0.5, 1, 1, 0)
        return events.simulate(pipeline, max_steps=64, max_stages=4, unroll=4).end_us

    program = jax.jit(jax.vmap(row))
    rows = SCAN_ROWS if jax.default_backend() == "cpu" else ON_DEVICE
    chunk = SCAN_CHUNK if jax.default_backend() == "cpu" else rows
    columns = np.random.default_rng(0).uniform(0.1, 1, (3, rows))
    with jax.enable_x64(True):
        parts = [jax.device_put(columns[:, at : at + chunk]) for at in range(0, rows, chunk)]
        spent = seconds(lambda: jax.block_until_ready([program(*part) for part in parts]))[0]
    yield million(rows / spent, ">= 0.5, 100 on a GPU")


def on_device() -> Iterator[Figure]:
    """Rows from their numbers to times, all on the device: the quickstart's mix."""
    run = load_spec(QUICKSTART)
    candidates = Candidates(run.hardware[0], run.product(run.hardware[0]))
    with jax.enable_x64(True):
        numbers = jax.device_put(np.arange(ON_DEVICE) % len(candidates.product))

        def one() -> None:
            packed = candidates.packed(numbers)
            jax.block_until_ready(formulas(packed, ("time_us",), Form(neutral=candidates.neutral)))

        yield million(ON_DEVICE / seconds(one)[0])


def search_of(run: Spec) -> TopK:
    """A best-of sweep's search on its first machine."""
    candidates = Candidates(run.hardware[0], run.product(run.hardware[0]))
    return TopK(candidates, 10, run.predicate(), partial(batch.times_of_rows, candidates))


def best_of_problems(problems: int, tokens: int) -> Iterator[Figure]:
    """The ten best of so many of the billion's problems, spread over all, at up to `tokens` token
    counts."""
    text = BILLION.read_text(encoding="utf-8")
    text = text.replace("to = 6784, step = 8", f"to = {tokens}, step = 1")
    search = search_of(parse_spec(text, BILLION))
    chosen = np.arange(0, len(search.outer), max(len(search.outer) // problems, 1))
    chunks = [chosen[at : at + search.chunk] for at in range(0, len(chosen), search.chunk)]
    looked = 0

    def run() -> None:
        nonlocal looked
        looked = sum(best.bracketed for _, best in in_order(search.best_of, chunks, 4))

    passed = seconds(run, times=2)[0]
    candidates = len(chosen) * len(search.inner)
    yield million(candidates / passed, ">= 10,000 on a GPU", "candidates")
    yield Figure(candidates / 1e9, f"G candidates in {passed:.1f} s")
    yield Figure(100 * looked / candidates, "% of candidates looked at one by one")


def best_of_command() -> Iterator[Figure]:
    """`wsjax sweep sweeps/billion.toml` as a command, compilation included (or what is kept of
    it): its time, processor time and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "wsjax.cli", "sweep", BILLION, "--out", f"{folder}/out"]
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        passed = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    yield Figure(passed, "s", "<= 60")
    yield Figure(used.ru_utime + used.ru_stime, "s of processors")
    yield Figure(used.ru_maxrss / 2**20, "GiB at most", "<= 2")


def quantiles(tokens: int) -> Iterator[Figure]:
    """How times are distributed on the billion's problems at up to `tokens` tokens."""
    text = BILLION.read_text(encoding="utf-8").replace("best = 10", "")
    text = text.replace('keep = "best"', 'keep = "quantiles"')
    run = parse_spec(text.replace("to = 6784", f"to = {tokens}"), BILLION)
    with tempfile.TemporaryDirectory() as name:
        folder, numbers = Path(name), count()
        candidates = sweep(run, folder / "first").candidates
        passed = seconds(lambda: sweep(run, folder / str(next(numbers))), times=2)[0]
    yield million(candidates / passed, what="candidates")


def whole_sweep(step: int) -> Iterator[Figure]:
    """A sweep to Parquet, and `pyarrow.parquet.write_table` of the same table, in turn: the median
    of the ratios, since a writer alone has moments of luck."""
    text = QUICKSTART.read_text(encoding="utf-8")
    text = text.replace(
        "m = { from = 1, to = 8192, factor = 2 }",
        f"m = {{ from = {step}, to = 8192, step = {step} }}",
    )
    run = parse_spec(text, "quickstart.toml")
    with tempfile.TemporaryDirectory() as name:
        folder, numbers = Path(name), count()
        rows = sweep(run, folder / "table").rows
        table = pq.read_table(folder / "table").combine_chunks()
        same = shard_options(table.column_names)
        passed, alone, plain = turns(
            lambda: sweep(run, folder / str(next(numbers))),
            lambda: pq.write_table(table, folder / "alone.parquet", **same),
            lambda: pq.write_table(table, folder / "plain.parquet"),
            times=9,
        )
    yield Figure(median(map(truediv, passed, alone)), "x writing alone, same options", "<= 1.5")
    yield Figure(median(map(truediv, passed, plain)), "x writing alone, pyarrow's own options")
    yield million(rows / min(passed))


GRID = """hardware = ["h200"]
[columns]
m = { from = 64, to = 8192, step = 64 }
n = { from = 64, to = 8192, step = 64 }
k = { from = 64, to = 7424, step = 64 }
block_m = 128
block_n = 128
block_k = [32, 64]
schedule = ["persistent", "pingpong"]
"""
"""7.6 M rows."""
SMALL = (
    GRID.replace("to = 8192, step = 64", "to = 2048, step = 512")
    .replace("7424", "320")
    .replace("[32, 64]", "64")
    .replace('["persistent", "pingpong"]', '"pingpong"')
)
"""80 rows."""


def sweep_command() -> Iterator[Figure]:
    """The whole command of a sweep, start included, over `pyarrow.parquet.write_table` with its own
    options of the same rows, a part in each of as many threads."""
    with tempfile.TemporaryDirectory() as name:
        folder, numbers = Path(name), count()
        (folder / "grid.toml").write_text(GRID, encoding="utf-8")
        command = (sys.executable, "-m", "wsjax.cli", "sweep", folder / "grid.toml", "--out")
        quiet = partial(subprocess.run, stdout=subprocess.DEVNULL, check=True)
        quiet([*command, folder / "table"])
        table = pq.read_table(folder / "table").combine_chunks()
        threads = os.cpu_count() or 1
        size = -(-table.num_rows // threads)
        parts = [table.slice(size * i, size) for i in range(threads)]

        def alone() -> None:
            with ThreadPoolExecutor(threads) as pool:
                files = (folder / f"{i}.parquet" for i in range(threads))
                list(pool.map(pq.write_table, parts, files))

        passed, plain = turns(
            lambda: quiet([*command, folder / str(next(numbers))]), alone, times=3
        )
    yield Figure(median(map(truediv, passed, plain)), "x writing alone", "<= 1.5")
    yield million(table.num_rows / min(passed))


def command(*arguments: str, must: str) -> Iterator[Figure]:
    """A command over `python -c "import jax"`, in turns: with nothing kept, and after that."""
    with tempfile.TemporaryDirectory() as name:
        folder, numbers = Path(name), count()
        (folder / "small.toml").write_text(SMALL, encoding="utf-8")
        others = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        environment = others | {"XDG_CACHE_HOME": name}

        def run(*words: str) -> float:
            start = time.perf_counter()
            line = [x.format(folder=folder, number=next(numbers)) for x in words]
            subprocess.run(
                [sys.executable, *line], env=environment, stdout=subprocess.DEVNULL, check=True
            )
            return time.perf_counter() - start

        verb, jax_alone = ("-m", "wsjax.cli", *arguments), ("-c", "import jax")
        run(*jax_alone)
        first = run(*verb) / run(*jax_alone)
        later = median(run(*verb) / run(*jax_alone) for _ in range(5))
    yield Figure(later, "x import jax", must)
    yield Figure(first, "x, the first time ever", "<= 4")


IN_A_PROCESS = """
import json, time, jax, numpy as np, pandas as pd, pyarrow, wsjax
from wsjax import engine, predictions
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
)
rng = np.random.default_rng(0)
def frame(rows):
    pick = lambda *values: rng.choice(values, rows)
    return pd.DataFrame({
        **{name: pick(256, 1000, 1024, 4096, 8192) for name in "mnk"},
        "block_m": pick(64, 128), "block_n": pick(64, 128), "block_k": pick(32, 64),
        "stages": pick(2, 3, 4), "dma_warps": pick(1, 2), "mma_in_flight": pick(0, 1),
        "schedule": pick("serial", "persistent", "pingpong", "cooperative"),
    })
def spent(rows, machine="h200", times=1):
    given, best = frame(rows), []
    for _ in range(times):
        start = time.perf_counter()
        wsjax.predict(given, machine)
        best.append(time.perf_counter() - start)
    return min(best)
first = spent(96)
several = first + sum(spent(96, name) for name in ("h200-gluon", "a100-sxm", "a6000-paper"))
usual = [1e3 * spent(rows, times=30) for rows in (20, 1000)]
print(json.dumps([first, several, len(compiled), *usual]))
"""


def in_a_process() -> Iterator[Figure]:
    """`wsjax.predict` of mixed rows in a process, after another has kept what it compiled."""
    with tempfile.TemporaryDirectory() as name:
        others = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        environment = others | {"XDG_CACHE_HOME": name}
        line = [sys.executable, "-c", IN_A_PROCESS]
        subprocess.run(line, env=environment, stdout=subprocess.PIPE, check=True)
        run = subprocess.run(line, env=environment, stdout=subprocess.PIPE, check=True)
        first, several, compiled, few, many = json.loads(run.stdout)
    yield Figure(first, "s, the first 96 rows", "<= 0.5")
    yield Figure(several, "s, and three more machines")
    yield Figure(compiled, "programs compiled", "0")
    yield Figure(few, "ms, 20 rows", "<= 3")
    yield Figure(many, "ms, 1,000 rows", "<= 10")


def growth(name: str, few: int, many: int) -> Iterator[Figure]:
    """The exponent with which the time of a row grows with one of its sizes."""
    sizes = {"m": 4096, "n": 4096, "k": 4096, "block_m": 128, "block_n": 128, "block_k": 64}
    rows = 65_536
    hardware = load_hardware("h200-datasheet")

    def columns(value: int) -> Configuration:
        given = {**sizes, "stages": 4, "schedule": np.arange(rows) % 4, name: value}
        filled = with_defaults(given)
        return Configuration(**{n: filled[n] for n in COLUMNS})

    two = [partial(batch.times_us, columns(value), hardware) for value in (few, many)]
    short, long = seconds(*two, times=7)
    yield Figure(float(np.log(long / short) / np.log(many / few)), "exponent", "<= 0.1")


def row_growth() -> Iterator[Figure]:
    """The exponent with which time grows with rows."""
    hardware = load_hardware("h200")
    columns = [quickstart_columns(size) for size in (200_000, 2_000_000)]
    short, long = seconds(*(partial(batch.times_us, c, hardware) for c in columns))
    rows = [np.size(c.m) for c in columns]
    yield Figure(float(np.log(long / short) / np.log(rows[1] / rows[0])), "exponent", "<= 1.05")


def heuristics() -> Iterator[Figure]:
    """nvMatmulHeuristics' estimates of the configurations that it offers for the quickstart's
    problems: as it offers them (`get`), and by one bare call of its C library each; and how many
    times as many as the latter are predicted here."""
    try:
        import nvMatmulHeuristics as peer  # noqa: N813 # pyright: ignore[reportMissingImports]
    except ImportError:
        yield Figure(float("nan"), "not installed (nvidia-matmul-heuristics)")
        return
    target, gpu = peer.NvMatmulHeuristicsTarget.CUTLASS3, peer.NvMatmulHeuristicsNvidiaGpu
    interface = peer.NvMatmulHeuristicsInterfaceEx(target, gpu=gpu.H200_SXM)
    layout = peer.NvMatmulHeuristicsMatmulLayout.TN_ROW_MAJOR
    product = load_spec(QUICKSTART).product(load_hardware("h200"))
    rows = product.take(np.arange(0, len(product), len(product) // 200))
    shapes = sorted(set(zip(*(map(int, rows[name]) for name in "mnk"), strict=True)))
    problems = [interface.makeNvMatmulHeuristicsProblem(*shape, layout) for shape in shapes]

    def offered() -> list[dict]:
        asked = (interface.get(problem, 32, precision="HSH") for problem in problems)
        return [found for several in asked for found in several]

    pairs = [
        (ctypes.byref(found["nvmmhMatmulProblem"]), ctypes.byref(found["nvmmhKernelConfiguration"]))
        for found in offered()
    ]
    one = partial(
        interface.nvMatmulHeuristicsEstimateRuntime, interface.handle, b"HSH", ctypes.c_int(target)
    )

    def estimate() -> None:
        for problem, kernel in pairs:
            one(problem, kernel, interface.hardware_descriptor)

    offers, theirs = (len(pairs) / spent for spent in seconds(offered, estimate))
    yield Figure(offers / 1e3, f"k of its offers/s, {len(pairs):,} configurations")
    yield Figure(theirs / 1e3, "k of its estimates/s, by its C library")
    yield Figure(rate("serial", "h200") / theirs, "x as many estimates: serial", ">= 200")
    yield Figure(rate("mix", "h200") / theirs, "x as many estimates: the quickstart's mix", ">= 25")


LINES: dict[str, Callable[[], Iterator[Figure]]] = {
    "columns -> times, serial, a6000-paper": partial(times, "serial", "a6000-paper"),
    "columns -> times, serial, h200": partial(times, "serial", "h200", ">= 15"),
    "columns -> times, quickstart's mix, h200": partial(times, "mix", "h200", ">= 2.5"),
    "nvMatmulHeuristics": heuristics,
    "scan of 64 k-tiles": scan,
    "row numbers -> times, on the device": on_device,
    "best ten of 2,000 problems": partial(best_of_problems, 2_000, 6784),
    "best ten of a billion, the command": best_of_command,
    "quantiles of 600 problems": partial(quantiles, 200),
    "sweep to Parquet, 0.7 M rows": partial(whole_sweep, 64),
    "sweep to Parquet, 4.6 M rows": partial(whole_sweep, 10),
    "growth with k_tiles": partial(growth, "k", 640, 64_000),
    "growth with waves": partial(growth, "m", 4_096, 409_600),
    "growth with stages": partial(growth, "stages", 2, 6),
    "growth with rows": row_growth,
}
ONE = ("-m", "4096", "-n", "4096", "-k", "4096")
TILE = ("--tile", "128x128x64", "--stages", "4")
LINES |= {
    "wsjax.predict in a process": in_a_process,
    "wsjax predict, one row": partial(command, "predict", *ONE, *TILE, must="<= 1.6"),
    "wsjax optimize": partial(command, "optimize", *ONE, must="<= 1.6"),
    "wsjax trace": partial(command, "trace", *ONE, *TILE, must="<= 1.6"),
    "wsjax explain": partial(command, "explain", *ONE, *TILE, must="<= 1.6"),
    "wsjax sweep, 80 rows": partial(
        command, "sweep", "{folder}/small.toml", "--out", "{folder}/{number}", must="<= 2"
    ),
    "wsjax sweep, 7.6 M rows, the command": sweep_command,
}
ON_GPU: dict[str, Callable[[], Iterator[Figure]]] = {
    "scan of 64 k-tiles": scan,
    "row numbers -> times, on the device": on_device,
    "best ten of all problems": partial(best_of_problems, 10**9, 65_536),
    "quantiles of 3,000 problems": partial(quantiles, 1_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--gpu", action="store_true")
    given = parser.parse_args()
    compilations = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compilations.append(event) if event == COMPILED else None
    )
    table = Table("float64", "figure", "", "must", "programs compiled")
    for name, measure in (ON_GPU if given.gpu else LINES).items():
        if not all(word in name for word in given.words):
            continue
        compilations.clear()
        for figure in measure():
            compiled = str(len(compilations))
            table.add_row(name, f"{figure.value:,.2f}", figure.unit, figure.must, compiled)
    devices = jax.devices()
    heading = f"{len(devices)} x {devices[0].device_kind}, jax {jax.__version__}"
    Console(width=max(Console().width, 110)).print(heading, table)


if __name__ == "__main__":
    main()
