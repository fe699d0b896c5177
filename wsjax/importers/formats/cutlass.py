"""cutlass_profiler: its CSV, alone or inside the text that it prints.

Columns go by the header, which differs by version. Runtime is in ms. Disposition says whether the
result was right, Status whether the kernel ran. The name of the kernel has the last word on tile,
cluster, schedule and layout: under a search for the best kernel, the columns can be wrong.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from wsjax.importers import csv_rows, kernel_names, values
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

_HEADER = re.compile(r"(?:^|,)Problem,Provider,OperationKind,Operation,Disposition,Status,")
_TEXT = re.compile(r"^\s*Provider: \w+\s*\n\s*OperationKind: ", re.M)
COPIED = {
    "m": "m",
    "n": "n",
    "k": "k",
    "batch": "batch_count",
    "block_m": "cta_m",
    "block_n": "cta_n",
    "block_k": "cta_k",
    "stages": "stages",
    "cluster_m": "cluster_m",
    "cluster_n": "cluster_n",
    "split_k": "split_k_slices",
}
KEPT = {
    "accum": "accum",
    "op_class": "op_class",
    "split_k_mode": "split_k_mode",
    "raster_order": "raster_order",
    "swizzle_size": "swizzle_size",
    "flops": "Flops",
    "bytes": "Bytes",
}
NEEDS = ("OperationKind", "Operation", "Disposition", "Status", "Runtime")
RAN = ("passed", "not_verified")
GEMMS = ("gemm", "block_scaled_gemm", "blockwise_gemm")


def recognises(source: Source) -> bool:
    """Whether it holds the profiler's header or the text that it prints for each kernel."""
    return any(map(_is_header, source.head_lines)) or bool(_TEXT.search(source.head))


def _is_header(line: str) -> bool:
    return "Provider,OperationKind" in line and bool(_HEADER.search(line))


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """The CSV's rows, under whichever headers it has."""
    return csv_rows.frames(source, _is_header)


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """The profiler's columns in our words."""
    name = theirs["Operation"]
    found = {ours: values.numbers(theirs[t]) for ours, t in COPIED.items() if t in theirs}
    if "A" in theirs and "B" in theirs:
        pair = theirs["A"].astype(str) + "," + theirs["B"].astype(str)
        found["layout"] = values.each(pair, _layout)
        found["dtype_in"] = _inputs(theirs, pair)
    out = theirs.get("D", theirs.get("C"))
    if out is not None:
        found["dtype_out"] = values.each(out, _dtype)
    if {"warps_m", "warps_n"} <= set(theirs):
        warps = [values.numbers(theirs[f"warps_{c}"]) for c in "mnk" if f"warps_{c}" in theirs]
        found["math_warps"] = np.prod(warps, axis=0) * (warps[0] / warps[0])
    for column, told in kernel_names.columns(name).items():
        found[column] = told.where(told.notna(), found[column]) if column in found else told
    if "stages" in found:
        found["stages"] = found["stages"].where(found["stages"] != 0)
    found |= {ours: theirs[t] for ours, t in KEPT.items() if t in theirs}
    found["time_us_measured"] = values.times_us(theirs["Runtime"], values.US_PER["ms"])
    return {**found, "status": _status(theirs), "kernel": name}


def _dtype(operand: str) -> object:
    return values.dtype_word(operand.partition(":")[0])


def _layout(pair: str) -> str:
    """Our letters for `bf16:row,bf16:column`."""
    return "".join("n" if operand.endswith(":row") else "t" for operand in pair.split(","))


def _inputs(theirs: Mapping[str, "pd.Series"], pair: "pd.Series") -> "pd.Series":
    """The type of A and B: fp32 on tensor cores is tf32; two types have no word of ours."""

    def word(operands: str) -> str:
        types = dict.fromkeys(str(_dtype(operand)) for operand in operands.split(","))
        return " and ".join(types)

    found = values.each(pair, word)
    if "op_class" in theirs:
        found = found.mask((found == "fp32") & (theirs["op_class"] == "tensorop"), "tf32")
    return found


def _status(theirs: Mapping[str, "pd.Series"]) -> "pd.Series":
    import pandas as pd

    names = ("OperationKind", "Status", "Disposition")
    kind, status, disposition = (
        values.each(theirs[c], lambda word: word.strip().lower()) for c in names
    )
    right = disposition.isin(RAN) & (status == "success")
    wrong = (disposition == "incorrect") & (status == "success")
    found = np.select([~kind.isin(GEMMS), right, wrong], ["not_gemm", "ok", "incorrect"], "failed")
    return pd.Series(found, index=kind.index, dtype=object)
