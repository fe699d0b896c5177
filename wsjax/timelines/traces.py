"""Traced kernels: when the loads and computes of a CTA really started and ended.

A traced table has a row an event, with the columns of `COLUMNS`: `config_id` names the kernel, m,
n, k and group_m the problem, `cta` the CTA; `role` is dma0, dma1 (a DMA warp), math0 or math1 (a
group of MATH warps); `wave` counts the CTA's output tiles and `kstep` their steps, both from 0;
`slot` is the ring slot; `t_ns` the nanoseconds since the CTA began. The events of a step:

    slot_wait_start   a DMA warp comes to the step, and waits for its slot
    slot_empty        the slot is free
    load_issued       the load is under way
    data_wait_start   MATH comes to the step, and waits for its data
    data_ready_math_start   the data is there; MATH issues the step's MMA
    math_end          MATH has retired the step's MMA and freed its slot

and those of an output tile: writeback_start, writeback_issued.

The name of a traced kernel says its configuration, as the Gluon kernels of the measured H200 table
are called: `m128n128k64s4d1w8pe0` has tile 128x128x64, 4 stages, 1 DMA warp and 8 MATH warps;
`p`: ping-pong, each of two groups with so many warps; `e0` stores C by TMA, `e1` directly. What
follows is free. Whether one MMA stays in flight is seen in the trace itself.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.importers import MALFORMED, TRACED, column_names, open_source, pieces
from wsjax.schema import COLUMNS as CONFIGURATION
from wsjax.schema import WRITES

KERNEL = ("config_id", "m", "n", "k", "group_m", "cta")
COLUMNS = (*KERNEL, "role", "wave", "kstep", "slot", "event", "t_ns")
DMA = ("slot_wait_start", "slot_empty", "load_issued")
MATH = ("data_wait_start", "data_ready_math_start", "math_end")
TILE = ("writeback_start", "writeback_issued")
DMA_ROLES, MATH_ROLES = ("dma0", "dma1"), ("math0", "math1")
WORDS = {"role": (*DMA_ROLES, *MATH_ROLES), "event": (*DMA, *MATH, *TILE)}
NUMBERS = (*KERNEL[1:], "wave", "kstep", "slot", "t_ns")
NAME = re.compile(r"m(\d+)n(\d+)k(\d+)s(\d+)d(\d)w(\d+)(p?)e([01])")
"""What a kernel's name says: block_m, n, k, stages, DMA and MATH warps, ping-pong, store."""


class Trace(NamedTuple):
    """One traced CTA, times in µs since it began.

    kernel: the values of `KERNEL`. k_tiles: steps an output tile. stages: slots that were used.
    events: by name, of each step in order (those of `DMA`: a row a DMA warp), or of each output
    tile. Steps that the trace does not hold whole, at its end, are left out.
    """

    kernel: tuple
    k_tiles: int
    stages: int
    dma_warps: int
    math_groups: int
    events: dict[str, np.ndarray]

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.events["math_end"])

    @property
    def in_tile(self) -> np.ndarray:
        """The place of each step in its output tile, from 0."""
        return np.arange(self.steps) % self.k_tiles

    @property
    def mma_in_flight(self) -> int:
        """1 if MATH comes to the next step before it has retired one, as a rule, else 0."""
        early = self.events["data_wait_start"][1:] < self.events["math_end"][:-1]
        inside = self.in_tile[1:] > 0
        return int(self.stages > 1 and inside.any() and np.mean(early[inside]) > 0.5)


def read(path: str | Path) -> list[Trace]:
    """The CTAs of a traced table: CSV or Parquet, by its content.

    Raises InputError for a file that is none, with what is wrong in which column or CTA.
    """
    columns = _columns(path)
    names = [columns[name] for name in KERNEL]
    codes = [np.unique(values, return_inverse=True)[1] for values in names]
    _, firsts, ctas = np.unique(codes, axis=1, return_index=True, return_inverse=True)
    found, problems = [], []
    for code in np.argsort(firsts):
        rows = np.flatnonzero(ctas == code)
        kernel = (str(names[0][rows[0]]), *(int(values[rows[0]]) for values in names[1:]))
        trace = _trace(kernel, {name: values[rows] for name, values in columns.items()})
        if isinstance(trace, Trace):
            found.append(trace)
        else:
            label = " ".join(f"{name} {value}" for name, value in zip(KERNEL, kernel, strict=True))
            problems.append(f"{path}: {label}: {trace}")
    if problems:
        raise InputError(problems)
    return found


def configuration(trace: Trace) -> dict[str, int]:
    """The configuration columns that a trace's kernel and problem say, as numbers.

    Raises InputError for a kernel's name that does not say them.
    """
    name, m, n, k, group_m, _ = trace.kernel
    match = NAME.match(name)
    if not match:
        raise InputError(
            f"traced kernel '{name}': its name does not say its tile; call it like "
            "m128n128k64s4d1w8e0: block_m, block_n, block_k, stages, DMA and MATH warps, store"
        )
    block_m, block_n, block_k, stages, dma_warps, warps = map(int, match.groups()[:6])
    pingpong = bool(match[7])
    words = {
        "layout": "nn",
        "schedule": "pingpong" if pingpong else "persistent",
        "write_back": WRITES[int(match[8])],
    }
    numbers = {
        "m": m,
        "n": n,
        "k": k,
        "block_m": block_m,
        "block_n": block_n,
        "block_k": block_k,
        "stages": stages,
        "dma_warps": dma_warps,
        "math_warps": warps * (2 if pingpong else 1),
        "mma_in_flight": trace.mma_in_flight,
        "group_m": max(group_m, 1),
    }
    return numbers | {name: CONFIGURATION[name].choices.index(word) for name, word in words.items()}


def _columns(path: str | Path) -> dict[str, np.ndarray]:
    """The columns of a file, checked: words as objects, numbers as floats."""
    import pandas as pd

    source = open_source(path)
    names = column_names(source)
    problems = [
        f"column '{name}' is missing{nearest(name, names)}" for name in COLUMNS if name not in names
    ]
    if not TRACED & set(names):
        words = ", ".join(sorted(TRACED))
        mend = "to `wsjax validate` give tables without --trace"
        problems = [f"holds no traced events (columns {words}); {mend}"]
    parts = [] if problems else list(pieces(source))
    if not problems and not sum(map(len, parts)):
        problems.append("has no rows below its header; write some")
    if problems:
        raise InputError(f"{path}: {problem}" for problem in problems)
    table = pd.concat(parts, ignore_index=True)
    if MALFORMED in table and (ragged := int(np.asarray(table[MALFORMED], bool).sum())):
        problems.append(f"{ragged:,} rows have not as many values as the header; copy it again")
    columns = {name: np.asarray(table[name], object) for name in COLUMNS}
    for name, known in WORDS.items():
        wrong = ~np.isin(columns[name].astype(str), known)
        hint = "" if not wrong.any() else nearest(columns[name][wrong][0], known)
        problems += _complaint(name, columns[name], wrong, f"are unknown words{hint}")
    of_tile = np.isin(columns["event"].astype(str), TILE)
    for name in NUMBERS:
        given = columns[name]
        values = np.asarray(pd.to_numeric(pd.Series(given), errors="coerce"), float)
        columns[name] = values
        if name == "t_ns":
            problems += _complaint(name, given, ~np.isfinite(values), "are no times")
            continue
        right = (values >= 0) & (values < 2**53) & (values % 1 == 0)
        if name in ("kstep", "slot"):
            right |= of_tile
        problems += _complaint(name, given, ~right, "are no whole numbers from 0")
    if problems:
        raise InputError(f"{path}: {problem}" for problem in problems)
    return columns


def _complaint(name: str, values: np.ndarray, wrong: np.ndarray, what: str) -> list[str]:
    """A message for the values of a column that are wrong, none if there are none."""
    if not wrong.any():
        return []
    return [f"column '{name}': {int(wrong.sum()):,} values, first '{values[wrong][0]}', {what}"]


def _trace(kernel: tuple, rows: dict[str, np.ndarray]) -> Trace | str:
    """One CTA; what is wrong with it if it cannot be read."""
    wave, role, event, time = rows["wave"].astype(int), rows["role"], rows["event"], rows["t_ns"]
    stores = np.isin(event.astype(str), TILE)
    step = np.where(stores, 0, rows["kstep"]).astype(int)
    absent = sorted({*DMA, *MATH} - set(event))
    if absent:
        return f"no event {', '.join(absent)}; trace them too"
    keys = list(zip(role, event, wave, step, strict=True))
    if repeated := len(keys) - len(set(keys)):
        return f"{repeated:,} events are there twice; keep one run of a kernel a file"
    k_tiles = int(step.max()) + 1
    tiles, traced = int(wave.max()) + 1, int(wave[~stores].max()) + 1
    if traced * k_tiles > len(keys) or tiles > len(keys):
        return f"most of its {traced} x {k_tiles} steps are missing; trace them all"

    def column(chosen: np.ndarray, at: np.ndarray, length: int) -> np.ndarray:
        values = np.full(length, np.nan)
        values[at[chosen]] = time[chosen] / 1000
        return values

    def of_steps(name: str, roles: tuple[str, ...]) -> np.ndarray:
        at, length = wave * k_tiles + step, traced * k_tiles
        present = [word for word in roles if word in role]
        return np.stack([column((role == w) & (event == name), at, length) for w in present])

    loads = {name: of_steps(name, DMA_ROLES) for name in DMA}
    computes = {name: np.fmax.reduce(of_steps(name, MATH_ROLES)) for name in MATH}
    whole = np.asarray(np.isfinite(np.vstack([*loads.values(), *computes.values()])).all(axis=0))
    count = len(whole) if whole.all() else int(np.argmin(whole))
    if not count:
        return "its first step is not whole; trace from the start"
    events = {name: values[..., :count] for name, values in (loads | computes).items()}
    return Trace(
        kernel=kernel,
        k_tiles=k_tiles,
        stages=int(rows["slot"][~stores].max()) + 1,
        dma_warps=loads[DMA[0]].shape[0],
        math_groups=sum(word in role for word in MATH_ROLES),
        events=events | {name: column(event == name, wave, tiles) for name in TILE},
    )
