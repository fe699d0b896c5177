"""Calibration: parameters come back, what is not determined is named, nothing leaks, all is said.

Times are made from known parameters on the configurations of the excerpts in tests/data (see
test_predict), so that the truth is known.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paths import DATA

from wsjax.cli.main import main
from wsjax.errors import InputError
from wsjax.fit import least_squares as fit
from wsjax.fit import measured, priors, rounds, validation
from wsjax.fit.calibration import Calibration, calibrate
from wsjax.hardware.machine import Hardware, load_hardware, parse_hardware
from wsjax.hardware.parameters import PARAMETERS
from wsjax.schema.columns import COLUMNS, GEMM

GLUON = DATA / "h200_gemm_ws_excerpt.csv.gz"
START = load_hardware("h200-datasheet")
NOISE = 0.02


def true_machine(seed: int) -> Hardware:
    """A machine whose every parameter differs from where a fit starts."""
    chooser = np.random.default_rng(seed)
    values = {
        name: PARAMETERS[name].typical
        * np.exp(0.3 * PARAMETERS[name].spread * chooser.standard_normal())
        for name in priors.candidates(START)
    }
    return replace(START, parameters=START.parameters._replace(**values))


def timed(machine: Hardware, seed: int, rows: int | None = None) -> pd.DataFrame:
    """The excerpt's configurations, with the machine's times and noise."""
    table = measured.read(GLUON, START.facts)
    chooser = np.random.default_rng(seed)
    if rows is not None:
        table = table.take(np.sort(chooser.permutation(len(table))[:rows]))
    configurations = {
        name: np.asarray(column.choices, object)[values] if column.choices else values
        for (name, column), values in zip(COLUMNS.items(), table.configurations, strict=True)
    }
    noise = np.exp(NOISE * chooser.standard_normal(len(table)))
    return pd.DataFrame(configurations).assign(
        time_us_measured=rounds.exact_times(table, machine) * noise
    )


@pytest.fixture(scope="module")
def truth() -> Hardware:
    return true_machine(1)


@pytest.fixture(scope="module")
def table(truth) -> pd.DataFrame:
    return timed(truth, 1)


@pytest.fixture(scope="module")
def found(table) -> Calibration:
    return calibrate(table, START)


def test_determined_parameters_come_back_within_their_errors(found, truth):
    fitted = [p for p in found.parameters if p.status == "fitted"]
    assert len(fitted) >= 8
    scores = np.asarray(
        [np.log(p.value / getattr(truth.parameters, p.name)) / p.standard_error for p in fitted]
    )
    assert np.abs(scores).max() < 4
    assert np.mean(np.abs(scores) < 2) > 0.85
    assert found.training.mape_pct < 100 * NOISE
    assert found.held_out is not None
    assert found.held_out.mape_pct < 200 * NOISE


def test_the_starts_error_stands_beside_the_fits(found):
    apart = found.rows.rows.take(~found.is_training)
    before = validation.metrics_of(validation.evaluate(apart, START))
    assert found.before == before
    assert found.before.rows == found.held_out.rows
    assert found.before.mape_pct > found.held_out.mape_pct


def test_undetermined_parameters_are_named_and_stay_at_their_prior(found):
    """A table of persistent kernels says nothing of serial ones, nor how a sum is shared."""
    named = set(found.undetermined)
    assert {"sync_us", "launch_saved_us", "overhead_hidden"} <= named
    assert found.hardware.calibration["undetermined"] == found.undetermined
    assert not named & set(found.hardware.standard_errors)
    silent = {p.name: p for p in found.parameters if p.status == "no effect"}
    assert silent["overhead_hidden"].value == PARAMETERS["overhead_hidden"].typical
    assert min(found.singular_values) < 1 < max(found.singular_values)


def test_the_file_says_all_and_comes_back(found, table):
    text = found.hardware.text
    assert parse_hardware(text) == found.hardware
    assert found.hardware.calibrated
    record = found.hardware.calibration
    assert record["rows"] + record["held_out_rows"] == len(table)
    assert record["start"] == "h200-datasheet"
    assert len(record["fingerprint"]) == 64
    assert found.hardware.span["schedule"] == ["persistent", "pingpong"]
    assert found.hardware.span["stages"][0] >= 1


def test_the_same_table_gives_the_same_file(found, table):
    again = calibrate(table.sample(frac=1, random_state=5), START)
    assert again.hardware.calibration["fingerprint"] == found.hardware.calibration["fingerprint"]
    same = calibrate(table, START)
    assert same.hardware.text == found.hardware.text


def test_held_out_problems_are_whole_problems(table):
    """Warm and cold rows of one problem stay together; another seed splits otherwise."""
    rows = measured.read(GLUON, START.facts, repeats=True)
    keys = np.stack([getattr(rows.configurations, name) for name in GEMM], axis=1)
    _, problem = np.unique(keys, axis=0, return_inverse=True)
    for code in np.unique(problem):
        assert len(np.unique(rows.share[problem == code])) == 1
    assert 0.1 < np.mean(rows.share < 0.2) < 0.3
    other = measured.read(GLUON, START.facts, repeats=True, seed=1)
    assert np.mean((rows.share < 0.2) == (other.share < 0.2)) < 1


def test_only_what_is_asked_for_is_fitted(table):
    fixed = calibrate(table, START, fix=["launch_us"], family_only=True, held_out=0)
    fitted = {p.name for p in fixed.parameters if p.status == "fitted"}
    assert fitted
    assert all(PARAMETERS[name].family for name in fitted)
    assert fixed.hardware.parameters.launch_us == START.parameters.launch_us
    assert fixed.held_out is None
    one = calibrate(table, START, free=["launch_us"])
    assert set(one.hardware.standard_errors) == {"launch_us"}


def test_fifty_rows_adapt_another_machine(found, truth):
    """A machine that differs in a few parameters: better than before, and no wild values."""
    other = replace(
        truth,
        parameters=truth.parameters._replace(
            launch_us=truth.parameters.launch_us * 1.6,
            dram_throughput_bytes_per_us=truth.parameters.dram_throughput_bytes_per_us / 1.6,
        ),
    )
    few, rest = timed(other, 7, 50), timed(other, 8)
    adapted = calibrate(few, found.hardware, held_out=0)
    before = validation.validate(rest, found.hardware).metrics.mape_pct
    after = validation.validate(rest, adapted.hardware).metrics.mape_pct
    assert after < 0.6 * before
    assert after < 8
    moved = np.log(
        np.asarray([p.value / p.start for p in adapted.parameters if p.status == "fitted"])
    )
    assert np.abs(moved).max() < 1
    assert "parameters" in adapted.hardware.spread


def test_outliers_do_not_lead_the_fit(table, truth):
    spoilt = table.copy()
    rows = np.random.default_rng(0).permutation(len(table))[: len(table) // 20]
    spoilt.loc[rows, "time_us_measured"] *= 5
    result = calibrate(spoilt, START)
    clean = validation.validate(timed(truth, 9), result.hardware).metrics
    assert clean.median_ape_pct < 150 * NOISE


def test_slopes_are_the_exact_models(truth):
    """The slopes that a fit takes are those of exact predictions, where the closed form is."""
    rows = measured.read(GLUON, START.facts)
    prior = priors.prior_of(truth, priors.candidates(truth))
    z = np.zeros(len(PARAMETERS))
    inputs, _ = rounds.engine.columns(rows.configurations, truth)
    sample = fit.sample(inputs, rows.time_us, np.zeros(len(rows)), np.ones(len(rows)))
    with rounds.jax.enable_x64(True):
        _, slope = fit.log_times(z, prior, sample)
        slope = slope / prior.log_spread(z)
    position, step = list(PARAMETERS).index("launch_us"), 1e-4
    moved = [
        rounds.exact_times(
            rows,
            replace(
                truth,
                parameters=truth.parameters._replace(
                    launch_us=truth.parameters.launch_us * np.exp(sign * step)
                ),
            ),
        )
        for sign in (1, -1)
    ]
    expected = np.log(moved[0] / moved[1]) / (2 * step)
    assert slope[:, position] == pytest.approx(expected, abs=0.05)
    assert np.median(np.abs(slope[:, position] - expected)) < 1e-6


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"fix": ["launch"]}, "--fix launch: no parameter that can be fitted; did you mean"),
        ({"free": ["sms"]}, "--free sms: no parameter"),
        ({"fix": list(priors.candidates(START))}, "no parameter is left to fit"),
        ({"held_out": 1.0}, "--held-out 1.0: give a share"),
    ],
)
def test_wrong_choices(table, change, part):
    with pytest.raises(InputError, match=part):
        calibrate(table, START, **change)


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (lambda t: t.head(9), "rows are too few for"),
        (
            lambda t: t.assign(status="failed"),
            r"no row has a measured time that counts \(2.. failed",
        ),
        (lambda t: t.assign(time_us_measured=np.nan), "no_time"),
        (lambda t: t.assign(time_us_measured=np.inf), "infinite"),
        (lambda t: t.assign(split_k=2), "split_k"),
        (
            lambda t: t.drop(columns="time_us_measured"),
            "no column of measured times; say which it is to `wsjax import`",
        ),
        (lambda t: t.drop(columns=["m", "block_k"]), "'m' is missing"),
    ],
)
def test_tables_that_cannot_be_fitted(table, spoil, part):
    with pytest.raises(InputError, match=part):
        calibrate(spoil(table), START)


def test_the_verbs(table, tmp_path, capsys):
    path, out, report = tmp_path / "t.csv", tmp_path / "mine.toml", tmp_path / "report"
    table.assign(group=np.where(table["m"] > 512, "large", "small")).to_csv(path, index=False)
    command = ["calibrate", str(path), "--start", "h200-datasheet", "--out", str(out)]
    assert main([*command, "--fix", "sync_us,launch_us", "--report", str(report)]) == 0
    shown = capsys.readouterr().out
    assert "held-out problems" in shown
    assert "not determined by these rows, so held: " in shown
    machine = load_hardware(out)
    assert (machine.name, machine.parameters.launch_us) == ("mine", START.parameters.launch_us)
    assert {p.name for p in report.iterdir()} >= {"parameters.csv", "correlated.csv", "report.md"}

    check = ["validate", str(path), "--hardware", str(out), "--against", "h200-datasheet"]
    assert main([*check, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    against = record.pop("against")
    assert record["rows"] == against["rows"] == len(table)
    assert record["mape_pct"] < against["mape_pct"]
    assert against["coverage_90_pct"] is None
    assert against["extrapolated_rows"] == len(table)
    assert record["extrapolated_rows"] < len(table) / 4
    assert 80 < record["coverage_90_pct"] <= 100
    assert main([*check, "--report", str(report)]) == 0
    shown = capsys.readouterr().out
    for part in ("group small", "schedule pingpong", "limiter load", "20 worst rows of mine"):
        assert part in shown
    rows = pd.read_parquet(report / "rows.parquet")
    assert len(rows) == len(table)
    worst = pd.read_csv(report / "worst.csv")["error_pct"].abs()
    assert worst.iloc[0] == pytest.approx(rows["error_pct"].abs().max())
    assert worst.is_monotonic_decreasing


def test_what_the_verb_says(found, tmp_path, capsys, monkeypatch):
    out, report, other = (tmp_path / name for name in ("mine.toml", "report", "other"))
    command = ["calibrate", "t.csv", "--out", str(out)]

    def say(result, *options, code=0):
        monkeypatch.setattr("wsjax.fit.calibrate", lambda *_, **__: result)
        assert main([*command, *options]) == code
        assert out.read_text() == found.hardware.text
        out.unlink()
        return capsys.readouterr()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    whole = found.training.rows
    assert f"\n{whole:,} rows fitted" in say(found).out
    sampled = replace(found, fitted_rows=99)
    shown = say(sampled, "--report", str(report)).out
    assert f"a sample of 99 of {whole:,} rows fitted" in shown
    assert f"report: {report}" in shown
    quiet = say(found, "--quiet")
    assert (quiet.out, quiet.err) == ("", "")
    assert "no problem is held out by --held-out 0.2" in say(replace(found, held_out=None)).out
    assert len(repr(found)) < 2000
    assert "by the start, h200" in shown
    assert "the learned correction of h200 is left out: it holds for its own" in shown
    assert "warning: the start" not in shown
    better = found.before._replace(mape_pct=found.held_out.mape_pct / 2)
    assert f"with {better.mape_pct:.2f} % mean error" in say(replace(found, before=better)).out
    assert "warning: the start predicts these rows better" in say(replace(found, before=better)).out
    assert "is not calibrated" not in say(found).out
    nothing = tuple(
        p._replace(status="undetermined", value=2.0, start=1.0)
        if p.name == "sync_us"
        else p._replace(status="undetermined", value=p.start)
        for p in found.parameters
    )
    shown = say(replace(found, parameters=nothing), "--start", "h200-datasheet").out
    assert "costs error: sync_us 1 to 2\n" in shown
    count = len(nothing)
    assert f"warning: {count} of {count} parameters are not determined" in shown
    assert "start from a machine that is (h200, h200-cutlass, h200-gluon)" in shown.replace(
        "\n", " "
    )

    monkeypatch.setattr("wsjax.fit.ablate", interrupt)
    say(found, "--ablate", "--report", str(other), code=130)
    assert (other / "report.md").exists()
    assert main([*command, "--ablate", "--quiet"]) == 2
    assert "--ablate with --quiet shows nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("calibrate absent.csv --out a.toml", "absent.csv: no such file"),
        ("calibrate {gluon} --out a.txt", "ends in .toml"),
        ("calibrate {gluon} --out absent/a.toml", "there is no directory absent"),
        ("calibrate {gluon} --out . --start toy", "ends in .toml"),
        ("calibrate {gluon} --out a.toml --start toyy", "did you mean 'toy'"),
        ("calibrate {gluon} --out a.toml --report a.csv", "--report takes a directory"),
        ("validate {gluon} --hardware toyy", "did you mean 'toy'"),
        ("validate {gluon} --against toyy", "did you mean 'toy'"),
        ("validate {gluon} --report a.csv", "--report takes a directory"),
    ],
)
def test_mistakes_on_the_command_line(words, part, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x")
    assert main(words.format(gluon=GLUON).split()) == 2
    shown = capsys.readouterr()
    assert part in shown.err
    assert not Path("a.toml").exists()
    assert not shown.out
