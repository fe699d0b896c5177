"""Any CSV or Parquet table: columns by our names, by their usual other names, or by `--map`."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from wsjax.errors import InputError, nearest
from wsjax.importers import kernel_names, texts, values
from wsjax.importers.columns import OTHERS, TIMES
from wsjax.importers.source import Source
from wsjax.schema import COLUMNS, INTERVAL_COLUMNS, PREDICTION_COLUMNS, REQUIRED
from wsjax.tables import parquet_names

if TYPE_CHECKING:
    import pandas as pd

NEEDS = ()
_SIZES = {
    f"block_{c}": [f"{w}{c}" for w in ("block", "blocksize", "tile", "cta", "b", "tb")]
    + [f"{c}{w}" for w in ("tile", "block")]
    for c in "mnk"
}
ALIASES: dict[str, list[str]] = {
    **_SIZES,
    "batch": ["batchcount", "batchsize", "numbatches"],
    "dtype_in": [
        "atype",
        "typea",
        "dtypea",
        "inputdtype",
        "indtype",
        "typein",
        "datatype",
        "dtype",
    ],
    "dtype_out": ["outputdtype", "outdtype", "typeout", "dtype", "ctype", "typec", "dtypec"],
    "stages": ["numstages", "nstages"],
    "math_warps": ["numwarps", "nwarps", "warps"],
    "dma_warps": ["producerwarps"],
    "split_k": ["splitkslices"],
    "group_m": ["groupsizem"],
    "kernel": ["kernelname", "operation"],
    "device": ["gpu", "gpuname", "devicename"],
    "reps": ["repetitions", "repeats", "iterations"],
    "source": [],
    "status": ["result"],
}
TRACED = {"role", "event", "t_ns"}
"""Columns that only a table of traced events has."""
_TIMES = {"time", "times", "latency", "duration", "elapsed"} | {
    f"{what}time" for what in ("run", "wall", "gpu", "kernel", "exec", "elapsed")
}
_UNITS = {*values.US_PER} - {"s"}
_STATISTICS = {"median", "mean", "avg", "average", "p10", "p50", "p90"}
_RANKS = (
    {"median", "p50"},
    _TIMES - {"latency", "duration", "elapsed"},
    {"latency"},
    {"duration"},
    {"elapsed"},
    {"mean", "avg", "average"},
    _UNITS,
)
"""Of several columns of times, the one with the earliest word is the measurement."""
_OTHER_TIMES = re.compile(
    "predict|estimat|wait|model|compil|stamp|launch|std|min|max|cpu|host|timeout|warm|setup|saved"
)
_RATE = re.compile(r"(?:per|/).?[mnuµμ]s")
_TOKEN = re.compile(r"[A-Z]?[a-zµμ]+|[A-Z]+(?![a-z])|p\d+")


def recognises(source: Source) -> bool:
    """Any table is one: this is the last to be asked."""
    return True


def columns(source: Source) -> tuple[str, ...]:
    """The names of its columns; () if its head has no line that could name them."""
    if source.parquet:
        return tuple(parquet_names(source.path))
    header = _header(source)
    return tuple(texts.cells(header, texts.delimiter_of(header)))


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """Its rows, a piece at a time."""
    if source.parquet:
        frame = _parquet(source)
        for start in range(0, max(len(frame), 1), texts.PIECE_ROWS):
            yield frame.iloc[start : start + texts.PIECE_ROWS].reset_index(drop=True)
        return
    header = _header(source)
    yield from texts.frames(source, lambda line: line.strip() == header)


def _parquet(source: Source) -> "pd.DataFrame":
    import pandas as pd

    try:
        return pd.read_parquet(source.path)
    except (ValueError, OSError) as error:
        mend = "copy it again, or choose another file"
        if source.path.is_dir():
            mend = "give a directory of Parquet files and nothing else"
        raise InputError(f"{source.path}: cannot be read as Parquet: {error}; {mend}") from None


@lru_cache(maxsize=1)
def _header(source: Source) -> str:
    """The line that names the columns: the first with m, n and k, or with a name that the user
    maps; else the first that has a delimiter."""
    rows = [line for line in source.head_lines if any(mark in line for mark in texts.DELIMITERS)]
    for line in rows:
        found = texts.cells(line, texts.delimiter_of(line))
        if source.expected & set(found) or {"m", "n", "k"} <= {_key(cell) for cell in found}:
            return line.strip()
    return rows[0].strip() if rows else source.first_line().strip()


def lines_before(source: Source) -> int:
    """How many lines stand before the header, such as a log's."""
    header = _header(source)
    return next((n for n, line in enumerate(source.head_lines) if line.strip() == header), 0)


def _key(name: object) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def names(theirs: list[str]) -> dict[str, str]:
    """Ours to theirs, for the columns that are known by name. A table of predictions has no
    measured times under their names."""
    if {"limiter", "method"} <= set(theirs):
        theirs = [name for name in theirs if name not in (*PREDICTION_COLUMNS, *INTERVAL_COLUMNS)]
    found = {ours: ours for ours in (*COLUMNS, *OTHERS, *ALIASES, *TIMES) if ours in theirs}
    keys = {_key(name): name for name in reversed(theirs)}
    for ours in (*COLUMNS, *ALIASES):
        for key in [_key(ours), *ALIASES.get(ours, [])]:
            if ours not in found and key in keys and keys[key] not in found.values():
                found[ours] = keys[key]
    return found | {ours: name for ours, name in _times(theirs).items() if ours not in found}


def _times(theirs: list[str]) -> dict[str, str]:
    """The columns of measured times, p10 and p90, by the words in their names."""
    found: dict[str, str] = {}
    times = [name for name in theirs if _is_time(str(name))]
    times.sort(key=lambda name: values.unit_in(name) is None)
    for rank in reversed(_RANKS):
        for name in reversed(times):
            if _tokens(name).isdisjoint(rank):
                continue
            mark = next((mark for mark in ("p10", "p90") if mark in str(name).lower()), "")
            found[f"{TIMES[0]}_{mark}" if mark else TIMES[0]] = name
    return found


def _is_time(name: str) -> bool:
    """Whether a name says a measured time: by a word or a unit of times, or nothing but median."""
    low, tokens = name.lower(), _tokens(name)
    if _OTHER_TIMES.search(low):
        return False
    by_unit = bool(tokens & _UNITS) and not _RATE.search(low)
    return bool(tokens & _TIMES) or by_unit or set() < tokens <= _STATISTICS


def _tokens(name: object) -> set[str]:
    """The words of a name in lower case: `GPU_Time(us)` and `gpuTimeUs` have gpu, time and us."""
    return {token.lower() for token in _TOKEN.findall(str(name))}


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Columns known by name; the others stay as they are. Times by the unit in the header or
    behind the numbers; a column of times without one is left out (`complaints` says so)."""
    known = names([name for name in theirs if name != texts.MALFORMED])
    found = {ours: theirs[name] for ours, name in known.items() if ours not in TIMES}
    if "kernel" in found:
        found = {**kernel_names.columns(found["kernel"]), **found}
    for ours in known.keys() & TIMES:
        scale = values.unit_in(known[ours])
        if scale is not None or values.has_units(theirs[known[ours]]):
            found[ours] = values.times_us(theirs[known[ours]], scale or 1.0)
    if b_type := _partner(known.get("dtype_in", ""), theirs):
        pair = found["dtype_in"].astype(str) + "," + theirs[b_type].astype(str)
        both = values.each(pair, lambda types: values.operands(*types.split(",")))
        found["dtype_in"] = both.where(found["dtype_in"].notna())
    taken = set(known.values())
    rest = {name: column for name, column in theirs.items() if name not in taken}
    return {**rest, **found}


def _partner(a_type: str, theirs: Mapping[str, "pd.Series"]) -> str | None:
    """The column of B's type beside that of A's, if there is one."""
    partner = {"atype": "btype", "typea": "typeb", "dtypea": "dtypeb"}.get(_key(a_type))
    return next((name for name in theirs if partner and _key(name) == partner), None)


def _hint(column: str, theirs: Sequence[str]) -> str:
    alike = [name for name in theirs if len(column) > 1 or len(name) <= 2]
    hint = nearest(column, alike)
    return hint if "did you mean" in hint else ""


def complaints(ours: Collection[str], theirs: Sequence[str]) -> list[str]:
    """What a table lacks that every measurement has."""
    theirs = [name for name in theirs if name != texts.MALFORMED]
    if set(theirs) >= TRACED:
        return ["holds events of traced kernels, no times of whole ones; `wsjax validate --trace`"]
    time = names(theirs).get(TIMES[0])
    problems = [
        f"column '{column}' is missing{_hint(column, theirs)}; say which it is: --map {column}=NAME"
        for column in REQUIRED
        if column not in ours
    ]
    if problems:
        problems.append(f"its columns are {', '.join(theirs)}")
    if TIMES[0] in ours:
        return problems
    if time is None:
        hint = "say which it is: --map time_ms=NAME (or time_s, time_us, time_ns)"
        return [*problems, f"no column of measured times; {hint}"]
    hint = f"say it: --map time_ms={time} (or time_s, time_us, time_ns)"
    return [*problems, f"column '{time}' has times without a unit; {hint}"]
