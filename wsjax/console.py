"""What the command line prints of one configuration, and of the machines."""

import json
import math
import re
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from wsjax import frame as frames
from wsjax import predictions, tables
from wsjax.errors import InputError, gather
from wsjax.hardware import Hardware, hardware_names, load_hardware
from wsjax.limits import explain
from wsjax.space import COLUMNS, DTYPE_BYTES, DTYPES, LAYOUTS, SCHEDULES, Configuration

LONG = 1e9
"""From here on numbers are shown as powers of ten."""
BLOCKS = ("block_m", "block_n", "block_k")
COLUMNS_OF = {"--dtype": ("dtype_in", "dtype_out")}
PARTS = {
    "launch": "launch_us",
    "fill": "fill_us",
    "steady": "steady_us",
    "epilogue": "epilogue_us",
}
TILE = re.compile(r"([0-9]{1,20})[xX]([0-9]{1,20})[xX]([0-9]{1,20})")


def predict_one(options: Mapping[str, Any], hardware: str, *, as_json: bool) -> int:
    """Print the prediction of one configuration; its exit code (2 where it is illegal).

    options: the command line's options that were given, by name.
    """
    import numpy as np

    machine, numbers = gather(partial(load_hardware, hardware), partial(_configuration, options))
    columns = {name: np.asarray([value]) for name, value in numbers.items()}
    row = frames.Rows(columns, np.zeros(1, dtype=bool), None)
    prediction, found = predictions.described(row, machine)
    record = tables.row(found, 0)
    if as_json:
        finite = {k: v if v not in (math.inf, -math.inf) else None for k, v in record.items()}
        print(json.dumps(finite, allow_nan=False))
    resolved = frames.resolve(columns, machine.facts)
    configuration = Configuration(*(int(values.flat[0]) for values in resolved))
    if not record["legal"]:
        print(f"wsjax: illegal: {_why(record['reason'], configuration, machine)}", file=sys.stderr)
        return InputError.exit_code
    if not as_json:
        parts = {name: float(np.ravel(getattr(prediction, name))[0]) for name in PARTS.values()}
        _show_prediction(configuration, machine, record, parts)
    return 0


def _configuration(options: Mapping[str, Any]) -> dict[str, int]:
    """Options as numbers of configuration columns; InputError with all that is wrong."""
    problems = [
        f"{option}: missing; give -m, -n, -k and --tile, or --table FILE --out FILE"
        for option in ("-m", "-n", "-k", "--tile")
        if option not in options
    ]
    given: dict[str, tuple[str, int | str]] = {}
    for option, value in options.items():
        if option == "--tile":
            match = TILE.fullmatch(value)
            sizes = match.groups() if match else ()
            given |= {name: (option, int(size)) for name, size in zip(BLOCKS, sizes, strict=False)}
            if not match:
                problems.append(f"--tile: '{value}' is no tile; write it as 128x128x64")
        else:
            given |= dict.fromkeys(COLUMNS_OF.get(option, (_name(option),)), (option, value))
    numbers = {}
    for name, (option, value) in given.items():
        problem, numbers[name] = frames.read_value(COLUMNS[name], value)
        problems += [f"{option}: {problem}"] if problem else []
    if problems:
        raise InputError(dict.fromkeys(problems))
    return numbers


def _name(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _why(reason: str, configuration: Configuration, machine: Hardware) -> str:
    schedule = SCHEDULES[configuration.schedule]
    return explain(
        reason,
        configuration,
        machine.facts,
        in_bytes=DTYPE_BYTES[configuration.dtype_in],
        out_bytes=DTYPE_BYTES[configuration.dtype_out],
        math_groups=2 if schedule == "pingpong" else 1,
        groups_per_tile=2 if schedule == "cooperative" else 1,
        dtype=DTYPES[configuration.dtype_in],
    )


def _show_prediction(
    c: Configuration, machine: Hardware, record: Mapping[str, Any], parts: Mapping[str, float]
) -> None:
    """One configuration's time and its parts, as a small table."""
    from rich.console import Console
    from rich.table import Table

    data = "calibrated" if machine.calibrated else "not calibrated"
    out = "" if c.dtype_out == c.dtype_in else f" to {DTYPES[c.dtype_out]}"
    batch = f" x{c.batch}" if c.batch > 1 else ""
    print(
        f"{c.m}x{c.n}x{c.k}{batch} {DTYPES[c.dtype_in]}{out} {LAYOUTS[c.layout]} "
        f"on {machine.name} ({data})\n"
        f"tile {c.block_m}x{c.block_n}x{c.block_k}, {SCHEDULES[c.schedule]}, "
        f"{c.stages} stages, {c.dma_warps} DMA and {c.math_warps} MATH warps"
    )
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_row("time", f"{number(record['time_us'], 3)} µs")
    if "time_us_lo" in record:
        bounds = f"{record['time_us_lo']:,.3f} to {record['time_us_hi']:,.3f} µs"
        table.add_row("  9 in 10 measurements", bounds)
    for label, name in PARTS.items():
        table.add_row(f"  {label}", f"{number(parts[name], 3)} µs")
    table.add_row("MATH warps wait", f"{number(record['math_wait_us'], 3)} µs")
    table.add_row("DMA warps wait", f"{number(record['dma_wait_us'], 3)} µs")
    table.add_row("rate", f"{number(record['tflops'], 1)} TFLOP/s")
    table.add_row("waves", f"{record['waves']:,}")
    table.add_row("k-tiles", f"{record['k_tiles']:,}")
    memory = f"{record['smem_bytes']:,} of {machine.facts.smem_bytes_per_sm:,} B"
    table.add_row("shared memory", memory)
    table.add_row("limiter", record["limiter"])
    table.add_row("method", record["method"])
    Console(markup=False, emoji=False).print(table)


def number(value: float, digits: int) -> str:
    """A number for people: with so many digits behind the point, or a power of ten."""
    return f"{value:,.{digits}f}" if abs(value) < LONG else f"{value:.6g}"


def list_hardware() -> None:
    """Print the shipped machines and their main facts."""
    row = "{:<14} {:>5} {:>12} {:>5}  {}"
    print(row.format("name", "sms", "smem_bytes", "warp", "calibrated"))
    for name in hardware_names():
        machine = load_hardware(name)
        facts = machine.facts
        yes = "yes" if machine.calibrated else "no"
        print(row.format(name, facts.sms, facts.smem_bytes_per_sm, facts.warp_size, yes))
