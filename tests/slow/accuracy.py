"""Accuracy on problems that no fit saw, and the kernels picked against cuBLAS (make accuracy).

A line a table: rows and problems; then of the recurrences alone, and of the machine with its
learned correction: mean, median, 95th percentile and greatest error in per cent; regret: mean, 95th
percentile, share of problems within 2 %; the best measured of the three predicted best; how many
rows lie in the 90 % interval. Held-out problems are those that `calibrate` holds out.

Then, over all bf16 problems with a time of cuBLAS, what the best measured kernel of all tables
takes, what the one takes that is predicted best, both over cuBLAS's time (geometric means), and how
far the second is from the first.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from wsjax.fit import measured, validation
from wsjax.fit.measured import Measured
from wsjax.hardware import Hardware, family_defaults, load_hardware
from wsjax.schema import DTYPES, LAYOUTS

HELD_OUT = 0.2
TABLES = {
    "Gluon": ("h200-gluon", ["gemm_ws"]),
    "CUTLASS, bf16": ("h200-cutlass", ["cutlass_ws", "cutlass_ws_more", "cutlass_ws_2"]),
    "CUTLASS, fp8": ("h200-cutlass", ["cutlass_fp8"]),
    "CUTLASS, clusters": ("h200-cutlass", ["cutlass_cluster"]),
    "CUTLASS, split-K": ("h200-cutlass", ["cutlass_splitk"]),
    "CUTLASS, batched": ("h200-cutlass", ["cutlass_batched"]),
}
CUBLAS = "cublas.csv", "cublas_more.csv.gz"
KEY = ["m", "n", "k", "batch", "layout", "l2_state"]
SIZES_GFLOP = (0, 5, 50, 200, np.inf)


def read(folder: Path, names: list[str], machine: Hardware) -> Measured:
    paths = [folder / f"{name}.csv.gz" for name in names]
    return measured.read(paths, machine.facts, repeats=True, usual=family_defaults(machine))


def table(found: validation.Validated) -> pd.DataFrame:
    """Problem, measured and predicted time of each row."""
    return pd.DataFrame(
        {
            "problem": found.rows.problem,
            "measured": found.rows.time_us,
            "predicted": found.predicted_us,
        }
    )


def best_of_three(found: validation.Validated) -> float:
    """Mean over problems: the best measured of the three rows predicted best, over the best."""
    rows = table(found).sort_values("predicted").groupby("problem")["measured"]
    return float(np.mean(rows.apply(lambda x: x.head(3).min()) / rows.min()))


def figures(title: str, rows: Measured, machine: Hardware) -> None:
    if not len(rows):
        return
    found = validation.evaluate(rows, machine)
    x = validation.metrics_of(found)
    print(
        f"{title:32s} {x.rows:6,} {x.problems:4d} {x.mape_pct:6.2f} {x.median_ape_pct:5.2f}"
        f" {x.p95_ape_pct:5.1f} {x.max_ape_pct:4.0f}  {x.regret_mean:.4f} {x.regret_p95:.3f}"
        f" {x.within_2pct:3.0f} %  {best_of_three(found):.4f}  {x.coverage_90_pct:.1f}",
        flush=True,
    )


def cublas_us(folder: Path) -> pd.DataFrame:
    """cuBLAS's bf16 times by problem."""
    times = pd.concat([pd.read_csv(folder / name) for name in CUBLAS])
    times = times.query("dtype_in == 'bf16'").fillna({"batch": 1})
    times = times.replace({"l2_state": {"flushed": "cold"}, "layout": {"TN": "nt"}})
    least = times.sort_values("time_us_median").drop_duplicates(KEY).set_index(KEY)
    return pd.DataFrame({"cublas": least["time_us_median"]})


def against_cublas(folder: Path, machine: Hardware) -> None:
    names = [name for owner, names in TABLES.values() if owner == "h200-cutlass" for name in names]
    rows = read(folder, names, machine)
    rows = rows.take(rows.configurations.dtype_in == DTYPES.index("bf16"))
    found = validation.evaluate(rows, machine)
    c = found.rows.configurations
    frame = table(found).assign(
        m=c.m,
        n=c.n,
        k=c.k,
        batch=c.batch,
        layout=np.asarray(LAYOUTS)[c.layout],
        l2_state=np.where(c.l2_state, "warm", "cold"),
        family=found.rows.labels["group"],
        held_out=found.rows.share < HELD_OUT,
        gflop=2e-9 * c.m * c.n * c.k * c.batch,
    )
    frame = frame.join(cublas_us(folder), on=KEY, how="inner")
    problems = frame.sort_values("predicted").groupby(KEY)
    each = problems.first().assign(best=problems["measured"].min())
    sizes = np.asarray(pd.cut(each["gflop"], SIZES_GFLOP)).astype(str)
    print(f"\nagainst cuBLAS: {'problems':>25s}   best / cuBLAS   picked / cuBLAS   picked / best")
    for title, by in {
        "all": np.full(len(each), ""),
        "problems": np.where(each["held_out"], "held out", "fitted"),
        "GFLOP": sizes,
        "family": each["family"],
    }.items():
        for word, some in each.groupby(by):
            best, picked = (
                np.exp(np.mean(np.log(some[name] / some["cublas"])))
                for name in ("best", "measured")
            )
            label = f"{title} {word}"
            print(
                f"{label:34s} {len(some):6,}   {best:13.3f}   {picked:15.3f}   {picked / best:.4f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, help="folder of the measured tables")
    parser.add_argument("--cublas", action="store_true", help="only this")
    options = parser.parse_args()
    for title, (name, names) in ({} if options.cublas else TABLES).items():
        machine = load_hardware(name)
        rows = read(options.tables, names, machine)
        rows = rows.take(rows.share < HELD_OUT)
        short = rows.take(rows.time_us < 20)
        for part, some in (("", rows), (" < 20 us", short)):
            figures(f"{title}{part}, recurrences", some, machine.physics)
            figures(f"{title}{part}, corrected", some, machine)
    against_cublas(options.tables, load_hardware("h200-cutlass"))


if __name__ == "__main__":
    main()
