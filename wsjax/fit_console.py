"""What the command line prints of calibrations and validations."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wsjax import ablation, replay, reports
from wsjax.calibration import Calibration, calibrate
from wsjax.errors import InputError, gather
from wsjax.files import replacing
from wsjax.hardware import load_hardware
from wsjax.measured import excluded_text
from wsjax.metrics import Metrics
from wsjax.reports import prepare
from wsjax.validation import Validation, validate

PIPE_WIDTH = 200


def run_calibrate(
    sources: Sequence[Path],
    start: str,
    out: Path,
    report: Path | None,
    *,
    ablate: bool,
    **options: Any,
) -> int:
    """Calibrate, write the machine's file, and print what was found."""
    machine, *_ = gather(
        partial(load_hardware, start), partial(_check_out, out), partial(prepare, report)
    )
    if ablate and not options["held_out"]:
        raise InputError("--ablate shows what terms earn on held-out problems; raise --held-out")
    found = calibrate(list(sources), machine, name=out.stem, **options)
    with replacing(out) as file:
        file.write(found.hardware.text.encode())
    _show_calibration(found, out)
    left_out = []
    if ablate:
        split = {name: options[name] for name in ("held_out", "seed")}
        left_out = ablation.ablate(found, list(sources), **split)
        print("held-out problems without a term, the others fitted again")
        _table(reports.ABLATION_HEADINGS, reports.ablation_cells(left_out), left=(0,))
    if report is not None:
        reports.write_calibration(found, report, left_out)
    return 0


def run_trace(trace: Path, report: Path | None, *, as_json: bool) -> int:
    """Check the recurrences against traced kernels, and print the errors by configuration."""
    prepare(report)
    checked = replay.check(trace)
    summary = replay.summary(checked)
    if report is not None:
        reports.write_replay(checked, summary, trace.name, report)
    if as_json:
        print(json.dumps({"configurations": summary.to_dict("records")}, allow_nan=False))
        return 0
    print(f"{trace.name} against the recurrences: errors of every compute's start, and of the end")
    _table(reports.REPLAY_HEADINGS, reports.replay_cells(summary), left=(0, 2))
    return 0


def run_validate(
    sources: Sequence[Path],
    hardware: str,
    against: str | None,
    report: Path | None,
    *,
    as_json: bool,
) -> int:
    """Validate one machine, or two on the same table, and print the figures."""
    names = [hardware, *([against] if against is not None else [])]
    machines = gather(*(partial(load_hardware, name) for name in names), partial(prepare, report))
    found = [validate(list(sources), machine) for machine in machines[:-1]]
    if report is not None:
        reports.write_validation(found[0], report)
    if as_json:
        record = found[0].metrics.record()
        if against is not None:
            record["against"] = found[1].metrics.record()
        print(json.dumps(record, allow_nan=False))
        return 0
    _show_validation(found)
    return 0


def _check_out(out: Path) -> None:
    """Raise InputError if no hardware file can be written there, before any work is done."""
    if out.suffix != ".toml":
        raise InputError(f"{out}: a hardware file's name ends in .toml; choose such a name")
    if out.is_dir():
        raise InputError(f"{out}: is a directory; give a file's name")
    if not out.parent.is_dir():
        raise InputError(f"{out}: there is no directory {out.parent}; make it first")
    if not os.access(out.parent, os.W_OK):
        raise InputError(f"{out}: directory {out.parent} is not writable; choose another")


def _show_calibration(found: Calibration, out: Path) -> None:
    figures = [("fitted problems", found.training)]
    figures += [("held-out problems", found.held_out)] if found.held_out else []
    _table(reports.PARAMETER_HEADINGS, reports.parameter_cells(found), left=(0, 4, 5))
    _metrics_table(figures)
    for one, other, correlation in found.correlated:
        print(f"the errors of {one} and {other} are correlated: {correlation:.3f}")
    if found.undetermined:
        print(f"not determined by these rows, so held: {', '.join(found.undetermined)}")
    if found.excluded:
        print(f"left out: {excluded_text(found.excluded)}")
    print(f"{found.fitted_rows:,} rows fitted in {found.seconds:.1f} s; written to {out}")


def _show_validation(found: Sequence[Validation]) -> None:
    first = found[0]
    for one in found:
        print(f"{one.hardware.name} on {one.table}")
        _metrics_table(
            [(f"{column} {word}".strip(), m) for column, word, m in reports.metrics_rows(one)]
        )
    print(f"{len(first.worst)} worst rows of {first.hardware.name}")
    _table(reports.WORST_HEADINGS, reports.worst_cells(first), left=(0, 1, 2, 4, 5, 9))
    left_out = dict(first.excluded)
    if first.not_modelled:
        left_out["not_modelled"] = first.not_modelled
    if left_out:
        print(f"left out: {excluded_text(left_out)}")


def _metrics_table(rows: Iterable[tuple[str, Metrics]]) -> None:
    _table(["", *reports.SHORT.values()], [[name, *reports.cells(m)] for name, m in rows])


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="left" if position in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(width=width, markup=False, emoji=False).print(table)
