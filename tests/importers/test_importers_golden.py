"""The values of each format's rows, against a table that was checked by hand.

After a change that is meant, run this file with `PYTHONPATH=tests/support python`: it writes the
table anew; read the difference before it is committed.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from paths import DATA
from test_importers_formats import AUTOTUNE, INDUCTOR, LONG, NSIGHT_SIZES, PINGPONG, heuristic
from test_importers_kinds import BENCH, HEADER, NAMES, PLAIN_90, USUAL, profiled

from wsjax.importers import FORMATS, read
from wsjax.schema import COLUMNS

GOLDEN = DATA / "importers_golden.csv"
ROWS = 8
SHOWN = [*COLUMNS, "time_us_measured", "time_us_measured_p10", "time_us_measured_p90", "reps"]
SHOWN += ["status", "excluded", "device"]
TRITON = {
    "key": [4096, 2048, 1024, "torch.float16"],
    "configs_timings": [
        [{"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8,
          "num_stages": 3}, [0.5, 0.48, 0.55]],
        [{"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8, "num_warps": 4,
          "num_stages": 4, "NUM_SMS": 132}, [0.25, 0.2, 0.3]],
    ],
}  # fmt: skip
FILES = {
    "cutlass_profiler": DATA / "cutlass_profiler_tf32_tc.txt",
    "kernel_tuner": DATA / "kernel_tuner_rtx3090_gemm.json",
    "aiconfigurator": DATA / "aiconfigurator_h200_vllm_bf16.parquet",
    "h200": DATA / "h200_gemm_ws_excerpt.csv.gz",
    "h200 cutlass": DATA / "h200_cutlass_ws_excerpt.csv.gz",
}
TEXTS = {
    "cutlass_profiler sm90": f"{HEADER}\n{profiled(PLAIN_90)}\n{profiled(PINGPONG, beta='1')}\n",
    "inductor": json.dumps(INDUCTOR),
    "inductor log": AUTOTUNE,
    "autoheuristic": heuristic(),
    "triton": json.dumps(TRITON),
    "hipblaslt": BENCH.format(**USUAL),
    "nsight": LONG.format(kernel=PINGPONG, unit="us", first="1,234.5", second="3"),
    "plain": NAMES,
}
MAPS = {"nsight": NSIGHT_SIZES}


def values(name: str, folder: Path) -> pd.DataFrame:
    """The first rows of a format's sample, as texts."""
    path = FILES.get(name)
    if path is None:
        path = folder / "sample"
        path.write_text(TEXTS[name], encoding="utf-8")
    found = read(path, mapping=MAPS.get(name))
    assert found.report.format == name.split()[0]
    timed = found.table.loc[found.table["time_us_measured"].notna().to_numpy()]
    texts = timed.head(ROWS).reindex(columns=SHOWN).astype(object).map(_text)
    texts.insert(0, "sample", name)
    return texts.reset_index(drop=True)


def _text(value: Any) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("name", [*FILES, *TEXTS])
def test_values(tmp_path, name):
    golden = pd.read_csv(GOLDEN, dtype=str, keep_default_na=False)
    expected = golden.loc[(golden["sample"] == name).to_numpy()].reset_index(drop=True)
    pd.testing.assert_frame_equal(values(name, tmp_path), expected, check_dtype=False)


def test_every_format_has_a_sample():
    assert {name.split()[0] for name in (*FILES, *TEXTS)} == set(FORMATS)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        samples = [values(name, Path(folder)) for name in (*FILES, *TEXTS)]
    pd.concat(samples).to_csv(GOLDEN, index=False)
