"""`wsjax report`: one HTML page of a sweep, a calibration or a validation."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wsjax.cli.app import app
from wsjax.cli.terminal import progress


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

    Of a sweep: the fastest configuration of each problem, slow-down over tiles and stages,
    roofline, what limits a step, wave quantisation, machines compared. Type words of a problem's
    name, or `m=16`, to filter all figures; click a problem to see all its kernels. Of a sweep that
    kept quantiles: the spread of times. Of a validation: regret, errors, coverage of intervals,
    worst rows; of a calibration also parameters, their errors and correlations, ablations. A
    million rows take seconds and make about 5 MB. Pages need `pip install 'wsjax[report]'`.
    """
    from wsjax import views

    with progress(f"reading {source}") as advance:
        page = views.report(source, out, progress=advance)
    size = page.path.stat().st_size / 1e6
    print(f"{page.kind}, {page.content}: {page.path} ({size:.1f} MB); open it in a browser")
    return 0
