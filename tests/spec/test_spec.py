"""Sweep files: what they mean, and every mistake that one can make in them."""

import gzip
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from paths import SWEEPS

from wsjax.errors import InputError
from wsjax.schema.limits import checks
from wsjax.spec.sweep_files import load_spec, parse_spec

TILE = "block_m = 128\nblock_n = 128\nblock_k = 64\n"
SIZES = "m = 64\nn = 64\nk = 64\n"
GOOD = f'hardware = "toy"\n[columns]\n{SIZES}{TILE}'


def rows(text, path="here.toml", machine=0):
    """All rows of a sweep, a dict of lists."""
    spec = parse_spec(text, path)
    product = spec.product(spec.hardware[machine])
    return {name: values.tolist() for name, values in product.rows(0, len(product)).items()}


def said(text, path="here.toml"):
    """What is said of a sweep file that is wrong, each line with the file's name taken off."""
    with pytest.raises(InputError) as caught:
        parse_spec(text, path)
    assert all("\n" not in problem for problem in caught.value.problems)
    assert all(problem.startswith(f"{path}: ") for problem in caught.value.problems)
    return "\n".join(problem.removeprefix(f"{path}: ") for problem in caught.value.problems)


def test_value_forms():
    text = f"""
    hardware = ["toy"]
    [columns]
    m = 7
    n = [1, 2147483648]
    k = {{ from = 64, to = 200, step = 64 }}
    {TILE}
    stages = {{ from = 1, to = 5, factor = 2 }}
    schedule = ["pingpong", "serial"]
    """
    found = rows(text)
    expected = list(itertools.product([7], [1, 2**31], [64, 128, 192], [1, 2, 4], [2, 0]))
    given = zip(*(found[name] for name in ("m", "n", "k", "stages", "schedule")), strict=True)
    assert list(given) == expected


def test_a_range_may_be_longer_than_memory():
    text = GOOD.replace("m = 64\nn", "m = { from = 1, to = 2147483648, step = 1 }\nn")
    spec = parse_spec(text, "here.toml")
    product = spec.product(spec.hardware[0])
    assert len(product) == 2**31
    assert product.rows(2**31 - 1, 2**31)["m"].tolist() == [2**31]


def test_defaults_and_name():
    spec = parse_spec(GOOD, "folder/my sweep.toml")
    assert spec.name == "my sweep"
    assert spec.where is None
    assert spec.predicate() is None
    assert [machine.name for machine in spec.hardware] == ["toy"]
    assert spec.text == GOOD


def test_problems_inline_combine_with_columns():
    text = f"""
    hardware = "toy"
    problems.rows = [{{ name = "qkv", n = 96, k = 64 }}, {{ name = "o", n = 64, k = 64 }}]
    [columns]
    m = [1, 2]
    {TILE}
    [filter]
    where = "problem == 'qkv' and m > 1"
    """
    spec = parse_spec(text, "here.toml")
    product = spec.product(spec.hardware[0])
    found = product.rows(0, 4)
    assert found["n"].tolist() == [96, 96, 64, 64]
    assert [product.words["problem"][code] for code in found["problem"]] == ["qkv"] * 2 + ["o"] * 2
    predicate = spec.predicate()
    assert predicate is not None
    assert predicate.mask(found, 4).tolist() == [False, True, False, False]


@pytest.mark.parametrize("name", ["shapes.csv", "shapes.csv.gz", "shapes.parquet"])
def test_problems_from_a_file(tmp_path, name):
    frame = pd.DataFrame({"name": ["1", "b"], "m": [1, 2**31], "n": [8, 8], "k": [16, 32]})
    if name.endswith(".parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_csv(tmp_path / name, index=False)
    path = tmp_path / "sweep.toml"
    path.write_text(f'hardware = "toy"\n[problems]\nfile = "{name}"\n[columns]\n{TILE}')
    spec = load_spec(path)
    assert rows(path.read_text(), path)["m"] == [1, 2**31]
    assert spec.axes[0].words == {"problem": ("1", "b")}
    (tmp_path / name).unlink()
    assert rows(spec.text, tmp_path / "copy.toml") == {
        column: values.tolist()
        for column, values in spec.product(spec.hardware[0]).rows(0, 2).items()
    }


def test_hardware_parameters():
    text = f"""
    hardware = ["toy", "h200"]
    [hardware_parameters]
    load_throughput_bytes_per_us = {{ scale = [0.5, 2] }}
    load_latency_us = {{ from = 0, to = 0.3, step = 0.1 }}
    sms = {{ scale = [1, 0.5] }}
    store_throughput_bytes_per_us = [100.0, inf]
    [columns]
    {SIZES}{TILE}
    [filter]
    where = "load_latency_us < 0.2 and sms <= 66"
    """
    spec = parse_spec(text, "here.toml")
    toy, h200 = spec.hardware
    found = spec.product(toy).rows(0, 100)
    rate = toy.parameters.load_throughput_bytes_per_us
    assert sorted(set(found["load_throughput_bytes_per_us"])) == [0.5 * rate, 2 * rate]
    assert sorted(set(found["load_latency_us"])) == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert max(found["load_latency_us"]) == 0.3
    assert set(found["store_throughput_bytes_per_us"]) == {100.0, math.inf}
    assert set(spec.product(h200).rows(0, 100)["sms"]) == {132, 66}
    assert found["sms"].dtype == np.int64
    predicate = spec.predicate()
    assert predicate is not None
    assert predicate.mask(found, len(found["sms"])).sum() == 2 * 2 * 2 * 2


def test_hardware_from_a_file_beside_the_sweep(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nsms = 2\nsmem_bytes_per_sm = 65536\nwarp_size = 32\n'
        "[parameters]\nload_throughput_bytes_per_us = 1e5\n"
    )
    path = tmp_path / "sweep.toml"
    path.write_text(GOOD.replace('"toy"', '["toy", "mine.toml"]'))
    spec = load_spec(path)
    assert [machine.facts.sms for machine in spec.hardware] == [4, 2]
    (tmp_path / "mine.toml").unlink()
    assert parse_spec(spec.text, path, spec.hardware).hardware == spec.hardware


MISTAKES = [
    ("m = 64\nn", 'm = "128"\nn', 'columns: m: expected a whole number, not "128"; write 128'),
    ("m = 64\nn", "m = true\nn", "columns: m: expected a whole number, not true"),
    ("m = 64\nn", "m = 1.5\nn", "columns: m: expected a whole number, not 1.5"),
    ("m = 64\nn", "m = nan\nn", "columns: m: expected a whole number, not nan"),
    ("m = 64\nn", "m = [64, -1]\nn", "columns: m: -1 is out of range; nearest valid: 1"),
    ("m = 64\nn", "m = 0\nn", "columns: m: 0 is out of range; nearest valid: 1"),
    ("m = 64\nn", "m = []\nn", "columns: m: the list is empty; give a value"),
    ("m = 64\nn", "m = [[1]]\nn", "columns: m: expected a whole number, not [1]"),
    ("m = 64\nn", "m = [1, 1]\nn", "columns: m: 1 is in the list twice; leave one out"),
    ("m = 64\nn", "m = 1979-05-27\nn", 'columns: m: expected a whole number, not "1979-05-27"'),
    ("m = 64\nn", "n", "columns: m: missing; give it here or in [problems], such as m = 128"),
    ("block_k = 64\n", "", "columns: block_k: missing; give it here, such as block_k = 128"),
    ("block_k", "blok_k", "columns: blok_k: unknown key here; did you mean 'block_k'?"),
    ("[columns]", "[colums]", "colums: unknown key here; did you mean 'columns'?"),
    (
        "[columns]",
        "[columns]\nsms = 3",
        "columns: sms: unknown key here; it belongs in [hardware_p",
    ),
    ("[columns]", "m = 3\n[columns]", "m: unknown key here; it belongs in [columns]"),
    (
        "[columns]",
        'partition_by = "m"\n[columns]',
        "partition_by: unknown key here; it belongs in [output]",
    ),
    ("[columns]", "columns = 3\n[c]", "columns: expected a table, [columns], not 3"),
    (
        "[columns]",
        '[columns]\nschedule = "x"',
        'columns: schedule: unknown word "x"; valid: serial, ',
    ),
    (
        "[columns]",
        "[columns]\nlayout = {from=1,to=2,step=1}",
        "columns: layout: a column of words has",
    ),
    ('"toy"', '"tooy"', "hardware: no machine is called 'tooy'; did you mean 'toy'?"),
    ('"toy"', "[]", "hardware: the list is empty"),
    ('"toy"', "3", "hardware: expected names in quotes, not 3"),
    ('"toy"', "{ a = 1 }", "hardware: expected names in quotes, not {"),
    ('"toy"', '["toy", "toy"]', 'hardware: "toy" is in the list twice'),
    ('"toy"', '"gone.toml"', "hardware: gone.toml: can't read this hardware file"),
    ('hardware = "toy"\n', "", "hardware: missing; give one or more of: a100-pcie, a100-sxm, "),
    ("hardware", 'name = ""\nhardware', "name: \"\" can't name the results' folder"),
    ("hardware", 'name = "../up"\nhardware', "can't name the results' folder"),
    ("hardware", 'name = "a/b"\nhardware', "leave out / and \\"),
    ("hardware", "name = 3\nhardware", "name: expected text in quotes, not 3"),
]
RANGES = [
    (
        "{ from = 1, to = 2, stop = 1 }",
        "unknown key 'stop'; did you mean 'step'?; a range is { from",
    ),
    ("{ from = 1, step = 1 }", "'to' is missing; a range is { from = 64, to = 256, step = 64 }"),
    ("{ from = 1, to = 2 }", "a range has either 'step' or 'factor'"),
    ("{ from = 1, to = 2, step = 1, factor = 2 }", "a range has either 'step' or 'factor'"),
    ("{ from = 9, to = 2, step = 1 }", "'from' 9 is above 'to' 2; swap them"),
    ("{ from = 1, to = 2, step = 0 }", "step: expected a whole number above 0, not 0"),
    ("{ from = 1, to = 2, step = true }", "step: expected a whole number above 0, not true"),
    ("{ from = 1, to = 2, step = 0.5 }", "step: expected a whole number above 0, not 0.5"),
    ("{ from = 1, to = 2, factor = 1 }", "factor: expected a whole number above 1, not 1"),
    ("{ from = 1, to = 2, factor = 1.5 }", "factor: expected a whole number above 1, not 1.5"),
    ('{ from = "1", to = 2, step = 1 }', 'from: expected a whole number, not "1"; write 1'),
    ("{ from = 0, to = 2, step = 1 }", "from: 0 is out of range; nearest valid: 1"),
]
SECTIONS = [
    (
        "[filter]\nwhere = 'blok_m > 1'",
        "filter: where: column 1: unknown name 'blok_m'; did you mean",
    ),
    ("[filter]\nwhere = ''", "filter: where: not one condition"),
    ("[filter]\nwhere = 3", "filter: where: expected a condition in quotes, not 3"),
    ("[filter]\nwere = 'm > 1'", "filter: were: unknown key here; did you mean 'where'?"),
    ("[output]\nkeep = 'best'", "output: best: missing: how many of each problem's rows to keep"),
    ("[output]\nkeep = 'bset'", "output: keep: unknown word \"bset\"; did you mean 'best'?"),
    ("[output]\nkeep = 'all'\nbest = 3", 'output: best: not with keep = "all", which keeps all'),
    ("[output]\nbest = 0", "output: best: expected a whole number from 1 to 100000, not 0"),
    ("[output]\nbest = true", "output: best: expected a whole number from 1 to 100000, not true"),
    ("[output]\nbest = 3\nper = 'problem'", "output: per: unknown key here"),
    ("[output]\nprecision = 'f32'", 'output: precision: unknown word "f32"; did you mean'),
    ("[output]\nbest = 3\nprecision = 'float32'", "output: precision: not float32 with keep = "),
    (
        "[output]\npartition_by = 3",
        "output: partition_by: expected columns' names in quotes, not 3",
    ),
    ("[output]\nkep = 'all'", "output: kep: unknown key here; did you mean 'keep'?"),
    (
        "[problems]\nrows = [{ m = 1, n = 1, k = 1 }]",
        "columns: m: given both here and in [problems]",
    ),
    ("[problems]\nrows = [{ m = 1 }]\nfile = 'x.csv'", "problems: rows, file: give one of them"),
    ("[problems]", "problems: rows, file: give one of them"),
    ("[problems]\nrows = []", "problems: rows: no problems; give at least one"),
    ("[problems]\nrows = 3", "problems: rows: expected a list such as [{"),
    ("[problems]\nrows = [3]", "problems: rows: expected tables such as {"),
    ("[problems]\nrows = [{ k = 1 }, { k = 1, n = 2 }]", "rows: row 2: not the keys of row 1 (n)"),
    (
        "[problems]\nrows = [{ k = 1 }, { k = 1.5 }]",
        "rows: row 2: k: expected a whole number, not 1.5",
    ),
    ("[problems]\nrows = [{ k = 1 }, { k = 1 }]", "rows: row 2: the same as row 1; leave one out"),
    (
        "[problems]\nrows = [{ k = 1, kk = 3 }]",
        "problems: rows: unknown key 'kk'; did you mean 'k'?",
    ),
    ("[problems]\nrows = [{ name = 'x' }]", "problems: rows: none of m, n, k is given"),
    (
        "[problems]\nrows = [{ k = 1, name = 3 }]",
        "rows: row 1: name: expected a name in quotes, not 3",
    ),
    ("[problems]\nfile = 3", "problems: file: expected a file's name in quotes, not 3"),
    ("[problems]\nfile = 'gone.csv'", "problems: file: gone.csv: can't read it: No such file"),
    ("[problems]\nfile = 'gone.parquet'", "problems: file: gone.parquet: can't read it: "),
    ("[problems]\nfile = 'shapes.xlsx'", "shapes.xlsx: expected a .csv, .csv.gz or .parquet file"),
    (
        "[hardware_parameters]\nsmss = 3",
        "hardware_parameters: smss: unknown key here; did you mean",
    ),
    ("[hardware_parameters]\nsms = 1.5", "sms: expected a whole number, not 1.5"),
    ("[hardware_parameters]\nload_latency_us = -1", "load_latency_us: -1 is no time"),
    ("[hardware_parameters]\nload_latency_us = nan", "load_latency_us: nan is no time"),
    (
        "[hardware_parameters]\nload_latency_us = 1e306",
        "load_latency_us: 1e+306 is out of range; nearest valid: 1000000000000.0",
    ),
    (
        "[hardware_parameters]\nl2_throughput_bytes_per_us = 1e-300",
        "l2_throughput_bytes_per_us: 1e-300 is out of range; nearest valid: 1e-09",
    ),
    ("[hardware_parameters]\nload_latency_us = '1'", 'load_latency_us: expected a number, not "1"'),
    (
        "[hardware_parameters]\nlaunch_us = { scale = 0 }",
        "launch_us: scale: expected a factor above 0",
    ),
    ("[hardware_parameters]\nlaunch_us = { scale = [] }", "launch_us: the list is empty"),
    (
        "[hardware_parameters]\nlaunch_us = { scale = 2, to = 3 }",
        "'scale' stands alone; leave out: to",
    ),
    (
        "[hardware_parameters]\nlaunch_us = { scale = { from = 0, to = 2, factor = 2 } }",
        "expected a factor above 0",
    ),
    (
        "[hardware_parameters]\nlaunch_us = {from=0,to=2,factor=2}",
        "can't start at 0; start above it",
    ),
    (
        "[hardware_parameters]\nlaunch_us = {from=1,to=2,factor=1.0000001}",
        "more than 1,000,000 values",
    ),
    (
        "[hardware_parameters]\nstore_throughput_bytes_per_us = {from=1,to=inf,factor=2}",
        "to: inf can't bound a range; write the values as a list",
    ),
    (
        "[hardware_parameters]\nsync_us = { scale = 2 }",
        "toy has 0.0, which no factor changes; give",
    ),
    (
        "[hardware_parameters]\nsms = { scale = 0.3 }",
        "sms: 0.3 times toy's 4: expected a whole number",
    ),
    (
        "[hardware_parameters]\ncompute_throughput_bytes_per_us = 3",
        "toy does not use it (compute_basis); sweep compute_throughput_flop_per_us instead",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES)
def test_mistakes(old, new, expected):
    assert old in GOOD
    assert expected in said(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(("value", "expected"), RANGES)
def test_mistakes_in_ranges(value, expected):
    assert f"columns: m: {expected}" in said(GOOD.replace("m = 64\nn", f"m = {value}\nn"))


@pytest.mark.parametrize(("section", "expected"), SECTIONS)
def test_mistakes_in_sections(section, expected):
    assert expected in said(f"{GOOD}{section}\n")


def test_all_mistakes_at_once():
    text = """
    hardware = ["h200x", "toy"]
    [columns]
    m = "128"
    n = []
    block_m = 0
    block_n = 128
    blok_k = 64
    [filter]
    where = "stage > 1"
    [output]
    keep = "some"
    """
    keys = ["hardware", *["columns"] * 6, "filter", "output"]
    lines = said(text).splitlines()
    assert [line.split(": ")[0] for line in lines] == keys
    named = [line.split(": ")[1] for line in lines[1:]]
    assert named == ["blok_k", "k", "block_k", "m", "n", "block_m", "where", "keep"]


def test_many_mistakes_are_counted():
    wrong = ", ".join(f"{n}.5" for n in range(100))
    assert said(GOOD.replace("m = 64\nn", f"m = [{wrong}]\nn")).count("\n") == 5
    assert "and 95 more mistakes like these" in said(GOOD.replace("m = 64\nn", f"m = [{wrong}]\nn"))


def test_too_many_rows():
    wide = "{ from = 1, to = 2147483648, step = 1 }"
    text = GOOD
    for name in ("m", "n", "k"):
        text = text.replace(f"\n{name} = 64", f"\n{name} = {wide}")
    assert "rows are more than 2**63 - 1; give fewer values" in said(text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"name = \xff\xfe", "not UTF-8 text (byte 8); save the file as UTF-8"),
        (GOOD.encode("utf-16"), "not UTF-8 text (byte 1); save the file as UTF-8"),
        (
            b"[columns\nm = 3",
            "not TOML: Expected ']' at the end of a table declaration (at line 1, col",
        ),
        (b"m = 1\nm = 2\n", "not TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b"m = " + b"9" * 5000, "not TOML: "),
        (b"m = " + b"[" * 5000, "nested too deep"),
        (b"", "hardware: missing; give one or more of: "),
    ],
)
def test_files_that_are_no_sweeps(tmp_path, content, expected):
    path = tmp_path / "sweep.toml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="can't read this sweep file: No such file"):
        load_spec(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="this is a folder; give a sweep file"):
        load_spec(tmp_path)
    with pytest.raises(InputError, match="can't read this sweep file"):
        load_spec("nul\x00.toml")


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_spec(path).text == GOOD


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "the file is empty; its first line names the columns"),
        ("m,n,k\n", "no problems; give at least one"),
        ("m,n\n1,2\n", "columns: k: missing; give it here or in [problems]"),
        ("m,n,k\n1,2,3\n1,2.5,3\n", 'row 2: n: expected a whole number, not "2.5"'),
        ("m,n,k\n1,,3\n", 'row 1: n: expected a whole number, not ""'),
        ("m,n,k\n1,2\n", "row 1: not as many values as the 3 columns"),
        ("m,n,k\n1,2,3,4\n", "row 1: not as many values as the 3 columns"),
        ("m,n,k,m\n1,2,3,4\n", "two columns are called 'm'; leave one out"),
        ("m,n,k,bach\n1,2,3,4\n", "unknown key 'bach'; did you mean 'batch'?"),
        ("m,n,k\n1,2,+-3\n", 'row 1: k: expected a whole number, not "+-3"'),
        ("m,n,k\n0,2,3\n", "row 1: m: 0 is out of range; nearest valid: 1"),
        ('m,n,k\n"1,2,3\n', "can't read it: unexpected end of data"),
        ("m,n,k\n1,2,3\n1,2,3\n", "row 2: the same as row 1; leave one out"),
        (b"m,n,k\n1,2,\xff\n", "not UTF-8 text; save it as UTF-8"),
    ],
)
def test_mistakes_in_problem_files(tmp_path, content, expected):
    (tmp_path / "shapes.csv").write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    text = f'hardware = "toy"\n[problems]\nfile = "shapes.csv"\n[columns]\n{TILE}'
    assert expected in said(text, tmp_path / "sweep.toml")


def test_broken_problem_files(tmp_path):
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"m,n,k\n" * 100)[:-9])
    (tmp_path / "plain.csv.gz").write_bytes(b"m,n,k\n1,2,3\n")
    (tmp_path / "no.parquet").write_bytes(b"m,n,k\n1,2,3\n")
    (tmp_path / "folder.csv").mkdir()
    pd.DataFrame({"m": [1.0, 2.5], "n": [1, 2], "k": [1, 2]}).to_parquet(tmp_path / "float.parquet")
    for name in ("cut.csv.gz", "plain.csv.gz", "no.parquet", "folder.csv"):
        text = f'hardware = "toy"\n[problems]\nfile = "{name}"\n[columns]\n{TILE}'
        assert f"problems: file: {tmp_path / name}: can't read it" in said(
            text, tmp_path / "s.toml"
        )
    text = f'hardware = "toy"\n[problems]\nfile = "float.parquet"\n[columns]\n{TILE}'
    assert "row 2: m: expected a whole number, not 2.5" in said(text, tmp_path / "s.toml")


def test_the_papers_sweep():
    spec = load_spec(SWEEPS / "paper.toml")
    assert spec.name == "paper"
    assert [machine.name for machine in spec.hardware] == ["a6000-paper"]
    product = spec.product(spec.hardware[0])
    assert len(product) == 2048
    assert "stages" not in product.names
    assert product.constants == {"dma_warps": 2, "mma_in_flight": 0, "schedule": 0}


def test_the_quickstart_sweep_is_about_100_000_rows_most_of_them_legal():
    from wsjax.schema.columns import COLUMNS, Configuration, with_defaults

    spec = load_spec(SWEEPS / "quickstart.toml")
    product = spec.product(spec.hardware[0])
    columns = with_defaults(product.rows(0, len(product)))
    predicate = spec.predicate()
    assert predicate is not None
    kept = predicate.mask(columns, len(product))
    assert 90_000 < kept.sum() < 110_000
    configuration = Configuration(*(columns[name] for name in COLUMNS))
    legal = kept.copy()
    for _, holds in checks(
        configuration,
        spec.hardware[0].facts,
        in_bytes=2,
        out_bytes=2,
        math_groups=1 + (columns["schedule"] == 2),
        groups_per_tile=1 + (columns["schedule"] == 3),
        rate=1.0,
    ):
        legal &= holds
    assert legal.sum() > 0.8 * kept.sum()
    assert set(columns["schedule"][legal]) == {0, 1, 2, 3}


def test_a_machines_file_is_no_sweep(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("sms = 4\nsmem_bytes_per_sm = 102400\nwarp_size = 32\n")
    with pytest.raises(InputError, match="is a machine's file, no sweep"):
        load_spec(path)


def test_a_machine_that_is_listed_twice_is_complained_of_once(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(
        'hardware = ["toy", "toy"]\n[columns]\nm = 1\nn = 1\nk = 1\n'
        "block_m = 64\nblock_n = 64\nblock_k = 64\n"
    )
    with pytest.raises(InputError) as error:
        load_spec(path)
    assert error.value.problems == (f'{path}: hardware: "toy" is in the list twice; leave one out',)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_problem_files_have_commas_semicolons_or_tabs(tmp_path, mark):
    (tmp_path / "p.csv").write_text("name,m,n,k\na,1,2,3\n".replace(",", mark))
    path = tmp_path / "s.toml"
    path.write_text(
        'hardware = "toy"\n[problems]\nfile = "p.csv"\n[columns]\n'
        "block_m = 64\nblock_n = 64\nblock_k = 64\n"
    )
    spec = load_spec(path)
    assert len(spec.product(spec.hardware[0])) == 1
