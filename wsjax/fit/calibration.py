"""Fit a machine's parameters to measured times: `calibrate`.

Problems are split first, by a hash of (m, n, k, batch, dtypes, layout): parameters are fitted to
the training problems, and the held-out ones say how good they are. Of a large table a sample is
fitted, spread evenly over problems; all figures are of all rows, predicted exactly.
"""

import datetime
import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsjax import __version__
from wsjax import hardware as hardware_
from wsjax.errors import InputError
from wsjax.fit import measured, validation
from wsjax.fit.measured import Measured
from wsjax.fit.metrics import Metrics
from wsjax.hardware import PARAMETERS, Hardware, Parameters, format_hardware, load_hardware
from wsjax.schema import LIMITERS

if TYPE_CHECKING:
    from wsjax.fit import rounds

SAMPLE_ROWS = 12_288
CORRELATED = 0.95
FEWEST_ROWS = 20
"""How many rows a fit of as many parameters or more needs: priors hold what they do not tell."""
FEWEST_PROBLEMS = 20
"""From how many held-out problems the spread of times is taken; a fit of fewer is warned of."""


class Fitted(NamedTuple):
    """One parameter after a calibration. `standard_error`: of its logarithm, NaN where it is not
    fitted. `status`: fitted; undetermined (held); no effect (on these rows); fixed."""

    name: str
    unit: str
    start: float
    value: float
    standard_error: float
    status: str


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found.

    correlated: pairs of parameters whose errors have a correlation beyond `CORRELATED`: the rows
    know them only together.
    singular_values: of the Jacobian in units of the priors: what is below 1 the rows do not tell.
    physics: figures of held-out problems, or of all where there are none, by the recurrences alone,
    where a learned correction was tried; None where none was.
    before: figures of the start's file as it is, with its learned correction, of the same problems.
    fitted_rows: those of the sample. excluded: rows that were left out, by reason. rows: all that
    count, and what the fitted machine says of them; is_training: which of them are of problems that
    were fitted. correlation: of the errors of all parameters, in the order of `parameters`.
    """

    hardware: Hardware = field(repr=False)
    parameters: tuple[Fitted, ...] = field(repr=False)
    correlated: tuple[tuple[str, str, float], ...]
    singular_values: tuple[float, ...] = field(repr=False)
    training: Metrics
    held_out: Metrics | None
    physics: Metrics | None
    before: Metrics
    fitted_rows: int
    excluded: dict[str, int]
    seconds: float
    rows: validation.Validated = field(repr=False, compare=False)
    is_training: np.ndarray = field(repr=False, compare=False)
    correlation: np.ndarray = field(repr=False, compare=False)

    @property
    def undetermined(self) -> list[str]:
        """The parameters that the rows do not determine."""
        return [p.name for p in self.parameters if p.status in ("undetermined", "no effect")]

    @property
    def judged(self) -> Metrics:
        """The figures to go by: of held-out problems, or of fitted ones where there are none."""
        return self.held_out or self.training

    @property
    def warnings(self) -> list[str]:
        """What to be warned of: a fit to few problems, or one that is no better than its start."""
        lines = [text] if (text := few_problems(self.training.problems)) else []
        if self.before.mape_pct < self.judged.mape_pct:
            lines.append(
                f"warning: the start predicts these rows better, with {self.before.mape_pct:.2f} % "
                f"mean error where the fit has {self.judged.mape_pct:.2f} %: keep it, fit more "
                "rows, or learn a correction (--residual)"
            )
        return lines


def calibrate(
    table: Any,
    start: str | Path | Hardware = "h200",
    *,
    name: str | None = None,
    fix: Collection[str] = (),
    free: Collection[str] = (),
    family_only: bool = False,
    residual: bool = False,
    held_out: float = 0.2,
    seed: int = 0,
) -> Calibration:
    """Fit the parameters of machine `start` to measured times.

    table: a measured table (path of any format of `wsjax import`, or DataFrame), or a list of them.
    start: where parameters start, and weakly stay: the machine's values where it has some, else
    typical ones. A calibrated machine's values move by some 30 % only where few rows ask for it,
    so that 50 rows adapt it to another machine.
    name: of the fitted machine; default: the start's, with "-fitted".
    fix: parameters that keep the start's value. free: only these are fitted. family_only: only
    those of the kernel family, on a machine that is known. residual: then learn a correction of
    what the parameters leave (`wsjax.fit.residual`), which is kept if it lowers the mean error of
    held-out problems. held_out: the share of problems that are kept out of the fit; 0 keeps none.
    seed: of the split, the sample and the starts.

    What the rows do not determine is named, and held at its prior; where the rows contradict that,
    at its neutral value, with which its term vanishes. Of a large table a sample is fitted, spread
    evenly over problems; all figures are of all rows.

    Raises InputError for a table that cannot be read, wrong names, or fewer rows than parameters.
    """
    from wsjax.fit import priors, rounds

    began = time.perf_counter()
    given = load_hardware(start)
    machine = given.physics
    chosen = priors.choose(machine, fix, free, family_only=family_only)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"--seed {seed}: give a whole number from 0, such as 0")
    if not isinstance(held_out, int | float) or not 0 <= held_out < 1:
        raise InputError(f"--held-out {held_out}: give a share from 0 to below 1, such as 0.2")
    rows = measured.read(table, machine.facts, seed=seed)
    modelled = rounds.modelled(rows, machine)
    excluded = dict(rows.excluded)
    if not modelled.all():
        excluded["not_modelled"] = int((~modelled).sum())
    rows = rows.take(modelled)
    training = rows.share >= held_out
    sample = measured.sample(rows.take(training), SAMPLE_ROWS, seed)
    if len(sample) < min(len(chosen), FEWEST_ROWS):
        raise InputError(
            f"{rows.table}: {len(sample)} rows are too few for {len(chosen)} parameters"
            f"{f' (left out: {measured.excluded_text(excluded)})' if excluded else ''}; "
            "measure more, or fit less: --free NAME,..., --family-only, a smaller --held-out"
        )
    if residual:
        _check_enough(rows.take(training))
    found = rounds.fit_parameters(sample, machine, chosen, seed)
    parameters = _parameters(machine, found)
    errors = {p.name: p.standard_error for p in parameters if p.status == "fitted"}
    kept = {p.name: machine.standard_errors.get(p.name) for p in parameters if p.status == "fixed"}
    fitted = replace(
        machine,
        name=name or f"{machine.name.removesuffix('-fitted')}-fitted",
        parameters=Parameters(*(p.value for p in parameters)),
        calibrated=True,
        standard_errors={k: v for k, v in kept.items() if v is not None} | errors,
        calibration={},
        span=measured.span(rows.take(training)),
        spread={},
        note="",
    )
    fitted, validated, physics = (
        _with_residual(rows, training, fitted, seed)
        if residual
        else (fitted, validation.evaluate(rows, fitted), None)
    )
    wider = len(sample) / (len(sample) - found.degrees)
    spread = _spread(validated, ~training, found.predicted_error, wider)
    fitted = replace(fitted, spread=spread)
    validated = validation.evaluate(rows, fitted)
    figures = [validation.metrics_of(validated, which) for which in (training, ~training)]
    has = bool((~training).any())
    before = validation.evaluate(rows.take(~training if has else training), given)
    result = Calibration(
        hardware=fitted,
        parameters=parameters,
        correlated=_correlated(found.correlation),
        singular_values=tuple(found.singular_values.tolist()),
        training=figures[0],
        held_out=figures[1] if has else None,
        physics=physics,
        before=validation.metrics_of(before),
        fitted_rows=len(sample),
        excluded=excluded,
        seconds=0.0,
        rows=validated,
        is_training=training,
        correlation=found.correlation,
    )
    record = _record(result, rows, machine)
    hardware = replace(fitted, calibration=record)
    hardware = replace(hardware, text=format_hardware(hardware))
    return replace(result, hardware=hardware, seconds=time.perf_counter() - began)


def few_problems(problems: int) -> str:
    """A warning where a fit saw few problems, else "": others may then not be predicted better than
    before, however many the rows are."""
    if problems >= FEWEST_PROBLEMS:
        return ""
    return (
        f"warning: fitted to {problems} problem{'s' if problems != 1 else ''}; below "
        f"{FEWEST_PROBLEMS}, others may be predicted no better than by the start: "
        "measure a few rows of each of more problems"
    )


def _check_enough(rows: Measured) -> None:
    """Raise InputError if these are too few to learn a correction from."""
    from wsjax.fit import residual

    problems = len(np.unique(rows.problem))
    if len(rows) < residual.FEWEST_ROWS or problems < residual.FEWEST_PROBLEMS:
        raise InputError(
            f"{rows.table}: {len(rows):,} rows of {problems:,} problems are too few to learn "
            f"from; measure {residual.FEWEST_ROWS:,} rows of {residual.FEWEST_PROBLEMS} problems, "
            "or leave out --residual"
        )


def _with_residual(
    rows: Measured, training: np.ndarray, fitted: Hardware, seed: int
) -> tuple[Hardware, validation.Validated, Metrics]:
    """The machine with a learned correction if that lowers the held-out error, what it predicts,
    and the figures without one."""
    from wsjax.fit import residual

    judged = ~training if (~training).any() else training
    plain = validation.evaluate(rows, fitted)
    physics = validation.metrics_of(plain, judged)
    learned = residual.learn(rows.take(training), fitted, seed)
    corrected = validation.evaluate(rows, learned)
    if validation.metrics_of(corrected, judged).mape_pct < physics.mape_pct:
        return learned, corrected, physics
    return fitted, plain, physics


def _parameters(start: Hardware, found: "rounds.Fit") -> tuple[Fitted, ...]:
    """Values as the file says them."""
    columns = (start.parameters, found.values, found.errors, found.status)
    return tuple(
        Fitted(
            name,
            PARAMETERS[name].unit,
            own,
            value if status == "fixed" else _rounded(value, 7),
            _rounded(error, 3) if status == "fitted" else math.nan,
            status,
        )
        for name, own, value, error, status in zip(PARAMETERS, *columns, strict=True)
    )


def _rounded(value: float, digits: int) -> float:
    """What a file says of a value: some digits."""
    return float(f"{value:.{digits}g}")


def _spread(
    found: validation.Validated, held_out: np.ndarray, parameter_error: float, wider: float
) -> dict[str, Any]:
    """The [spread] table: from held-out problems if there are enough, else from all rows. The fit
    saw these: other rows' errors are `wider` than theirs, and the parameters' errors come on top.
    """
    problems = found.rows.problem
    enough = len(np.unique(problems[held_out])) >= FEWEST_PROBLEMS
    which = held_out if enough else np.ones_like(held_out)
    error = np.log(found.rows.time_us / found.predicted_us) * (1.0 if enough else wider)
    codes = np.asarray([LIMITERS.index(word) for word in found.limiter])
    schedule = found.rows.configurations.schedule
    columns = (values[which] for values in (error, schedule, codes, problems))
    return hardware_.spread(
        hardware_.Errors(*columns), 0.0 if enough else _rounded(parameter_error, 3)
    )


def _correlated(correlation: np.ndarray) -> tuple[tuple[str, str, float], ...]:
    names = tuple(PARAMETERS)
    pairs = zip(*np.nonzero(np.triu(np.abs(correlation) > CORRELATED, 1)), strict=True)
    return tuple((names[i], names[j], float(correlation[i, j])) for i, j in pairs)


def _record(result: Calibration, rows: Measured, start: Hardware) -> dict[str, Any]:
    """The [calibration] table of the file."""
    record: dict[str, Any] = {
        "table": rows.table,
        "fingerprint": measured.fingerprint(rows),
        "start": start.name,
        "date": datetime.date.today().isoformat(),
        "wsjax": __version__,
        "rows": result.training.rows,
        "problems": result.training.problems,
    }
    if result.held_out is not None:
        figures = result.held_out
        record |= {f"held_out_{key}": getattr(figures, key) for key in ("rows", "problems")}
        record |= {
            f"held_out_{key}": round(getattr(figures, key), 3)
            for key in ("mape_pct", "median_ape_pct", "p95_ape_pct")
        }
    if result.physics is not None and result.hardware.residual:
        record["physics_mape_pct"] = round(result.physics.mape_pct, 3)
    return record | {"undetermined": result.undetermined}
