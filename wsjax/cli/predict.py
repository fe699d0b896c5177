"""`wsjax predict`: one configuration, or all rows of a table."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from wsjax.cli.app import NOTHING_GIVEN, AsJson, ConfigurationOptions, HardwareName, app
from wsjax.cli.terminal import (
    number,
    on_machine,
    show_extrapolation,
    show_json,
    show_table,
    telling,
)
from wsjax.errors import InputError, gather

PARTS = {
    "launch": "launch_us",
    "fill": "fill_us",
    "steady": "steady_us",
    "epilogue": "epilogue_us",
}


@app.command
def predict(
    *,
    configuration: ConfigurationOptions = NOTHING_GIVEN,
    table: Annotated[Path | None, Parameter(help="predict a CSV or Parquet file's rows")] = None,
    out: Annotated[
        Path | None, Parameter(help="where --table's rows go: .parquet, .csv or .csv.gz")
    ] = None,
    hardware: HardwareName = "h200",
    precision: Annotated[
        str, Parameter(help="float64, or float32: times to 1e-5 of them")
    ] = "float64",
    json: Annotated[
        AsJson, Parameter(help="print one JSON object of the prediction columns")
    ] = False,
) -> int:
    """Predict one configuration, or all rows of a table.

    wsjax predict -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4 --schedule pingpong

    wsjax predict --table measured.csv.gz --hardware h200 --out predicted.parquet

    The time's parts: launch, fill (before MATH has its first data), steady state, exposed
    epilogues. The limiter is what bounds a step: `load`, `compute`, or `latency` (the ring is too
    shallow for the load latency). `method` is the way the recurrences were solved. An illegal
    configuration (too much shared memory, too few registers, ...) gets a reason and exit code 2.

    A table needs columns m, n, k, block_m, block_n and block_k; `python -m pydoc wsjax.schema` has
    the others. Rows keep their columns; of a measured table with `status`, `ok` rows are legal.
    """
    given = configuration.given()
    if table is None and out is None:
        return _predict_one(given, hardware, precision, as_json=json)
    problems = []
    if table is None or out is None:
        problems.append("--table and --out go together: --table FILE --out FILE")
    if given or json:
        alone = ", ".join([*given, *(["--json"] if json else [])])
        problems.append(f"{alone}: not with --table, whose columns say it; leave out")
    if problems or table is None or out is None:
        raise InputError(problems)
    from wsjax.predictions import predict_table

    replaced = "; it replaced the file of that name" if out.exists() else ""
    with telling(f"predicting {table}"):
        rows, extrapolated = predict_table(table, out, hardware, precision)
    print(f"{rows:,} row{'s' * (rows != 1)} written to {out}{replaced}")
    if extrapolated:
        print(f"extrapolated: {extrapolated}")
    return 0


def _predict_one(
    options: Mapping[str, Any], hardware: str, precision: str, *, as_json: bool
) -> int:
    import numpy as np

    from wsjax import predictions, schema
    from wsjax.hardware import load_hardware, resolve_one

    machine, numbers, _ = gather(
        partial(load_hardware, hardware),
        partial(schema.from_options, options, ", or --table FILE --out FILE"),
        partial(predictions.check_precision, precision),
    )
    columns = {name: np.asarray([value]) for name, value in numbers.items()}
    row = schema.Rows(columns, np.zeros(1, dtype=bool), None)
    with telling("predicting the kernel", quiet=as_json):
        found = predictions.described(row, machine, precision)
    record = found.record()
    if as_json:
        show_json(record)
    configuration = resolve_one(numbers, machine)
    if not record["legal"]:
        why = schema.why(record["reason"], configuration, machine.facts)
        print(f"wsjax: illegal: {why}", file=sys.stderr)
        return InputError.exit_code
    if as_json:
        return 0
    print(f"{schema.problem_words(configuration)} {on_machine(machine)}")
    print(schema.kernel_words(configuration))
    show_extrapolation(machine, configuration._asdict())
    pairs = [("time", f"{number(record['time_us'], 3)} µs")]
    if "time_us_lo" in record:
        bounds = f"{record['time_us_lo']:,.3f} to {record['time_us_hi']:,.3f} µs"
        pairs.append(("  9 in 10 measurements", bounds))
    for label, name in PARTS.items():
        part_us = float(np.ravel(getattr(found.prediction, name))[0])
        pairs.append((f"  {label}", f"{number(part_us, 3)} µs"))
    pairs += [
        ("MATH warps wait", f"{number(record['math_wait_us'], 3)} µs"),
        ("DMA warps wait", f"{number(record['dma_wait_us'], 3)} µs"),
        ("rate", f"{number(record['tflops'], 1)} TFLOP/s"),
        ("waves", f"{record['waves']:,}"),
        ("k-tiles", f"{record['k_tiles']:,}"),
        (
            "shared memory",
            f"{record['smem_bytes']:,} of {machine.facts.smem_bytes_per_sm:,} B",
        ),
        ("limiter", record["limiter"]),
        ("method", record["method"]),
    ]
    show_table((), pairs)
    return 0
