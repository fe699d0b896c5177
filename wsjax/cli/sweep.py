"""`wsjax sweep`: all configurations of a sweep file, into a directory of Parquet files."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from wsjax.cli.app import Whole, app
from wsjax.cli.terminal import INTERRUPTED, number, progress, show_table

if TYPE_CHECKING:
    from wsjax.sweeps import Summary

ALIKE = "alike"
NAMED = 3
"""How many machines are named where many are alike."""
IF_VARIED = {"hardware": set(), "DMA": set(), ALIKE: {"1"}}
"""Columns of a summary that are left out where all its rows agree, and agree with this."""


@app.command
def sweep(
    spec: Annotated[
        str, Parameter(help="a sweep file (.toml), or a table of an earlier sweep to repeat")
    ],
    /,
    *,
    out: Annotated[
        str | None, Parameter(help="directory or URI (s3://, gs://); default: results/NAME")
    ] = None,
    shard_rows: Annotated[
        Whole,
        Parameter(help="rows of a file; default: up to 1,048,576, or as the directory has them"),
    ] = None,
    engine: Annotated[str, Parameter(help="local (default), or ray: on a cluster")] = "local",
    address: Annotated[
        str | None, Parameter(help="of the Ray cluster; default: RAY_ADDRESS, or this machine")
    ] = None,
    quiet: Annotated[bool, Parameter(negative="", help="no progress, no summary")] = False,
) -> int:
    """Predict all configurations of a sweep file, into a directory of Parquet files.

    A sweep that was interrupted goes on where it stopped when the command is repeated.

    wsjax sweep sweeps/quickstart.toml --out results/quickstart

    wsjax sweep my.toml --out s3://bucket/my --engine ray --address auto --shard-rows 100000

    The sweep file: `hardware` is a list of machines; `[columns]` gives a column a value, a list, or
    `{ from = 64, to = 256, step = 64 }` (`factor` multiplies), and the sweep is their product;
    `[problems]` is a list of named problems (`rows`, or a `file`); `[hardware_parameters]` sweeps
    the machine, by values or `{ scale = [0.5, 1.0] }`.

    `[filter] where` knows `and or not`, comparisons, `in (...)`, `+ - * // % **`,
    `power_of_two(...)`, columns, numbers and quoted words. It sees configurations, not results.

    `[output] best = 10` keeps the 10 fastest rows of each problem and machine; `keep =
    "quantiles"` one row of each: how many configurations are legal, the least and greatest time,
    quantiles (right to 1.1 %), and a histogram. `partition_by = ["hardware", "m"]` makes folders as
    readers of Hive partitions know them; `precision = "float32"` agrees to 1e-5.

    Interrupted or killed, a sweep leaves a valid dataset. If its file or a machine's has changed
    since, even in a comment, the directory is refused. The directory holds nothing but Parquet
    files, at most 100,000, whose metadata hold the texts that repeat the run. Smaller files
    (`--shard-rows`) take less memory (0.9 GB with 65,536 rows at once) and lose less to an
    interruption; with `best` they count the rows that are kept.

    On Ray (`pip install 'wsjax[ray]'` on every machine; `ray start --head --port 6379` on one,
    `ray start --address HEAD:6379` on the others) each file is a task, which has one GPU, or one
    CPU core where there are none, and is done again if its worker dies. A sweep begun on one
    machine goes on there and the other way round, with the same bytes. `--out` is a directory that
    all machines share, or a URI of pyarrow's (`s3://`, `gs://`), with its credentials. Object
    stores need no lock: a file appears whole, and is a function of the sweep and its machines.
    """
    from wsjax import sweeps
    from wsjax.tables import public

    run = sweeps.load_run(spec)
    directory = sweeps.output_directory(run, out)
    try:
        with progress(run.name, begin="compiling", quiet=quiet) as advance:
            summary = sweeps.sweep(
                run,
                directory,
                shard_rows=shard_rows,
                engine=engine,
                address=address,
                progress=advance,
            )
    except KeyboardInterrupt:
        print(
            f"wsjax: interrupted; {public(directory)} keeps the finished shards: "
            "repeat the command to go on from there",
            file=sys.stderr,
        )
        return INTERRUPTED
    if not quiet:
        print(f"{summary.rows:,} rows of {summary.candidates:,} candidates in {public(directory)}")
        _show_counts(summary)
        for why, names in run.extrapolated().items():
            more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
            print(f"extrapolated on {', '.join(names[:NAMED])}{more}: {why}")
        if summary.fastest is not None:
            _show_fastest(summary, summary.fastest, [override.name for override in run.overrides])
    return 0


def _show_counts(summary: "Summary") -> None:
    """Why candidates are not among the rows."""
    if summary.filtered:
        print(f"{summary.filtered:,} did not pass the filter")
    for reason, count in summary.illegal.items():
        print(f"{count:,} illegal: {reason}")
    if summary.beaten and summary.best:
        print(f"{summary.beaten:,} are not among the best of their problem")
    elif summary.beaten:
        print(f"{summary.rows + summary.beaten:,} legal: the rows tell how their times are spread")
    if summary.bounded:
        looked = f"the times of {summary.evaluated:,} were looked at"
        print(f"bounds alone ruled out {summary.bounded:,}; {looked}")
    if summary.resumed:
        print(f"{summary.resumed} of {summary.shards} shards were there already")


def _show_fastest(summary: "Summary", fastest: Mapping[str, Any], swept: Sequence[str]) -> None:
    """The fastest configurations of the first problems, and the one with the most TFLOP/s."""
    rows = [_cells(leader.row, swept) | {ALIKE: f"{leader.alike:,}"} for leader in summary.best]
    last = _cells(fastest, swept)
    if any(last.items() <= row.items() for row in rows):
        print("fastest configurations")
    else:
        rows.append(last)
        print("fastest configurations of some problems; last: most TFLOP/s of all")
    if any(leader.alike > 1 for leader in summary.best):
        which = "of the rows kept" if summary.beaten else "configurations"
        print(f"{ALIKE}: how many {which} have that time; the first of them is shown")
    shown = [
        name
        for name in rows[0]
        if name not in IF_VARIED or len({row.get(name, "1") for row in rows} | IF_VARIED[name]) > 1
    ]
    left = [
        place for place, name in enumerate(shown) if name in ("problem", "hardware", "schedule")
    ]
    show_table(shown, [[row.get(name, "") for name in shown] for row in rows], left=left)


def _cells(row: Mapping[str, Any], swept: Sequence[str]) -> dict[str, str]:
    """One row of a sweep as a line of its summary: headings and texts."""
    from wsjax.schema import BLOCKS, sizes

    return {
        "problem": f"{row.get('problem', '')} {sizes(row, 'mnk')}".strip(),
        "hardware": row["hardware"],
        **{name: f"{row[name]:.12g}" for name in swept},
        "tile": sizes(row, BLOCKS),
        "stages": str(row["stages"]),
        "DMA": str(row["dma_warps"]),
        "schedule": row["schedule"],
        "time µs": number(row["time_us"], 2),
        "TFLOP/s": number(row["tflops"], 1),
    }
