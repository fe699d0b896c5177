"""AutoHeuristic's log: a line of JSON about the machine, then CSV with one choice a row.

Columns m, k, n; the tile is packed into the choice; feedback is the time in ms.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from wsjax.errors import InputError
from wsjax.importers import texts, values
from wsjax.importers.formats import triton
from wsjax.importers.source import Source

if TYPE_CHECKING:
    import pandas as pd

_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)=([^_]+)")
WORDS = {"numstages": "num_stages", "numwarps": "num_warps"}
_ABOUT_LINE = "lines before the header, which are no rows: 1"
NEEDS = ("choice", "feedback")
INDUCTOR_GROUP = 8
"""TorchInductor's template for mm: GROUP_M."""
_CONTIGUOUS = ("mat1_iscontig", "mat2_iscontig")


def recognises(source: Source) -> bool:
    """Whether a header names a choice and its feedback."""
    lines = [line for line in source.head_lines[:50] if "feedback" in line]
    return any(_is_header(line) for line in lines)


def _is_header(line: str) -> bool:
    return {"choice", "feedback"} <= set(texts.cells(line)) if "," in line else False


def pieces(source: Source) -> Iterator["pd.DataFrame"]:
    """The choices, with the settings that their texts hold."""
    first = source.first_line()
    if first.lstrip().startswith("{"):
        try:
            json.loads(first)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{source.path}:1: the line about the machine is broken JSON: {error.msg}; "
                "mend or delete it"
            ) from None
    for frame in texts.frames(source, _is_header, is_row=lambda line: "," in line):
        yield frame.join(_settings(list(frame["choice"])))
    source.notes[:] = [n for n in source.notes if n != _ABOUT_LINE]


def _settings(choices: list[object]) -> "pd.DataFrame":
    """`type=triton_BLOCK-M=16_…_numstages=3_numwarps=2` as columns BLOCK_M, …, num_warps."""
    import pandas as pd

    codes, found = pd.factorize(np.asarray(choices, dtype=object))
    rows = []
    for choice in found:
        told = dict(_SETTING.findall(str(choice)))
        told.pop("type", None)
        rows.append({WORDS.get(k, k.replace("-", "_")): v for k, v in told.items()})
    table = pd.DataFrame([*rows, {}]).iloc[codes].reset_index(drop=True)
    return table[[c for c in table.columns if c in _KNOWN]]


_KNOWN = {name for names in triton.SETTINGS.values() for name in names}


def translate(theirs: Mapping[str, "pd.Series"]) -> Mapping[str, "pd.Series"]:
    """Rows whose choice is a library's kernel (`extern_mm`) have no tile. float32 is tf32 where
    the log says that it was used; the log's types are of A and B, the output's is A's."""
    found = triton.of_triton(theirs)
    found.setdefault("group_m", values.everywhere(theirs, INDUCTOR_GROUP))
    found |= {c: theirs[c] for c in "mnk" if c in theirs}
    if "mat1_dtype" in theirs:
        types = [
            theirs[f"mat{i}_dtype"].map(values.dtype, na_action="ignore")
            for i in (1, 2)
            if f"mat{i}_dtype" in theirs
        ]
        word = types[0].astype(object)
        if "using_tf32" in theirs:
            tf32 = theirs["using_tf32"].astype(str).str.lower().isin(["true", "1", "1.0"])
            found["dtype_in"] = word.mask((word == "fp32") & tf32, "tf32")
        else:
            found["dtype_in"] = word
        found["dtype_in"] = found["dtype_in"].mask(types[0] != types[-1], "mixed")
        found["dtype_out"] = word
    if set(_CONTIGUOUS) <= set(theirs):
        a, b = (
            theirs[c].astype(str).str.lower().map({"true": "n", "false": "t"}) for c in _CONTIGUOUS
        )
        found["layout"] = a + b
    found["time_us_measured"] = values.times_us(theirs["feedback"], values.US_PER["ms"])
    return {
        **found,
        "status": triton.failed_if_infinite(theirs["feedback"]),
        "kernel": theirs["choice"],
    }
