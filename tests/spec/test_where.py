"""Filters: what they mean, on every kind of term, and what they refuse."""

import numpy as np
import pytest
import z3
from conditions import ALL, WORDS, every_condition
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wsjax.errors import InputError
from wsjax.schema.columns import COLUMNS, SCHEDULES, Column
from wsjax.search.z3_events import LOGIC, as_term
from wsjax.spec.where import ARRAYS, parse

NUMBERS = ("m", "block_n", "stages", "mma_in_flight")
numbers = st.recursive(
    st.sampled_from(NUMBERS) | st.integers(0, 300).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(
            inner, st.sampled_from(["//", "%"]), st.sampled_from(["m", "7", "(stages + 1)"])
        ).map(lambda t: f"{t[0]} {t[1]} {t[2]}"),
        st.tuples(inner, st.integers(1, 3)).map(lambda t: f"({t[0]})**{t[1]}"),
        inner.map(lambda text: f"-({text})"),
    ),
    max_leaves=4,
)
comparisons = st.one_of(
    st.tuples(numbers, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers).map(" ".join),
    st.tuples(numbers, numbers, numbers).map(lambda t: f"{t[0]} < {t[1]} <= {t[2]}"),
    st.tuples(numbers, numbers).map(lambda t: f"{t[0]} not in ({t[1]}, 3)"),
    st.sampled_from(SCHEDULES).map(lambda word: f"schedule == '{word}'"),
    st.sampled_from(SCHEDULES).map(lambda word: f"schedule not in ('{word}', 'serial')"),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=4,
)


def rows_of(sizes):
    """A few rows of the columns NUMBERS."""
    row = st.tuples(sizes, sizes, st.integers(1, 32), st.integers(0, 1))
    return st.lists(row, min_size=1, max_size=4)


@settings(deadline=None)
@given(conditions, rows_of(st.integers(1, 300)) | rows_of(st.sampled_from([1, 2**31 - 1, 2**31])))
@example("not (m < block_n < 3) and m ** 3 > block_n", [(2**31, 2**31, 1, 0)])
def test_a_filter_means_what_python_means(text, rows):
    predicate = parse(text)
    columns = dict(zip(NUMBERS, np.array(rows).T, strict=True))
    for code, word in enumerate(SCHEDULES):
        expected = []
        for row in rows:
            terms = dict(zip(NUMBERS, row, strict=True))
            expected.append(eval(text, {**terms, "schedule": word}))
            assert predicate({**terms, "schedule": code}) is expected[-1]
        if np.max(rows) <= 300:
            assert predicate.mask({**columns, "schedule": code}, len(rows)).tolist() == expected


@settings(deadline=None, max_examples=200)
@given(every_condition, st.data())
@example("m > 5000 or stages <= 3", None)
@example("not (sms > 200 and stages > 3)", None)
@example("3 >= stages or 5000 < m", None)
@example("2 > 1 or m > 5", None)
def test_all_columns_as_arrays_and_as_z3_terms_of_which_some_are_numbers(text, data):
    """As `sweep` and `optimize` judge them: the problem and the machine are known numbers there."""
    row = dict.fromkeys(ALL, 1)
    free = ["stages"]
    if data is not None:
        for name, column in ALL.items():
            most = len(column.choices) - 1 if column.choices else min(column.maximum, 300)
            row[name] = data.draw(st.integers(0 if column.choices else column.minimum, most), name)
        free = data.draw(st.lists(st.sampled_from(list(ALL)), unique=True))
    words = {name: ALL[name].choices[row[name]] for name in WORDS}
    power_of_two = lambda x: x > 0 and x & (x - 1) == 0  # noqa: E731
    expected = eval(text, {**row, **words, "power_of_two": power_of_two})
    predicate = parse(text, ALL)
    assert predicate(row) is expected
    arrays = {name: np.full(3, value) for name, value in row.items()}
    assert predicate.mask(arrays, 3).tolist() == [expected] * 3
    terms = {name: z3.Int(name) if name in free else value for name, value in row.items()}
    term = as_term(predicate(terms, LOGIC))
    values = [(z3.Int(name), z3.IntVal(row[name])) for name in free]
    assert z3.is_true(z3.simplify(z3.substitute(term, *values))) is expected


def test_a_long_list_of_constants_is_one_look_up():
    """A hundred thousand values once took 17 s: one comparison each."""
    predicate = parse("m in (" + ", ".join(map(str, range(0, 300_000, 3))) + ", n, 7)")
    calls = []
    logic = ARRAYS._replace(is_among=lambda *of: calls.append(of) or ARRAYS.is_among(*of))
    columns = {"m": np.array([0, 1, 3, 7, 299_997, 300_000]), "n": np.array([1, 1, 1, 1, 1, 5])}
    assert predicate(columns, logic).tolist() == [True, True, True, True, True, False]
    assert [len(choices) for _, choices in calls] == [100_001]
    assert parse("m in (2, 2**70, 0.5)").mask({"m": np.array([1, 2])}, 2).tolist() == [False, True]


def test_large_sizes_do_not_overflow():
    predicate = parse("m * n * k > 2**62 and m * n * k * 2 < 1e30")
    columns = {"m": np.array([2**31, 2]), "n": 2**31, "k": np.array([2**31, 1])}
    assert predicate.mask(columns, 2).tolist() == [True, False]
    assert parse("m + 9223372036854775807 > m").mask({"m": np.array([2**31])}, 1).all()


def test_scalars_and_no_rows():
    assert parse("m > 3").mask({"m": 4}, 3).tolist() == [True] * 3
    assert parse("m > 3").mask({"m": np.zeros(0, dtype=np.int64)}, 0).tolist() == []
    assert parse("m > 3 and stages == 2").names == ("m", "stages")


def test_arrays_of_jax_and_terms_of_z3():
    import jax

    predicate = parse("not (m // 3 == 1 or m % 2 == 0) and schedule in ('serial', 'pingpong')")
    passes = jax.jit(lambda m: predicate({"m": m, "schedule": 2}))(np.arange(8))
    assert np.asarray(passes).tolist() == [False, True, False, False, False, False, False, True]
    m, schedule = z3.Int("m"), z3.Int("schedule")
    term = predicate({"m": m, "schedule": schedule}, LOGIC)
    values = [
        z3.simplify(z3.substitute(term, (m, z3.IntVal(i)), (schedule, z3.IntVal(2))))
        for i in range(8)
    ]
    assert [z3.is_true(value) for value in values] == np.asarray(passes).tolist()


def test_lines_comments_and_long_lists():
    text = "m in (" + ", ".join(map(str, range(3000))) + ")  # sizes\n and m > 10"
    assert parse(text).mask({"m": np.array([5, 2999, 3001])}, 3).tolist() == [False, True, False]


def test_other_columns():
    columns = COLUMNS | {
        "problem": Column("problem", "", choices=("a b", "c")),
        "load_latency_us": Column("load_latency_us", "", minimum=0),
    }
    predicate = parse("problem != 'c' and load_latency_us < 0.5", columns)
    values = {"problem": np.array([0, 1, 0]), "load_latency_us": np.array([0.1, 0.1, np.inf])}
    assert predicate.mask(values, 3).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blok_m > 3", "column 1: unknown name 'blok_m'; did you mean 'block_m'?"),
        ("time_us < 50", "unknown name 'time_us'; a filter sees configurations, not results"),
        ("m > 1 and\n n > stage", "line 2, column 6: unknown name 'stage'; did you mean 'stages'?"),
        ("m = 3", "not a condition; write == to compare"),
        ("m >", "at the end: not a condition"),
        ("", "write a comparison such as block_m * block_n <= 32768"),
        ("m > 1, n > 1", "not one condition"),
        ("m > 1] or [n > 1", "not one condition"),
        ("m", "column 1: m is not a condition; write a comparison"),
        ("not stages", "column 5: stages is not a condition"),
        ("(m > 1) & (n > 2)", "& is not available: write and"),
        ("m / 2 > 1", "/ is not available: write // (whole division) or *"),
        ("m // mma_in_flight > 1", "column 6: divide by a number >= 1 or a column that is never 0"),
        ("m % (n - 8) > 1", "column 6: divide by"),
        ("m ** 12 > 1", "column 6: write an exponent from 1 to 4"),
        ("m > 10 ** 400", "write an exponent"),
        ("((((m**4)**4)**4)**4)**4 > 1", "numbers can pass 1e+300"),
        ("m > 1e400", "number too large"),
        ("m in 64", "'in' takes a list of values; write in (64, 128)"),
        ("m in ()", "'in' takes a list of values"),
        ("m is 64", "'is' is not available; write =="),
        ("m == True", "True is not a number or a column"),
        ("m == '128'", "'128' is not a number or a column"),
        ("m.real > 1", "m.real is not a number or a column"),
        ("abs(m) > 1", "abs(m) is not a number or a column"),
        ("__import__('os').abort()", "is not a condition"),
        ("schedule == pingpong", "column 13: pingpong is not a word in quotes; write 'pingpong'"),
        ("schedule == 'pingpon'", "unknown word 'pingpon'; did you mean 'pingpong'?"),
        ("schedule in ('pingpong')", "'in' takes a list of values"),
        ("schedule < 'serial'", "words have no order; compare them with ==, != or in"),
        ("schedule + 1 > 2", "'schedule' holds words, not numbers"),
        ("layout == dtype_in", "'layout' has other words than 'dtype_in'"),
        ("m" + " + 1" * 500 + " > 1", "nested deeper than 100 levels"),
        ("(" * 300 + "m > 1" + ")" * 300, "not a condition"),
        ("m > 1\x00", "not a condition"),
    ],
)
def test_mistakes_are_named_and_placed(text, said):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert said in str(caught.value)


def test_all_mistakes_at_once():
    with pytest.raises(InputError) as caught:
        parse("blok_m > 3 and schedule == 'x' or m / 2 > k")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["m > 1)", "(m > 1", "m > 1]", "m > 1}", "(m > 1]", "m >\n (1"])
def test_brackets_that_do_not_match(text):
    """Messages show none of the brackets that the reader puts around the text."""
    with pytest.raises(InputError, match=r"not a condition \(brackets do not match\); write a"):
        parse(text)
