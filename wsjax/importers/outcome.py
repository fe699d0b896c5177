"""From a reader's columns to one table: every row with its outcome, and the counts of them.

`status` says what became of a row's measurement: `ok`, or why it is none (the file's own word, or
one of `REASONS`). `excluded` says why a fit leaves the row out, "" where it does not: the status,
or that the row repeats another.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax.errors import nearest
from wsjax.importers import columns as cols
from wsjax.importers import kernel_names, values
from wsjax.importers.columns import OTHERS, TIMES
from wsjax.importers.texts import MALFORMED
from wsjax.schema import COLUMNS, REQUIRED

if TYPE_CHECKING:
    import pandas as pd

NOT_COVERED = {
    "stream_k": "not modelled: stream-K otherwise than by CUTLASS's scheduler for sm90",
    "split_k": "not modelled: k split over CTAs, but not by CUTLASS's stream-K scheduler",
    "block_scaled": "not modelled: scale factors along k (block-scaled, blockwise, mx, nvf4)",
    "interleaved": "not modelled: operands stored in interleaved blocks of 32 or 64",
    "sparse": "not modelled: structured sparsity skips half of the products",
    "grouped": "not modelled: several problems in one launch",
    "emulated": "not modelled: products of fp32 data by one or more MMAs of a narrower type",
    "f16_accum": "not modelled: sums in 16 bits, not in fp32",
    "beta": "not modelled: C is read too (beta is not 0)",
    "contradicts": "its time and the table's own TFLOP/s differ by more than 3x",
}
"""Kernels that do what the model has no terms for. When it learns one, its line here goes, and its
rows count."""
UNCOVERED = "uncovered"
"""A reader's own column of these reasons."""
_NAMES = {
    "stream_k": r"stream_?k|^\w*cijk_.*_sk[1-9]",
    "block_scaled": r"block_?scal|block_?wise|group_?wise|bs(?:sp)?tensorop|ue8m0|ue4m3|\dx\d+f32x"
    r"|mxf?p?[468]|nvf?p?4|_vs(?:16|32)_",
    "interleaved": r"interleaved|_[nt]k?(?:32|64)[nt]k?(?:32|64)(?:_|$)",
    "sparse": r"spgemm|sptensorop|sparse",
    "grouped": r"grouped|moe_gemm|ptr_?array|groupproblemshape",
    "emulated": r"(?<!cutlass)3x_?tf32|tf32_?(?:x3|3x)|bf16_?x[369]|[369]xbf16|fast_?fp?32"
    r"|\db?f16gemm",
}
_PATTERNS = {reason: re.compile(pattern) for reason, pattern in _NAMES.items()}
REASONS = {
    "failed": "did not run",
    "incorrect": "ran, with a wrong result",
    "timeout": "took longer than `wsjax measure --timeout`",
    "not_compiled": "did not compile, or is no kernel of the engine",
    "malformed": "its line has too few or too many fields",
    "not_gemm": "another operation",
    "no_time": "no time stands there",
    "infinite": "an infinite time",
    "zero": "a time of zero or less",
    "no_problem": "m, n or k is missing or zero",
    **NOT_COVERED,
    "unsupported": "a type, layout or schedule without a word of ours",
    "out_of_range": "a configuration value beyond its column's range",
    "no_tile": "no block_m, block_n, block_k (a library's kernel)",
    "no_stages": "its number of stages is not told, but other rows' are",
    "fake_repeat": "one measurement that a log or a tuner's cache wrote again: the very same time",
    "duplicate": "the same configuration again, with another time; the first one counts",
}
NONE: Mapping[str, int] = {}
OK_WORDS = {"ok", "", "success", "passed", "pass", "valid", "true", "1", "correct"}
ASSUMED = ("dtype_in", "layout")
"""Columns whose default is worth a note."""
KERNELS = {"stages": "as many as fit", "schedule": COLUMNS["schedule"].default}
"""Those of kernels that are told at all."""
CHANGING = {
    "group", "run", "sm_mhz", "power_w", "throttle_bits", "flops", "bytes", "id", "line", "date",
    "timestamp", "excluded", "strategy_time", "tiles", "waves", "note", "alike",
}  # fmt: skip
"""Columns that may differ between measurements of one configuration; real numbers may too."""
NOT_KEPT = (MALFORMED, "excluded", UNCOVERED)


@dataclass(frozen=True)
class Report:
    """What an import did: `read` = `kept` (for a fit) + all of `excluded`, by reason."""

    path: Path
    format: str
    read: int
    kept: int
    excluded: Mapping[str, int]
    notes: tuple[str, ...] = field(default=())


def finish(
    columns: "pd.DataFrame", source: str, usual: Mapping[str, int] = NONE
) -> tuple["pd.DataFrame", list[str]]:
    """The table of a reader's columns, and what is worth a note. usual: as of `columns.filled`.

    Its columns: the configuration's (`stages` only if the file tells any), the measurement's
    (`columns.MEASURED`), `excluded`, kernel and device, then the file's others.
    """
    import pandas as pd

    given = {str(name): column for name, column in columns.items()}
    notes: list[str] = []
    rows = len(columns)
    wrong: dict[str, np.ndarray] = {}
    told: dict[str, pd.Series] = {}
    if "accum" in given:
        given["accum"] = values.each(given["accum"], values.accumulator)
    written = {name: given.pop(name) for name in COLUMNS if name in given}
    for name, column in written.items():
        read = cols.words if COLUMNS[name].choices else cols.whole
        told[name], wrong[name] = read(name, column)
    status = _status(given, told, wrong, rows)
    for reason in ("unsupported", "out_of_range"):
        found = status == reason
        notes += [_complaint(name, written[name], found & w) for name, w in wrong.items()]
    notes = [note for note in notes if note]
    alike = given.pop("alike", None)
    if alike is not None and (count := int((alike == 1).sum())):
        notes.append(f"{count:,} rows repeat one time bit for bit: reps counts it once")
    assumed = [f"{name} {COLUMNS[name].default}" for name in ASSUMED if name not in told]
    if "block_m" in told and not told["block_m"].isna().all():
        assumed += [f"{name} {word}" for name, word in KERNELS.items() if name not in told]
    if assumed:
        notes.append(f"not in the file, so assumed: {', '.join(assumed)} (--map NAME=VALUE)")
    absent = pd.Series(np.full(rows, np.nan))
    ours = cols.filled(told, wrong, rows, usual)
    ours |= {name: values.numbers(given.get(name, absent)) for name in (*TIMES, "reps")}
    ours["status"] = pd.Series(status)
    ours["source"] = given.get("source", pd.Series([source] * rows, dtype=object))
    others = [n for n in (*OTHERS, *given) if n in given and n not in (*ours, *NOT_KEPT)]
    notes += [_likely(name, others) for name in (*REQUIRED, "stages") if name not in told]
    notes = [note for note in notes if note]
    extra = cols.compact({n: given[n] for n in others})
    ours["excluded"] = pd.Series(_excluded(cols.compact(ours), extra))
    return pd.concat([cols.compact(ours), extra], axis=1), notes


def _complaint(name: str, written: Any, wrong: np.ndarray) -> str:
    """A note on values that are none of a column's; "" if there are none."""
    if not wrong.any():
        return ""
    column, first = COLUMNS[name], written[wrong].iloc[0]
    valid = f"; whole numbers from {column.minimum} to {column.maximum:,}"
    hint = nearest(first, column.choices) if column.choices else valid
    return f"rows whose {name} is no word or number of ours, first '{first}': {wrong.sum():,}{hint}"


def _likely(name: str, others: Iterable[str]) -> str:
    """A note on a column that may be one of ours under a wrong name; "" if none is like it."""
    close = next(iter(get_close_matches(name, others, n=1, cutoff=0.8)), "")
    return close and f"column '{close}' is not read; is it {name}? --map {name}={close}"


def counts(frame: "pd.DataFrame") -> dict[str, int]:
    """Rows by why a fit leaves them out, commonest first."""
    found = frame["excluded"].astype(object).value_counts()
    return {str(reason): int(count) for reason, count in found.items() if reason}


def _status(
    given: Mapping[str, "pd.Series"],
    told: Mapping[str, "pd.Series"],
    wrong: Mapping[str, np.ndarray],
    rows: int,
) -> np.ndarray:
    """Each row's outcome: the first reason that holds, in this order."""
    import pandas as pd

    def blank(*names: str) -> np.ndarray:
        return np.any([told[n].isna() if n in told else np.ones(rows, bool) for n in names], axis=0)

    status = np.full(rows, "ok", dtype=object)
    if "status" in given:
        codes, found = pd.factorize(values.scalars(given["status"].astype(object)))
        stated = [str(w).strip() for w in found]
        stated = ["ok" if w.lower() in OK_WORDS else w for w in stated]
        status = np.asarray([*stated, "ok"], dtype=object)[codes]
    malformed = given.get(MALFORMED)
    absent = pd.Series(np.full(rows, np.nan))
    time = values.numbers(given.get(TIMES[0], absent)).to_numpy()
    sizes = np.any([w for n, w in wrong.items() if n in "mnk"] or [np.zeros(rows, bool)], axis=0)
    unknown = [w for n, w in wrong.items() if COLUMNS[n].choices]
    whole = [w for n, w in wrong.items() if not COLUMNS[n].choices]
    some_stages = "stages" in told and not told["stages"].isna().all()
    reasons = {
        "malformed": np.zeros(rows, bool) if malformed is None else malformed.to_numpy(dtype=bool),
        "no_time": np.isnan(time),
        "infinite": np.isinf(time),
        "zero": time <= 0,
        "no_problem": blank("m", "n", "k") | sizes,
        **uncovered({**given, **told}, rows),
        "unsupported": np.any(unknown, axis=0) if unknown else np.zeros(rows, bool),
        "out_of_range": np.any(whole, axis=0) if whole else np.zeros(rows, bool),
        "no_tile": blank("block_m", "block_n", "block_k"),
        "no_stages": blank("stages") & some_stages,
    }
    for reason, holds in reasons.items():
        status[holds & (status == "ok")] = reason
    return status


def _excluded(frame: "pd.DataFrame", extra: "pd.DataFrame") -> np.ndarray:
    """The status of rows that are not ok; repeats, of rows that ran, after the first."""
    import pandas as pd

    excluded = np.where(frame["status"] == "ok", "", frame["status"]).astype(object)
    ran = np.flatnonzero(frame["status"].isin(["ok", "no_tile", "no_stages"]))
    told = [c for c in extra if c not in CHANGING and _is_choice(extra[c].array)]
    ours = [c for c in COLUMNS if c in frame]
    key = pd.concat([frame[ours], extra[told]], axis=1).iloc[ran]
    same = key.duplicated()
    if same.any():
        times = frame.iloc[ran][[*TIMES, "reps"]]
        fake = pd.concat([key, times], axis=1).duplicated()
        excluded[ran[same.to_numpy()]] = "duplicate"
        excluded[ran[(same & fake).to_numpy()]] = "fake_repeat"
    return excluded


def _is_choice(column: Any) -> bool:
    """Whether a column can tell configurations apart: words or whole numbers, no measured ones."""
    if column.dtype.kind != "f":
        return True
    number = np.asarray(column)
    known = number[~np.isnan(number)]
    return bool(np.isfinite(known).all() and (known % 1 == 0).all())


@lru_cache(100_000)
def of_name(name: str) -> str:
    """The reason that a kernel's name gives, "" if none."""
    low = name.lower()
    reasons = [reason for reason, known in _PATTERNS.items() if known.search(low)]
    if kernel_names.is_sm90_stream_k(name):
        reasons.remove("stream_k")
    if reasons:
        return reasons[0]
    fp32 = kernel_names.operands(name).get("dtype_in") == "fp32"
    return "emulated" if fp32 and "tensorop" in low else ""


def uncovered(given: Mapping[str, "pd.Series"], rows: int) -> dict[str, np.ndarray]:
    """Rows by reason: what a reader, the kernel's name, and columns that are named as tools name
    them say."""
    found = np.full(rows, "", dtype=object)

    def tell(reasons: np.ndarray) -> None:
        found[:] = np.where(found == "", reasons, found)

    def where(reason: str, holds: np.ndarray) -> None:
        tell(np.where(holds, reason, "").astype(object))

    def texts(name: str) -> np.ndarray:
        return given[name].astype(object).astype(str).str.strip().str.lower().to_numpy(object)

    if UNCOVERED in given:
        tell(given[UNCOVERED].astype(object).fillna("").to_numpy(dtype=object))
    if "kernel" in given:
        tell(values.each(given["kernel"], of_name).fillna("").to_numpy(dtype=object))
        kernels = kernel_names.columns(given["kernel"])
        if "accum" in kernels and "accum" not in given:
            where("f16_accum", (kernels["accum"] == "f16").to_numpy(bool))
    if "split_k" in given:
        split = values.numbers(given["split_k"]).to_numpy() > 1
        if "scheduler" in given:
            split &= ~np.isin(texts("scheduler"), ("splitk", "heuristic"))
        where("split_k", split)
    if "accum" in given:
        where("f16_accum", np.isin(texts("accum"), ("f16", "fp16", "half", "float16")))
    if "beta" in given:
        beta = values.numbers(given["beta"]).to_numpy()
        where("beta", (beta != 0) & ~np.isnan(beta))
    return {reason: found == reason for reason in NOT_COVERED}
