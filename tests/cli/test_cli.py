import json
import os
import re
import subprocess
import sys

import jax
import pyarrow as pa
import pytest
from paths import DATA

from wsjax import __version__, predictions
from wsjax.cli.main import main
from wsjax.cli.terminal import INTERRUPTED
from wsjax.errors import WsjaxError
from wsjax.hardware.machine import hardware_names, load_hardware
from wsjax.schema.columns import INTERVAL_COLUMNS, PREDICTION_COLUMNS
from wsjax.tables.parquet import read_table, write_table

TOY = "predict -m 512 -n 512 -k 256 --tile 128x128x64 --stages 2 --schedule serial --hardware toy"
H200 = "predict -m 4096 -n 4096 -k 4096 --tile 128x128x64 --stages 4 --schedule pingpong"


def run(capsys, command, code=0):
    """stdout and stderr of a command line that ends with `code`."""
    assert main(command.split() if isinstance(command, str) else command) == code
    return capsys.readouterr()


def test_one_configuration(capsys):
    shown = run(capsys, TOY).out
    assert "512x512x256 bf16 nt on toy (not calibrated)" in shown
    for label, value in {
        "time": "22.000 µs",
        "launch": "2.000 µs",
        "fill": "4.000 µs",
        "steady": "16.000 µs",
        "epilogue": "0.000 µs",
        "waves": "4",
        "limiter": "l",
    }.items():
        line = next(line for line in shown.splitlines() if label in line)
        assert value in line, label


def test_json_has_the_prediction_columns_and_no_others(capsys):
    shown = json.loads(run(capsys, f"{H200} --json").out)
    assert tuple(shown) == (*PREDICTION_COLUMNS, *INTERVAL_COLUMNS)
    assert 0 < shown["time_us_lo"] < shown["time_us"] < shown["time_us_hi"]
    assert "9 in 10 measurements" in run(capsys, H200).out
    assert tuple(json.loads(run(capsys, f"{TOY} --json").out)) == PREDICTION_COLUMNS
    assert shown["legal"] is True
    assert shown["reason"] == ""


def test_a_machine_of_three_facts_is_refused(capsys, tmp_path):
    """Its times would be 0 and its rates infinite, which JSON cannot say."""
    machine = tmp_path / "free.toml"
    machine.write_text("sms = 4\nsmem_bytes_per_sm = 102400\nwarp_size = 32\n")
    command = TOY.replace("--hardware toy", f"--hardware {machine} --json")
    shown = run(capsys, command, 2)
    assert shown.out == ""
    assert "free: has no rates, so that times would be 0; missing under [parameters]" in shown.err


def test_options_reach_the_model(capsys):
    plain = json.loads(run(capsys, f"{TOY} --json").out)

    def changed(option: str) -> dict:
        return json.loads(run(capsys, f"{TOY} {option} --json").out)

    assert changed("--batch 4")["waves"] == 4 * plain["waves"]
    assert changed("--dtype-out int8")["smem_bytes"] == plain["smem_bytes"] - 128 * 128
    same = "--dtype fp16 --layout tn --dma-warps 2 --math-warps 8 --group-m 4 --mma-in-flight 1"
    assert changed(same)["time_us"] == plain["time_us"]


def test_an_illegal_configuration(capsys):
    shown = run(capsys, TOY.replace("--stages 2", "--stages 9"), 2)
    assert shown.out == ""
    assert "deepest legal: 2 stages" in shown.err
    shown = run(capsys, TOY.replace("--stages 2", "--stages 9 --json"), 2)
    found = json.loads(shown.out)
    assert found["legal"] is False
    assert found["reason"] == "shared_memory"
    assert found["time_us"] is None


@pytest.mark.parametrize(
    ("command", "messages"),
    [
        ("predict", ["-m: missing", "-n: missing", "-k: missing", "--tile: missing"]),
        (
            "predict -m -4 -n 0 -k 4 --tile 128x128 --schedule pingpung --dtype f16 --stages 40",
            [
                "-m: -4 is out of range; nearest valid: 1",
                "-n: 0 is out of range",
                "--tile: '128x128' is no tile; write it as 128x128x64",
                "--schedule: unknown word \"pingpung\"; did you mean 'pingpong'?",
                "--dtype: unknown word \"f16\"; did you mean 'fp16'?",
                "--stages: 40 is out of range; nearest valid: 32",
            ],
        ),
        ("predict -m 3.5", ["'3.5' is not a whole number"]),
        (f"{H200} --hardware h200x", ["did you mean 'h200'?"]),
        (f"{H200} --tils 3", ["--tils", "--tile"]),
        ("predikt", ["predict"]),
        (
            f"{H200.replace('-k 4096', '-k 0')} --hardware h200x",
            ["did you mean 'h200'?", "-k: 0 is out of range; nearest valid: 1"],
        ),
        (H200.replace("128x128x64", "１２８x128x64"), ["is no tile; write it as 128x128x64"]),
        (H200.replace("-m 4096", "-m 4_096"), ["'4_096' is not a whole number"]),
        ("predict foo", ["'foo': not expected here; see wsjax predict --help"]),
        ("predict --table a.csv", ["--table and --out go together"]),
        ("predict --table a.csv -m 4", ["--table and --out go together", "-m: not with --table"]),
        (
            "predict --table nowhere.csv --out b.doc --hardware h200x",
            ["nowhere.csv: no such file", "b.doc: a table's name ends in", "did you mean 'h200'?"],
        ),
        ("predict --table a.csv --out b.csv -m 4 --json", ["-m, --json: not with --table"]),
        ("predict --table nowhere.csv --out b.csv", ["nowhere.csv: no such file"]),
        ("predict --table nowhere.csv --out b.doc", ["b.doc: a table's name ends in"]),
        ("sweep nowhere.toml", ["nowhere.toml"]),
        ("hardware show h200x", ["did you mean 'h200'?"]),
    ],
)
def test_mistakes(capsys, command, messages):
    shown = run(capsys, command, 2)
    assert shown.out == ""
    for message in messages:
        assert message in shown.err
    assert all(line.startswith("wsjax: ") for line in shown.err.splitlines())


def test_a_table(capsys, tmp_path):
    out = tmp_path / "p.parquet"
    table = str(DATA / "h200_cutlass_ws_excerpt.csv.gz")
    shown = run(capsys, ["predict", "--table", table, "--out", str(out), "--hardware", "h200"])
    rows = read_table(table).num_rows
    assert (shown.out, shown.err) == (f"{rows:,} rows written to {out}\n", "")
    assert read_table(out).num_rows == rows
    again = run(capsys, ["predict", "--table", table, "--out", str(out), "--hardware", "h200"])
    assert again.out == f"{rows:,} rows written to {out}; it replaced the file of that name\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_without_rows_is_refused(capsys, tmp_path, suffix):
    source, out = tmp_path / f"t{suffix}", tmp_path / "p.csv"
    names = ["m", "n", "k", "block_m", "block_n", "block_k"]
    write_table(pa.table({name: pa.array([], pa.int64()) for name in names}), source, {})
    shown = run(capsys, ["predict", "--table", str(source), "--out", str(out)], 2)
    assert f"{source}: has no rows below its header" in shown.err
    assert not out.exists()


def test_a_misspelt_column_is_warned_of(capsys, tmp_path):
    source, out = tmp_path / "t.csv", tmp_path / "p.csv"
    source.write_text("m,n,k,block_m,block_n,block_k,stage\n512,512,256,128,128,64,2\n")
    command = ["predict", "--table", str(source), "--out", str(out), "--hardware", "toy"]
    shown = run(capsys, command)
    assert shown.err.startswith("wsjax: warning: column 'stage' has no effect")
    assert out.exists()


def test_hardware(capsys):
    listed = run(capsys, "hardware list").out
    assert all(name in listed for name in hardware_names())
    assert run(capsys, "hardware show h200").out.strip() == load_hardware("h200").text.strip()


def test_version_and_help(capsys):
    shown = run(capsys, "--version").out.strip()
    assert shown.startswith(f"wsjax {__version__}, jax {jax.__version__} on ")
    assert jax.devices()[0].device_kind in shown
    shown = run(capsys, "--help").out
    assert all(verb in shown for verb in ("predict", "sweep", "hardware"))


def test_help_documents_every_exit_code(capsys):
    shown = run(capsys, "--help").out
    errors = [WsjaxError, *WsjaxError.__subclasses__()]
    for code in {0, INTERRUPTED, *(error.exit_code for error in errors)}:
        assert f"• {code}: " in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_verbs_and_options(capsys, shell):
    script = run(capsys, f"completion {shell}").out
    assert all(word in script for word in ("predict", "calibrate", "max-smem-bytes"))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            OSError(28, "No space left on device", "x.csv"),
            1,
            "x.csv: No space left on device; make room, and repeat the command",
        ),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "x.csv: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_stops_a_command_is_said_without_a_traceback(
    capsys, monkeypatch, error, code, message
):
    def stop(*_):
        raise error

    monkeypatch.setattr(predictions, "predict_table", stop)
    shown = run(capsys, "predict --table a.csv --out b.csv", code)
    assert shown.err == f"wsjax: {message}\n"


def test_a_reader_that_leaves_is_no_error():
    command = f"{sys.executable} -m wsjax.cli hardware show h200 | true; echo ${{PIPESTATUS[0]}}"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    assert shown.stdout.strip() in ("0", "141")


def test_no_colour_where_it_is_not_wanted():
    environment = {**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}
    shown = subprocess.run(
        [sys.executable, "-m", "wsjax.cli", *TOY.split()],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert "\x1b[3" not in shown.stdout
    assert "22.000 µs" in shown.stdout


def test_what_the_options_left_out_is_shown(capsys):
    command = f"{H200} --hardware h200".replace(" --stages 4", "")
    shown = run(capsys, command).out
    assert "6 stages, 1 DMA and 8 MATH warps" in shown
    assert run(capsys, command.replace("128x128x64", "128X128X64")).out == shown


def test_large_numbers_are_powers_of_ten(capsys):
    command = TOY.replace("-m 512 -n 512", f"-m {2**31} -n {2**31}")
    time = next(x for x in run(capsys, command).out.splitlines() if " time " in x)
    assert "e+" in time


def test_streams_that_are_not_utf_8():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for command, code in ((TOY, 0), (f"{TOY} --schedule é", 2)):
        shown = subprocess.run(
            [sys.executable, "-m", "wsjax.cli", *command.split()],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert shown.returncode == code
        assert "Traceback" not in shown.stderr
        assert "?s" in shown.stdout or code


def test_compiled_programs_are_kept(tmp_path):
    """In the user's cache folder, if there can be one; what is printed is the same."""
    (tmp_path / "file").write_text("")
    outputs = []
    known = (f"{TOY} --json", "cache"), (f"{TOY} --json", "cache"), ("hardware list", "file")
    for command, cache in known:
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / cache)}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        shown = subprocess.run(
            [sys.executable, "-m", "wsjax.cli", *command.split()],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        assert shown.stderr == ""
        outputs.append(shown.stdout)
    assert outputs[0] == outputs[1]
    kept = [path for path in (tmp_path / "cache" / "wsjax").rglob("*") if path.is_file()]
    assert kept


def test_a_byte_order_mark_in_a_machines_file(capsys, tmp_path):
    machine = tmp_path / "mine.toml"
    machine.write_text("\ufeff" + load_hardware("toy").text, encoding="utf-8")
    assert "22.000" in run(capsys, TOY.replace("toy", str(machine))).out


def test_a_sweep_file_is_no_machine(capsys, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text("[columns]\nm = 1\n")
    shown = run(capsys, TOY.replace("toy", str(path)), 2)
    assert "is a sweep file, no machine; run it: wsjax sweep" in shown.err


def test_the_summary_of_a_sweep_shows_whole_names_of_machines(capsys, tmp_path, monkeypatch):
    names = [f"accelerator-of-2031-with-{count}-stacks-of-memory" for count in ("four", "eight")]
    for name in names:
        (tmp_path / f"{name}.toml").write_text(load_hardware("toy").text.replace("toy", name))
    files = ", ".join(f'"{name}.toml"' for name in names)
    (tmp_path / "s.toml").write_text(
        f"hardware = [{files}]\n[columns]\nm = [512, 1024]\nn = 512\nk = 256\nblock_m = 64\n"
        "block_n = 128\nblock_k = 64\nstages = 2\n"
    )
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    command = ["sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    lines = re.sub("\x1b.*?m", "", run(capsys, command).out).splitlines()
    assert not any("…" in line for line in lines)
    start = next(i for i, line in enumerate(lines) if "hardware" in line)
    column = lines[start].index("hardware")
    cells = "".join(line[column:].split(" ")[0] for line in lines[start + 2 :])
    assert all(name in cells for name in names)


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", ">&- 2>&- <&-"])
def test_closed_standard_streams_lose_nothing(closed, tmp_path):
    (tmp_path / "t.csv").write_text("m,n,k,block_m,block_n,block_k\n512,512,256,128,128,64\n")
    verb = f"'{sys.executable}' -m wsjax.cli predict --hardware toy --table t.csv --out"
    for name in ("p.csv", "p.parquet"):
        run = subprocess.run(
            f"{verb} {name} {closed}", shell=True, cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        assert "Traceback" not in run.stdout + run.stderr
        assert read_table(tmp_path / name).num_rows == 1
    run = subprocess.run(
        f"{verb} p.txt {closed}", shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 2
    assert run.stderr == "" if "2>&-" in closed else run.stderr.startswith("wsjax: p.txt: ")
    assert run.stdout == ""
