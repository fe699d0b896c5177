"""Error on held-out problems after planned rows and after random ones (make plan-curve).

The pool is a measured table's training problems; the machine starts from a data sheet and has seen
no row. Pool and judge hold as many rows of each problem, as far as it has them. Each line: rows,
how they were chosen, their problems, mean and median error, p95, mean regret, seconds.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from wsjax import schema
from wsjax.fit import calibrate, design, measured, validation
from wsjax.fit.measured import Measured
from wsjax.hardware import load_hardware

COUNTS = (25, 50, 100, 200, 400)
POOL, JUDGED, SEEDS = 2_048, 4_096, 3


def frame(rows: Measured) -> pd.DataFrame:
    """Rows as a table that `calibrate` takes."""
    wide = np.exp(measured.Z90 * rows.noise)
    return pd.DataFrame(
        schema.spelled(rows.configurations._asdict())
        | {
            "time_us_measured": rows.time_us,
            "time_us_measured_p10": rows.time_us / wide,
            "time_us_measured_p90": rows.time_us * wide,
        }
    )


def line(pool: Measured, chosen: np.ndarray, how: str, start: str, judge: Measured) -> None:
    began = time.perf_counter()
    fitted = calibrate(frame(pool.take(chosen)), start, held_out=0)
    found = validation.metrics_of(
        validation.evaluate(judge, fitted.hardware), np.ones(len(judge), bool)
    )
    problems = len(np.unique(pool.problem[chosen]))
    print(
        f"{len(chosen):4d} {how:8s} {problems:4d} {found.mape_pct:6.2f} {found.median_ape_pct:6.2f}"
        f" {found.p95_ape_pct:6.2f} {found.regret_mean:.4f} {time.perf_counter() - began:6.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--start", default="h200-datasheet")
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    machine = load_hardware(options.start)
    rows = measured.read(options.table, machine.facts)
    held_out = rows.share < 0.2
    pool = measured.sample(rows.take(~held_out), POOL, seed=0)
    judge = measured.sample(rows.take(held_out), JUDGED, seed=0)
    problem = np.unique(pool.problem, return_inverse=True)[1]
    print(f"{len(judge):,} rows of {len(np.unique(judge.problem))} held-out problems are judged")
    print("rows how   problems mean%  median    p95 regret  seconds")
    evenly = np.ones(len(pool))
    planned = design(pool.configurations, problem, evenly, machine, rows=max(options.counts)).chosen
    for count in options.counts:
        line(pool, planned[:count], "planned", options.start, judge)
        for seed in range(options.seeds):
            drawn = np.random.default_rng(seed).permutation(len(pool))[:count]
            line(pool, drawn, f"random {seed}", options.start, judge)


if __name__ == "__main__":
    main()
