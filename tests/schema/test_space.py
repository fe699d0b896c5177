"""Columns, configurations and lazy products."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsjax.errors import InputError
from wsjax.schema.columns import (
    COLUMNS,
    DERIVED,
    DTYPE_BYTES,
    DTYPES,
    REQUIRED,
    Axis,
    Configuration,
    Product,
    shown,
    with_defaults,
)


def test_columns_and_configuration_agree():
    assert Configuration._fields == tuple(COLUMNS)
    assert len(DTYPES) == len(DTYPE_BYTES)
    no_default = {name for name, column in COLUMNS.items() if column.default is None}
    assert no_default == {*REQUIRED, *DERIVED}
    for column in COLUMNS.values():
        assert column.default is None or column.complaint(column.default) == ""


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("m", "128", 'expected a whole number, not "128"; write 128'),
        ("m", True, "expected a whole number, not true"),
        ("m", 1.5, "expected a whole number, not 1.5"),
        ("m", 128.0, "expected a whole number, not 128.0; write 128"),
        ("m", math.nan, "expected a whole number, not nan"),
        ("m", 0, "0 is out of range; nearest valid: 1"),
        ("m", -4, "-4 is out of range; nearest valid: 1"),
        ("m", 2**31 + 1, f"{2**31 + 1} is out of range; nearest valid: {2**31}"),
        ("m", 2**31, ""),
        ("stages", 33, "33 is out of range; nearest valid: 32"),
        ("mma_in_flight", 0, ""),
        ("schedule", "ping-pong", "unknown word \"ping-pong\"; did you mean 'pingpong'?"),
        ("schedule", 2, "unknown word 2; valid: serial, persistent, pingpong, cooperative"),
        ("schedule", "serial", ""),
    ],
)
def test_complaints_name_the_value_and_the_remedy(name, value, said):
    assert COLUMNS[name].complaint(value) == said


def test_shown_shortens_long_values():
    assert len(shown("x" * 500)) == 60
    assert shown(16**5000) == "a number of thousands of digits"
    assert shown(-math.inf) == "-inf"


def test_defaults_follow_the_schedule():
    one = with_defaults({"m": 1, "schedule": 2})
    assert one["math_warps"] == 8
    assert one["dtype_in"] == DTYPES.index("bf16")
    assert "n" not in one
    assert "stages" not in one
    many = with_defaults({"schedule": np.arange(4)})
    assert many["math_warps"].tolist() == [4, 4, 8, 8]
    assert with_defaults({})["math_warps"] == 4
    assert with_defaults({"math_warps": 12, "schedule": 3})["math_warps"] == 12


@st.composite
def axes(draw):
    """A few axes of one or two columns each, arrays and ranges, empty ones among them."""
    found = []
    for number in range(draw(st.integers(0, 4))):
        size = draw(st.integers(0, 5))
        start, step = draw(st.integers(-3, 3)), draw(st.integers(1, 4))
        values = [range(start, start + step * size, step), np.arange(size) * 0.5]
        count = draw(st.integers(1, 2))
        found.append(Axis(tuple(f"c{number}{i}" for i in range(count)), tuple(values[:count])))
    return tuple(found)


@settings(deadline=None)
@given(axes(), st.integers(-2, 700), st.integers(-2, 700))
def test_rows_are_the_product(axes, start, stop):
    product = Product(axes)
    expected = [
        tuple(value for values in row for value in values)
        for row in itertools.product(
            *(list(zip(*(list(v) for v in axis.values), strict=True)) for axis in axes)
        )
    ]
    assert len(product) == len(expected)
    rows = product.rows(start, stop)
    assert tuple(rows) == product.names
    wanted = expected[max(start, 0) : max(stop, 0)]
    assert all(len(column) == len(wanted) for column in rows.values())
    if rows:
        assert list(zip(*(column.tolist() for column in rows.values()), strict=True)) == wanted


def test_large_products_stay_lazy():
    side = range(1, 100_001)
    product = Product(tuple(Axis((name,), (side,)) for name in "mnk"))
    assert len(product) == 10**15
    last = product.rows(10**15 - 2, 10**15 + 5)
    assert {name: column.tolist() for name, column in last.items()} == {
        "m": [100_000, 100_000],
        "n": [100_000, 100_000],
        "k": [99_999, 100_000],
    }
    sizes = Product((Axis(("m",), (range(2**31, 2**31 + 1),)),)).rows(0, 1)
    assert sizes["m"].dtype == np.int64
    assert sizes["m"].tolist() == [2**31]


def test_products_refuse_what_cannot_be():
    axis = Axis(("m",), (range(2**31),))
    with pytest.raises(InputError, match="m: given twice"):
        Product((axis, axis))
    wide = tuple(Axis((name,), (range(2**21),)) for name in "mnk")
    with pytest.raises(InputError, match=r"9\.22e\+18 rows are more than 2\*\*63 - 1"):
        Product(wide)
    with pytest.raises(ValueError, match="values for 2 names"):
        Axis(("m", "n"), (range(3), range(4)))


def test_words_and_constants():
    names = Axis(("n", "problem"), (np.array([7, 8]), np.array([0, 1])), {"problem": ("qkv", "o")})
    product = Product(
        (names, Axis(("schedule",), (np.array([2]),)), Axis(("m",), (np.array([3]),)))
    )
    assert product.words["problem"] == ("qkv", "o")
    assert product.words["schedule"][2] == "pingpong"
    assert product.constants == {"schedule": 2, "m": 3}
    assert product.rows(0, 2)["m"].tolist() == [3, 3]
