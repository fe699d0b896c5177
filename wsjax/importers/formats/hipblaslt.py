"""hipblaslt-bench: a line of names and a line of values a problem, in the text that it prints.

Column-major words as in BLAS: `transA` T, `transB` N is our layout nt. Times in µs. The kernel's
name, on the same line or behind `--kernel name:` below it, tells the tile (`MT256x128x64`) and the
split of k (`GSU4`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wsjax.importers import outcome, texts, values
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

_HEADER = re.compile(r"(?:^|\[\d+\]:|[\s:])(transA,transB,.*\bus\b.*)$")
_NAME = re.compile(r"^\s*--(?:kernel|Solution) name:\s*(\S+)")
_TILE = re.compile(r"_MT(\d+)x(\d+)x(\d+)(?:.*_GSU(\d+)_)?")
NEEDS = ("m", "n", "k", "us")
COPIED = {"batch": "batch_count", "beta": "beta", "alpha": "alpha"}
_PIECE = 50_000


def recognises(source: Source) -> bool:
    """Whether a line names its columns."""
    return any(map(_HEADER.search, source.head_lines))


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """One row a line of values; the kernel's name in column `kernel_name`."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    names: list[str] = []
    for line in source.lines():
        if header := _HEADER.search(line):
            names = texts.cells(header[1])
        elif (named := _NAME.match(line)) and rows:
            rows[-1]["kernel_name"] = named[1]
        elif names and line.count(",") >= len(names) - 1:
            if len(rows) >= _PIECE:
                yield pd.DataFrame(rows)
                rows = []
            rows.append(dict(zip(names, texts.cells(line), strict=False)))
    if rows:
        yield pd.DataFrame(rows)


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """`us` is the time. fp32 data computed as xf32 are tf32; as f16 or bf16, `emulated`."""
    kernel = theirs.get("kernel_name", values.everywhere(theirs, None))
    found = {c: values.numbers(theirs[c]) for c in "mnk"}
    found |= {ours: values.numbers(theirs[t]) for ours, t in COPIED.items() if t in theirs}
    if {"transA", "transB"} <= set(theirs):
        pair = (theirs["transA"] + theirs["transB"]).str.strip().str.lower()
        found["layout"] = pair.map(values.BLAS_LAYOUTS)
    if {"a_type", "b_type"} <= set(theirs):
        pair = theirs["a_type"] + "," + theirs["b_type"]
        found["dtype_in"] = values.each(pair, lambda types: values.operands(*types.split(",")))
        found["dtype_out"] = theirs.get("d_type", theirs.get("c_type", found["dtype_in"]))
    tile = kernel.astype(object).astype(str).str.extract(_TILE)
    if tile[0].notna().any():
        found |= {f"block_{c}": values.numbers(tile[i]) for i, c in enumerate("mnk")}
        found["split_k"] = values.numbers(tile[3]).clip(lower=1)
    reason = kernel.map(lambda name: None)
    if "compute_type" in theirs and "dtype_in" in found:
        compute = theirs["compute_type"].astype(str).str.lower()
        fp32 = found["dtype_in"] == "fp32"
        found["dtype_in"] = found["dtype_in"].mask(fp32 & compute.str.contains("xf32"), "tf32")
        reason = reason.mask(fp32 & compute.str.contains("f16"), "emulated")
        reason = reason.mask(~fp32 & (compute == "f16_r"), "f16_accum")
    if "grouped_gemm" in theirs:
        reason = reason.mask(theirs["grouped_gemm"].astype(str).str.strip() == "1", "grouped")
    return {
        **found,
        outcome.UNCOVERED: reason,
        "time_us_measured": values.times_us(theirs["us"], values.US_PER["us"]),
        "kernel": kernel,
        **{name: theirs[name] for name in ("solution_index",) if name in theirs},
    }
