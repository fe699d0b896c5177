"""aiconfigurator's tables of measured GEMMs: one operation a row, without its tile."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wsjax.importers import outcome, values
from wsjax.importers.formats import plain
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

NEEDS = {"framework", "op_name", "kernel_source", "gemm_dtype", "m", "n", "k", "latency"}


def recognises(source: Source) -> bool:
    """Whether it has the columns of its GEMM tables."""
    return set(plain.columns(source)) >= NEEDS


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """The rows of its Parquet or CSV form."""
    return plain.pieces(source)


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Latency in ms; the type's word, where ours knows it; kernel_source as the kernel."""
    gemm = theirs["op_name"].astype(object).str.contains("gemm", na=False)
    kept = {c: theirs[c] for c in ("framework", "version", "op_name", "gemm_dtype") if c in theirs}
    types = theirs["gemm_dtype"].astype(object)
    out = types.map(values.dtype)
    return {
        **{c: values.numbers(theirs[c]) for c in "mnk"},
        "dtype_in": out,
        "dtype_out": out.where(out.isin(["bf16", "fp16", "fp32"]), "bf16"),
        "time_us_measured": values.times_us(theirs["latency"], values.US_PER["ms"]),
        outcome.UNCOVERED: types.map({"fp8_block": "block_scaled"}),
        "status": gemm.map(lambda yes: "ok" if yes else "not_gemm"),
        "kernel": theirs["kernel_source"],
        "device": theirs.get("device", values.everywhere(theirs, None)),
        **kept,
    }
