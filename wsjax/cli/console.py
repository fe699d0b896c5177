"""What the command line prints of one configuration, and of the machines."""

import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from wsjax import predictions, schema, tables
from wsjax.cli.terminal import telling
from wsjax.errors import InputError, gather
from wsjax.hardware import Hardware, hardware_names, load_hardware
from wsjax.schema import Configuration
from wsjax.tables import finite_values as finite

LONG = 1e9
"""From here on numbers are shown as powers of ten."""
PARTS = {
    "launch": "launch_us",
    "fill": "fill_us",
    "steady": "steady_us",
    "epilogue": "epilogue_us",
}


def predict_one(options: Mapping[str, Any], hardware: str, precision: str, *, as_json: bool) -> int:
    """Print the prediction of one configuration; its exit code (2 where it is illegal).

    options: the command line's options that were given, by name.
    """
    import numpy as np

    machine, numbers, _ = gather(
        partial(load_hardware, hardware),
        partial(schema.from_options, options, ", or --table FILE --out FILE"),
        partial(predictions.check_precision, precision),
    )
    columns = {name: np.asarray([value]) for name, value in numbers.items()}
    row = schema.Rows(columns, np.zeros(1, dtype=bool), None)
    with telling("predicting the kernel", quiet=as_json):
        prediction, found = predictions.described(row, machine, precision)
    record = tables.rows(found, [0])[0]
    if as_json:
        print(json.dumps(finite(record), allow_nan=False))
    configuration = schema.resolve_one(numbers, machine.facts)
    if not record["legal"]:
        why = schema.why(record["reason"], configuration, machine.facts)
        print(f"wsjax: illegal: {why}", file=sys.stderr)
        return InputError.exit_code
    if not as_json:
        parts = {name: float(np.ravel(getattr(prediction, name))[0]) for name in PARTS.values()}
        _show_prediction(configuration, machine, record, parts)
    return 0


def _show_prediction(
    c: Configuration, machine: Hardware, record: Mapping[str, Any], parts: Mapping[str, float]
) -> None:
    """One configuration's time and its parts, as a small table."""
    from rich.console import Console
    from rich.table import Table

    data = "calibrated" if machine.calibrated else "not calibrated"
    if machine.calibrated and record["extrapolated"]:
        data += "; measured kernels were of other kinds: extrapolated"
    print(f"{schema.problem_words(c)} on {machine.name} ({data})\n{schema.kernel_words(c)}")
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
