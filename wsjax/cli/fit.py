"""`wsjax calibrate` and `wsjax validate`: a machine's parameters against measured times."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wsjax.cli.app import AsJson, HardwareName, Names, ReportDirectory, app
from wsjax.cli.terminal import show_json, show_table, telling
from wsjax.errors import InputError, gather

if TYPE_CHECKING:
    from wsjax.fit import Calibration, Metrics, Validation
    from wsjax.hardware import Hardware


@app.command
def calibrate(
    tables: Annotated[list[Path], Parameter(help="measured times, in any format of import")],
    /,
    *,
    start: Annotated[
        str, Parameter(help="where parameters start: a machine's name or a TOML file")
    ] = "h200",
    out: Annotated[Path, Parameter(help="the machine's new file, .toml")],
    report: ReportDirectory = None,
    fix: Annotated[Names, Parameter(help="parameters that stay: NAME,NAME,...")] = (),
    free: Annotated[Names, Parameter(help="fit only these parameters: NAME,NAME,...")] = (),
    family_only: Annotated[
        bool, Parameter(negative="", help="fit only what belongs to the kernel family")
    ] = False,
    residual: Annotated[
        bool, Parameter(negative="", help="then learn a correction of what parameters leave")
    ] = False,
    held_out: Annotated[float, Parameter(help="share of problems kept out of the fit")] = 0.2,
    seed: Annotated[int, Parameter(help="of the split, the sample and the starts")] = 0,
    ablate: Annotated[
        bool,
        Parameter(negative="", help="then leave out each term: what it earns on problems kept out"),
    ] = False,
    quiet: Annotated[
        bool, Parameter(negative="", help="only write files: no progress, no summary")
    ] = False,
) -> int:
    """Fit a machine's parameters to measured times, and write its file.

    wsjax calibrate measured.csv.gz --start h200 --out mine.toml

    wsjax calibrate fifty-rows.csv --start h200-cutlass --family-only --out mine.toml

    The fit is Levenberg-Marquardt on the logarithms of times, with a part of the problems held out.
    Parameters that the table does not determine stay at their prior and are named. Some 50 rows
    adapt another machine's file: start from a copy with the new machine's facts, and give
    `--held-out 0`, or `--family-only` for a new kernel on a known machine.

    `--residual` also learns a correction on the model's own intermediates, from some 1,000 rows of
    50 problems or more; it is kept if it lowers the error of held-out problems.

    `--report DIR` writes tables, of which `wsjax report DIR` makes a page. `--ablate` says what
    each term of the model earns on held-out problems.
    """
    from wsjax import fit
    from wsjax.hardware import load_hardware
    from wsjax.tables import replacing

    machine, *_ = gather(
        partial(load_hardware, start), partial(_check_out, out), partial(fit.prepare, report)
    )
    if ablate and not held_out:
        raise InputError("--ablate shows what terms earn on held-out problems; raise --held-out")
    if ablate and quiet and report is None:
        raise InputError("--ablate with --quiet shows nothing; leave one out, or give --report")
    with telling("fitting parameters", quiet=quiet):
        calibration = fit.calibrate(
            list(tables),
            machine,
            name=out.stem,
            fix=fix,
            free=free,
            family_only=family_only,
            residual=residual,
            held_out=held_out,
            seed=seed,
        )
    with replacing(out) as file:
        file.write(calibration.hardware.text.encode())
    if report is not None:
        fit.write_calibration(calibration, report)
    if not quiet:
        _show_calibration(calibration, machine, out, held_out)
    if ablate:
        with telling("leaving out each term", quiet=quiet):
            left_out = fit.ablate(calibration, list(tables), held_out=held_out, seed=seed)
        if report is not None:
            fit.write_calibration(calibration, report, left_out)
        if not quiet:
            print("held-out problems without a term, the others fitted again")
            show_table(fit.ABLATION_HEADINGS, fit.ablation_cells(left_out))
    _tell_report(report, quiet=quiet)
    return 0


@app.command
def validate(
    tables: Annotated[
        list[Path] | None, Parameter(help="measured times, in any format of import")
    ] = None,
    /,
    *,
    hardware: HardwareName = "h200",
    against: Annotated[
        str | None, Parameter(help="another machine's name or file, on the same tables")
    ] = None,
    trace: Annotated[
        Path | None,
        Parameter(help="instead of tables: events of traced kernels, against the recurrences"),
    ] = None,
    report: ReportDirectory = None,
    json: AsJson = False,
) -> int:
    """Compare predicted with measured times: errors, ranks, and what a choice costs.

    wsjax validate measured.csv.gz --hardware mine.toml --against h200

    wsjax validate --trace events.csv.gz

    Errors are of predicted over measured times; regret is the measured time of the configuration
    that would be picked by prediction, over the best measured of its problem; coverage is the share
    of measured times within their 90 % interval. The worst rows are listed. `--trace` replays
    traced kernels through the recurrences. `--report DIR` writes tables, of which `wsjax report
    DIR` makes a page.
    """
    if trace is not None and (tables or against is not None):
        raise InputError("--trace: not with tables or --against; validate them apart")
    if trace is not None:
        return _validate_trace(trace, report, as_json=json)
    if not tables:
        raise InputError("give tables of measured times, or --trace FILE")
    from wsjax import fit
    from wsjax.hardware import load_hardware

    names = [hardware, *([against] if against is not None else [])]
    machines = gather(
        *(partial(load_hardware, name) for name in names), partial(fit.prepare, report)
    )
    with telling("predicting what was measured", quiet=json):
        validations = [fit.validate(list(tables), machine) for machine in machines[:-1]]
    if report is not None:
        fit.write_validation(validations[0], report)
    if json:
        record = validations[0].metrics.record()
        if against is not None:
            record["against"] = validations[1].metrics.record()
        show_json(record)
        return 0
    _show_validation(validations)
    _tell_report(report)
    return 0


def _validate_trace(trace: Path, report: Path | None, *, as_json: bool) -> int:
    """Check the recurrences against traced kernels, and print the errors by configuration."""
    from wsjax import fit, timelines

    fit.prepare(report)
    with telling(f"replaying {trace}", quiet=as_json):
        checked = timelines.check(trace)
    summary = timelines.summary(checked)
    if report is not None:
        fit.write_replay(checked, summary, trace.name, report)
    if as_json:
        show_json({"configurations": summary.to_dict("records")})
        return 0
    print(f"{trace.name} against the recurrences: errors of every compute's start, and of the end")
    cells = fit.replay_cells(summary)
    show_table(fit.REPLAY_HEADINGS, cells, left=(0, 2), spare=(3, 6, 4))
    print("durations: each step's own; its own latency, means of all else; means of all")
    _tell_report(report)
    return 0


def _tell_report(report: Path | None, *, quiet: bool = False) -> None:
    if report is not None and not quiet:
        print(f"report: {report}")


def _check_out(out: Path) -> None:
    """Raise InputError if no hardware file can be written there, before any work is done."""
    from wsjax.tables import check_place

    if out.suffix != ".toml":
        raise InputError(f"{out}: a hardware file's name ends in .toml; choose such a name")
    check_place(out)


def _show_calibration(
    calibration: "Calibration", start: "Hardware", out: Path, held_out: float
) -> None:
    from wsjax import fit

    figures = [("fitted problems", calibration.training)]
    figures += [("held-out problems", calibration.held_out)] if calibration.held_out else []
    figures.append((f"by the start, {start.name}", calibration.before))
    show_table(
        fit.PARAMETER_HEADINGS, fit.parameter_cells(calibration), left=(0, 4, 5), spare=(4, 1)
    )
    _show_metrics(figures)
    if calibration.physics is not None:
        kept = "kept" if calibration.hardware.residual else "not kept: it is no better"
        before = f"{calibration.physics.mape_pct:.2f} % mean error by the recurrences alone"
        print(f"learned correction {kept} ({before})")
    elif start.residual:
        print(
            f"the learned correction of {start.name} is left out: it holds for its own parameters; "
            "--residual learns another"
        )
    for one, other, correlation in calibration.correlated:
        print(f"the errors of {one} and {other} are correlated: {correlation:.3f}")
    _show_undetermined(calibration, start)
    if calibration.excluded:
        print(f"left out: {fit.excluded_text(calibration.excluded)}")
    if held_out and calibration.held_out is None:
        print(f"no problem is held out by --held-out {held_out:g}: the figures are of fitted rows")
    for warning in calibration.warnings:
        print(warning)
    if note := fit.tensor_core_note(calibration.rows.rows.configurations):
        print(note)
    rows, count = calibration.training.rows, f"{calibration.fitted_rows:,}"
    fitted = f"a sample of {count} of {rows:,}" if calibration.fitted_rows < rows else count
    print(f"{fitted} rows fitted in {calibration.seconds:.1f} s; written to {out}")


def _show_undetermined(calibration: "Calibration", start: "Hardware") -> None:
    """Print which parameters are held, which of them are not at the start's value, and from what to
    start instead where these are most."""
    from wsjax.hardware import hardware_names, load_hardware

    held = [p for p in calibration.parameters if p.name in calibration.undetermined]
    if not held:
        return
    print(f"not determined by these rows, so held: {', '.join(p.name for p in held)}")
    moved = [p for p in held if not math.isclose(p.value, p.start, rel_tol=1e-6)]
    if moved:
        changes = ", ".join(f"{p.name} {p.start:.5g} to {p.value:.5g}" for p in moved)
        print(f"of these not at the start's value, which is neutral or costs error: {changes}")
    fitted = sum(p.status == "fitted" for p in calibration.parameters)
    if not start.calibrated and len(held) > fitted:
        machines = map(load_hardware, hardware_names())
        names = ", ".join(machine.name for machine in machines if machine.calibrated)
        print(
            f"warning: {len(held)} of {len(held) + fitted} parameters are not determined, and "
            f"{start.name} is not calibrated: single kernels can be far off; start from a machine "
            f"that is ({names}), or from `wsjax hardware new NAME --like` it, with your facts"
        )


def _show_validation(validations: Sequence["Validation"]) -> None:
    from wsjax import fit
    from wsjax.hardware import extrapolation

    first = validations[0]
    for one in validations:
        print(f"{one.hardware.name} on {one.table}")
        _show_metrics(
            (f"{column} {word}".strip(), metrics) for column, word, metrics in fit.metrics_rows(one)
        )
        if why := extrapolation(one.hardware, one.rows.rows.configurations._asdict()):
            print(f"extrapolated: {why}")
    rows = f"{len(first.worst)} worst rows" if len(first.worst) > 1 else "the only row"
    print(f"{rows} of {first.hardware.name}")
    left, spare = (0, 1, 2, 4, 5, 9), (1, 5, 9, 4)
    show_table(fit.WORST_HEADINGS, fit.worst_cells(first), left=left, spare=spare)
    if note := fit.tensor_core_note(first.rows.rows.configurations):
        print(note)
    left_out = dict(first.excluded)
    if first.not_modelled:
        left_out["not_modelled"] = first.not_modelled
    if left_out:
        print(f"left out: {fit.excluded_text(left_out)}")


def _show_metrics(rows: Iterable[tuple[str, "Metrics"]]) -> None:
    from wsjax import fit

    cells = [[name, *fit.cells(metrics)] for name, metrics in rows]
    show_table(["", *fit.SHORT.values()], cells, spare=(14, 2, 12, 7, 10, 11, 8, 4, 6))
