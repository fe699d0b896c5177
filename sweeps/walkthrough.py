"""From measurements to the kernels to ship, in cells: calibrate, validate, sweep, choose, report.

Run it whole (`python sweeps/walkthrough.py [MEASURED [OUT]]`), or cell by cell in an editor that
knows `# %%`; the page at the end needs `pip install 'wsjax[report]'`. MEASURED is a table of any
format that `wsjax import` reads; by default 27 problems of 40 CUTLASS kernels each, measured on an
H200. All that it writes is in OUT, results/walkthrough.
"""

# %% What was measured
import sys
from pathlib import Path

import pandas as pd

import wsjax

HERE = Path(__file__).resolve().parent
given = [Path(text) for text in sys.argv[1:] if not text.startswith("-")]
measured = given[0] if given else HERE.parent / "tests/data/h200_cutlass_ws_problems.csv.gz"
out = given[1] if len(given) > 1 else HERE.parent / "results/walkthrough"
out.mkdir(parents=True, exist_ok=True)

# %% Calibrate: fit the machine to four fifths of the problems
# The start knows an H200 from its data sheet, and nothing of these kernels.
calibration = wsjax.calibrate(measured, start=HERE / "h200-cutlass-start.toml", name="mine")
machine = calibration.hardware
(out / "mine.toml").write_text(wsjax.format_hardware(machine), encoding="utf-8")
fitted = sum(x.status == "fitted" for x in calibration.parameters)
print(f"{calibration.fitted_rows:,} rows determine {fitted} parameters; the others stay typical")

# %% Validate: the last fifth, of which the fit saw nothing, and what the start was worth there
unseen = calibration.held_out
assert unseen is not None, "problems are held out unless held_out = 0"
start = wsjax.validate(measured, HERE / "h200-cutlass-start.toml").metrics
print(f"before: {start.mape_pct:.1f} % mean error")
print(f"after:  {unseen.mape_pct:.1f} % mean, {unseen.max_ape_pct:.0f} % worst, on unseen problems")
print(f"picking by prediction costs {100 * (unseen.regret_mean - 1):.1f} % over the best kernel")

# %% Sweep: every tile and ring depth on the layers of a model, also on a GPU with more L2 rate
RATE = "l2_throughput_bytes_per_us"
l2_rate = getattr(machine.parameters, RATE)
spec = out / "layers.toml"
spec.write_text(f"""
hardware = ["mine.toml"]
[problems]
rows = [
    {{ name = "qkv",     n = 6144,  k = 4096 }},
    {{ name = "o",       n = 4096,  k = 4096 }},
    {{ name = "gate_up", n = 28672, k = 4096 }},
    {{ name = "down",    n = 4096,  k = 14336 }},
]
[columns]
m = [1, 16, 64, 256, 1024, 4096, 8192]
block_m = {{ from = 64, to = 256, factor = 2 }}
block_n = {{ from = 64, to = 256, factor = 2 }}
block_k = [32, 64, 128]
stages = {{ from = 2, to = 8, step = 1 }}
schedule = ["persistent", "pingpong", "cooperative"]
[hardware_parameters]
{RATE} = [{l2_rate}, {1.2 * l2_rate}]
""")
swept = wsjax.sweep(spec, out / "layers")
print(f"\n{swept.rows:,} kernels of {swept.candidates:,} are legal; all are in {out / 'layers'}")

# %% Ask the table: what would 20 % more L2 rate bring, each problem on its best kernel?
table = pd.read_parquet(out / "layers", columns=["problem", "m", "n", "k", RATE, "time_us"])
best = table.groupby(["problem", "m", "n", "k", RATE], observed=True)["time_us"].min().unstack()
gain_pct = 100 * (1 - best[1.2 * l2_rate] / best[l2_rate])
print(gain_pct.round(1).sort_values(ascending=False).head(5).rename("gain_pct").reset_index())

# %% Choose: the four kernels that a library should ship for these layers
layers = best.reset_index()[["problem", "m", "n", "k"]]
choice = wsjax.choose(layers, 4, machine)
print(choice.kernels[["kernel", "problems", "time_share_pct"]])
print(choice.loss[["k", "loss_pct", "worst_pct", "proved"]])

# %% Report: a page to filter and to hover over
print(f"open {wsjax.report(out / 'layers', out / 'layers.html').path}")
