"""Error on held-out problems after fits of few rows (make few-rows).

The machine starts from a data sheet and has seen no row; rows are drawn from a table's training
problems, one by one (spread) or a whole problem at a time. Each line: how, rows, seed, their
problems, mean and median error, p95, mean regret, seconds.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from wsjax.fit import measured, priors, rounds, validation
from wsjax.fit.measured import Measured
from wsjax.hardware import Hardware, load_hardware

COUNTS = (0, 20, 50, 200)
JUDGED, SEEDS = 4_096, 3


def drawn(pool: Measured, count: int, seed: int, *, whole: bool) -> Measured:
    """So many rows of the pool."""
    chooser = np.random.default_rng(seed)
    order = chooser.permutation(len(pool))
    if whole:
        rank = chooser.permutation(pool.problem.max() + 1)[pool.problem]
        order = np.argsort(rank, kind="stable")
    return pool.take(np.sort(order[:count]))


def line(what: str, problems: int, machine: Hardware, judge: Measured, seconds: float) -> None:
    found = validation.metrics_of(validation.evaluate(judge, machine), np.ones(len(judge), bool))
    print(
        f"{what:14s} {problems:4d} {found.mape_pct:6.2f} {found.median_ape_pct:6.2f}"
        f" {found.p95_ape_pct:6.2f} {found.regret_mean:.4f} {seconds:6.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--start", default="h200-datasheet")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    start = load_hardware(options.start)
    rows = measured.read(options.table, start.facts)
    rows = rows.take(rounds.modelled(rows, start))
    held_out = rows.share < 0.2
    pool, judge = rows.take(~held_out), measured.sample(rows.take(held_out), JUDGED, seed=0)
    print("how rows seed problems mean%  median    p95 regret  seconds")
    for whole in (False, True):
        for count in COUNTS:
            for seed in range(options.seeds if count else 1):
                few, fitted, began = drawn(pool, count, seed, whole=whole), start, time.monotonic()
                if count:
                    found = rounds.fit_parameters(few, start, priors.candidates(start), seed)
                    fitted = replace(start, parameters=found.values)
                what = f"{'whole' if whole else 'spread'} {count} {seed}"
                problems = len(np.unique(few.problem))
                line(what, problems, fitted, judge, time.monotonic() - began)


if __name__ == "__main__":
    main()
