"""CUTLASS's own kernels, timed by its profiler: command lines, and what they report.

The profiler picks the kernels that match a pattern of names (`wsjax.portfolio.cutlass_patterns`),
fills L2 with other operands between runs, and writes a CSV that `wsjax.importers` knows.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wsjax import importers
from wsjax.hardware import Hardware, load_hardware
from wsjax.importers import TIME
from wsjax.measuring.runner import read_rows, row_texts
from wsjax.measuring.worker import UnavailableError, UnsupportedError
from wsjax.schema import COLUMNS

PROFILER = "cutlass_profiler"
RUNS, WARM_UPS = 50, 5


def command(row: Mapping[str, Any], machine: Hardware, profiler: str, output: str) -> list[str]:
    """What times a row's kernel and appends the result to `output`.gemm.csv."""
    from wsjax import portfolio

    patterns = portfolio.cutlass_patterns(row, machine.facts)
    if not patterns:
        raise UnsupportedError("CUTLASS has no such kernel")
    sizes = {axis: row[axis] for axis in "mnk"} | {"batch_count": row["batch"]}
    given = {"operation": "Gemm", "providers": "cutlass", "kernels": ",".join(patterns), **sizes}
    given |= {"profiling-iterations": RUNS, "warmup-iterations": WARM_UPS}
    given |= {"output": output, "append": "true"}
    return [profiler, *(f"--{name}={value}" for name, value in given.items())]


def profiler_commands(rows: Any, hardware: str | Path, output: str) -> tuple[list[str], int]:
    """A table's command lines, each once, and how many rows are no kernels of CUTLASS."""
    machine = load_hardware(hardware)
    found: list[str] = []
    missing = 0
    for texts in row_texts(read_rows(rows, machine)):
        try:
            line = command(dict(zip(COLUMNS, texts, strict=True)), machine, PROFILER, output)
        except UnsupportedError:
            missing += 1
        else:
            found.append(shlex.join(line))
    return list(dict.fromkeys(found)), missing


class Engine:
    """Runs a `cutlass_profiler` that the user has built."""

    name = PROFILER

    def __init__(self, profiler: str, hardware: str) -> None:
        self._profiler, self._machine = profiler, load_hardware(hardware)

    def facts(self) -> dict[str, Any]:
        """The device's name, as its driver says it."""
        asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        try:
            subprocess.run([self._profiler, "--help"], capture_output=True, check=True)
            said = subprocess.run(asked, capture_output=True, check=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise UnavailableError(str(error)) from None
        return {"device": said.splitlines()[0].strip()}

    def prepare(self, row: Mapping[str, Any]) -> Callable[[str], list[str]]:
        """The command that times the kernel into a file."""
        command(row, self._machine, self._profiler, "")
        return lambda output: command(row, self._machine, self._profiler, output)

    def measure(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The fastest of the kernels that match."""
        with tempfile.TemporaryDirectory() as folder:
            line = self.prepare(row)(str(Path(folder) / "found"))
            subprocess.run(line, capture_output=True, check=True)
            csv = Path(folder) / "found.gemm.csv"
            if not csv.exists():
                return {"status": "not_compiled", "error": f"no kernel matches {line[3]}"}
            table: Any = importers.read(csv).table
        ok = table[table["status"] == "ok"]
        if ok.empty:
            return {"status": str(table["status"].iloc[0])}
        return {"status": "ok", TIME: float(ok[TIME].min()), "reps": RUNS}
