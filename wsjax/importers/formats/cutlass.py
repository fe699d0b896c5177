"""cutlass_profiler: its CSV, alone or inside the text that it prints.

Columns go by the header, which differs by version. Runtime is in ms. Disposition says whether the
result was right, Status whether the kernel ran. The name of the kernel has the last word on tile,
cluster, schedule and layout: under a search for the best kernel, the columns can be wrong. Types
are told by the columns A, B, C and D, and by the name where there are none.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from wsjax.importers import kernel_names, outcome, texts, values
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
    "op_class": "op_class",
    "split_k_mode": "split_k_mode",
    "raster_order": "raster_order",
    "swizzle_size": "swizzle_size",
    "beta": "beta",
    "flops": "Flops",
    "bytes": "Bytes",
}
NEEDS = ("OperationKind", "Operation", "Disposition", "Status", "Runtime")
RAN = ("passed", "not_verified")
KINDS = {
    "gemm": None,
    "block_scaled_gemm": "block_scaled",
    "blockwise_gemm": "block_scaled",
    "sparse_gemm": "sparse",
    "spgemm": "sparse",
    "grouped_gemm": "grouped",
}
"""Kinds of operation that multiply matrices, and why the model does not cover one."""
TYPES = ("dtype_in", "dtype_out")
LAYOUTS = {"row": "n", "column": "t"}
INTERLEAVED = r":[nt]k?\d+|interleaved"


def recognises(source: Source) -> bool:
    """Whether it holds the profiler's header or the text that it prints for each kernel."""
    return any(map(_is_header, source.head_lines)) or bool(_TEXT.search(source.head))


def is_text(source: Source) -> bool:
    """Whether it is what the profiler prints for each kernel, and holds no CSV."""
    return bool(_TEXT.search(source.head)) and not any(map(_is_header, source.lines()))


def _is_header(line: str) -> bool:
    return "Provider,OperationKind" in line and bool(_HEADER.search(line))


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """The CSV's rows, under whichever headers it has."""
    return texts.frames(source, _is_header)


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """The profiler's columns in our words."""
    name = theirs["Operation"]
    found = {ours: values.numbers(theirs[t]) for ours, t in COPIED.items() if t in theirs}
    if {"warps_m", "warps_n"} <= set(theirs):
        warps = [values.numbers(theirs[f"warps_{c}"]) for c in "mnk" if f"warps_{c}" in theirs]
        found["math_warps"] = np.prod(warps, axis=0) * (warps[0] / warps[0])
    found |= _operands(theirs)
    for column, told in kernel_names.columns(name).items():
        given = found.get(column, values.everywhere(theirs, None))
        if column in TYPES:  # fp32 data that the name says are multiplied as tf32
            found[column] = given.where(given.notna() & ~(told.eq("tf32") & given.eq("fp32")), told)
        else:
            found[column] = told.where(told.notna(), given)
    if "stages" in found:
        found["stages"] = found["stages"].where(found["stages"] != 0)
    found |= {ours: theirs[t] for ours, t in KEPT.items() if t in theirs}
    found["time_us_measured"] = values.times_us(theirs["Runtime"], values.US_PER["ms"])
    found[outcome.UNCOVERED] = _uncovered(theirs, found)
    return {**found, "status": _status(theirs), "kernel": name}


def _operands(theirs: Mapping[str, "pd.Series"]) -> dict[str, "pd.Series"]:
    """Types and layout by the columns of operands, such as `bf16:row`; blank where none is told."""
    found = {"accum": theirs["accum"]} if "accum" in theirs else {}
    if {"A", "B"} <= set(theirs):
        given = [_runtime(theirs, operand) for operand in "AB"]
        pair = given[0] + "," + given[1]
        found["layout"] = values.each(pair, _layout)
        found["dtype_in"] = values.each(pair, _inputs)
    out = theirs.get("D", theirs.get("C"))
    if out is not None:
        found["dtype_out"] = values.each(out, lambda operand: values.dtype(_type(operand)))
    return found


def _runtime(theirs: Mapping[str, "pd.Series"], operand: str) -> "pd.Series":
    """A column of operands; its type, where it is chosen at run time, from the column for that."""
    given = theirs[operand].astype(object).fillna("").astype(str)
    chosen = theirs.get(f"runtime_input_datatype_{operand.lower()}")
    if chosen is None:
        return given
    told = chosen.notna() & (chosen.astype(str) != "invalid")
    return given.where(~told, chosen.astype(str) + ":" + given.str.rpartition(":")[2])


def _type(operand: str) -> str | None:
    word = operand.partition(":")[0].strip()
    return None if word in ("", "void", "invalid") else word


def _inputs(pair: str) -> str | None:
    types = [_type(operand) for operand in pair.split(",")]
    return values.operands(*types) if all(types) else None


def _layout(pair: str) -> str | None:
    """Our letters for `bf16:row,bf16:column`."""
    stored = [operand.rpartition(":")[2].strip() for operand in pair.split(",")]
    letters = [LAYOUTS.get(word) for word in stored]
    return "".join(map(str, letters)) if all(letters) else None


def _uncovered(theirs: Mapping[str, "pd.Series"], found: Mapping[str, "pd.Series"]) -> "pd.Series":
    """What the columns say beside the name: the kind of operation, how operands are stored, and
    fp32 data on tensor cores that are not multiplied as tf32."""
    reason = theirs["OperationKind"].astype(object).str.strip().str.lower().map(KINDS)
    for operand in {"A", "B", "C", "D"} & set(theirs):
        stored = theirs[operand].astype(object).astype(str)
        reason = reason.mask(reason.isna() & stored.str.contains(INTERLEAVED), "interleaved")
    if {"op_class", "dtype_in"} <= set(found):
        tensor = found["op_class"].astype(object).astype(str).str.contains("tensorop")
        reason = reason.mask(reason.isna() & tensor & found["dtype_in"].eq("fp32"), "emulated")
    return reason


def _status(theirs: Mapping[str, "pd.Series"]) -> "pd.Series":
    import pandas as pd

    names = ("OperationKind", "Status", "Disposition")
    kind, status, disposition = (
        values.each(theirs[c], lambda word: word.strip().lower()) for c in names
    )
    right = disposition.isin(RAN) & (status == "success")
    wrong = (disposition == "incorrect") & (status == "success")
    found = np.select([~kind.isin(KINDS), right, wrong], ["not_gemm", "ok", "incorrect"], "failed")
    return pd.Series(found, index=kind.index, dtype=object)
