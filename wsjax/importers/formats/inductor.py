"""TorchInductor's choices for matrix multiplication: its JSON log, and AUTOTUNE lines of its text.

Both write a problem as M, K, N. Times in ms. A text is often that of several processes whose lines
mix: what a launcher puts before each line tells them apart.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wsjax.importers import texts, values
from wsjax.importers.formats import triton
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

NEEDS = ()
_SHAPE = re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)?")
_SHAPE_KEY = re.compile(r'"\(\d+, \d+, \d+\)"|"invoke"')
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PROCESS = re.compile(r"\s*(\[[^\]\s]*\](?:<\w+>)?:?|\([^()]*\)|\d+:(?!\d))")
"""What torchrun (`[default0]:`), mpirun (`[1,0]<stdout>:`), Ray (`(Worker pid=7)`) and srun (`0:`)
put before a line."""
_TIME = re.compile(r"\d:\d\d|\d{4}-\d\d")
_TITLE = re.compile(r"AUTOTUNE (\w+)\(([^()]*)")
_CHOICE = re.compile(r"(?:^|\s)(\S+) ([\d.e+-]+|inf|nan) ms (?:[\d.]+%|<DIVIDED[^>]*>)\s*(.*)$")
_SETTING = re.compile(r"(\w+)=('[^']*'|[^,\s]+)")
_FIELD = re.compile(r"(?:^|\s|:)(strides|dtypes): (.*)$")
_PIECE = 50_000
_ADDED = ("addmm", "baddbmm")
"""Operations whose first operand is added to the product of the next two."""
_PRODUCTS = ("mm", "bmm", "scaled_mm", "scaled_mm_v2", "int_mm", "mixed_mm", *_ADDED)
ASSUMED = "dtype_in fp8_e4m3"
"""Of scaled_mm, where the log does not tell the types."""
_GROUPED = ("grouped_mm", "scaled_grouped_mm")


def recognises(source: Source) -> bool:
    """Whether it is a list of timed choices by shape, or holds AUTOTUNE lines."""
    return bool((_SHAPE_KEY if source.is_json else _TITLE).search(source.head))


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """One row a choice, with the problem it was timed for."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for row in _json_rows(source) if source.is_json else _log_rows(source):
        rows.append(row)
        if len(rows) == _PIECE:
            yield pd.DataFrame(rows)
            rows = []
    if rows:
        yield pd.DataFrame(rows)


def _json_rows(source: Source) -> Iterator[dict[str, Any]]:
    for _, _, entry in texts.parts(source):
        for shape, choices in entry.items() if isinstance(entry, Mapping) else ():
            match = _SHAPE.fullmatch(shape)
            if not match or not isinstance(choices, list):
                continue
            sizes = dict(zip("mkn", map(int, match.groups()), strict=True))
            for choice in choices:
                row = {k: v for k, v in choice.items() if isinstance(v, int | float | str)}
                kind = str(row.pop("type", ""))
                yield {**sizes, **row, "kernel": kind, "time": row.get("time")}


def _log_rows(source: Source) -> Iterator[dict[str, Any]]:
    problems: dict[str, dict[str, Any]] = {}
    latest: dict[str, Any] | None = None
    for text in source.lines():
        line = _ANSI.sub("", text)
        tag = _PROCESS.match(line)
        process = tag[1] if tag and not _TIME.search(tag[1]) else ""
        if title := _TITLE.search(line):
            latest = problems[process] = _problem(title[1].lstrip("_"), title[2])
        elif (problem := problems.get(process, latest)) is None:
            continue
        elif field := _FIELD.search(line):
            problem |= _fields(problem, field[1], field[2])
        elif choice := _CHOICE.search(line):
            told = {name: value.strip("'") for name, value in _SETTING.findall(choice[3])}
            told = {k: int(v) if v.isdecimal() else v for k, v in told.items()}
            if problem.get("types") is False:
                source.notes.append(f"scaled_mm without its types, so assumed: {ASSUMED}")
            row = {k: v for k, v in problem.items() if k not in ("a", "types")}
            yield {**row, "kernel": choice[1], "time": float(choice[2]), **told}


def _problem(operation: str, text: str) -> dict[str, Any]:
    """The problem of `mm(MxK, KxN)`; addmm has C before them, bmm a batch in front of each,
    scaled_mm scales behind: one number, or one a row of A and a column of B. A shape that is empty
    is that of a scalar; one with a letter is not known when the code is compiled."""
    shapes = [shape.strip().split("x") for shape in text.split(",")]
    found: dict[str, Any] = {"op": operation}
    if operation in _GROUPED:
        return {**found, "status": "grouped"}
    first = int(operation in _ADDED)
    if operation not in _PRODUCTS or len(shapes) < first + 2:
        return {**found, "status": "not_gemm"}
    known = [[int(d) if d.isdecimal() else 0 for d in shape if d] for shape in shapes]
    a, b = known[first : first + 2]
    if len(a) < 2 or len(b) < 2 or not all([*a, *b]) or a[-1] != b[-2]:
        return {**found, "status": "no_problem"}
    found |= {"batch": a[0] if len(a) == 3 else 1, "m": a[-2], "k": a[-1], "n": b[-1], "a": first}
    if operation.startswith("scaled_mm"):
        scales = zip(known[2:4], (a[-2], b[-1]), strict=False)
        if any(math.prod(scale) not in (1, one_each) for scale, one_each in scales):
            found["status"] = "block_scaled"
        found |= {"dtype": "fp8_e4m3", "types": False}
    return found


def _fields(problem: Mapping[str, Any], field: str, text: str) -> dict[str, Any]:
    """Types or layout of A and B, from those of all operands."""
    first = problem.get("a", 0)
    if field == "dtypes":
        types = [part.strip() for part in text.split(",")][first : first + 2]
        return {"dtype": values.operands(*types), "types": True} if types else {}
    inner = re.findall(r"\[([^\]]*)\]", text)[first : first + 2]
    strides = [[part.strip() for part in one.split(",")] for one in inner]
    letters = ["n" if s[-1] == "1" else "t" if s[-2:-1] == ["1"] else "" for s in strides]
    return {"layout": "".join(letters)} if len(letters) == 2 and all(letters) else {}


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Choices with their tile; a library's kernel (aten, cublas) has none, and keeps its row.

    The output has A's type; of 8-bit floats the log does not tell it, and of 8-bit integers it is
    32 bits wide, for which there is no word of ours."""
    found = triton.of_triton(theirs)
    found |= {c: theirs[c] for c in ("m", "n", "k", "batch", "layout") if c in theirs}
    if "dtype" in theirs:
        word = theirs["dtype"].map(values.dtype, na_action="ignore")
        if "ALLOW_TF32" in theirs:
            allowed = theirs["ALLOW_TF32"].astype(str) == "True"
            word = word.mask((word == "fp32") & allowed, "tf32")
        out = word.map({"tf32": "fp32", "int8": "int32"} | dict.fromkeys(_FP8)).where(
            word.isin(["tf32", "int8", *_FP8]), word
        )
        found |= {"dtype_in": word, "dtype_out": out}
    found |= _accumulator(theirs, found.get("dtype_in"))
    found["time_us_measured"] = values.times_us(theirs["time"], values.US_PER["ms"])
    status = triton.failed_if_infinite(theirs["time"])
    if "status" in theirs:
        status = theirs["status"].where(theirs["status"].notna(), status)
    dropped = {*_DROPPED, *(name for names in triton.SETTINGS.values() for name in names)}
    kept = {c: theirs[c] for c in theirs if c not in found and c not in dropped}
    return {**kept, **found, "status": status}


_DROPPED = {"time", "dtype", "status"}
_FP8 = ("fp8_e4m3", "fp8_e5m2")


def _accumulator(
    theirs: Mapping[str, "pd.Series"], types: "pd.Series | None"
) -> dict[str, "pd.Series"]:
    """`accum`: the type of sums, and of 8-bit floats whether they are promoted to it."""
    if "ACC_TYPE" not in theirs:
        return {}
    found = theirs["ACC_TYPE"].map(values.accumulator, na_action="ignore").astype(object)
    if types is not None and "USE_FAST_ACCUM" in theirs:
        fp8 = types.isin(_FP8) & (found == "f32")
        fast = theirs["USE_FAST_ACCUM"].astype(str) == "True"
        found = found.mask(fp8 & fast, "f32_fast").mask(fp8 & ~fast, "f32_promoted")
    return {"accum": found}
