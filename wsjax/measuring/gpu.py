"""Timing kernels on an NVIDIA GPU through PyTorch: operands, L2, events, correctness, clock.

Operands are random normal numbers. C is filled with NaN, computed once and compared with the
product in fp32. Then each of 15 to 60 runs is timed alone by two events; before a `cold` one
256 MiB are overwritten, before a `warm` one the kernel runs untimed. A spinning kernel in front
keeps the device busy until the host has queued the launch, so that no gap of the host's is timed.
Nothing is subtracted: an empty kernel reads some 3 us. The clock is the SMs' own cycles over time.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
import triton
import triton.language as tl

from wsjax.measuring.worker import UnavailableError, UnsupportedError

FLUSHED_BYTES = 2**28
SPIN_CYCLES_MIN, SPIN_LAUNCHES, CYCLES_PER_S = 100_000, 4, 2e9
"""The spinning kernel lasts as long as the host takes for so many launches."""
RUNS_US, RUNS_MIN, RUNS_MAX = 20_000, 15, 60
TOLERANCE = 4e-3
"""Of the relative error: rounding to bf16 gives 1.7e-3."""
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


Launch = Callable[[], Any]
"""Queues the kernel."""


@triton.jit  # pyright: ignore[reportAttributeAccessIssue]
def _clocks(out):
    """Each SM's cycle counter and the global timer (ns), at 2 i and 2 i + 1 of SM i."""
    sm = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], tl.int32, False, 1)
    cycles = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], tl.int64, False, 1)
    now = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, False, 1)
    tl.store(out + 2 * sm, cycles)
    tl.store(out + 2 * sm + 1, now)


class GpuEngine:
    """What the engines share; each `prepare`s its kernel."""

    name: ClassVar[str]

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise UnavailableError("no NVIDIA GPU that PyTorch can use")
        properties = torch.cuda.get_device_properties(0)
        self.capability = (properties.major, properties.minor)
        self.sms = properties.multi_processor_count
        self._flushed = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device="cuda")
        self._problem: tuple[Any, ...] = ()
        self._operands: tuple[Any, ...] = ()

    def facts(self) -> dict[str, Any]:
        """The device, as a hardware file says it."""
        properties = torch.cuda.get_device_properties(0)
        return {
            "device": properties.name,
            "sms": self.sms,
            "smem_bytes_per_sm": properties.shared_memory_per_block_optin,
            "l2_bytes": properties.L2_cache_size,
            "cuda": torch.version.cuda,
            "triton": triton.__version__,  # pyright: ignore[reportAttributeAccessIssue]
        }

    def prepare(self, row: Mapping[str, Any]) -> Callable[..., Launch]:
        """A row's compiled kernel, to be bound to A, B and C."""
        raise NotImplementedError

    def check_plain(self, row: Mapping[str, Any]) -> None:
        """Raise UnsupportedError for what neither kernel does."""
        if row["batch"] * row["cluster_m"] * row["cluster_n"] * row["split_k"] > 1:
            raise UnsupportedError("batch, clusters and split-K are not written")
        if row["accum"] != "f32" or row["scheduler"] not in ("persistent", "none"):
            raise UnsupportedError("sums are kept in f32, and output tiles are not divided")

    def check_fits(self, compiled: Any) -> None:
        """Raise UnsupportedError if a compiled kernel's shared memory does not fit."""
        need, most = compiled.metadata.shared, self.facts()["smem_bytes_per_sm"]
        if need > most:
            raise UnsupportedError(f"{need:,} bytes of shared memory; {most:,} fit")

    def measure(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The times of one row, or that its result is wrong."""
        bind = self.prepare(row)
        a, b, expected = self._inputs(row)
        c = self.blank(row, row["m"], row["n"]).fill_(float("nan"))
        run = bind(a, b, c)
        run()
        difference = torch.linalg.vector_norm(c.float() - expected)
        error = float(difference / torch.linalg.vector_norm(expected))
        if not error <= TOLERANCE:
            return {"status": "incorrect", "rel_err": error}
        before = run if row["l2_state"] == "warm" else self._flushed.zero_
        began = time.perf_counter()
        run()
        spin = int(
            max(SPIN_LAUNCHES * (time.perf_counter() - began) * CYCLES_PER_S, SPIN_CYCLES_MIN)
        )
        first = self._times(run, before, 2, spin)[1]
        runs = int(np.clip(RUNS_US / first, RUNS_MIN, RUNS_MAX))
        start = self._clock()
        times = self._times(run, before, runs, spin)
        cycles, elapsed = np.median(self._clock() - start, axis=0)
        low, median, high = np.percentile(times, [10, 50, 90])
        return {
            "status": "ok",
            "time_us_measured": round(float(median), 4),
            "time_us_measured_p10": round(float(low), 4),
            "time_us_measured_p90": round(float(high), 4),
            "reps": runs,
            "rel_err": error,
            "sm_ghz_measured": round(float(cycles / elapsed), 4),
        }

    def _times(self, run: Launch, before: Launch, runs: int, spin_cycles: int) -> np.ndarray:
        """Each run's time in µs."""
        events = []
        for _ in range(runs):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before()
            torch.cuda._sleep(spin_cycles)
            start.record()
            run()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize()
        return np.asarray([start.elapsed_time(end) * 1e3 for start, end in events])

    def _clock(self) -> np.ndarray:
        """[SM, (cycles, ns)]."""
        out = torch.zeros(2 * self.sms, dtype=torch.int64, device="cuda")
        _clocks[(8 * self.sms,)](out, num_warps=1)
        return out.cpu().numpy().reshape(-1, 2)

    def _inputs(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """A, B and their product in fp32; kept for the next row of the same problem."""
        problem = tuple(row[name] for name in ("m", "n", "k", "dtype_in", "layout"))
        if problem != self._problem:
            self._problem, self._operands = (), ()
            a, b = (self.blank(row, *shape).normal_() for shape in self.shapes(row)[:2])
            left = a.T if row["layout"][0] == "t" else a
            right = b if row["layout"][1] == "n" else b.T
            self._problem, self._operands = problem, (a, b, left.float() @ right.float())
        return self._operands

    def shapes(self, row: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
        """Of A, B and C as they are stored."""
        m, n, k = (row[axis] for axis in "mnk")
        a, b = row["layout"]
        return (m, k) if a == "n" else (k, m), (k, n) if b == "n" else (n, k), (m, n)

    def blank(self, row: Mapping[str, Any], rows: int, columns: int) -> Any:
        """A matrix on the device that holds anything."""
        if row["dtype_in"] not in DTYPES or row["dtype_out"] != row["dtype_in"]:
            raise UnsupportedError(f"dtypes: {', '.join(DTYPES)}, in and out the same")
        return torch.empty(rows, columns, dtype=DTYPES[row["dtype_in"]], device="cuda")
