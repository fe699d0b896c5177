"""Measured tables as calibration and validation take them: configurations, times, problems."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import importers, schema
from wsjax.errors import InputError, gather
from wsjax.schema import COLUMNS, DTYPES, GEMM, Configuration, Facts

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("group", "kernel", "l2_state", "source")
Z90 = 1.2816
"""The standard normal distribution's 90th percentile: p90 - p10 spans twice this."""


@dataclass(frozen=True)
class Measured:
    """The rows that count, in the order of their tables.

    configurations: full columns of numbers. time_us: measured. noise: the standard deviation of
    the logarithm of a single measurement, from p10 and p90; 0 where they are not given. problem: a
    code for (m, n, k, batch, dtypes, layout, l2_state). share: a fixed number of [0, 1) for each
    (m, n, k, batch, dtypes, layout), to split by. labels: texts of the table (`LABELS`). excluded:
    rows left out, by reason. table: the names of the tables.
    """

    configurations: Configuration
    time_us: np.ndarray
    noise: np.ndarray
    problem: np.ndarray
    share: np.ndarray
    labels: dict[str, np.ndarray]
    excluded: dict[str, int]
    table: str

    def __len__(self) -> int:
        return len(self.time_us)

    def take(self, rows: np.ndarray) -> "Measured":
        """Only these rows (a mask or positions)."""
        return replace(
            self,
            configurations=Configuration(*(x[rows] for x in self.configurations)),
            time_us=self.time_us[rows],
            noise=self.noise[rows],
            problem=self.problem[rows],
            share=self.share[rows],
            labels={name: words[rows] for name, words in self.labels.items()},
        )


def read(
    sources: Any,
    facts: Facts,
    *,
    repeats: bool = False,
    seed: int = 0,
    usual: Mapping[str, int] | None = None,
) -> Measured:
    """One or more measured tables: paths of any format of `wsjax.importers`, or DataFrames.

    repeats: keep rows that repeat others (whose status is ok). seed: of `share`. usual: defaults of
    columns that a table leaves out, in place of the schema's.

    Raises InputError if a table cannot be read, or if no row of all has a measured time.
    """
    import pandas as pd

    if isinstance(sources, str | Path | pd.DataFrame):
        sources = [sources]
    kinds = [type(x).__name__ for x in sources] if isinstance(sources, list | tuple) else []
    if not kinds or not all(isinstance(x, str | Path | pd.DataFrame) for x in sources):
        what = ", ".join(kinds) if kinds else f"{type(sources).__name__} {sources!r}"[:80]
        raise InputError(f"table: expected files' paths and DataFrames, not {what}")
    pieces = gather(*(partial(_table, source, usual or {}) for source in sources))
    names = [
        "frame" if isinstance(source, pd.DataFrame) else Path(source).name for source in sources
    ]
    table = pieces[0] if len(pieces) == 1 else importers.joined(pieces)
    return _measured(table, ", ".join(names), facts, repeats=repeats, seed=seed)


def _table(source: Any, usual: Mapping[str, int]) -> "pd.DataFrame":
    """One file or frame, in the columns of `importers.read`."""
    import pandas as pd

    try:
        if isinstance(source, pd.DataFrame):
            return importers.read_frame(source, usual)
        return importers.read(source, usual=usual).table
    except InputError as error:
        told = "say which it is"
        mend = f"{told} to `wsjax import`, and give its output here"
        raise InputError([text.replace(told, mend) for text in error.problems]) from None


def _measured(
    table: "pd.DataFrame", name: str, facts: Facts, *, repeats: bool, seed: int
) -> Measured:
    reasons = table["status" if repeats else "excluded"].astype(object).replace("ok", "").to_numpy()
    kept = table.loc[reasons == ""].reset_index(drop=True)
    excluded = dict(Counter(reasons[reasons != ""].tolist()).most_common())
    if kept.empty:
        why = excluded_text(excluded) or "no rows at all"
        mend = "; `wsjax import` says more, and takes --map" if excluded else "; give it some"
        raise InputError(f"{name}: no row has a measured time that counts ({why}){mend}")
    given = {str(column): values for column, values in kept.items() if column in COLUMNS}
    rows = schema.read_rows(given, len(kept), list(given))
    resolved = schema.resolve(rows.columns, facts)
    full = Configuration(*(np.broadcast_to(x, (len(kept),)).copy() for x in resolved))
    labels = {
        label: np.asarray(["" if word != word else str(word) for word in kept[label]], object)
        for label in LABELS
        if label in kept
    }
    problem = np.stack([getattr(full, column) for column in GEMM], axis=1)
    state = np.unique(labels.get("l2_state", np.zeros(len(kept), int)), return_inverse=True)[1]
    keyed = np.column_stack([problem, state])
    unique, codes = np.unique(problem, axis=0, return_inverse=True)
    return Measured(
        configurations=full,
        time_us=kept["time_us_measured"].to_numpy(float),
        noise=_noise(kept),
        problem=np.unique(keyed, axis=0, return_inverse=True)[1],
        share=_shares(unique, seed)[codes],
        labels=labels,
        excluded=excluded,
        table=name,
    )


def _noise(table: "pd.DataFrame") -> np.ndarray:
    low, high = (table[f"time_us_measured_{p}"].to_numpy(float) for p in ("p10", "p90"))
    good = np.isfinite(low) & np.isfinite(high) & (low > 0) & (high >= low)
    ratio = np.where(good, high, 1.0) / np.where(good, low, 1.0)
    return np.log(ratio) / (2 * Z90)


def _shares(problems: np.ndarray, seed: int) -> np.ndarray:
    """A number of [0, 1) for each problem that depends on nothing else (and the seed)."""
    digests = [hashlib.sha256(f"{seed}:{p.tolist()}".encode()).digest() for p in problems]
    return np.asarray([int.from_bytes(digest[:6], "big") / 2**48 for digest in digests])


def sample(rows: Measured, count: int, seed: int) -> Measured:
    """At most `count` rows, the same number of each problem as far as it has them."""
    if len(rows) <= count:
        return rows
    draw = np.random.default_rng(seed)
    shuffled = draw.permutation(len(rows))
    order = shuffled[np.argsort(rows.problem[shuffled], kind="stable")]
    problem = rows.problem[order]
    first = np.searchsorted(problem, problem)
    rank = np.arange(len(order)) - first
    chosen = order[np.lexsort((draw.random(len(rank)), rank))[:count]]
    return rows.take(np.sort(chosen))


def fingerprint(measured: Measured) -> str:
    """sha256 of the rows, whatever their order: configurations and times."""
    table = np.stack(
        [*(x.astype(float) for x in measured.configurations), measured.time_us], axis=1
    )
    ordered = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(np.ascontiguousarray(ordered).tobytes()).hexdigest()


def span(measured: Measured) -> dict[str, list[Any]]:
    """What each configuration column holds: [least, greatest], or its words."""
    found: dict[str, list[Any]] = {}
    for (name, column), values in zip(COLUMNS.items(), measured.configurations, strict=True):
        if column.choices:
            found[name] = [column.choices[code] for code in np.unique(values)]
        else:
            found[name] = [int(values.min()), int(values.max())]
    return found


def tensor_core_note(c: Configuration) -> str:
    """A warning of rows that are multiplied outside the tensor cores, "" if there are none: the
    model knows a rate for them, and otherwise a kernel of tensor cores."""
    count = int(np.count_nonzero(c.dtype_in == DTYPES.index("fp32")))
    if not count:
        return ""
    return (
        f"warning: {count:,} of {len(c.m):,} rows are fp32, which is multiplied outside the tensor "
        "cores (SIMT): the model has no terms for such kernels but their peak rate, so times can "
        "be far off; if they run as TF32, say so: `wsjax import --map dtype_in=tf32`"
    )


def excluded_text(excluded: Mapping[str, int]) -> str:
    """The counts as words, with what reasons mean."""
    here = (
        "a cluster or a divided tile that the machine or the schedule can't have, sums in 16 bits, "
        "or no rate for a dtype"
    )
    meant = importers.REASONS | {"not_modelled": here}
    return "; ".join(
        f"{count:,} {reason}{f': {meant[reason]}' if reason in meant else ''}"
        for reason, count in excluded.items()
    )
