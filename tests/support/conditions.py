"""Filters over every column and fact, as Python's own expressions."""

from hypothesis import strategies as st

from wsjax.schema import COLUMNS, Column, Facts

ALL = {name: Column(name, "a fact", minimum=0) for name in Facts._fields} | COLUMNS
WORDS = [name for name, column in ALL.items() if column.choices]
COUNTS = [name for name in ALL if name not in WORDS]


@st.composite
def word_tests(draw):
    """A comparison of a text column with its words, on either side, alone or in a list."""
    name = draw(st.sampled_from(WORDS))
    words = draw(st.lists(st.sampled_from(ALL[name].choices), min_size=1, max_size=3))
    equal, among = draw(st.sampled_from([("==", "in"), ("!=", "not in")]))
    return draw(
        st.sampled_from(
            [
                f"{name} {equal} '{words[0]}'",
                f"'{words[0]}' {equal} {name}",
                f"{name} {among} {(*words, words[0])}",
            ]
        )
    )


every_number = st.sampled_from(COUNTS) | st.integers(0, 300).map(str)
sides = every_number | st.tuples(every_number, st.sampled_from("+-*"), every_number).map(
    lambda t: f"({' '.join(t)})"
)
every_test = st.one_of(
    word_tests(),
    st.tuples(sides, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), sides).map(" ".join),
    st.tuples(sides, st.lists(every_number, min_size=1, max_size=4)).map(
        lambda t: f"{t[0]} in ({', '.join(t[1])},)"
    ),
    every_number.map(lambda text: f"power_of_two({text})"),
)
every_condition = st.recursive(
    every_test,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=5,
)
