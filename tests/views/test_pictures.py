"""Timelines in files and on the terminal, and traced kernels beside them."""

import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from paths import DATA

from wsjax import trace
from wsjax.cli.main import main
from wsjax.errors import InputError
from wsjax.hardware import format_hardware, load_hardware
from wsjax.timelines import scene as scenes
from wsjax.timelines import traces
from wsjax.timelines.scene import path_text, scene
from wsjax.timelines.slices import columns, covered, merged
from wsjax.timelines.timeline import Timeline
from wsjax.views import html, picture, timeline_files
from wsjax.views.timeline_files import write_timeline
from wsjax.views.timeline_text import timeline_text

TRACED = DATA / "h200_trace_excerpt.csv.gz"
TOY = "-m 512 -n 512 -k 256 --tile 128x128x64 --stages 2 --schedule serial --hardware toy"
SHAPE = {"m": 1024, "n": 4096, "k": 1024, "block_m": 128, "block_n": 128, "block_k": 64}


@pytest.fixture(scope="module")
def kernel() -> Timeline:
    return trace("h200-gluon", **SHAPE, stages=4, dma_warps=2, schedule="pingpong", math_warps=8)


def run(capsys, command: str, code: int = 0):
    assert main(command.split()) == code
    return capsys.readouterr()


# --- Chrome's trace format ---


def read_chrome(path: Path) -> tuple[dict[int, str], list[tuple[str, str, float, float]], list]:
    """Tracks, slices as (track, name, begin, end), and counters of a trace file, whose schema is
    checked event by event: what a viewer needs of each phase, and B and E in pairs that nest."""
    whole = json.loads(path.read_text())
    assert set(whole) == {"traceEvents", "displayTimeUnit", "otherData"}
    names, found, counters = {}, [], []
    stacks = defaultdict(list)
    last = defaultdict(float)
    for event in whole["traceEvents"]:
        assert event["ph"] in "BECM"
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                names[event["tid"]] = event["args"]["name"]
            continue
        assert isinstance(event["ts"], float)
        assert event["ts"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
            counters.append((event["ts"], event["args"]))
            continue
        track = event["tid"]
        assert event["ts"] >= last[track] - 1e-9  # in order, so that sorting keeps the pairs
        last[track] = event["ts"]
        if event["ph"] == "B":
            stacks[track].append(event)
        else:
            begun = stacks[track].pop()
            assert begun["name"] == event["name"]
            found.append((names[track], event["name"], begun["ts"], event["ts"]))
    assert not any(stacks.values())
    return names, found, counters


@pytest.mark.parametrize("dma_warps", [1, 2])
def test_a_chrome_trace_ends_and_waits_as_predicted(capsys, tmp_path, dma_warps):
    out = tmp_path / "t.json"
    command = f"-m 1024 -n 4096 -k 1024 --tile 128x128x64 --stages 3 --dma-warps {dma_warps}"
    machine = tmp_path / "physics.toml"
    machine.write_text(format_hardware(load_hardware("h200-gluon").physics))
    shown = run(capsys, f"trace {command} --hardware h200-gluon --out {out}")
    assert f"written to {out}" in shown.out
    predicted = json.loads(run(capsys, f"predict {command} --hardware {machine} --json").out)
    names, found, counters = read_chrome(out)
    assert max(end for *_, end in found) == pytest.approx(predicted["time_us"], rel=1e-9)
    waits = defaultdict(float)
    for track, name, begin, end in found:
        if name.startswith("wait"):
            waits[track.split()[0]] += end - begin
    assert waits["MATH"] == pytest.approx(predicted["math_wait_us"], rel=1e-9)
    assert waits["DMA"] == pytest.approx(predicted["dma_wait_us"], rel=1e-9, abs=1e-9)
    assert len(names) == 2 + dma_warps
    assert all(c["filled"] >= 0 and c["filled"] + c["loading"] <= 3 for _, c in counters)
    steps = predicted["k_tiles"] * predicted["waves"]
    assert sum(name == "compute" for _, name, *_ in found) == steps
    assert sum(name == "load" for _, name, *_ in found) == steps * dma_warps
    assert sum(name.startswith("wave") for _, name, *_ in found) == predicted["waves"]


# --- pictures ---


def test_still_pictures(kernel, tmp_path):
    found = scene(kernel, 500)
    picture.write(found, tmp_path / "t.png")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    picture.write(found, tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text()
    for words in ("critical path", "MATH group 2", "DMA warp B", "-bound: ", "pingpong"):
        assert words in text
    picture.write(found, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


def test_a_page_needs_nothing_else(kernel, tmp_path):
    write_timeline(kernel, tmp_path / "t.html")
    text = (tmp_path / "t.html").read_text()
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text)
    (found,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(found)
    assert data["time"] == kernel.time_us
    assert [window["name"] for window in data["windows"]][:2] == ["whole kernel", "first steps"]


@pytest.mark.parametrize(("kind", "library"), [("svg", "matplotlib"), ("html", "plotly")])
def test_a_library_that_is_not_there_is_asked_for(capsys, tmp_path, monkeypatch, kind, library):
    def absent(name, *_):
        return None if name == library else object()

    monkeypatch.setattr("importlib.util.find_spec", absent)
    monkeypatch.setattr(picture, "find_spec", absent)
    shown = run(capsys, f"trace {TOY} --out {tmp_path / 't'}.{kind}", 2)
    assert library in shown.err
    assert "wsjax[report]" in shown.err
    assert html.EXTRA


def test_covered_time_is_what_slices_last_between_edges():
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 10, 40))
    own = merged([columns(0, 3, times[::2], times[1::2], np.arange(20), 1, False)])
    edges = np.linspace(0, 10, 23)
    for begin, end, share in zip(edges[:-1], edges[1:], covered(own, edges), strict=True):
        inside = np.minimum(own.end_us, end) - np.maximum(own.begin_us, begin)
        assert share == pytest.approx(np.maximum(inside, 0).sum(), abs=1e-12)


# --- the terminal ---


def test_the_view(capsys):
    shown = run(capsys, f"trace {TOY}").out
    assert "compute-bound: a step computes for 1.000 µs" in shown
    assert "critical path: launch 9%, load 18%, compute 73%" in shown
    lines = {line[:23].strip(): line[23:] for line in shown.splitlines()}
    assert [int(n) for n in re.findall(r"\d", lines["output tiles"])] == [1, 2, 3, 4]
    digits = re.sub(r"\D", "", lines["MATH warps"])
    assert digits == "0123" * 4
    assert re.fullmatch(" *(L{4,6}C{17,20}){4} *", lines["critical path"])
    assert "\x1b" not in shown
    assert all(len(line) <= 120 for line in shown.splitlines())


def test_what_saves_time_is_called_so(kernel):
    text = path_text(kernel._replace(last_us=-0.1 * kernel.time_us))
    assert text.endswith(", partial last wave saves 10%")


def test_the_view_fits_any_width(kernel):
    for width in (60, 77, 160):
        lines = list(timeline_text(scene(kernel, 400), width))
        drawn = [line for line in lines[:-2] if line.plain]
        assert len({len(line.plain) for line in drawn}) == 1
        assert len(drawn[0].plain) == width


def test_quiet_writes_only_the_file(capsys, tmp_path):
    shown = run(capsys, f"trace {TOY} --quiet --out {tmp_path}/t.json")
    assert shown.out == shown.err == ""
    assert (tmp_path / "t.json").exists()


# --- traced kernels ---


def test_periods_of_traced_kernels():
    found = traces.read(TRACED)
    for one in found[:4]:
        start = one.events["data_ready_math_start"]
        tiles = start.reshape(-1, one.k_tiles)
        slow = [(row[-1] - row[0]) / (one.k_tiles - 1) for row in tiles]
        assert scenes.period_us(start, one.k_tiles) == pytest.approx(np.mean(slow))
    assert np.isnan(scenes.period_us(np.arange(4.0), 1))


def test_traced_kernels_beside_predictions(capsys, tmp_path):
    command = f"trace --measured {TRACED} --hardware h200-gluon"
    shown = run(capsys, f"{command} -m 2048 -k 512").out
    assert shown.count("2048x2048x512") == 3
    assert "error of a step's period: mean " in shown
    one = f"{command} -m 2048 -k 512 --schedule pingpong"
    shown = run(capsys, f"{one} --out {tmp_path}/t.svg").out
    assert "MATH group 2, measured" in shown
    assert "µs as predicted" in shown
    assert "MATH group 2, measured" in (tmp_path / "t.svg").read_text()
    shown = run(capsys, f"{command} -m 2048 -k 512 --quiet --out {tmp_path}/all.png")
    assert shown.out == ""
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_state_the_period_of_the_table(kernel):
    one = next(x for x in traces.read(TRACED) if "4pe0" in x.kernel[0])
    ctas = [scenes.compare(one, kernel)._replace(measured_us=us) for us in (1.0, 3.0)]
    mean = scenes.over_ctas(ctas)
    assert (mean.measured_us, mean.trace) == (2.0, one)
    assert mean.error == pytest.approx(kernel_error := mean.predicted_us / 2.0 - 1.0)
    titles = [axes.get_title(loc="left") for axes in timeline_files.comparisons_figure([mean]).axes]
    assert f"measured 2.000 ({kernel_error:+.1%})" in titles[0]


def test_the_name_of_a_traced_kernel_says_its_configuration():
    pingpong = next(one for one in traces.read(TRACED) if "4pe0" in one.kernel[0])
    own = traces.configuration(pingpong)
    expected = {"block_m": 128, "block_k": 64, "stages": 4, "dma_warps": 1, "math_warps": 8}
    assert own.items() >= expected.items()
    assert own["schedule"] == 2
    with pytest.raises(InputError, match="call it like m128n128k64s4d1w8e0"):
        traces.configuration(pingpong._replace(kernel=("mine", *pingpong.kernel[1:])))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("trace", "-m: missing; give -m, -n, -k and --tile, or --measured FILE"),
        (f"trace {TOY} --out t.doc", "t.doc: a timeline's name ends in .json"),
        (f"trace {TOY} --out nowhere/t.json", "there is no directory nowhere"),
        (f"trace {TOY}".replace("stages 2", "stages 9"), "illegal: shared memory"),
        (f"trace --measured {TRACED} -m 3", "none of its 8 kernels is like that; it has -m 1024"),
        (f"trace --measured {TRACED} --out t.html", "such a file shows one kernel, and 8 traced"),
        (f"trace {TOY} --quiet", "--quiet: leaves nothing to do without --out; give a file"),
        ("trace --measured nowhere.csv", "nowhere.csv: no such file"),
    ],
)
def test_mistakes(capsys, command, message):
    shown = run(capsys, command, 2)
    assert shown.out == ""
    assert message in shown.err


def test_a_table_that_is_no_trace_is_refused(capsys, tmp_path):
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("m,n,k\n1,2,3\n")
    shown = run(capsys, f"trace --measured {tmp_path}/t.csv.gz", 2)
    assert "t.csv.gz: holds no traced events (columns event, role, t_ns); " in shown.err
