"""Nsight Compute's CSV: long (a metric a row) or wide (a kernel a row, units in the second line).

Numbers follow the profiled machine's locale. The problem is not in it: `--map m=4096` gives it;
tile, stages and schedule come from the kernel's name where that tells them.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wsjax.importers import kernel_names, texts, values
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

NEEDS = ("Kernel Name",)
DURATION = "gpu__time_duration.sum"
DURATIONS = (DURATION, "Duration")
LONG = ("Metric Name", "Metric Value")
KEPT = {
    "launch__registers_per_thread": "regs",
    "Registers Per Thread": "regs",
    "launch__grid_size": "grid",
    "launch__waves_per_multiprocessor": "waves_per_sm",
}
_UNITS = "\0units"
HEAD = 1000
"""Numbers of each metric that tell its decimal mark."""
CLOCKS = "Nsight Compute holds clocks at base unless it ran with --clock-control none"


def recognises(source: Source) -> bool:
    """Whether a header names kernels, and their metrics or their duration."""
    return any(_is_header(line) for line in source.head_lines if "Kernel Name" in line)


def _is_header(line: str) -> bool:
    if "Kernel Name" not in line or ("," not in line and ";" not in line):
        return False
    names = set(texts.cells(line, texts.delimiter_of(line)))
    return "Kernel Name" in names and (set(LONG) <= names or bool(names & set(DURATIONS)))


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """Text columns, one row a kernel: the metrics beside it, and the unit of its duration."""
    source.notes.append(CLOCKS)
    before = len(source.notes)
    rest: pd.DataFrame | None = None
    for frame in texts.frames(
        source, _is_header, is_row=lambda line: not line.startswith("=="), as_text=True
    ):
        if set(LONG) <= set(frame):
            frame = frame if rest is None else _under(rest, frame)
            whole, rest = _split(frame)
            if len(whole):
                yield _wide(whole)
        else:
            yield _with_units(frame)
    if rest is not None and len(rest):
        yield _wide(rest)
    del source.notes[before:]


def _under(a: "pd.DataFrame", b: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    return pd.concat([a, b], ignore_index=True)


def _launch(frame: "pd.DataFrame") -> list[str]:
    return [c for c in ("Process ID", "ID", "Kernel Name") if c in frame]


def _split(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """All but the last launch, whose metrics may go on in the next piece."""
    names = _launch(frame)
    last = (frame[names] == frame[names].iloc[-1]).all(axis=1).to_numpy()
    return frame.loc[~last], frame.loc[last]


def _wide(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A row a launch, in order; of a metric that comes twice, the first value."""
    names = _launch(frame)
    number = frame.groupby(names, sort=False).ngroup()
    about = frame.assign(number=number).drop_duplicates("number").set_index("number")
    about = about.drop(columns=[*LONG, *(c for c in ("Metric Unit", "Section Name") if c in about)])
    asked = frame["Metric Name"].isin([*DURATIONS, *KEPT])
    told = frame.assign(number=number).loc[asked].drop_duplicates(["number", "Metric Name"])
    wide = about.join(told.pivot(index="number", columns="Metric Name", values=LONG[1]))
    duration = told.loc[told["Metric Name"].isin(DURATIONS)].drop_duplicates("number")
    if "Metric Unit" in told:
        wide[_UNITS] = duration.set_index("number")["Metric Unit"]
    return wide.reset_index(drop=True)


def _with_units(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Without the line of units, whose place is its own column."""
    name = next(c for c in DURATIONS if c in frame)
    unit = str(frame[name].iloc[0]).strip()
    if unit.lower() in values.US_PER:
        frame = frame.iloc[1:].reset_index(drop=True)
        return frame.assign(**{_UNITS: unit})
    return frame.assign(**{_UNITS: ""})


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Durations in µs by the unit given (ns where none is); a kernel whose name does not speak
    of a matrix product, and has no tile, is `not_gemm`."""
    name = theirs["Kernel Name"].astype(object)
    found = kernel_names.columns(name)
    column = next((c for c in DURATIONS if c in theirs), None)
    absent = values.everywhere(theirs, None)
    text = theirs[column] if column else absent
    metrics = [theirs[c].head(HEAD) for c in theirs if c not in _TEXTS]
    mark = values.decimal_mark(str(v) for metric in metrics for v in metric)
    unit = theirs.get(_UNITS, absent)
    scale = unit.map(lambda u: values.US_PER.get(str(u).strip().lower()))
    scale = scale.astype("float64").fillna(values.US_PER["ns"])
    found["time_us_measured"] = values.times_us(text, 1.0, mark) * scale
    tile = found.get("block_m", absent).notna()
    gemm = tile | name.str.contains("gemm|matmul|nvjet|_mm", case=False, na=False)
    kept = {new: values.numbers(theirs[c], mark) for c, new in KEPT.items() if c in theirs}
    return {
        **found,
        "status": gemm.map({True: "ok", False: "not_gemm"}),
        "kernel": name,
        **({"device": theirs["Device"]} if "Device" in theirs else {}),
        **kept,
    }


_TEXTS = {"Kernel Name", "Process Name", "Host Name", "Section Name", "Kernel Time", "Device",
          "Block Size", "Grid Size", _UNITS, texts.MALFORMED}  # fmt: skip
