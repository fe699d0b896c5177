"""What sweeps, calibrations and validations found, as HTML pages: `report`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from wsjax import tables
from wsjax.errors import InputError, gather
from wsjax.sweeps import load_run, shard_names
from wsjax.tables import check_place, existing, replacing, store
from wsjax.views import html

WANTED = (
    "give the directory of a sweep, or one that `wsjax calibrate` or `wsjax validate` wrote with "
    "--report"
)
Advance = Callable[[int, int], None]


class Report(NamedTuple):
    """A page that was written: what it is of (sweep, calibration, validation), what is in it."""

    path: Path
    kind: str
    content: str


def report(
    source: str | Path, out: str | Path | None = None, *, progress: Advance | None = None
) -> Report:
    """Write one HTML page of a sweep, a calibration or a validation; it opens without a network.

    source: the directory of a sweep, or one that `calibrate` or `validate` wrote with --report;
    what it is shows in its content. out: the page; default: beside the directory, with its name
    and .html. `progress(done, rows)` is called while a sweep is read.

    Raises InputError for anything else, or without plotly (`pip install 'wsjax[report]'`).
    """
    path, page, _ = gather(
        partial(existing, source), partial(_destination, source, out), html.check_plotly
    )
    kind = kind_of(path)
    if kind == "sweep":
        text, content = _sweep(path, page, progress)
    else:
        from wsjax.views.fit_page import calibration_page, validation_page

        text, content = (calibration_page if kind == "calibration" else validation_page)(path)
    with replacing(page) as file:
        file.write(text.encode())
    return Report(page, kind, content)


def kind_of(path: Path) -> str:
    """What a directory holds: sweep, calibration or validation; InputError if none of them."""
    if not path.is_dir():
        near = f", such as {path.parent}" if _kind_of(path.parent) else ""
        raise InputError(f"{path}: is no directory; {WANTED}{near}")
    if kind := _kind_of(path):
        return kind
    inside = (folder for folder in sorted(path.iterdir()) if folder.is_dir() and _kind_of(folder))
    near = next((f", such as {folder}" for folder in inside), "")
    raise InputError(f"{path}: holds neither a sweep nor a report; {WANTED}{near}")


def _kind_of(path: Path) -> str | None:
    if _shards(path):
        return "sweep"
    if (path / "parameters.csv").is_file():
        return "calibration"
    return "validation" if (path / "rows.parquet").is_file() else None


def _sweep(path: Path, page: Path, progress: Advance | None) -> tuple[str, str]:
    """The page of a sweep's directory, which must hold nothing but the sweep."""
    from wsjax.views.sweep_page import quantiles_page, rows_of, sweep_page

    if path.resolve() in page.resolve().parents:
        raise InputError(
            f"{page}: the directory of a sweep holds nothing but the sweep; give --out elsewhere"
        )
    paths = _shards(path)
    run = load_run(paths[0])
    write, passes = (quantiles_page, 1) if run.output.quantiles else (sweep_page, 2)
    total, done = passes * rows_of(paths), 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, total)

    return write(run, path, paths, advance)


def _shards(path: Path) -> list[Path]:
    """A sweep's files in a directory, and in its folders such as `m=16`."""
    return [
        path / name
        for name in shard_names(store(path).names())
        if (footer := tables.read_footer(path / name)) and "wsjax.spec" in footer.texts
    ]


def _destination(source: str | Path, out: str | Path | None) -> Path:
    """Where the page goes; InputError if it can't."""
    own = Path(source) if Path(source).name not in ("", "..") else Path(source).resolve()
    page = Path(out) if out is not None else own.with_name(f"{own.name}.html")
    if page.suffix != ".html":
        raise InputError(f"{page}: a page's name ends in .html; choose such a name")
    check_place(page)
    return page
