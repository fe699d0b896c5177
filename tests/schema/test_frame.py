import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from wsjax.errors import InputError
from wsjax.schema import readers
from wsjax.schema.columns import COLUMNS, PROBLEM, SCHEDULES
from wsjax.schema.limits import Facts, resolve

FACTS = Facts(sms=4, smem_bytes_per_sm=102400, warp_size=32)
GOOD = {"m": 512, "n": 512, "k": 256, "block_m": 128, "block_n": 128, "block_k": 64}


def read(**columns):
    """Rows of a frame that is GOOD but for `columns`; None drops one."""
    columns = {name: values for name, values in (GOOD | columns).items() if values is not None}
    return read_frame(pd.DataFrame(columns, index=range(3)))


def read_frame(frame):
    columns = {str(name): frame[name] for name in frame.columns}
    return readers.read_rows(columns, len(frame), list(columns))


def problems(**columns) -> tuple[str, ...]:
    with pytest.raises(InputError) as error:
        read(**columns)
    return error.value.problems


def test_numbers_and_words():
    rows = read(schedule=["serial", "cooperative", "pingpong"], m=[1.0, 2.0, 2.0**31])
    assert rows.columns["m"].tolist() == [1, 2, 2**31]
    assert rows.columns["m"].dtype == np.int64
    assert [SCHEDULES[code] for code in rows.columns["schedule"]] == [
        "serial",
        "cooperative",
        "pingpong",
    ]
    assert not rows.incomplete.any()
    assert rows.measured_ok is None


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, 2, 3], dtype="uint8"),
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series([1, 2, 3], dtype="float32"),
        pd.Series([1, 2.0, np.int32(3)], dtype=object),
        pd.Series(["1", " 2 ", "3.0"], dtype=object),
        pd.Series([Decimal(1), Decimal("2.0"), "3"], dtype=object),
        pd.Series([1, 2, 3], dtype="category"),
        pd.Series([1, 2, 3], dtype="int64[pyarrow]"),
    ],
    ids=lambda series: str(series.dtype),
)
def test_kinds_of_whole_numbers(series):
    assert read(m=series).columns["m"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["object", "str", "category", "string[pyarrow]"])
def test_kinds_of_words(dtype):
    rows = read(layout=pd.Series(["nt", "nn", "nt"], dtype=dtype))
    assert rows.columns["layout"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"m": [1, -4, 0]}, "column 'm': not a whole number from 1 to 2147483648 in 2 rows, "
                            "first in row 1 (from 0): -4"),
        ({"m": [1, 2.5, 3]}, "column 'm': not a whole number from 1 to 2147483648 in 1 row, "
                             "first in row 1 (from 0): 2.5"),
        ({"m": [1, 2, np.inf]}, "first in row 2 (from 0): inf"),
        ({"m": [1, 2, 2**31 + 1]}, "first in row 2 (from 0): 2147483649"),
        ({"m": [1, 2, 2**64 - 1]}, "first in row 2 (from 0): 18446744073709551615"),
        ({"m": [1, np.nan, 3]}, "column 'm': blank in 1 row, first in row 1 (from 0)"),
        ({"m": pd.Series([1, None, 3], dtype="Int64")}, "column 'm': blank in 1 row"),
        ({"m": ["1", "128x", "3"]}, "column 'm': not a number in 1 row, first in row 1 (from 0): "
                                    "'128x'; write whole numbers"),
        ({"m": ["1", "-2", "x"]}, "column 'm': not a whole number from 1 to 2147483648 in 1 row"),
        ({"m": ["1", "2.5", "1e3"]}, "column 'm': not a number in 2 rows, first in row 1"),
        ({"m": [1, 10**400, 10**5000]}, "column 'm': not a whole number from 1 to 2147483648 in 2"),
        ({"m": [[1], [2], [3]]}, "column 'm': not a number in 3 rows, first in row 0"),
        ({"m": ["1", " ", "3"]}, "column 'm': blank in 1 row, first in row 1"),
        ({"layout": ["nt", "", "nn"]}, "column 'layout': blank in 1 row, first in row 1"),
        ({"layout": [["nt"], "nt", "nn"]}, "'layout': unknown word in 1 row, first in row 0"),
        ({"m": [Decimal(1), Decimal("2.5"), Decimal("Infinity")]}, "in 2 rows, first in row 1"),
        ({"m": [True, False, True]}, "column 'm': not a number in 3 rows"),
        ({"m": [1, True, 3]}, "column 'm': not a number in 1 row"),
        ({"m": [1j, 2, 3]}, "column 'm': not a number in 3 rows"),
        ({"m": pd.to_datetime(["2026-01-01"] * 3)}, "column 'm': not a number in 3 rows"),
        ({"mma_in_flight": [0, 1, 2]}, "from 0 to 1 in 1 row, first in row 2 (from 0): 2"),
        ({"stages": [33, 1, 1]}, "from 1 to 32 in 1 row"),
        ({"schedule": ["serial", "basic", "ping-pong"]}, "'ping-pong'; did you mean 'pingpong'?"),
        ({"schedule": 1}, "column 'schedule': unknown word in 3 rows, first in row 0 (from 0): 1"),
        ({"dtype_in": ["bf16", None, "bf16"]}, "column 'dtype_in': blank in 1 row"),
        ({"k": None}, "column 'k' is missing: columns of A, rows of B"),
        ({"block_k": None, "BLOCK_K": 64}, "'block_k' is missing; did you mean 'BLOCK_K'?"),
        ({"block_k": None, "blockk": 64}, "'block_k' is missing; did you mean 'blockk'?"),
        ({"time_us": 1.0}, "rename it to 'time_us_measured'"),
        ({"legal": True, "legal_predicted": 1}, "'legal' and 'legal_predicted' are both taken"),
    ],
)  # fmt: skip
def test_mistakes(columns, message):
    assert any(message in problem for problem in problems(**columns))


def test_all_mistakes_at_once():
    found = problems(m=-1, n="x", k=None, schedule=["a", "b", "c"], time_us=1.0)
    assert len(found) == 7
    many = problems(schedule=["serial", "b", "c"], layout=["w1", "w2", "w3"])
    assert len(many) == 5


def test_unknown_words_are_listed_up_to_a_few():
    frame = pd.DataFrame({**GOOD, "layout": [f"w{i}" for i in range(50)]})
    with pytest.raises(InputError, match="47 more unknown words; valid: nn, nt, tn, tt"):
        read_frame(frame)


def test_rows_that_were_not_measured_may_lack_values():
    rows = read(m=[1, np.nan, 3], status=["ok", "out_of_shared_memory", "failed"])
    assert rows.incomplete.tolist() == [False, True, False]
    assert rows.measured_ok is not None
    assert rows.measured_ok.tolist() == [True, False, False]
    assert problems(m=[np.nan, 2, 3], status="ok") == (
        "column 'm': blank in 1 row, first in row 0 (from 0): nan; fill or drop those rows",
    )


def test_defaults():
    configuration = resolve({name: np.array([v]) for name, v in GOOD.items()}, FACTS)
    assert {name: values.tolist() for name, values in configuration._asdict().items()} == {
        **{name: [value] for name, value in GOOD.items()},
        **{"batch": 1, "dtype_in": 2, "dtype_out": 2, "layout": 1, "stages": [2], "dma_warps": 1},
        **{"math_warps": 4, "mma_in_flight": 0, "accum": 0, "schedule": 1, "cluster_m": 1},
        **{
            "cluster_n": 1,
            "scheduler": 0,
            "split_k": 1,
            "reduction": 0,
            "group_m": 1,
            "grid_ctas": 0,
            "write_back": 0,
            "l2_state": 0,
        },
    }


def test_derived_defaults_follow_their_row():
    columns = {name: np.array([v, v]) for name, v in GOOD.items()}
    columns |= {"schedule": np.array([0, 2]), "block_k": np.array([2**16, 32])}
    configuration = resolve(columns, FACTS)
    assert configuration.math_warps.tolist() == [4, 8]
    assert configuration.stages.tolist()[0] == 1  # not even one fits: illegal, with a reason
    assert configuration.stages.tolist()[1] > 2


def test_misspelt_options_are_warned_of():
    with pytest.warns(UserWarning, match="column 'stage' has no effect, and 'stages' takes its"):
        readers.warn_of_misspelling(["m", "stage"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        readers.warn_of_misspelling(
            [*COLUMNS, "group", "regs", "kernel", "run", "time_us_median", 3]
        )


def test_single_values():
    good = {"m": np.int64(5), "n": 1, "k": 1, "schedule": "pingpong"}
    assert readers.from_keywords(good, (*PROBLEM, "schedule")) == good | {"schedule": 2}
    with pytest.raises(InputError) as caught:
        readers.from_keywords({"m": 0, "n": 1, "dtype_in": "bf17", "stages": 3}, PROBLEM)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        *("k", "stages"),
        *("m", "dtype_in"),
    ]
    assert caught.value.problems[2:] == (
        "m: 0 is out of range; nearest valid: 1",
        "dtype_in: unknown word \"bf17\"; did you mean 'bf16'?",
    )
