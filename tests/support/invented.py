"""A calibration's report directory of invented numbers."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

import wsjax
from wsjax.hardware import PARAMETERS


def calibration_report(directory: Path, rows: int = 4_000) -> None:
    """A report directory as `calibrate` writes it, of invented numbers."""
    directory.mkdir(exist_ok=True)
    chooser = np.random.default_rng(3)
    names = list(PARAMETERS)[:20]
    fitted = chooser.random(len(names)) < 0.8
    values = [PARAMETERS[n].typical * np.exp(chooser.normal(0, 0.3)) for n in names]
    pd.DataFrame(
        {
            "name": names,
            "unit": [PARAMETERS[n].unit for n in names],
            "start": [PARAMETERS[n].neutral for n in names],
            "value": values,
            "standard_error": np.where(fitted, chooser.uniform(0.01, 0.3, len(names)), math.nan),
            "status": np.where(fitted, "fitted", "undetermined"),
        }
    ).to_csv(directory / "parameters.csv", index=False)
    root = chooser.normal(size=(len(names), 8))
    covariance = root @ root.T + np.eye(len(names))
    scale = np.sqrt(np.diag(covariance))
    correlation = pd.DataFrame(covariance / np.outer(scale, scale), columns=names)
    correlation.insert(0, "parameter", names)
    correlation.to_csv(directory / "correlation.csv", index=False)
    pd.DataFrame(
        {
            "term": ["", "sharing", "DRAM latency"],
            "parameters": ["", "sharing", "dram_latency_first_us, dram_latency_us"],
            "mape_pct": [4.6, 5.1, 4.5],
            "median_ape_pct": [3.6, 4.0, 3.6],
            "p95_ape_pct": [12.4, 14.2, 12.5],
            "earned_pct": [0.0, 0.5, -0.1],
        }
    ).to_csv(directory / "ablation.csv", index=False)
    invented_rows(rows).to_parquet(directory / "rows.parquet", index=False)
    (directory / "report.md").write_text("# invented\n")
    (directory / "hardware.toml").write_text(wsjax.load_hardware("toy").text)


def invented_rows(count: int) -> pd.DataFrame:
    """Rows as `rows.parquet` holds them."""
    chooser = np.random.default_rng(4)
    measured_us = 10 ** chooser.uniform(0.7, 3.5, count)
    predicted = measured_us * np.exp(chooser.normal(0, 0.08, count))
    words = {
        "split": ["training", "held out"],
        "group": ["square", "skinny", "deep"],
        "limiter": ["load", "compute", "latency"],
        "schedule": ["serial", "pingpong"],
        "layout": ["nt"],
        "dtype_in": ["bf16"],
        "dtype_out": ["bf16"],
        "l2_state": ["cold"],
    }
    sizes = {"m": [16, 256, 4096], "n": [1024, 2048], "k": [512, 4096], "batch": [1]}
    sizes |= {"block_m": [64, 128], "block_n": [64, 128], "block_k": [64], "stages": [2, 3, 4]}
    columns = {name: chooser.choice(own, count) for name, own in {**words, **sizes}.items()}
    return pd.DataFrame(columns).assign(
        time_us_measured=measured_us,
        time_us=predicted,
        time_us_lo=predicted * 0.88,
        time_us_hi=predicted * 1.14,
        extrapolated=chooser.random(count) < 0.1,
    )
