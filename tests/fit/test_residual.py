"""The learned correction: its arithmetic by hand, where it holds, and what must not see it."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from corrected import corrected
from paths import DATA

import wsjax
from wsjax import engine, hardware
from wsjax.cli.main import main
from wsjax.errors import InputError
from wsjax.fit import measured, residual, validation
from wsjax.hardware import FEATURES, LESS, MORE, format_hardware, load_hardware, parse_hardware
from wsjax.model import CLIP, features
from wsjax.schema import COLUMNS, Configuration

MACHINE = corrected()
HEAD = MACHINE.head
KERNEL = {"block_m": 128, "block_n": 128, "block_k": 64, "layout": "nt"}
PROBLEMS = [(4096, 4096, 4096), (512, 1024, 2048), (130, 1032, 200), (1, 128, 64)]


def test_every_feature_has_a_name():
    inputs, _ = engine.columns(rows_of(frame()), MACHINE)
    row = jax.tree.map(lambda x: float(np.asarray(x).flat[0]), inputs)
    named = features(engine.floats(row.configuration), row.machine, jnp.asarray(10.0))
    assert tuple(named) == FEATURES


def frame(**more):
    sizes = pd.DataFrame(PROBLEMS, columns=["m", "n", "k"])
    return sizes.assign(**(KERNEL | {"stages": 4, "schedule": "cooperative"} | more))


def by_hand(machine, c: Configuration, time_us: float) -> float:
    """The factor of one configuration, one product at a time."""
    inputs, _ = engine.columns(c, machine)
    row = jax.tree.map(lambda x: float(np.asarray(x).flat[0]), inputs)
    named = features(engine.floats(row.configuration), row.machine, jnp.asarray(time_us))
    own = machine.residual
    net = own.network

    def silu(x):
        return x / (1.0 + math.exp(-x))

    z = [
        max(-CLIP, min(CLIP, (float(named[name]) - float(mean)) * float(scale)))
        for name, mean, scale in zip(own.inputs, net.mean, net.scale, strict=True)
    ]
    for weights, bias in ((net.weights_1, net.bias_1), (net.weights_2, net.bias_2)):
        z = [
            silu(sum(x * float(w) for x, w in zip(z, column, strict=True)) + float(b))
            for column, b in zip(weights.T, bias, strict=True)
        ]
    last = sum(x * float(w) for x, w in zip(z, net.weights_3, strict=True)) + float(net.bias_3)
    limit = LESS if last < 0 else MORE
    return math.exp(limit * math.tanh(last / limit))


def rows_of(frame):
    return Configuration(*(np.atleast_1d(x) for x in _resolved(frame)))


def _resolved(frame):
    from wsjax.schema import read_rows

    rows = read_rows({name: frame[name] for name in frame}, len(frame), list(frame))
    full = hardware.resolve(rows.columns, MACHINE)
    return [np.broadcast_to(x, len(frame)) for x in full]


def test_times_are_the_recurrences_times_the_factor():
    rows = rows_of(frame())
    plain, found = (engine.evaluate(rows, m) for m in (MACHINE.physics, MACHINE))
    for at in range(len(PROBLEMS)):
        one = Configuration(*(x[at : at + 1] for x in rows))
        expected = by_hand(MACHINE, one, plain.time_us[at])
        assert found.time_us[at] / plain.time_us[at] == pytest.approx(expected, rel=1e-5)
    assert np.ptp(found.time_us / plain.time_us) > 0.01
    parts = found.launch_us + found.fill_us + found.steady_us + found.epilogue_us
    np.testing.assert_allclose(parts, found.time_us, rtol=1e-12)
    np.testing.assert_allclose(
        found.tflops * found.time_us, plain.tflops * plain.time_us, rtol=1e-12
    )
    for name in ("launch_us", "fill_us", "epilogue_us", "math_wait_us", "dma_wait_us", "limiter"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))


@pytest.mark.parametrize(
    "change",
    [{"dtype_in": "fp16"}, {"block_k": 32}, {"l2_state": "warm"}, {"batch": 2}, {"grid_ctas": 7}],
)
def test_outside_the_span_it_is_off(change):
    wide = frame(**change)
    found, plain = (wsjax.predict(wide, m) for m in (MACHINE, MACHINE.physics))
    assert all(found["extrapolated"])
    np.testing.assert_array_equal(found["time_us"], plain["time_us"])


def test_twins_have_the_same():
    """DMA warps that take no time to start make no difference, whatever was measured."""
    twin = replace(MACHINE, span=MACHINE.span | {"dma_warps": [1, 1]})
    one, two = (wsjax.predict(frame(dma_warps=warps), twin)["time_us"] for warps in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_swept_machine_has_none():
    rows = rows_of(frame())
    swept = {"sms": np.full(len(PROBLEMS), MACHINE.facts.sms)}
    found = engine.times_us(rows, MACHINE, swept)
    np.testing.assert_array_equal(found, engine.times_us(rows, MACHINE.physics, swept))


def test_an_illegal_row_has_no_time():
    found = wsjax.predict(frame(stages=32), MACHINE)
    assert all(found["time_us"].isna())
    assert not any(found["legal"])


def test_gradients_are_finite():
    draw = np.random.default_rng(0)
    sizes = pd.DataFrame(draw.integers(1, 9000, (64, 3)), columns=["m", "n", "k"])
    rows = rows_of(sizes.assign(**KERNEL, stages=draw.integers(2, 7, 64), schedule="pingpong"))
    inputs, _ = engine.columns(rows, MACHINE)

    def time_us(parameters, i):
        machine = i.machine._replace(parameters=parameters)
        found = engine.predict_row(i.configuration, machine, None).prediction.time_us
        assert HEAD
        return found * engine.learned(HEAD, i.configuration, machine, found)

    parameters = inputs.machine.parameters
    with jax.enable_x64(True):
        gradient = jax.jit(jax.vmap(jax.grad(time_us), in_axes=(None, inputs.axes)))(
            parameters, inputs
        )
    assert all(np.isfinite(x).all() for x in gradient)


SPEC = """
hardware = "{machine}"
[columns]
m = [64, 777, 4096]
n = [512, 3000]
k = [256, 4096]
layout = "nt"
block_m = [64, 128, 256]
block_n = [64, 128]
block_k = [64, 128]
stages = {{ from = 2, to = 6, step = 1 }}
mma_in_flight = 1
dma_warps = [1, 2]
schedule = ["serial", "pingpong", "cooperative"]
{output}
"""


def test_best_of_is_the_best_of_all_rows(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(format_hardware(MACHINE))
    everything, best = (tmp_path / name for name in ("all", "best"))
    for out, output in ((everything, ""), (best, '[output]\nkeep = "best"\nbest = 3')):
        spec = tmp_path / f"{out.name}.toml"
        spec.write_text(SPEC.format(machine=path, output=output))
        wsjax.sweep(spec, out)
    rows, found = (wsjax.open(out).to_table().to_pandas() for out in (everything, best))
    rows = rows[rows["legal"]].sort_values(["m", "n", "k", "time_us"], kind="stable")
    expected = rows.groupby(["m", "n", "k"]).head(3)
    keys = ["m", "n", "k", "time_us"]
    np.testing.assert_array_equal(
        np.sort(found[keys].to_numpy(), axis=0), np.sort(expected[keys].to_numpy(), axis=0)
    )
    given = [name for name in rows if name in COLUMNS]
    again = wsjax.predict(rows[given], MACHINE)
    np.testing.assert_allclose(again["time_us"], rows["time_us"], rtol=1e-6)


def test_the_recurrences_never_see_it():
    given = dict(zip("mnk", PROBLEMS[1], strict=True)) | KERNEL | {"stages": 4}
    assert wsjax.trace(MACHINE, **given).time_us == wsjax.trace(MACHINE.physics, **given).time_us
    found = wsjax.explain(MACHINE, **given)
    one = wsjax.predict(pd.DataFrame([given]), MACHINE)["time_us"][0]
    assert found.timeline.time_us != found.timeline.predicted_us == pytest.approx(one, rel=1e-9)
    stage = next(step for step in found.steps if step.name == "-1 stage")
    one = wsjax.predict(pd.DataFrame([given | {"stages": 3}]), MACHINE)["time_us"][0]
    assert stage.time_us == pytest.approx(one, rel=1e-9)
    assert stage.change == pytest.approx(one / found.timeline.predicted_us - 1, rel=1e-9)


def test_trace_and_explain_say_what_predict_gives(tmp_path, capsys):
    path = tmp_path / "corrected.toml"
    path.write_text(format_hardware(MACHINE))
    given = {"m": 512, "n": 1024, "k": 2048} | KERNEL | {"stages": 4}
    one = wsjax.predict(pd.DataFrame([given]), MACHINE)["time_us"][0]
    options = "-m 512 -n 1024 -k 2048 --tile 128x128x64 --layout nt --stages 4 --hardware"
    command = options.split()
    assert main(["trace", *command, str(path)]) == 0
    said = f"with the learned correction, which has no events: {one:,.3f} µs"
    assert said in capsys.readouterr().out
    assert main(["explain", *command, str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith(f"{one:,.3f} µs, ")
    assert "by the recurrences alone" in lines[3]
    assert main(["trace", *command, "h200-datasheet"]) == 0
    assert "learned correction" not in capsys.readouterr().out


def test_the_file_keeps_it():
    text = format_hardware(MACHINE)
    assert parse_hardware(text) == MACHINE
    assert max(map(len, text.splitlines())) < 2_000
    assert load_hardware("h200").physics.residual is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("widths = [5, 3]", "widths = [5, 4]"),
            "numbers: 332 bytes, .* has 360",
        ),
        (('numbers = """\n', 'numbers = """\n!'), "numbers: not base64"),
        (("widths = [5, 3]\n", ""), "residual: widths: missing"),
        (("widths = [5, 3]", "widths = [5]"), "expected two whole numbers"),
        (('"k_tail"', '"k_tall"'), "k_tall"),
    ],
)
def test_mistakes(change, message):
    text = format_hardware(MACHINE)
    assert change[0] in text
    with pytest.raises(InputError, match=message):
        parse_hardware(text.replace(*change))


def test_a_changed_machine_does_not_inherit_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(format_hardware(MACHINE))
    for text, kept in (("note = 'same'", True), ("sms = 100", False)):
        other = tmp_path / "other.toml"
        other.write_text(f'base = "{path}"\n{text}\n')
        assert (load_hardware(other).residual is not None) is kept


def test_learning_lowers_the_error_of_problems_kept_out():
    """Of times that differ from the recurrences by a smooth function of sizes and kernel."""
    base = load_hardware("h200-gluon").physics
    rows = measured.read(DATA / "h200_gemm_ws_excerpt.csv.gz", base.facts)
    known = validation.evaluate(rows, base)
    rows, plain = known.rows, known.predicted_us
    c = rows.configurations
    bend = 0.08 * np.sin(np.log2(c.k)) + 0.05 * (c.stages > 3) * np.log2(c.block_n / 64)
    rows = replace(rows, time_us=plain * np.exp(bend))
    training = rows.share >= 0.3
    effort = residual.Effort(teachers=2, epochs=600, steps=3_000)
    found, again = (residual.learn(rows.take(training), base, effort=effort) for _ in range(2))
    assert found.residual == again.residual

    def error(machine):
        predicted_us = validation.evaluate(rows, machine).predicted_us
        return np.abs(np.log(predicted_us / rows.time_us))[~training].mean()

    assert error(found) < 0.8 * error(base)


def test_few_rows_are_refused_before_any_fit():
    with pytest.raises(InputError, match="too few to learn from; measure 1,000 rows of 50"):
        wsjax.calibrate(DATA / "h200_gemm_ws_excerpt.csv.gz", "h200-gluon", residual=True)
