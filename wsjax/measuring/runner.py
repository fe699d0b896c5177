"""Measure rows on an engine, one after the other, into a CSV file that outlives any crash.

The rows come in random order, with some of them twice: what two measurements of one kernel differ
by is the noise. Each is appended and synced as it ends, so that a run that was killed goes on with
the rows that the file lacks. `run` is 1, and 2 where a row repeats another; a fit leaves those out.
"""

import csv
import fcntl
import io
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsjax import importers, schema, tables
from wsjax.errors import InputError
from wsjax.hardware import Hardware, load_hardware, resolve
from wsjax.importers import TIME
from wsjax.measuring.worker import Worker
from wsjax.schema import COLUMNS, KERNEL, Configuration

if TYPE_CHECKING:
    import pandas as pd

ENGINES = {
    "gluon": "wsjax.measuring.gluon:Engine",
    "triton": "wsjax.measuring.triton_gemm:Engine",
    "cutlass_profiler": "wsjax.measuring.cutlass_profiler:Engine",
}
RESULTS = (TIME, f"{TIME}_p10", f"{TIME}_p90", "reps", "status", "source", "run")
RESULTS += ("rel_err", "sm_ghz_measured", "error")
HEADER = (*COLUMNS, *RESULTS)
COMPILERS = 12
"""Processes that compile ahead, at most."""


@dataclass(frozen=True)
class Measured:
    """What a run did. facts: the engine's of its device. rows: of the whole file, `statuses` by
    status; `resumed`: those that it had before. noise: the median relative difference of rows
    measured twice, NaN without any. clock_ghz: the highest measured, NaN without any. kernel_s:
    what kernels ran, repetitions and all."""

    facts: dict[str, Any]
    rows: int
    resumed: int
    statuses: dict[str, int]
    noise: float
    clock_ghz: float
    kernel_s: float
    seconds: float


def measure(
    rows: "str | Path | pd.DataFrame",
    out: str | Path,
    *,
    engine: str = "gluon",
    profiler: str | Path | None = None,
    hardware: str | Path = "h200",
    timeout_s: float = 60.0,
    repeats: float = 0.05,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Measure kernels on the GPU at hand, and append the results to a CSV file.

    rows: a table with configuration columns, such as a plan's. engine: one of `ENGINES`, or
    `module:Class`; profiler: the binary of engine cutlass_profiler. hardware: the machine whose
    defaults fill what the rows leave open. timeout_s: for each row; a kernel that takes longer gets
    the status `timeout`. repeats: the share of rows that are measured twice. A file that exists is
    continued.

    Raises InputError for rows that cannot be read, a file that is no such table, or no GPU.
    """
    began = time.perf_counter()
    out = Path(out)
    if out.suffix != ".csv":
        raise InputError(f"{out}: rows are appended one by one, so the name ends in .csv")
    tables.check_place(out)
    if not 0 <= repeats <= 1:
        raise InputError(f"--repeats {repeats:g}: give a share from 0 to 1, such as 0.05")
    path = [ENGINES.get(engine, engine)]
    if ":" not in path[0]:
        raise InputError(f"--engine {engine}: valid: {', '.join(ENGINES)}, or module:Class")
    if engine == "cutlass_profiler":
        path += [str(profiler or engine), str(hardware)]
    texts = row_texts(read_rows(rows, load_hardware(hardware)))
    with closing(Worker(path, timeout_s)) as worker, _appending(out) as (file, done):
        facts = worker.facts()
        source = f"{engine} on {facts['device']}"
        others = {row["source"] for row in done} - {source}
        if others:
            raise InputError(f"{out}: holds rows of {', '.join(others)}; choose another --out")
        finished = {(*(row[name] for name in COLUMNS), row["run"]) for row in done}
        queue = [
            key for key in _queue(texts, repeats, seed) if tuple(map(str, key)) not in finished
        ]
        total = len(done) + len(queue)
        _compile_ahead(path, queue, timeout_s)
        for position, key in enumerate(queue, len(done)):
            progress(position, total)
            row = dict(zip((*COLUMNS, "run"), key, strict=True))
            found = {**row, **worker.run(row), "source": source}
            file.write(_line([found.get(name, "") for name in HEADER]))
            file.flush()
            os.fsync(file.fileno())
            done.append({name: str(found.get(name, "")) for name in HEADER})
        progress(total, total)
    return Measured(
        facts=facts,
        rows=len(done),
        resumed=len(done) - len(queue),
        statuses=dict(Counter(row["status"] for row in done).most_common()),
        noise=_noise(done),
        clock_ghz=max(
            (float(row["sm_ghz_measured"]) for row in done if row["sm_ghz_measured"]),
            default=float("nan"),
        ),
        kernel_s=sum(float(row[TIME]) * float(row["reps"]) for row in done if row[TIME]) * 1e-6,
        seconds=time.perf_counter() - began,
    )


def read_rows(rows: "str | Path | pd.DataFrame", machine: Hardware) -> Configuration:
    """The configurations of a table's rows, each once."""
    import pandas as pd

    if isinstance(rows, pd.DataFrame):
        frame: Any = rows
    else:
        found = importers.read_own(rows, {}, measured=True)
        frame = found.to_pandas() if tables.is_arrow(found) else found
    given = {name: frame[name] for name in COLUMNS if name in frame}
    read = schema.read_rows(given, len(frame), list(given))
    full = resolve(read.columns, machine)
    table = np.stack([np.broadcast_to(x, len(frame)) for x in full], axis=1)
    first = np.sort(np.unique(table, axis=0, return_index=True)[1])
    return Configuration(*table[first].T)


def row_texts(c: Configuration) -> list[tuple[Any, ...]]:
    """Rows with words for codes."""
    columns = schema.spelled(c._asdict()).values()
    return list(zip(*(np.asarray(values).tolist() for values in columns), strict=True))


def _queue(rows: Sequence[tuple[Any, ...]], repeats: float, seed: int) -> list[tuple[Any, ...]]:
    """Rows in random order, each with its `run`."""
    chooser = np.random.default_rng(seed)
    count = round(repeats * len(rows))
    positions = np.concatenate([np.arange(len(rows)), chooser.permutation(len(rows))[:count]])
    seen: Counter[int] = Counter()
    queue = []
    for position in chooser.permutation(positions).tolist():
        seen[position] += 1
        queue.append((*rows[position], seen[position]))
    return queue


@contextmanager
def _appending(path: Path) -> Iterator[tuple[Any, list[dict[str, str]]]]:
    """The file, locked, at the end of its last whole line; and the rows that it has."""
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{path}: another `wsjax measure` writes it; wait for it") from None
        file.seek(0)
        text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        header = _line(HEADER)
        if whole and not whole.startswith(header):
            raise InputError(f"{path}: no table that `wsjax measure` wrote; choose another --out")
        if len(whole) < len(text) and not header.startswith(text) and not whole:
            raise InputError(f"{path}: no table that `wsjax measure` wrote; choose another --out")
        file.truncate(len(whole))
        if not whole:
            file.write(header)
            file.flush()
        yield file, list(csv.DictReader(io.StringIO(whole.decode())))


def _line(cells: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        [cell.replace("\n", " ") if isinstance(cell, str) else cell for cell in cells]
    )
    return text.getvalue().encode()


def _compile_ahead(
    engine: Sequence[str], queue: Sequence[tuple[Any, ...]], timeout_s: float
) -> None:
    """Fill the compiler's cache from several processes. What fails will do so again in its row."""
    kernels: dict[tuple[Any, ...], dict[str, Any]] = {}
    for key in queue:
        row = dict(zip((*COLUMNS, "run"), key, strict=True))
        kernels.setdefault(tuple(row[name] for name in (*KERNEL, "layout", "dtype_in")), row)
    processes = min(COMPILERS, (os.cpu_count() or 2) - 2, len(kernels) // 4)
    if processes < 2:
        return
    shares = [list(kernels.values())[start::processes] for start in range(processes)]

    stopped = threading.Event()

    def compile_all(share: Sequence[dict[str, Any]]) -> None:
        with closing(Worker(engine, timeout_s)) as worker:
            for row in share:
                if not stopped.is_set():
                    worker.run(row, only_compile=True)

    with ThreadPoolExecutor(processes) as pool:
        try:
            list(pool.map(compile_all, shares))
        finally:
            stopped.set()


def _noise(done: Sequence[dict[str, str]]) -> float:
    times: dict[tuple[str, ...], list[float]] = {}
    for row in done:
        if row["status"] == "ok":
            times.setdefault(tuple(row[n] for n in COLUMNS), []).append(float(row[TIME]))
    pairs = [pair for pair in times.values() if len(pair) == 2]
    return float(np.median([abs(np.log(b / a)) for a, b in pairs])) if pairs else float("nan")
