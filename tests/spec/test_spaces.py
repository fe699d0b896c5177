"""Spaces: what a file may say, which kernels it stands for, and that nothing is materialised."""

import numpy as np
import pytest

from wsjax.errors import InputError
from wsjax.hardware.machine import load_hardware
from wsjax.schema import KERNEL, PROBLEM
from wsjax.schema.columns import COLUMNS, SCHEDULES
from wsjax.spec.spaces import load_space

FACTS = load_hardware("h200").facts
PROBLEM_ROW = {"m": 4096, "n": 512, "k": 1024}
BLOCKS = "block_m = [64, 128]\nblock_n = 128\nblock_k = { from = 32, to = 128, factor = 2 }\n"


def space(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_space(path)


def kernels(found, problem=PROBLEM_ROW):
    """All kernels of a space: numbers, and configurations as one array a column."""
    blocks = list(found.blocks(problem, FACTS))
    numbers = np.concatenate([numbers for numbers, _ in blocks])
    return numbers, {name: np.concatenate([getattr(c, name) for _, c in blocks]) for name in KERNEL}


def test_problem_and_kernel_share_the_columns():
    assert {*PROBLEM, *KERNEL} == {*COLUMNS}
    assert not {*PROBLEM} & {*KERNEL}


def test_the_default_space():
    found = load_space()
    numbers, columns = kernels(found)
    assert len(found) == 5 * 6 * 3 * 12 * 2 * 3
    assert len(numbers) == 3 * 6 * 3 * 12 * 2 * 3, "as narrow as the machine's MMA"
    assert set(columns["block_m"]) == {64, 128, 256}
    assert set(columns["block_n"]) == {8, 16, 32, 64, 128, 256}
    assert set(columns["stages"]) == set(range(1, 13))
    assert set(columns["block_k"]) == {32, 64, 128}
    words = {SCHEDULES[code] for code in columns["schedule"]}
    assert words == {"persistent", "pingpong", "cooperative"}
    assert load_space(found) is found


def test_the_default_space_keeps_to_what_a_machine_was_fitted_to():
    span = {"block_n": [64, 192], "dma_warps": [1, 1], "schedule": ["serial", "pingpong"]}
    columns = load_space(None, span).product.take(np.arange(5 * 2 * 3 * 12 * 1 * 2))
    assert {*columns["block_n"]} == {64, 128}
    assert {*columns["dma_warps"]} == {1}
    assert {SCHEDULES[code] for code in columns["schedule"]} == {"serial", "pingpong"}
    assert {*columns["stages"]} == {*range(1, 13)}
    beyond = load_space(None, {"block_k": [256, 512]}).product
    assert {*beyond.take(np.arange(3))["block_k"]} == {256}


def test_problems_narrower_than_what_was_measured_have_narrower_tiles():
    span = {"block_m": [64, 256], "block_n": [64, 128]}
    for narrowest, widths in (({"m": 16, "n": 63}, {8, 16, 32, 64, 128}), ({"n": 64}, {64, 128})):
        found = load_space(None, span, narrowest)
        columns = found.product.take(np.arange(len(found)))
        assert {*columns["block_n"].tolist()} == widths
        assert min(columns["block_m"].tolist()) == (16 if "m" in narrowest else 64)


def test_a_file_is_a_product_that_its_filter_thins(tmp_path):
    found = space(tmp_path, f'[columns]\n{BLOCKS}[filter]\nwhere = "block_m * block_k != 4096"\n')
    assert (found.name, len(found)) == ("mine", 6)
    numbers, columns = kernels(found)
    sizes = zip(columns["block_m"].tolist(), columns["block_k"].tolist(), strict=True)
    assert list(sizes) == [(64, 32), (64, 128), (128, 64), (128, 128)]
    assert numbers.tolist() == [0, 2, 4, 5]


def test_filters_read_facts_and_powers_of_two(tmp_path):
    text = BLOCKS.replace("[64, 128]", "{ from = 8, to = 200, step = 8 }")
    where = "block_m % mma_m == 0 or not power_of_two(block_m)"
    _, columns = kernels(space(tmp_path, f'[columns]\n{text}[filter]\nwhere = "{where}"\n'))
    expected = [m for m in range(8, 201, 8) if m % FACTS.mma_m == 0 or m & (m - 1)]
    assert sorted(set(columns["block_m"].tolist())) == expected


def test_what_is_left_out_has_its_default(tmp_path):
    """`stages`: the deepest ring for the problem's types."""
    found = space(tmp_path, f'[columns]\n{BLOCKS}schedule = ["serial", "pingpong"]\n')
    _, columns = kernels(found)
    assert set(columns["math_warps"].tolist()) == {4, 8}
    _, bytes_4 = kernels(found, PROBLEM_ROW | {"dtype_in": 0})
    assert np.all(bytes_4["stages"] < columns["stages"])


def test_a_huge_space_costs_nothing(tmp_path):
    wide = "{ from = 1, to = 60000, step = 1 }"
    text = f"[columns]\nblock_m = {wide}\nblock_n = {wide}\nblock_k = {wide}\n"
    found = space(tmp_path, text)
    assert len(found) == 60_000**3
    numbers, c = next(found.blocks(PROBLEM_ROW, FACTS))
    assert (numbers[0], c.block_k[1]) == (0, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[columns]\n{BLOCKS}m = 64\n", r"columns: m: .*belongs to the problem"),
        (f"[columns]\n{BLOCKS}stage = 4\n", r"columns: stage: .*did you mean 'stages'"),
        (f"hardware = 'h200'\n[columns]\n{BLOCKS}", r"hardware: .*kernels only"),
        (f"stages = 3\n[columns]\n{BLOCKS}", r"stages: .*belongs in \[columns\]"),
        (f"where = 'm > 1'\n[columns]\n{BLOCKS}", r"where: .*belongs in \[filter\]"),
        (f"[colums]\n{BLOCKS}", r"colums: .*did you mean 'columns'"),
        ("[columns]\nblock_m = 64\n", r"block_n: missing.*\n.*block_k: missing"),
        ("", r"block_m: missing"),
        (f"[columns]\n{BLOCKS}stages = []\n", r"stages: the list is empty"),
        (f"[columns]\n{BLOCKS}stages = 40\n", r"stages: 40 is out of range; nearest valid: 32"),
        (f"[columns]\n{BLOCKS}[filter]\nwhere = 'm > 64'\n", r"where: .*unknown name 'm'"),
        (f"[columns]\n{BLOCKS}[filter]\nwhere = 'power_of_two()'\n", r"not a condition"),
        (f"[columns]\n{BLOCKS}[filter]\nwher = 'stages > 1'\n", r"wher: .*did you mean 'where'"),
        ("columns = 3\n", r"columns: expected a table"),
        ("[columns\n", r"not TOML"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(InputError, match=rf"(?s)mine.toml: .*{message}"):
        space(tmp_path, text)


def test_what_is_no_space(tmp_path):
    with pytest.raises(InputError, match="can't read this space file"):
        load_space(tmp_path / "none.toml")
    with pytest.raises(InputError, match="folder; give a space file"):
        load_space(tmp_path)
    with pytest.raises(InputError, match="not int"):
        load_space(3)  # type: ignore[arg-type]
