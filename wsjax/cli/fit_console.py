"""What the command line prints of calibrations and validations."""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wsjax import fit, timelines
from wsjax.cli.terminal import show_table, telling
from wsjax.errors import InputError, gather
from wsjax.fit import Calibration, Metrics, Validation, calibrate, excluded_text, prepare, validate
from wsjax.hardware import load_hardware
from wsjax.tables import check_place, replacing


def run_calibrate(
    sources: Sequence[Path],
    start: str,
    out: Path,
    report: Path | None,
    *,
    ablate: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Calibrate, write the machine's file, and print what was found.

    The report is there before terms are left out, which takes long, and again with them.
    """
    machine, *_ = gather(
        partial(load_hardware, start), partial(_check_out, out), partial(prepare, report)
    )
    if ablate and not options["held_out"]:
        raise InputError("--ablate shows what terms earn on held-out problems; raise --held-out")
    if ablate and quiet and report is None:
        raise InputError("--ablate with --quiet shows nothing; leave one out, or give --report")
    with telling("fitting parameters", quiet=quiet):
        found = calibrate(list(sources), machine, name=out.stem, **options)
    with replacing(out) as file:
        file.write(found.hardware.text.encode())
    if report is not None:
        fit.write_calibration(found, report)
    if not quiet:
        _show_calibration(found, out, options["held_out"])
    if ablate:
        split = {name: options[name] for name in ("held_out", "seed")}
        with telling("leaving out each term", quiet=quiet):
            left_out = fit.ablate(found, list(sources), **split)
        if report is not None:
            fit.write_calibration(found, report, left_out)
        if not quiet:
            print("held-out problems without a term, the others fitted again")
            show_table(fit.ABLATION_HEADINGS, fit.ablation_cells(left_out), left=(0,))
    _tell_report(report, quiet=quiet)
    return 0


def run_trace(trace: Path, report: Path | None, *, as_json: bool) -> int:
    """Check the recurrences against traced kernels, and print the errors by configuration."""
    prepare(report)
    with telling(f"replaying {trace}", quiet=as_json):
        checked = timelines.check(trace)
    summary = timelines.summary(checked)
    if report is not None:
        fit.write_replay(checked, summary, trace.name, report)
    if as_json:
        print(json.dumps({"configurations": summary.to_dict("records")}, allow_nan=False))
        return 0
    print(f"{trace.name} against the recurrences: errors of every compute's start, and of the end")
    cells = fit.replay_cells(summary)
    show_table(fit.REPLAY_HEADINGS, cells, left=(0, 2), spare=(3, 6, 4))
    print("durations: each step's own; its own latency, means of all else; means of all")
    _tell_report(report)
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
    with telling("predicting what was measured", quiet=as_json):
        found = [validate(list(sources), machine) for machine in machines[:-1]]
    if report is not None:
        fit.write_validation(found[0], report)
    if as_json:
        record = found[0].metrics.record()
        if against is not None:
            record["against"] = found[1].metrics.record()
        print(json.dumps(record, allow_nan=False))
        return 0
    _show_validation(found)
    _tell_report(report)
    return 0


def _tell_report(report: Path | None, *, quiet: bool = False) -> None:
    if report is not None and not quiet:
        print(f"report: {report}")


def _check_out(out: Path) -> None:
    """Raise InputError if no hardware file can be written there, before any work is done."""
    if out.suffix != ".toml":
        raise InputError(f"{out}: a hardware file's name ends in .toml; choose such a name")
    check_place(out)


def _show_calibration(found: Calibration, out: Path, held_out: float) -> None:
    figures = [("fitted problems", found.training)]
    figures += [("held-out problems", found.held_out)] if found.held_out else []
    show_table(fit.PARAMETER_HEADINGS, fit.parameter_cells(found), left=(0, 4, 5), spare=(4, 1))
    _metrics_table(figures)
    for one, other, correlation in found.correlated:
        print(f"the errors of {one} and {other} are correlated: {correlation:.3f}")
    if found.undetermined:
        print(f"not determined by these rows, so held: {', '.join(found.undetermined)}")
    if found.excluded:
        print(f"left out: {excluded_text(found.excluded)}")
    if held_out and found.held_out is None:
        print(f"no problem is held out by --held-out {held_out:g}: the figures are of fitted rows")
    whole, count = found.training.rows, f"{found.fitted_rows:,}"
    fitted = f"a sample of {count} of {whole:,}" if found.fitted_rows < whole else count
    print(f"{fitted} rows fitted in {found.seconds:.1f} s; written to {out}")


def _show_validation(found: Sequence[Validation]) -> None:
    first = found[0]
    for one in found:
        print(f"{one.hardware.name} on {one.table}")
        _metrics_table(
            [(f"{column} {word}".strip(), m) for column, word, m in fit.metrics_rows(one)]
        )
    rows = f"{len(first.worst)} worst rows" if len(first.worst) > 1 else "the only row"
    print(f"{rows} of {first.hardware.name}")
    left, spare = (0, 1, 2, 4, 5, 9), (1, 5, 9, 4)
    show_table(fit.WORST_HEADINGS, fit.worst_cells(first), left=left, spare=spare)
    left_out = dict(first.excluded)
    if first.not_modelled:
        left_out["not_modelled"] = first.not_modelled
    if left_out:
        print(f"left out: {excluded_text(left_out)}")


def _metrics_table(rows: Iterable[tuple[str, Metrics]]) -> None:
    cells = [[name, *fit.cells(m)] for name, m in rows]
    show_table(["", *fit.SHORT.values()], cells, spare=(14, 2, 12, 7, 10, 11, 8, 4, 6))
