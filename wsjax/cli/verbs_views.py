"""Verbs that show what the others found: trace, explain, report."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wsjax.cli.options import NOTHING_GIVEN, ConfigurationOptions, HardwareName, app


@app.command
def trace(
    *,
    configuration: ConfigurationOptions = NOTHING_GIVEN,
    hardware: HardwareName = "h200",
    measured: Annotated[
        Path | None,
        Parameter(help="a table of traced kernels (CSV or Parquet) to set beside the predictions"),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(help="draw it, too: .json (Chrome trace, for Perfetto), .html, .svg or .png"),
    ] = None,
    quiet: Annotated[bool, Parameter(negative="", help="only write --out's file")] = False,
) -> int:
    """Show when every load and compute of one configuration starts and ends.

    wsjax trace -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4 --out t.html

    wsjax trace --measured trace.csv.gz --hardware h200-gluon -m 4096 --out traced.png

    Of a table of traced kernels the options choose some; without any, all are compared.
    """
    from wsjax.cli.trace_console import run_trace

    return run_trace(configuration.given(), hardware, out, measured, quiet=quiet)


@app.command
def explain(
    *,
    configuration: ConfigurationOptions = NOTHING_GIVEN,
    hardware: HardwareName = "h200",
    json: Annotated[bool, Parameter(negative="", help="print one JSON object")] = False,
) -> int:
    """Say why one configuration takes its time, and what would make it shorter.

    wsjax explain -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4
    """
    from wsjax.cli.explain_console import run_explain

    return run_explain(configuration.given(), hardware, as_json=json)


@app.command
def report(
    source: Annotated[
        Path,
        Parameter(
            help="the directory of a sweep, or one that calibrate or validate wrote with --report"
        ),
    ],
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(help="the page, .html; default: beside the directory, with its name"),
    ] = None,
) -> int:
    """Write one HTML page of a sweep, a calibration or a validation; it needs no network.

    wsjax report results/quickstart --out quickstart.html

    wsjax validate measured.csv.gz --report accuracy && wsjax report accuracy
    """
    from wsjax.cli import report_console

    return report_console.run_report(source, out)
