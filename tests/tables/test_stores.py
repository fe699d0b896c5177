"""Where results are: folders by column, object stores, and a directory opened as one table."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

import wsjax
from wsjax.cli.main import main
from wsjax.errors import InputError, WsjaxError
from wsjax.spec.sweep_files import parse_spec
from wsjax.sweeps.layout import USUAL_ROWS, layout
from wsjax.tables import configuration_column
from wsjax.tables import files as stores

SPEC = """
hardware = ["toy", "h200"]
[problems]
rows = [
    { name = "up/gate 50%", m = 16, n = 512, k = 256 },
    { name = "down", m = 16, n = 512, k = 512 },
    { name = "head=é", m = 300, n = 512, k = 256 },
    { name = "007", m = 16, n = 640, k = 256 },
]
[columns]
block_m = [64, 128]
block_n = 128
block_k = 32
stages = [1, 2, 3]
[hardware_parameters]
load_latency_us = [0.0, 0.5]
"""
NAMES = ("up/gate 50%", "down", "head=é", "007")
ROWS = 2 * 4 * 2 * 3 * 2


def run(partition: str = "", best: str = "", spec: str = SPEC):
    return parse_spec(f"{spec}[output]\n{best}\n{partition}\n", "small.toml")


def files(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in sorted(found)}


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows and columns in one order, words as words."""
    words = frame.select_dtypes(["category", "object", "string"]).columns
    frame = frame.astype(dict.fromkeys(words, str) | {"m": int})
    keys = ["hardware", "load_latency_us", "problem", "m", "n", "k", "block_m", "stages"]
    frame = pd.DataFrame(frame[sorted(frame.columns)]).sort_values(keys, ignore_index=True)
    return frame.astype(dict.fromkeys(frame.select_dtypes("int").columns, "int64"))


@pytest.fixture(scope="module")
def flat(tmp_path_factory) -> pd.DataFrame:
    out = tmp_path_factory.mktemp("flat") / "out"
    wsjax.sweep(run(), out)
    return ordered(wsjax.open(out).to_table().to_pandas())


@pytest.mark.parametrize(
    ("names", "folders", "first"),
    [
        ('"hardware"', 2, "hardware=toy"),
        ('"m"', 2, "m=16"),
        ('["problem", "hardware"]', 8, f"problem={quote(NAMES[0], safe='')}/hardware=toy"),
        ('["load_latency_us", "problem"]', 8, f"load_latency_us=0.0/problem={quote(NAMES[0])}"),
    ],
)
def test_folders_hold_the_same_rows(names, folders, first, flat, tmp_path):
    summary = wsjax.sweep(run(f"partition_by = {names}"), tmp_path / "out")
    found = files(tmp_path / "out")
    assert len({Path(name).parent for name in found}) == folders
    assert {Path(name).parent.as_posix() for name in found} >= {first.replace("up/", "up%2F")}
    assert summary.rows == ROWS
    table = wsjax.open(tmp_path / "out").to_table()
    columns = names.strip("[]").replace('"', "").split(", ")
    assert table.column_names[-len(columns) :] == columns
    pd.testing.assert_frame_equal(ordered(table.to_pandas()), flat)


def test_every_reader_knows_folders(flat, tmp_path):
    out = tmp_path / "out"
    wsjax.sweep(run('partition_by = ["hardware", "m", "load_latency_us"]'), out)
    source = f"read_parquet('{out}/**/*.parquet', hive_partitioning = true)"
    frames = {
        "duckdb": duckdb.connect().execute(f"FROM {source}").df(),
        "polars": pl.read_parquet(out, hive_partitioning=True).to_pandas(),
        "arrow": ds.dataset(out, partitioning="hive").to_table().to_pandas(),
        "pandas": pd.read_parquet(out),
        "opened, by duckdb": _duckdb(wsjax.open(out)),
        "opened, by polars": pl.scan_pyarrow_dataset(wsjax.open(out)).collect().to_pandas(),
    }
    for name, frame in frames.items():
        frame["load_latency_us"] = frame["load_latency_us"].astype(float)
        pd.testing.assert_frame_equal(ordered(frame), flat, obj=name)


def _duckdb(opened: ds.Dataset) -> pd.DataFrame:
    return duckdb.connect().execute("FROM opened").df()


def test_folders_change_nothing_but_where_rows_are(tmp_path):
    """The summary, and best-of sweeps too; rows of a problem stay in their order."""
    spec = SPEC.replace(', "h200"', "")
    for best in ("", "best = 2"):
        whole = wsjax.sweep(run(best=best, spec=spec), tmp_path / f"flat{best}")
        parts = wsjax.sweep(run('partition_by = "m"', best, spec), tmp_path / f"folders{best}")
        assert len(parts.best) == len(whole.best) == 8
        assert parts.fastest is not None
        assert whole.fastest is not None
        assert parts.fastest["tflops"] == whole.fastest["tflops"]
        same = {"directory": Path(), "shards": 0, "best": [], "fastest": None}
        assert parts._replace(**same) == whole._replace(**same)
        of = [wsjax.open(tmp_path / f"{kind}{best}").to_table() for kind in ("flat", "folders")]
        names = of[0].column_names
        keys = ["hardware", "load_latency_us", "problem"]
        frames = [table.to_pandas()[names].sort_values(keys, kind="stable") for table in of]
        for name in keys:
            assert frames[0][name].astype(str).tolist() == frames[1][name].astype(str).tolist()
        assert frames[0]["time_us"].tolist() == frames[1]["time_us"].tolist()
        for leader in parts.best:
            same_problem = frames[0]
            for name in keys:
                same_problem = same_problem[same_problem[name] == leader.row[name]]
            assert leader.row["time_us"] == same_problem["time_us"].min()


def test_folders_are_resumed_and_repeated(tmp_path):
    spec = run('partition_by = ["hardware", "m"]')
    whole = wsjax.sweep(spec, tmp_path / "out", shard_rows=10)
    before = files(tmp_path / "out")
    assert len(before) == whole.shards == 14

    def stop_after(done, candidates):
        if done > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wsjax.sweep(spec, tmp_path / "stopped", shard_rows=10, progress=stop_after)
    assert 0 < len(files(tmp_path / "stopped")) < 14
    again = wsjax.sweep(spec, tmp_path / "stopped")
    assert files(tmp_path / "stopped") == before
    assert again.best == whole.best
    assert again.fastest == whole.fastest
    shutil.move(tmp_path / "stopped" / "hardware=toy", tmp_path / "lost")
    wsjax.sweep(tmp_path / "stopped", tmp_path / "stopped")
    assert files(tmp_path / "stopped") == before


def test_what_no_folder_can_stand_for(tmp_path):
    for names, message in {
        '"block_m"': "not 'block_m': a folder needs a column of problems or machines",
        '"hardwear"': "'hardware'",
        '"schedule"': "valid: hardware, load_latency_us, m, n, k, problem",
        "3": "expected columns' names in quotes, not 3",
        '["m", "m"]': "in the list twice",
    }.items():
        with pytest.raises(InputError, match=message):
            wsjax.sweep(run(f"partition_by = {names}"), tmp_path / "out")
    many = SPEC[: SPEC.index("[problems]")]
    many += "[columns]\nm = { from = 1, to = 20000, step = 1 }\nn = 64\nk = 64\n"
    many += 'block_m = 64\nblock_n = 64\nblock_k = 64\n[output]\npartition_by = "m"\n'
    with pytest.raises(InputError, match="m: more than 10,000 folders"):
        wsjax.sweep(parse_spec(many, "many.toml"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_files_in_folders_are_refused(tmp_path):
    spec, out = run('partition_by = "m"'), tmp_path / "out"
    wsjax.sweep(spec, out)
    part = next((out / "m=300").iterdir())
    shutil.copy(part, out / "m=16")
    with pytest.raises(InputError, match=r"lies in the wrong folder"):
        wsjax.sweep(spec, out)
    (out / "m=16" / part.name).unlink()
    (out / "m=16" / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"no sweep wrote: m=16/notes\.txt"):
        wsjax.sweep(spec, out)
    (out / "m=16" / "notes.txt").unlink()
    (out / "m=16" / f".{part.name}.0a1b.tmp").write_text("half")
    (out / "m=16" / ".notes.tmp").write_text("mine")
    with pytest.raises(InputError, match=r"no sweep wrote: m=16/\.notes\.tmp"):
        wsjax.sweep(spec, out)
    (out / "m=16" / ".notes.tmp").unlink()
    wsjax.sweep(spec, out)
    assert not list(out.rglob("*.tmp"))


def test_a_directory_that_is_not_whole_is_not_opened(tmp_path):
    out = tmp_path / "out"
    wsjax.sweep(run(), out, shard_rows=20)
    assert wsjax.open(out).count_rows() == ROWS
    assert wsjax.open(str(out)).schema.field("m").type == configuration_column("m", np.ones(1)).type
    (out / "part-00001.parquet").unlink()
    (out / "part-00005.parquet").unlink()
    (out / "part-00003.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError) as error:
        wsjax.open(out)
    assert str(error.value) == (
        f"{out}: not whole: part-00003.parquet is damaged; rows 20 to 39 on toy are missing; "
        "rows 0 to 19 on h200 are missing; rows 40 to 47 on h200 are missing; "
        f"wsjax sweep {out} --out {out} makes what is missing"
    )
    (out / "part-00003.parquet").write_bytes(b"noise")
    with pytest.raises(InputError, match=r"00003\.parquet is damaged \(move it away first\); rows"):
        wsjax.open(out)
    with pytest.raises(InputError, match=r"wrote: part-00003\.parquet; .* or move them away"):
        wsjax.sweep(out, out)
    (out / "part-00003.parquet").unlink()
    wsjax.sweep(out, out)
    assert wsjax.open(out).count_rows() == ROWS
    for place, message in {
        tmp_path / "outt": "did you mean",
        tmp_path: "no sweep wrote this directory",
        out / "part-00000.parquet": "is a file; give the directory",
        "nowhere://x": "can't open this place",
    }.items():
        with pytest.raises(InputError, match=message):
            wsjax.open(place)


@pytest.fixture
def bucket(monkeypatch) -> fs.FileSystem:
    """A file system in memory that stands in for an object store at mem://."""
    memory, _ = fs.FileSystem.from_uri("mock:///")
    opened = stores.open_uri

    def opener(uri):
        if not uri.startswith("mem://"):
            return opened(uri)
        return memory, uri[6:].partition("?")[0].rpartition("@")[2]

    monkeypatch.setattr(stores, "open_uri", opener)
    return memory


def held(bucket: fs.FileSystem, path: str) -> dict[str, bytes]:
    infos = bucket.get_file_info(fs.FileSelector(path, recursive=True))
    paths = [info.path for info in infos if info.type == fs.FileType.File]
    return {x.removeprefix(f"{path}/"): bucket.open_input_file(x).readall() for x in paths}


def test_an_object_store_holds_the_same_files(bucket, flat, tmp_path, capsys):
    spec = tmp_path / "small.toml"
    spec.write_text(f'{SPEC}[output]\npartition_by = "hardware"\n')
    assert main(["sweep", str(spec), "--out", "mem://b/x", "--shard-rows", "10"]) == 0
    assert f"{ROWS} rows of {ROWS} candidates in mem://b/x" in capsys.readouterr().out
    assert main(["sweep", str(spec), "--out", str(tmp_path / "d"), "--shard-rows", "10"]) == 0
    assert held(bucket, "b/x") == files(tmp_path / "d")
    opened = wsjax.open("mem://b/x")
    pd.testing.assert_frame_equal(ordered(opened.to_table().to_pandas()), flat)
    for name, data in {"hardware=h200/part-00005.parquet": b"PAR1", "notes.txt": b""}.items():
        with bucket.open_output_stream(f"b/x/{name}") as stream:
            stream.write(data)
    with pytest.raises(InputError, match=r"mem://b/x: holds files that no sweep wrote: notes\.txt"):
        wsjax.sweep(spec, "mem://b/x")
    bucket.delete_file("b/x/notes.txt")
    bucket.delete_file("b/x/hardware=toy/part-00000.parquet")
    with pytest.raises(InputError, match=r"part-00005\.parquet is damaged; rows 0 to 9 on toy"):
        wsjax.open("mem://b/x")
    with pytest.warns(UserWarning, match=r"mem://b/x/.*part-00005\.parquet: is damaged"):
        assert wsjax.sweep("mem://b/x", "mem://b/x").resumed == 8
    assert held(bucket, "b/x") == files(tmp_path / "d")
    wsjax.sweep("mem://b/x/hardware=toy/part-00000.parquet", "mem://b/y", shard_rows=10)
    assert held(bucket, "b/y") == held(bucket, "b/x")
    with pytest.raises(InputError, match="is a file; give a directory"):
        wsjax.sweep(spec, "mem://b/x/hardware=toy/part-00000.parquet")


def test_a_sweep_that_is_stopped_uploads_no_half_file(bucket, tmp_path):
    def stop_after(done, candidates):
        if done > 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wsjax.sweep(run(), "mem://b/x", shard_rows=30, progress=stop_after)
    wsjax.sweep(run(), tmp_path / "whole", shard_rows=30)
    left = held(bucket, "b/x")
    assert set(left) == {"part-00000.parquet", "part-00001.parquet"}
    assert left.items() < files(tmp_path / "whole").items()


def test_two_sweeps_without_a_lock_do_no_harm(bucket, tmp_path):
    """Both write all files, the second over the first's while that goes on: the same bytes."""
    wsjax.sweep(run(), tmp_path / "whole", shard_rows=30)
    whole = files(tmp_path / "whole")
    running = []

    def start_another(done, candidates):
        if done > 50 and not running:
            running.append(True)
            bucket.delete_dir_contents("b/x")
            wsjax.sweep(run(), "mem://b/x", shard_rows=30)
            assert held(bucket, "b/x") == whole

    summary = wsjax.sweep(run(), "mem://b/x", shard_rows=30, progress=start_another)
    assert running
    assert summary.resumed == 0
    assert held(bucket, "b/x") == whole


def test_file_uris_are_directories(tmp_path):
    uri = f"file://{tmp_path}/out"
    assert wsjax.sweep(run(), uri).directory == tmp_path / "out"
    assert wsjax.open(uri).count_rows() == ROWS
    assert wsjax.sweep(uri, uri).resumed == 2
    with (
        stores.store(tmp_path / "out").held(),
        pytest.raises(wsjax.WsjaxError, match="another sweep is writing here"),
    ):
        wsjax.sweep(uri, uri)


def test_options_of_a_uri_stay_behind_the_path(bucket):
    place = stores.Store("s3://b/x?region=here", bucket, "b/x")
    assert place.shown("m=1/part-00000.parquet") == "s3://b/x/m=1/part-00000.parquet?region=here"
    file = stores.Store("s3://b/x/p.parquet?region=here", bucket, "b/x/p.parquet")
    assert stores.parent(file) == (place, "p.parquet")


def test_places_that_no_one_knows(tmp_path, capsys):
    spec = tmp_path / "small.toml"
    spec.write_text(SPEC)
    assert main(["sweep", str(spec), "--out", "nowhere://b/x"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("wsjax: nowhere://b/x: can't open this place: ")
    assert "s3://bucket/path" in shown
    assert main(["sweep", f"file://{tmp_path}/absent.toml"]) == 2
    assert "absent.toml: can't read this sweep file" in capsys.readouterr().err


def test_a_store_that_does_not_answer_is_named_without_its_keys(monkeypatch):
    def get_file_info(_):
        raise OSError("no route to host\nmore")

    system = SimpleNamespace(get_file_info=get_file_info, type_name="s3")
    monkeypatch.setattr(stores, "open_uri", lambda uri: (system, uri.partition("@")[2]))
    for ask in (wsjax.open, lambda uri: wsjax.sweep(run(), uri)):
        with pytest.raises(WsjaxError) as error:
            ask("s3://me:a+secret@b/x?region=here")
        assert str(error.value) == "s3://b/x?region=here: can't be reached: no route to host"
    with pytest.raises(InputError, match=r"s3://: can't open this place: it names no bucket; give"):
        stores.store("s3://")
    assert stores.public("s3://b/x?at=me@home") == "s3://b/x?at=me@home"


def test_google_storage_is_not_waited_for_a_quarter_of_an_hour():
    assert stores._impatient("gs://b/x") == "gs://b/x?retry_limit_seconds=60"
    assert stores._impatient("gs://b/x?a=b") == "gs://b/x?a=b&retry_limit_seconds=60"
    for uri in ("gs://b/x?retry_limit_seconds=5", "s3://b/x", "file:///x"):
        assert stores._impatient(uri) == uri


@pytest.mark.parametrize("rows", [0, -1, 2**40, 1.5, True])
def test_rows_of_a_file_are_a_whole_number(rows, tmp_path):
    with pytest.raises(InputError, match="--shard-rows: expected a whole number"):
        wsjax.sweep(run(), tmp_path / "out", shard_rows=rows)


def test_rows_of_a_file_stay_what_they_were(tmp_path):
    out = tmp_path / "out"
    wsjax.sweep(run(), out, shard_rows=20)
    assert wsjax.sweep(run(), out).resumed == 6
    for rows in (30, 2**20):
        with pytest.raises(InputError, match="another number of rows; leave --shard-rows out"):
            wsjax.sweep(run(), out, shard_rows=rows)


def test_files_are_some_at_least_of_a_sweep_that_takes_time():
    rows = {1: 2**18, 2**18: 2**18, 2**20 + 1: 2**18 + 1, 3 * 2**20: 3 * 2**18, 2**40: 2**20}
    assert {candidates: USUAL_ROWS.usual(candidates) for candidates in rows} == rows


def test_machines_of_a_sweep_have_the_same_columns(tmp_path):
    """A machine without intervals has them empty, so that all files are of one schema."""
    wsjax.sweep(run(), tmp_path / "out")
    schemas = [pq.read_schema(path) for path in sorted((tmp_path / "out").iterdir())]
    assert schemas[0].equals(schemas[1])
    found = pd.read_parquet(tmp_path / "out")
    assert set(found.loc[found["time_us_lo"].isna(), "hardware"]) == {"toy"}


def test_a_directory_that_may_not_be_written(tmp_path, capsys):
    """Root may write anywhere, so that the place is one where nobody may."""
    spec = tmp_path / "small.toml"
    spec.write_text(SPEC)
    place = Path("/sys/wsjax") if os.geteuid() == 0 else tmp_path / "closed" / "out"
    (tmp_path / "closed").mkdir(mode=0o500)
    assert main(["sweep", str(spec), "--out", str(place)]) == 2
    shown = capsys.readouterr().err
    assert str(place) in shown
    assert "Traceback" not in shown


def test_layout_covers_all_rows_once():
    for partition in ("", 'partition_by = "m"', 'partition_by = ["problem", "load_latency_us"]'):
        for best in ("", "best = 3"):
            for rows in (None, 1, 7, 10**6):
                shards = layout(run(partition, best), rows)
                for machine in ("toy", "h200"):
                    parts = [x for x in shards if x.machine.name == machine]
                    ends = [0, *(part.stop for part in parts)]
                    assert ends == [*(part.start for part in parts), ROWS // 2]
                assert len({shard.name for shard in shards}) == len(shards)


def test_a_flipped_bit_is_noticed(tmp_path):
    wsjax.sweep(run(), tmp_path / "out")
    path = min((tmp_path / "out").iterdir())
    data = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(0).column(12).data_page_offset
    data[start + 60] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match="checksum"):
        wsjax.open(tmp_path / "out").to_table()
    with pytest.warns(UserWarning, match="is damaged; it is made again"):
        wsjax.sweep(run(), tmp_path / "out")
    assert wsjax.open(tmp_path / "out").to_table().num_rows


def test_a_file_in_the_wrong_folder_is_named(tmp_path):
    folders = parse_spec(
        SPEC.replace("[columns]", '[output]\npartition_by = "m"\n[columns]'), "s.toml"
    )
    wsjax.sweep(folders, tmp_path / "out")
    first, *_, last = sorted((tmp_path / "out").rglob("*.parquet"))
    last.rename(first.with_name(last.name))
    with pytest.raises(InputError, match=f"wrong folder; move it to m=300/{last.name}, or delete"):
        wsjax.sweep(folders, tmp_path / "out")


def test_only_paths_are_opened():
    with pytest.raises(InputError, match="a sweep's directory is a path, not int"):
        wsjax.open(3)  # pyright: ignore[reportArgumentType]


KEYS = ("AKIAKEY", "sec/re+t", "T0KEN")
URIS = (
    "s3://AKIAKEY:sec/re+t@b/x?region=here",
    "s3://AKIAKEY:sec%2Fre+t@b/x?region=here",
    "s3://b/x?region=here&access_key=AKIAKEY&secret_key=sec/re+t&session_token=T0KEN",
    "nowhere://AKIAKEY:sec/re+t@b/x?secret_key=T0KEN",
    "s3://AKIAKEY:sec/re+t@b/x?endpoint_override=127.0.0.1:1&scheme=http",
    "s3://AKIAKEY:sec%2Fre%2Bt@b/x?endpoint_override=127.0.0.1:1&scheme=http&sas_token=T0KEN",
)


@pytest.mark.parametrize("uri", URIS)
def test_no_message_shows_keys(uri, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    spec = tmp_path / "small.toml"
    spec.write_text(SPEC)

    def refuse(_):
        raise OSError(f"no route to '{uri}': {uri}")

    system = SimpleNamespace(get_file_info=refuse, type_name="s3")
    verbs = [["sweep", uri], ["report", uri], ["sweep", str(spec), uri], ["predict", "-m", uri]]
    verbs += [["validate", uri, "--hardware", uri], ["import", uri, "--out", "t.csv"]]
    if "127.0.0.1" not in uri:
        monkeypatch.setattr(stores, "open_uri", lambda uri: (system, "b/x"))
        verbs.append(["sweep", str(spec), "--out", uri])
    else:
        monkeypatch.setattr(stores, "open_uri", refuse)
        verbs.append(["sweep", str(spec), "--out", uri])
    for arguments in verbs:
        assert main(arguments) in (1, 2)
        shown = "".join(capsys.readouterr())
        assert shown
        assert not [key for key in KEYS if key in shown], (arguments, shown)
    place = stores.Store(uri, system, "b/x")  # pyright: ignore[reportArgumentType]
    with pytest.raises(WsjaxError) as error:
        place.names()
    for text in (str(error.value), str(place), repr(place), place.shown("part-00000.parquet")):
        assert not [key for key in KEYS if key in text], text


def test_a_summary_names_its_store_without_keys(bucket):
    summary = wsjax.sweep(run(), "mem://me:secret@b/x?secret_key=k")
    assert summary.directory == "mem://b/x?secret_key=***"


def test_a_flipped_bit_in_a_footer_is_noticed(tmp_path):
    """Wherever it is: the file is damaged and made again, or what it holds is right."""
    out = tmp_path / "out"
    wsjax.sweep(run(), out)
    whole = files(out)
    path = out / "part-00000.parquet"
    table = wsjax.open(out).to_table()
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = len(data) - 8 - length
    names = [footer + data[footer:].index(name) for name in (b"time_us", b"wsjax.spec", b"rows")]
    chosen = [*names, *np.random.default_rng(0).integers(footer, len(data) - 8, 150).tolist()]
    noticed = 0
    for position in chosen:
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        try:
            found = wsjax.open(out).to_table()
        except (WsjaxError, OSError, pa.ArrowException):
            noticed += 1
        else:
            assert found.equals(table)
    assert noticed > len(chosen) / 2
    for position in names:
        flipped = bytearray(data)
        flipped[position] ^= 1
        path.write_bytes(flipped)
        with pytest.raises(InputError, match=r"not whole: part-00000\.parquet is damaged; "):
            wsjax.open(out)
        with pytest.warns(UserWarning, match=r"part-00000\.parquet: is damaged; it is made again"):
            assert wsjax.sweep(run(), out).resumed == 1
        assert files(out) == whole
