"""Speed on this machine: `make bench`. Rates are the best of several runs after compilation.

Compare figures of one run with each other; a lone figure says as much about the machine's load.
"""

import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from wsjax import batch, events
from wsjax.events import Pipeline
from wsjax.hardware import load_hardware
from wsjax.space import COLUMNS, Configuration, with_defaults
from wsjax.spec import load_spec

QUICKSTART = Path(__file__).parents[1] / "sweeps" / "quickstart.toml"
ROWS = 2_000_000
SCAN_ROWS, SCAN_CHUNK = 262_144, 8_192
COMPILED = "/jax/core/compile/backend_compile_duration"


def rate(run: Callable[[], object], rows: int, runs: int = 5) -> float:
    """Rows a second in the fastest of `runs` runs, after one that compiles."""
    run()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return rows / min(seconds)


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


def scan_rate() -> float:
    """64 k-tiles, one DMA warp, persistent, depth 4: all choices static, durations data."""

    def row(load_us, compute_us, latency_us):
        pipeline = Pipeline(64, 1, 4, load_us, load_us, 0.01, latency_us, compute_us, 0.5, 1, 1, 0)
        return events.simulate(pipeline, max_steps=64, max_stages=4, unroll=4).end_us

    scan = jax.jit(jax.vmap(row))
    columns = np.random.default_rng(0).uniform(0.1, 1, (3, SCAN_ROWS))

    def run():
        for at in range(0, SCAN_ROWS, SCAN_CHUNK):
            np.asarray(scan(*columns[:, at : at + SCAN_CHUNK]))

    with jax.enable_x64(True):
        return rate(run, SCAN_ROWS)


def main() -> None:
    compilations = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compilations.append(event) if event == COMPILED else None
    )
    h200, paper = load_hardware("h200"), load_hardware("a6000-paper")
    table = Table("float64, columns in memory -> times", "M rows/s", "programs compiled", "must")
    benches = [
        ("closed form, serial, a6000-paper", lambda: time_rate(serial_columns(ROWS), paper), 20),
        ("the same with all terms, h200", lambda: time_rate(serial_columns(ROWS), h200), None),
        (
            "quickstart's mix, all methods, h200",
            lambda: time_rate(quickstart_columns(ROWS), h200),
            2,
        ),
        ("scan, 64 k-tiles", scan_rate, 0.5),
    ]
    for name, bench, least in benches:
        compilations.clear()
        rows_per_s = bench()
        table.add_row(name, f"{rows_per_s / 1e6:.1f}", str(len(compilations)), str(least or ""))
    Console().print(f"{jax.devices()[0].platform}, jax {jax.__version__}", table)


def time_rate(columns: Configuration, hardware) -> float:
    rows = max(np.size(x) for x in columns)
    return rate(lambda: batch.times_us(columns, hardware), rows)


if __name__ == "__main__":
    main()
