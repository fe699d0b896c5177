"""TorchInductor's choices for matrix multiplication: its JSON log, and AUTOTUNE lines of its text.

Both write a problem as M, K, N. Times in ms.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wsjax.importers import json_items, values, words
from wsjax.importers.formats import triton
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

_SHAPE = re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)?")
_SHAPE_KEY = re.compile(r'"\(\d+, \d+, \d+\)"|"invoke"')
_TITLE = re.compile(r"AUTOTUNE (\w+)\(([\dx, ]+)\)")
_CHOICE = re.compile(r"^\s+(\S+) ([\d.e+-]+|inf|nan) ms (?:[\d.]+%|<DIVIDED[^>]*>)\s*(.*)$")
_SETTING = re.compile(r"(\w+)=('[^']*'|[^,\s]+)")
_FIELD = re.compile(r"^\s*(?:.*\s)?(strides|dtypes): (.*)$")
_PIECE = 50_000
_MATRIX = ("mm", "addmm", "bmm", "baddbmm", "scaled_mm", "int_mm", "mixed_mm")


def recognises(source: Source) -> bool:
    """Whether it is a list of timed choices by shape, or holds AUTOTUNE lines."""
    if source.head.lstrip()[:1] == "[":
        return bool(_SHAPE_KEY.search(source.head))
    return bool(_TITLE.search(source.head))


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """One row a choice, with the problem it was timed for."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    is_json = source.head.lstrip()[:1] == "["
    for row in _json_rows(source) if is_json else _log_rows(source):
        rows.append(row)
        if len(rows) == _PIECE:
            yield pd.DataFrame(rows)
            rows = []
    if rows:
        yield pd.DataFrame(rows)


def _json_rows(source: Source) -> Iterator[dict[str, Any]]:
    for _, _, entry in json_items.parts(source):
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
    problem: dict[str, Any] = {}
    for line in source.lines():
        if title := _TITLE.search(line):
            problem = _problem(title[1], title[2])
        elif problem and (field := _FIELD.match(line)):
            problem |= _operands(field[1], field[2])
        elif problem and (choice := _CHOICE.match(line)):
            told = {name: value.strip("'") for name, value in _SETTING.findall(choice[3])}
            told = {k: int(v) if v.isdecimal() else v for k, v in told.items()}
            yield {**problem, "kernel": choice[1], "time": float(choice[2]), **told}


def _problem(operation: str, shapes: str) -> dict[str, Any]:
    """The problem of `mm(MxK, KxN)`; addmm has C before them, bmm a batch in front of each."""
    sizes = [[int(d) for d in shape.split("x")] for shape in shapes.replace(" ", "").split(",")]
    found: dict[str, Any] = {"op": operation}
    if operation not in _MATRIX or len(sizes) < 2:
        return {**found, "status": "not_gemm"}
    a, b = sizes[-2:] if operation in ("addmm", "baddbmm") else sizes[:2]
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        return {**found, "status": "no_problem"}
    batch = a[0] if len(a) == 3 else 1
    return {**found, "batch": batch, "m": a[-2], "k": a[-1], "n": b[-1], "first": len(sizes) - 2
            if operation in ("addmm", "baddbmm") else 0}  # fmt: skip


def _operands(field: str, text: str) -> dict[str, Any]:
    if field == "dtypes":
        types = [part.strip() for part in text.split(",")]
        return {"dtype": types[-1], "dtype_first": types[0]}
    strides = [
        [int(s) for s in inner.split(",") if s.strip()]
        for inner in re.findall(r"\[([\d, ]*)\]", text)
    ]
    return {"strides": strides}


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Choices with their tile; a library's kernel (aten, cublas) has none, and keeps its row."""
    found = triton.settings(theirs)
    found |= {c: theirs[c] for c in ("m", "n", "k", "batch") if c in theirs}
    if "dtype" in theirs:
        word = theirs["dtype"].map(words.dtype, na_action="ignore")
        if "ALLOW_TF32" in theirs:
            allowed = theirs["ALLOW_TF32"].astype(str) == "True"
            word = word.mask((word == "fp32") & allowed, "tf32")
        found |= {"dtype_in": word, "dtype_out": word.replace("tf32", "fp32")}
    if "strides" in theirs:
        found["layout"] = _layouts(theirs)
    found["time_us_measured"] = values.times_us(theirs["time"], values.US_PER["ms"])
    status = triton.failed_if_infinite(theirs["time"])
    if "status" in theirs:
        status = theirs["status"].where(theirs["status"].notna(), status)
    dropped = {*_DROPPED, *(name for names in triton.SETTINGS.values() for name in names)}
    kept = {c: theirs[c] for c in theirs if c not in found and c not in dropped}
    return {**kept, **found, "status": status}


_DROPPED = {"time", "strides", "dtype", "dtype_first", "first", "status"}


def _layouts(theirs: Mapping[str, "pd.Series"]) -> "pd.Series":
    """Which of A's and B's dimensions is contiguous; blank where neither is."""
    import pandas as pd

    def word(strides: Any, first: Any) -> str | None:
        if not isinstance(strides, list) or first != first or len(strides) < int(first) + 2:
            return None
        a, b = strides[int(first) : int(first) + 2]
        letters = [
            "n" if s[-1:] == [1] else "t" if len(s) > 1 and s[-2] == 1 else "" for s in (a, b)
        ]
        return "".join(letters) if all(letters) else None

    strides, first = theirs["strides"], theirs.get("first", values.everywhere(theirs, 0))
    found = [word(s, f) for s, f in zip(strides, first, strict=True)]
    return pd.Series(found, index=strides.index, dtype=object)
