"""Pages of reports: they stand alone, and their numbers are those of the tables.

`tests/slow/browser.py` opens them in a browser.
"""

import base64
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented import calibration_report, invented_rows
from paths import DATA

import wsjax
from wsjax import tables
from wsjax.cli.main import main
from wsjax.errors import InputError
from wsjax.fit import validation
from wsjax.fit.reports import write_validation
from wsjax.fit.validation import Validated, Validation
from wsjax.hardware.parameters import PARAMETERS
from wsjax.schema import columns
from wsjax.schema.columns import LIMITERS
from wsjax.spec.sweep_files import parse_spec
from wsjax.sweeps import Sizes
from wsjax.sweeps.layout import ShardRows
from wsjax.views import fit_page, html, sweep_page, sweep_rows

SPEC = """
name = "small <sweep>"
hardware = ["toy", "mine.toml"]
[problems]
file = "shapes.csv"
[columns]
dtype_in = ["bf16", "fp16"]
block_m = [64, 128]
block_n = [64, 128]
block_k = 64
stages = { from = 1, to = 3, step = 1 }
schedule = ["serial", "persistent", "pingpong", "cooperative"]
group_m = [1, 2]
[hardware_parameters]
load_latency_us = [0.0, 0.5]
[filter]
where = "block_m * block_n <= 8192 or problem == 'odd'"
"""
SHAPES = "name,m,n,k\n</script><b>wide,256,4096,512\ntall,4096,256,512\nodd,100,200,300\n"
PROBLEM = ["problem", *columns.PROBLEM]
MACHINE = ["hardware", "load_latency_us"]
KINDS = {name: np.dtype(kind).newbyteorder("<") for name, kind in html.TYPES.items()}


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> Path:
    """A sweep's directory: two machines with a swept parameter, odd names, 3 shards."""
    folder = tmp_path_factory.mktemp("swept")
    mine = wsjax.load_hardware("toy").text.replace('"toy"', '"mine"').replace("1.0", "1.5")
    (folder / "mine.toml").write_text(mine)
    (folder / "shapes.csv").write_text(SHAPES)
    (folder / "small.toml").write_text(SPEC)
    sizes = Sizes(chunk_rows=200, shard_rows=ShardRows(least=500, most=500))
    wsjax.sweep(folder / "small.toml", folder / "out", sizes=sizes)
    return folder / "out"


@pytest.fixture(scope="module")
def table(swept) -> pd.DataFrame:
    return pd.read_parquet(swept)


@pytest.fixture(scope="module")
def validated() -> Validation:
    """Measured rows, and predictions that are theirs with noise: no program is compiled."""

    def evaluate(rows, machine):
        chooser = np.random.default_rng(5)
        predicted = rows.time_us * np.exp(chooser.normal(0, 0.1, len(rows)))
        limiter = np.asarray(LIMITERS, object)[chooser.integers(0, 3, len(rows))]
        outside = chooser.random(len(rows)) < 0.2
        return Validated(rows, predicted, predicted * 0.9, predicted * 1.2, limiter, outside, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "evaluate", evaluate)
        return validation.validate(DATA / "h200_gemm_ws_excerpt.csv.gz", "h200-gluon")


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        self.texts.setdefault(self._open, []).append(data)


def data_of(page: Path) -> SimpleNamespace:
    """What a page's script reads, its arrays unpacked."""

    def unpack(item):
        if set(item) == {"type", "bytes"}:
            return np.frombuffer(base64.b64decode(item["bytes"]), KINDS[item["type"]])
        return item

    text = page.read_text(encoding="utf-8")
    start = text.index('id="data">') + len('id="data">')
    found = json.loads(text[start : text.index("</script>", start)], object_hook=unpack)
    return SimpleNamespace(**found)


def page_of(source: Path, tmp_path: Path) -> Path:
    return wsjax.report(source, tmp_path / "page.html").path


def test_page_stands_alone(swept, tmp_path):
    page = page_of(swept, tmp_path)
    text = page.read_text(encoding="utf-8")
    found = Elements(text)
    assert page.stat().st_size < 8e6
    for tag, attributes in found.tags:
        assert not attributes.keys() & {"src", "href", "srcset", "action"}
        assert tag not in {"link", "iframe", "img", "object", "b"}
    policy = [a["content"] for tag, a in found.tags if tag == "meta" and "http-equiv" in a]
    assert policy == [
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data: blob:"
    ]
    assert [t for t, _ in found.tags].count("script") == 4
    assert found.texts["title"] == ["small <sweep>"]
    assert found.texts["h1"] == ["small <sweep>"]
    assert "url(http" not in "".join(found.texts["style"])


def test_same_sweep_makes_the_same_page(swept, tmp_path):
    first = page_of(swept, tmp_path).read_bytes()
    assert page_of(swept, tmp_path).read_bytes() == first


def test_cells_are_the_fastest_rows(swept, table, tmp_path):
    data = data_of(page_of(swept, tmp_path))
    check_cells(data, table)
    assert data.rows == len(table)
    assert data.all_problems == len(data.problems["m"]) == 6
    assert data.all_machines == len(data.machines) == 4
    assert data.extrapolated == int(table["extrapolated"].sum())
    assert data.candidates == 2 * 2 * 6 * 4 * 3 * 4 * 2
    assert sum(data.left_out.values()) + data.rows == data.candidates
    assert data.notes == []


def check_cells(data: SimpleNamespace, table: pd.DataFrame) -> None:
    """Each cell of a page against the table: the first of the fastest rows of its group."""
    kernel = list(sweep_rows.KERNEL)
    text = table.assign(
        hardware=table["hardware"].astype(str)
        + " load_latency_us="
        + table["load_latency_us"].map(lambda x: f"{x:.4g}"),
        problem=table["problem"].astype(str),
        dtype_in=table["dtype_in"].astype(str),
    )
    order = text.sort_values("time_us", kind="stable")
    groups = ["hardware", "problem", "dtype_in", *kernel]
    fastest = order.groupby(groups, observed=True, sort=False).first()
    shape = (len(data.machines), len(data.problems["m"]), len(data.kernels["stages"]))
    slowdown = data.slowdown.reshape(shape)
    mark = data.mark.reshape(shape)
    best = data.best_us.reshape(shape[:2])
    there = 0
    for at, which, c in np.ndindex(shape):
        key = (
            data.machines[at]["label"],
            data.problems["problem"][which],
            data.problems["dtype_in"][which],
            data.schedules[data.kernels["schedule"][c]],
            *(data.kernels[name][c] for name in kernel[1:]),
        )
        if slowdown[at, which, c] == data.absent:
            assert key not in fastest.index
            continue
        there += 1
        row = fastest.loc[key]
        time = best[at, which] * math.exp(slowdown[at, which, c] * data.step)
        assert time == pytest.approx(row["time_us"], rel=data.step)
        setting, limiter = divmod(int(mark[at, which, c]), len(data.limiters))
        assert data.limiters[limiter] == row["limiter"]
        assert data.settings[setting] == [row["group_m"]]
    kept = fastest.reset_index()
    kept = kept[kept["hardware"].isin([m["label"] for m in data.machines])]
    labels = set(zip(data.problems["problem"], data.problems["dtype_in"], strict=True))
    assert there == sum(
        key in labels for key in zip(kept["problem"], kept["dtype_in"], strict=True)
    )
    exact = order.groupby(["hardware", "problem", "dtype_in"]).agg({"time_us": "min"})["time_us"]
    for at, which in np.ndindex(shape[:2]):
        key = (
            data.machines[at]["label"],
            *(data.problems[n][which] for n in ("problem", "dtype_in")),
        )
        assert best[at, which] == exact.loc[key]


def test_what_there_is_no_room_for_is_drawn(swept, table, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_rows, "CELLS", 100)
    data = data_of(page_of(swept, tmp_path))
    assert (data.all_problems, data.all_machines) == (6, 4)
    assert 1 <= len(data.problems["m"]) < 6
    assert 1 <= len(data.machines) < 4
    assert len(data.slowdown) <= max(100, len(data.kernels["stages"]))
    check_cells(data, table)


def test_of_many_machines_the_first_and_the_fastest_are_shown(tmp_path):
    """256 machines that differ in two parameters: labels say only what differs."""
    (tmp_path / "s.toml").write_text(
        'hardware = "toy"\n[columns]\nm = [512, 1024]\nn = 512\nk = 256\nblock_m = [64, 128]\n'
        "block_n = 128\nblock_k = 64\nstages = 2\n[hardware_parameters]\nsms = 4\n"
        "compute_startup_us = { from = 1, to = 8, step = 1 }\n"
        "load_latency_us = { from = 0, to = 31, step = 1 }\n"
    )
    wsjax.sweep(tmp_path / "s.toml", tmp_path / "out")
    data = data_of(page_of(tmp_path / "out", tmp_path))
    assert (data.all_machines, len(data.machines)) == (256, 32)
    first = data.machines[0]
    assert first["label"] == "toy load_latency_us=0 compute_startup_us=1 sms=4"
    assert first["told_by"] == "load_latency_us · compute_startup_us"
    names = first["told_by"].split(" · ")
    table = pd.read_parquet(tmp_path / "out")
    best: Any = table.groupby([*names, "m"])["time_us"].min()
    order = best.groupby(names).agg(lambda x: np.log(x).mean()).sort_values(kind="stable")
    limit = order.iloc[31] + 1e-12
    assert order.index[0] == (0, 1)
    for machine in data.machines:
        assert order[tuple(map(float, machine["short"].split(" · ")))] <= limit


def test_roofs_are_those_of_the_machine():
    run = parse_spec(
        'hardware = ["h200", "a6000-paper"]\n[columns]\nm = 128\nn = 128\nk = 128\n'
        "block_m = 64\nblock_n = 64\nblock_k = 64\nstages = 2\n"
        "[hardware_parameters]\nsms = [10, 20]\n",
        "roofs.toml",
    )
    h200, paper = run.hardware
    for sms in (10, 20):
        found = sweep_page.roofs(h200, {"sms": sms})
        rate = h200.parameters.compute_throughput_flop_per_us * sms / 1e6
        assert found["sms"] == sms
        assert found["peak"]["fp8_e4m3"] == 2 * rate
        assert found["dram"] == h200.peaks.dram_bytes_per_us == 4.8e6
    assert sweep_page.roofs(paper, {"sms": 10})["peak"] == {}
    assert math.isinf(sweep_page.roofs(paper, {"sms": 10})["dram"])


def test_unfinished_sweep_says_so(swept, tmp_path, capsys):
    (tmp_path / "part").mkdir()
    for path in sorted(swept.iterdir())[:-1]:
        (tmp_path / "part" / path.name).write_bytes(path.read_bytes())
    data = data_of(page_of(tmp_path / "part", tmp_path))
    assert data.rows == len(pd.read_parquet(tmp_path / "part"))
    assert [note.split(":")[0] for note in data.notes] == ["The sweep is not finished"]
    with pytest.raises(InputError) as refused:
        wsjax.open(tmp_path / "part")
    (gap,) = re.findall(r"rows [\d,]+ to [\d,]+ on mine are missing", str(refused.value))
    assert gap in data.notes[0]
    assert main(["report", str(tmp_path / "part"), "--out", str(tmp_path / "part.html")]) == 0
    assert f"the sweep is not finished: {data.candidates:,} of" in (said := capsys.readouterr().out)
    assert gap in said


def test_report_names_machines_that_are_wholly_missing(swept, tmp_path):
    (tmp_path / "part").mkdir()
    first = min(swept.iterdir())
    (tmp_path / "part" / first.name).write_bytes(first.read_bytes())
    content = wsjax.report(tmp_path / "part").content
    rows = 2 * 3 * 2 * 2 * 2 * 3 * 4 * 2
    assert f"rows 0 to {rows - 1:,} on mine are missing" in content


def small_sweep(swept: Path, name: str, output: str) -> Path:
    """The small sweep again, with another [output]."""
    spec = swept.parent / f"{name}.toml"
    spec.write_text(f"{SPEC}[output]\n{output}\n")
    wsjax.sweep(spec, swept.parent / name)
    return swept.parent / name


def test_folders_stand_for_columns(swept, table, tmp_path):
    output = 'partition_by = ["hardware", "problem", "load_latency_us", "dtype_in"]'
    folders = small_sweep(swept, "folders", output)
    assert len(list(folders.rglob("*.parquet"))) == 2 * 3 * 2 * 2
    data = data_of(page_of(folders, tmp_path))
    check_cells(data, table)
    assert (data.rows, data.candidates) == (len(table), 2 * 2 * 6 * 4 * 3 * 4 * 2)
    assert data.notes == []


def test_a_page_of_quantiles_says_what_it_does_not_show(swept, table, tmp_path, monkeypatch):
    output = 'keep = "quantiles"\npartition_by = "hardware"'
    kept = small_sweep(swept, "quantiles", output)
    page = page_of(kept, tmp_path)
    assert sections_of(page) == ["spread", "problems"]
    data = data_of(page)
    assert "roofline, limiters and wave quantisation are not shown" in data.notes[0]
    assert data.legal == len(table) == data.candidates - sum(data.left_out.values())
    groups = table.groupby(["hardware", "load_latency_us", "problem", "dtype_in"], observed=True)
    expected = groups["time_us"].agg(["size", "min", "max"])
    assert len(data.machine) == len(expected)
    for row, (machine, problem) in enumerate(zip(data.machine, data.problem, strict=True)):
        hardware, latency = data.machines[machine]["label"].split(" load_latency_us=")
        names = [data.problems[name][problem] for name in ("problem", "dtype_in")]
        figures = expected.loc[(hardware, float(latency), *names)]
        found = [data.figures[name][row] for name in ("rows", "time_us_min", "time_us_max")]
        assert found == figures.tolist()
    monkeypatch.setattr(sweep_page, "QUANTILES_ROWS", 5)
    data = data_of(page_of(kept, tmp_path))
    assert data.notes[1] == f"The page holds 5 of {len(expected)} rows, drawn evenly."
    assert (len(data.machine), data.legal) == (5, len(table))


def test_columns_of_a_table_are_read_piece_by_piece(swept):
    path = next(iter(sorted(swept.iterdir())))
    pieces = list(tables.read_batches(path, ["time_us", "extrapolated", "m"]))
    assert all(set(piece) == {"time_us", "extrapolated", "m"} for piece in pieces)
    found = np.concatenate([tables.numbers(piece["extrapolated"]) for piece in pieces])
    assert found.tolist() == pq.read_table(path)["extrapolated"].to_pylist()


@given(st.lists(st.integers(0, 2**16 - 1)), st.floats(), st.text())
def test_data_survive_the_page(numbers, value, text):
    array = np.asarray(numbers, np.int64)
    item = html.packed(array, "u2")
    assert np.frombuffer(base64.b64decode(item["bytes"]), "<u2").tolist() == numbers
    written = html._json({"a": [value, np.float64(value)], "b": text})
    assert "<" not in written
    found = json.loads(written)
    assert found["b"] == text
    assert found["a"] == [value if math.isfinite(value) else None] * 2


def test_validation_page_has_the_figures_of_the_table(validated, tmp_path):
    (tmp_path / "report").mkdir()
    write_validation(validated, tmp_path / "report")
    found = wsjax.report(tmp_path / "report")
    assert found.path == tmp_path / "report.html"
    assert found.kind == "validation"
    data = data_of(found.path)
    figures = validated.metrics
    frame = validated.frame()
    assert data.count == len(frame) == figures.rows
    assert data.figures[0]["mape_pct"] == pytest.approx(figures.mape_pct)
    assert np.mean(np.abs(data.rows["ratio"] - 1)) * 100 == pytest.approx(figures.mape_pct)
    assert np.mean(data.rows["inside"]) * 100 == pytest.approx(figures.coverage_90_pct)
    assert data.regret["mean"][0] == pytest.approx(figures.regret_mean)
    assert data.regret["p95"][0] == pytest.approx(figures.regret_p95)
    assert data.regret["max"][0] == pytest.approx(figures.regret_max)
    assert data.worst["time_us"][:20] == pytest.approx(validated.worst["time_us"].tolist())
    assert "sms = 132" in found.path.read_text(encoding="utf-8")
    by_name = {d["name"]: d for d in data.rows["dimensions"]}
    for name in ("group", "schedule", "limiter", "stages"):
        counts = frame[name].astype(str).value_counts()
        codes = np.bincount(by_name[name]["codes"])
        assert dict(zip(by_name[name]["words"], codes, strict=True)) == counts.to_dict()


def test_regret_of_several_tries_is_that_of_a_slow_count(validated):
    frame = validated.frame()
    found = fit_page.regret_data(frame)
    names = [*fit_page.PROBLEM, "l2_state"]
    for position, k in enumerate(fit_page.TRIES):
        regrets = [
            own.sort_values("time_us", kind="stable")["time_us_measured"].head(k).min()
            / own["time_us_measured"].min()
            for _, own in frame.groupby(names, observed=True)
        ]
        assert found["mean"][position] == pytest.approx(np.mean(regrets))
        assert found["p95"][position] == pytest.approx(np.quantile(regrets, 0.95))
        assert found["max"][position] == pytest.approx(np.max(regrets))
    chance = [
        (own["time_us_measured"] / own["time_us_measured"].min()).mean()
        for _, own in frame.groupby(names, observed=True)
    ]
    assert found["chance"] == pytest.approx(np.mean(chance))
    assert found["problems"] == len(chance)


def test_many_rows_become_bins_with_the_same_counts(monkeypatch):
    frame = invented_rows(20_000)
    exact = fit_page.rows_data(frame)
    monkeypatch.setattr(fit_page, "EXACT", 5_000)
    binned = fit_page.rows_data(frame)
    assert not exact["binned"]
    assert binned["binned"]

    def values(data, name):
        return np.frombuffer(base64.b64decode(data[name]["bytes"]), KINDS[data[name]["type"]])

    weight = values(binned, "weight")
    assert len(weight) <= 5_000
    assert weight.sum() == len(frame)
    order = np.argsort(values(binned, "ratio"))
    total = np.cumsum(weight[order])
    for share in (0.05, 0.5, 0.95):
        ours = values(binned, "ratio")[order][np.searchsorted(total, share * len(frame))]
        theirs = np.quantile(values(exact, "ratio"), share)
        assert math.log(ours) == pytest.approx(math.log(theirs), abs=binned["error_bin"])
    inside = values(binned, "inside")
    assert weight[inside == 1].sum() == (values(exact, "inside") == 1).sum()
    for dimension in binned["dimensions"]:
        codes = np.frombuffer(base64.b64decode(dimension["codes"]["bytes"]), np.uint8)
        counts = np.bincount(codes, weight).astype(int)
        if dimension["name"] in ("split", "group", "schedule", "limiter"):
            own = frame[dimension["name"]].astype(str).value_counts()
            assert own[dimension["words"]].tolist() == counts.tolist()


def test_calibration_page_shows_what_the_report_has(tmp_path):
    report = tmp_path / "report"
    calibration_report(report, 300)
    found = wsjax.report(report)
    assert (found.kind, found.content) == ("calibration", "20 parameters")
    sections = sections_of(found.path)
    assert sections == [
        *("parity", "residuals", "parameters", "values", "correlations", "ablations"),
        *("regret", "coverage", "worst"),
    ]
    data = data_of(found.path)
    first = data.parameters[0]
    assert first["typical"] == PARAMETERS["launch_us"].typical
    assert first["meaning"] == PARAMETERS["launch_us"].meaning
    assert np.diag(data.correlations["values"]) == pytest.approx(1)
    assert [row["term"] for row in data.ablations] == ["", "sharing", "DRAM latency"]
    for name in ("correlation.csv", "ablation.csv", "rows.parquet", "report.md", "hardware.toml"):
        (report / name).unlink()
    found = wsjax.report(report)
    assert sections_of(found.path) == ["parameters", "values"]
    assert Elements(found.path.read_text(encoding="utf-8")).texts["h1"] == ["report"]


def sections_of(page: Path) -> list[str | None]:
    found = Elements(page.read_text(encoding="utf-8"))
    return [attributes["id"] for tag, attributes in found.tags if tag == "section"]


def test_command_line_says_where_the_page_is(swept, tmp_path, capsys):
    assert main(["report", str(swept), "--out", str(tmp_path / "a.html")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sweep, 1,")
    assert f"{tmp_path / 'a.html'} (4." in out or "(5." in out


@pytest.mark.parametrize(
    ("source", "out", "said"),
    [
        ("outt", None, "outt: no such file; did you mean"),
        ("small.toml", None, "small.toml: is no directory; give the directory of a sweep"),
        ("empty", None, "empty: holds neither a sweep nor a report; give the directory"),
        ("", None, "--report, such as "),
        ("out/part-00000.parquet", None, "--report, such as "),
        ("out", "out/page.html", "page.html: the directory of a sweep holds nothing but"),
        ("out", "page.htm", "page.htm: a page's name ends in .html"),
        ("out", "nowhere/page.html", "there is no directory"),
        ("none", None, "the sweep has no rows to show"),
    ],
)
def test_wrong_input_is_named(swept, capsys, source, out, said):
    folder = swept.parent
    (folder / "empty").mkdir(exist_ok=True)
    if source == "none":
        spec = (folder / "small.toml").read_text().replace("or problem", "and problem")
        (folder / "none.toml").write_text(spec.replace("8192", "1"))
        wsjax.sweep(folder / "none.toml", folder / "none")
    arguments = ["report", str(folder / source)]
    arguments += ["--out", str(folder / out)] if out else []
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_all_mistakes_are_named_at_once_and_so_is_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError) as error:
        wsjax.report(tmp_path / "absent", tmp_path / "page.txt")
    assert [problem.split(": ")[-1] for problem in error.value.problems] == [
        "no such file",
        "a page's name ends in .html; choose such a name",
        "pip install 'wsjax[report]'",
    ]


def test_reports_of_other_versions_are_named(tmp_path):
    invented_rows(10).drop(columns="time_us_lo").to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"rows\.parquet: has no column time_us_lo"):
        wsjax.report(tmp_path, tmp_path / "page.html")
    invented_rows(0).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="holds no rows"):
        wsjax.report(tmp_path, tmp_path / "page.html")
