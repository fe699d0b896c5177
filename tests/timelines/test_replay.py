"""Traced kernels: read whole or refused clearly, and explained by the recurrences; wrong rules
are seen."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from paths import DATA

from wsjax.cli.main import main
from wsjax.errors import InputError
from wsjax.timelines import replay, traces
from wsjax.timelines.replay import Durations
from wsjax.timelines.traces import Trace

EXCERPT = DATA / "h200_trace_excerpt.csv.gz"
ISSUE_US = 0.06


def random_durations(seed: int, tiles: int, k_tiles: int, *, compute_us: float) -> Durations:
    """Latencies of about 1 µs that vary, of other durations `compute_us` the largest."""
    draw, steps = np.random.default_rng(seed), tiles * k_tiles
    last = np.arange(steps) % k_tiles == k_tiles - 1
    return Durations(
        load_us=draw.uniform(0.1, 0.2, steps),
        latency_us=draw.lognormal(0.0, 0.3, steps),
        compute_us=compute_us * draw.uniform(0.9, 1.1, steps),
        epilogue_us=np.where(last, draw.uniform(0.5, 1.0, steps), 0.0),
        start_us=np.zeros(steps),
        begin_us=0.3,
    )


def played(d: Durations, k_tiles: int, stages: int, warps: int, groups: int, flight: int):
    """What a trace of those durations shows: the recurrences, in a loop over steps."""
    steps = len(d.load_us)
    ready, start, end, came, done, turns = ([0.0] * steps for _ in range(6))
    comes, empty, retired = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    stored = np.zeros(steps // k_tiles)
    in_flight = flight and stages > 1
    for g in range(steps):
        first, last, tile = g % k_tiles == 0, g % k_tiles == k_tiles - 1, g // k_tiles
        comes[g] = done[g - 1] if g else d.begin_us
        freed = 0.0
        if g >= stages:
            h = g - stages
            freed = max(end[h], ready[h + 1]) if in_flight and (h + 1) % k_tiles else end[h]
        empty[g] = max(comes[g], freed)
        done[g] = empty[g] + d.load_us[g]
        ready[g] = done[g] + d.latency_us[g]
        turn = end[g - 1] if g else 0.0
        if first and g:
            own = tile - groups
            turn = max(turn if groups == 2 else 0.0, stored[own] if own >= 0 else 0.0)
        turns[g] = turn
        start[g] = max(ready[g], turn)
        end[g] = start[g] + d.compute_us[g]
        if last:
            stored[tile] = end[g] + d.epilogue_us[g]
            retired[g] = end[g]
    for g in range(steps):
        inside = g % k_tiles
        came[g] = retired[g - 2] if in_flight and inside > 1 else turns[g]
        if in_flight and inside:
            came[g] = came[g] if inside > 1 else max(ready[g - 1], came[g - 1])
            retired[g - 1] = start[g] + ISSUE_US
        elif inside:
            retired[g - 1] = end[g - 1]
    seen = np.maximum(ready, came)
    loads = {"slot_wait_start": comes, "slot_empty": empty, "load_issued": empty}
    events = {name: np.stack([values] * warps) for name, values in loads.items()}
    events |= {"data_wait_start": np.asarray(came), "data_ready_math_start": seen}
    events |= {"math_end": retired, "writeback_start": stored, "writeback_issued": stored}
    return Trace(("made", 1, 1, 1, 1, 0), k_tiles, stages, warps, groups, events), np.asarray(start)


def cases():
    return enumerate(product((1, 2, 4), (1, 2), (1, 2), (0, 1), (0.15, 1.5)))


def test_the_scan_plays_given_durations_as_a_loop_does():
    found, expected = [], []
    for seed, (stages, warps, groups, flight, compute_us) in cases():
        own = random_durations(seed, 3, 8, compute_us=compute_us)
        trace, start = played(own, 8, stages, warps, groups, flight)
        assert trace.mma_in_flight == (flight and stages > 1)
        found.append((trace, own))
        expected.append(start)
    for times, start in zip(replay.starts(found), expected, strict=True):
        np.testing.assert_allclose(times, start, rtol=1e-12)


def test_durations_come_back_as_far_as_a_trace_shows_them():
    """Starts are found exactly but for waits that are too short to be seen."""
    for seed, (stages, warps, groups, flight, compute_us) in cases():
        own = random_durations(100 + seed, 4, 16, compute_us=compute_us)
        own.latency_us[1] = 5.0  # one step at least whose data is late
        trace, start = played(own, 16, stages, warps, groups, flight)
        found = replay.durations(trace)
        np.testing.assert_allclose(found.start_us, start, atol=1e-9)
        error = np.abs(replay.starts([(trace, found)])[0] - start)
        assert error.max() <= replay.NO_WAIT_US
        assert np.median(error) < 0.02
        assert found.compute_us.max() <= own.compute_us.max() + replay.NO_WAIT_US
        known = (start > trace.events["data_wait_start"] + replay.NO_WAIT_US) & (
            trace.events["data_ready_math_start"] >= start
        )
        np.testing.assert_allclose(
            found.latency_us[known] + found.load_us[known],
            own.latency_us[known] + own.load_us[known],
            atol=1e-9,
        )


@pytest.fixture(scope="module")
def traced() -> list[Trace]:
    return traces.read(EXCERPT)


def test_the_reader_tells_configurations(traced):
    kinds = {
        trace.kernel[0]: (trace.stages, trace.dma_warps, trace.math_groups, trace.mma_in_flight)
        for trace in traced
    }
    assert kinds == {
        "m128n128k64s4d1w8e0tr": (4, 1, 1, 1),
        "m128n128k64s4d1w4pe0tr": (4, 1, 2, 1),
        "m128n128k64s6d2w8e0tr": (6, 2, 1, 1),
        "m128n128k64s1d1w8e0tr": (1, 1, 1, 0),
    }
    table: Any = pd.read_csv(EXCERPT)
    for trace in traced:
        rows = table[
            (table[list(traces.KERNEL)].astype(str) == [*map(str, trace.kernel)]).all(axis=1)
        ]
        assert trace.k_tiles == trace.kernel[3] // 64
        ends = rows[rows["event"] == "math_end"].sort_values(["wave", "kstep"])["t_ns"]
        np.testing.assert_allclose(trace.events["math_end"] * 1000, ends)


def end_error(trace: Trace, found: Durations) -> float:
    (start,) = replay.starts([(trace, found)])
    return (start[-1] - found.start_us[-1]) / (found.start_us[-1] - found.begin_us)


def test_the_recurrences_explain_measured_traces_and_others_do_not(traced):
    """A deeper ring, or slots that are freed without regard to an MMA in flight, end too early."""
    ends = []
    for trace in traced:
        found = replay.durations(trace)
        (start,) = replay.starts([(trace, found)])
        error = np.abs(start - found.start_us)
        period = np.ptp(found.start_us) / (trace.steps - 1)
        assert np.quantile(error, 0.95) < 0.1 * period
        assert abs(end_error(trace, found)) < 0.005
        deeper = end_error(trace._replace(stages=trace.stages + 1), found)
        ends.append((trace.stages, deeper, end_error(trace, replay.mean(trace, found))))
    stages, deeper, constant = np.asarray(ends).T
    assert np.all(deeper[stages == 1] < -0.3)
    assert np.all(deeper[stages == 4] < -0.01)
    assert np.mean(constant[stages == 4]) < -0.03


def test_steps_that_are_not_whole_are_left_out(tmp_path):
    table: Any = pd.read_csv(EXCERPT)
    one = table[(table["config_id"] == "m128n128k64s4d1w8e0tr") & (table["m"] == 1024)]
    cut = one.drop(one.index[(one["kstep"] == 50) & (one["event"] == "math_end")])
    cut.to_parquet(tmp_path / "cut.parquet")
    (trace,) = traces.read(tmp_path / "cut.parquet")
    assert (trace.steps, trace.k_tiles) == (50, 64)
    (whole,) = traces.read(_csv(tmp_path, one.sample(frac=1, random_state=1)))
    assert whole.steps == 64
    np.testing.assert_array_equal(whole.events["math_end"][:50], trace.events["math_end"])
    assert np.abs(replay.check(tmp_path / "cut.parquet")["end_pct"]).max() < 15


def _csv(directory: Path, table: Any) -> Path:
    path = directory / "events.csv"
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (lambda t: t.drop(columns=["slot", "t_ns"]), ["column 'slot' is missing", "'t_ns'"]),
        (lambda t: t.head(0), ["has no rows below its header"]),
        (
            lambda t: t.assign(event="math_and"),
            ["first 'math_and', are unknown words; did you mean"],
        ),
        (lambda t: t.assign(t_ns="late", wave=-1), ["first 'late', are no times", "'wave'"]),
        (lambda t: pd.concat([t, t.head(3)]), ["3 events are there twice"]),
        (lambda t: t[t["event"] != "math_end"], ["no event math_end"]),
        (lambda t: t[t["kstep"] != 0], ["its first step is not whole"]),
        (lambda t: t.assign(wave=t["wave"] * 10**9 + 10**9), ["steps are missing"]),
        (lambda t: t.assign(slot=40), ["rings have at most 32 slots"]),
    ],
)
def test_tables_that_are_no_traces(spoil, parts, tmp_path):
    table = pd.read_csv(EXCERPT)
    table = table[table["cta"].eq(0) & table["m"].eq(1024)].head(386)
    with pytest.raises(InputError) as caught:
        replay.check(_csv(tmp_path, spoil(table)))
    for part in parts:
        assert part in str(caught.value)


def test_the_verb(tmp_path, capsys):
    report = tmp_path / "report"
    assert main(["validate", "--trace", str(EXCERPT), "--report", str(report)]) == 0
    shown = capsys.readouterr().out
    for part in ("m128n128k64s6d2w8e0tr", "latency", "end %"):
        assert part in shown
    assert {p.name for p in report.iterdir()} == {"ctas.csv", "configurations.csv", "report.md"}
    assert main(["validate", "--trace", str(EXCERPT), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["configurations"]
    assert len(record) == 15
    everything = {row["durations"]: row["end_pct"] for row in record if row["config_id"] == "all"}
    assert everything["step"] < 0.2 < everything["latency"] < everything["mean"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("validate", "give tables of measured times, or --trace FILE"),
        ("validate a.csv --trace b.csv", "--trace: not with tables"),
        ("validate --trace b.csv --against toy", "or --against"),
        ("validate --trace absent.csv", "absent.csv: no such file"),
    ],
)
def test_mistakes_on_the_command_line(words, part, capsys):
    assert main(words.split()) == 2
    assert part in capsys.readouterr().err
