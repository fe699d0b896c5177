"""Filters over columns, such as `block_m * block_n <= 32768 and schedule == 'pingpong'`.

The language is a small part of Python's expressions: `and or not ( )`, comparisons (chained ones
too), `in (a, b)`, `+ - * // %`, `**` with a small whole exponent, `power_of_two(…)`, column names,
numbers, and quoted words for text columns. A filter only compares and computes, so that one parsed
`Predicate` runs on Python numbers, NumPy and JAX arrays and Z3 terms; `not` is pushed
down into comparisons.
"""

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.schema import COLUMNS, Column

EXPONENT_MAX = 4
POWERS = [2**power for power in range(63)]
NUMBER_MAX = 1e300
RESULTS = (
    "time_us",
    "math_wait_us",
    "dma_wait_us",
    "tflops",
    "waves",
    "k_tiles",
    "limiter",
    "legal",
)
"""Names that one may look for in vain."""
DEPTH_MAX = 100

_ARITHMETIC: dict[type[ast.operator], Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], tuple[Callable, Callable]] = {
    ast.Lt: (operator.lt, operator.ge),
    ast.LtE: (operator.le, operator.gt),
    ast.Gt: (operator.gt, operator.le),
    ast.GtE: (operator.ge, operator.lt),
    ast.Eq: (operator.eq, operator.ne),
    ast.NotEq: (operator.ne, operator.eq),
    ast.In: (operator.eq, operator.ne),
    ast.NotIn: (operator.ne, operator.eq),
}
"""Each comparison and its opposite."""
_BOUND: dict[Callable, Callable[..., float]] = {
    operator.add: operator.add,
    operator.sub: operator.add,
    operator.mul: lambda a, b: max(a, b, a * b),
}
"""From bounds of the operands' magnitudes, one of theirs and the result's (others: the largest)."""


@dataclass(frozen=True)
class _Apply:
    """An operation on numbers, names of columns, or further operations; folded over many."""

    operation: Callable
    operands: tuple["_Tree", ...]


_Tree = int | float | str | _Apply


def _evaluate(tree: _Tree, terms: Mapping[str, Any], floor_divide: Callable) -> Any:
    if isinstance(tree, _Apply):
        operands = [_evaluate(operand, terms, floor_divide) for operand in tree.operands]
        operation = floor_divide if tree.operation is operator.floordiv else tree.operation
        return reduce(operation, operands) if len(operands) > 1 else operation(*operands)
    return terms[tree] if isinstance(tree, str) else tree


def _bound(tree: _Tree, largest: Mapping[str, float]) -> float:
    """A bound of the magnitude of every number in `tree`, from those of its columns."""
    if isinstance(tree, _Apply):
        operands = [_bound(operand, largest) for operand in tree.operands]
        return reduce(_BOUND.get(tree.operation, max), operands)
    return largest[tree] if isinstance(tree, str) else abs(float(tree))


def _is_whole(tree: _Tree) -> bool:
    if isinstance(tree, _Apply):
        return all(map(_is_whole, tree.operands))
    return not isinstance(tree, float)


@dataclass(frozen=True)
class Predicate:
    """A parsed filter: `text` as it was written, `names` of the columns that it reads.

    `whole`: it computes with whole numbers below 2**63 only, so that `mask` and Z3 can't differ.
    """

    text: str
    names: tuple[str, ...]
    tree: _Apply
    whole: bool

    def __call__(self, terms: Mapping[str, Any], floor_divide: Callable = operator.floordiv) -> Any:
        """The filter's value over `terms`: names to anything that computes and compares.

        Conditions combine by `&` and `|`. Z3 terms have no `//`: give
        `floor_divide=operator.truediv`, Z3's division of whole numbers. Arrays of fixed-width
        whole numbers can overflow here; in `mask` they can't.
        """
        return _evaluate(self.tree, terms, floor_divide)

    def mask(self, columns: Mapping[str, Any], rows: int) -> np.ndarray:
        """Which of `rows` rows pass, over NumPy columns (a scalar is the same in every row).

        Computed in int64; where that could overflow, in float64, so that m*n*k of sizes up to
        2**31 compares right (to 15 digits).
        """
        if rows == 0:
            return np.zeros(0, dtype=bool)
        terms = {name: np.asarray(columns[name]) for name in self.names}
        largest = {name: float(max(values.max(), -values.min())) for name, values in terms.items()}
        if _bound(self.tree, largest) >= 2**63:
            terms = {name: values.astype(np.float64) for name, values in terms.items()}
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(self(terms), dtype=bool), (rows,))


def parse(text: str, columns: Mapping[str, Column] = COLUMNS) -> Predicate:
    """Read a filter over `columns`; words of text columns become their codes.

    Raises InputError with every mistake found: its place, the nearest name, how to mend it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            listed = ast.parse(f"[{text}\n]", mode="eval").body
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        place = "at the end" if line > text.count("\n") + 1 else _place(line, column)
        if "==" in error.msg:
            raise InputError(f"{place}: not a condition; write == to compare") from None
        reason = error.msg.partition(" (detected at")[0]
        if re.search(r"[()\[\]{}]", reason):
            reason = "brackets do not match"
        raise InputError(f"{place}: not a condition ({reason}){_HINT}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"not a condition ({error or 'nested too deep'}){_HINT}") from None
    if not isinstance(listed, ast.List) or len(listed.elts) != 1:
        raise InputError(f"not one condition{_HINT}")
    body = listed.elts[0]
    depth, level = 0, [body]
    while level and depth <= DEPTH_MAX:
        depth, level = depth + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise InputError(f"nested deeper than {DEPTH_MAX} levels; write it shorter")
    reader = _Reader(columns)
    tree = reader.condition(body, negate=False)
    if reader.problems or not isinstance(tree, _Apply):
        raise InputError(reader.problems)
    largest = _bound(tree, {name: float(columns[name].maximum) for name in reader.names})
    if largest > NUMBER_MAX:
        raise InputError(f"numbers can pass {NUMBER_MAX:g}; use smaller ones")
    return Predicate(text, tuple(reader.names), tree, _is_whole(tree) and largest < 2**63)


_HINT = "; write a comparison such as block_m * block_n <= 32768"
_INSTEAD = {
    ast.BitAnd: "; & is not available: write and",
    ast.BitOr: "; | is not available: write or",
    ast.Invert: "; ~ is not available: write not",
    ast.Div: "; / is not available: write // (whole division) or *",
}


def _place(line: int, column: int) -> str:
    """A position in the user's text, from one in the text with the bracket before it."""
    return f"line {line}, column {column}" if line > 1 else f"column {max(column - 1, 1)}"


class _Reader:
    """One walk over a filter's syntax tree: what it found wrong, and the names it met."""

    def __init__(self, columns: Mapping[str, Column]):
        self.columns = columns
        self.problems: list[str] = []
        self.names: dict[str, None] = {}

    def refuse(self, node: ast.expr, message: str) -> _Tree:
        self.problems.append(f"{_place(node.lineno, node.col_offset + 1)}: {message}")
        return 0

    def condition(self, node: ast.expr, negate: bool) -> _Tree:
        match node:
            case ast.BoolOp(op=op, values=values):
                both = isinstance(op, ast.And) != negate
                conditions = [self.condition(value, negate) for value in values]
                return _combine(both, conditions)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.condition(operand, not negate)
            case ast.Compare():
                lefts = [node.left, *node.comparators[:-1]]
                parts = [
                    self.comparison(left, op, right, negate)
                    for left, op, right in zip(lefts, node.ops, node.comparators, strict=True)
                ]
                return _combine(not negate, parts)
            case ast.Call(func=ast.Name("power_of_two"), args=[operand], keywords=[]):
                number, equal = self.number(operand), operator.ne if negate else operator.eq
                return _combine(negate, [_Apply(equal, (number, power)) for power in POWERS])
        hint = _INSTEAD.get(type(getattr(node, "op", None)), _HINT)
        return self.refuse(node, f"{ast.unparse(node)} is not a condition{hint}")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr, negate: bool) -> _Tree:
        if type(op) not in _COMPARE:
            return self.refuse(right, "'is' is not available; write ==")
        operation = _COMPARE[type(op)][negate]
        if not isinstance(op, ast.In | ast.NotIn):
            return _Apply(operation, self.operands(left, right, operation))
        if not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
            return self.refuse(right, "'in' takes a list of values; write in (64, 128)")
        choices = [_Apply(operation, self.operands(left, item, operation)) for item in right.elts]
        return _combine(operation is operator.ne, choices)

    def operands(self, left: ast.expr, right: ast.expr, operation: Callable) -> tuple[_Tree, ...]:
        """Both sides of one comparison, of numbers or of words."""
        choices = [self.choices(left), self.choices(right)]
        words = choices[0] or choices[1]
        if not words:
            return self.number(left), self.number(right)
        if operation not in (operator.eq, operator.ne):
            self.refuse(left, "words have no order; compare them with ==, != or in")
        elif all(choices) and choices[0] != choices[1]:
            self.refuse(right, f"'{ast.unparse(left)}' has other words than '{ast.unparse(right)}'")
        return self.word(left, words), self.word(right, words)

    def choices(self, node: ast.expr) -> tuple[str, ...]:
        """The words of the text column that `node` names, if it does."""
        if isinstance(node, ast.Name) and node.id in self.columns:
            return self.columns[node.id].choices
        return ()

    def word(self, node: ast.expr, words: tuple[str, ...]) -> _Tree:
        if isinstance(node, ast.Name) and self.choices(node):
            return self.name(node)
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            found = ast.unparse(node)
            hint = f"; write '{found}'" if found in words else nearest(found, words)
            return self.refuse(node, f"{found} is not a word in quotes{hint}")
        if node.value not in words:
            return self.refuse(node, f"unknown word '{node.value}'{nearest(node.value, words)}")
        return words.index(node.value)

    def number(self, node: ast.expr) -> _Tree:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return value if value <= NUMBER_MAX else self.refuse(node, "number too large")
            case ast.Name():
                if self.choices(node):
                    return self.refuse(node, f"'{node.id}' holds words, not numbers")
                return self.name(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _Apply(operator.neg, (self.number(operand),))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                if isinstance(op, ast.FloorDiv | ast.Mod) and not self.positive(right):
                    return self.refuse(
                        right, "divide by a number >= 1 or a column that is never 0, as block_m is"
                    )
                return _Apply(_ARITHMETIC[type(op)], (self.number(left), self.number(right)))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.power(self.number(left), right)
        hint = _INSTEAD.get(type(getattr(node, "op", None)), "")
        return self.refuse(node, f"{ast.unparse(node)} is not a number or a column{hint}")

    def power(self, base: _Tree, exponent: ast.expr) -> _Tree:
        """A power: of literals computed here, of columns as a product."""
        match exponent:
            case ast.Constant(value=int() as count) if isinstance(base, int | float):
                if abs(base) <= 1 or count * math.log10(abs(base)) <= 300:
                    return base**count
            case ast.Constant(value=int() as count) if 1 <= count <= EXPONENT_MAX:
                return _Apply(operator.mul, (base,) * count) if count > 1 else base
        return self.refuse(exponent, f"write an exponent from 1 to {EXPONENT_MAX}")

    def positive(self, node: ast.expr) -> bool:
        """Whether the value is at least 1 whatever the row (unknown names pass: see `name`)."""
        match node:
            case ast.Constant(value=int() | float() as value):
                return value >= 1
            case ast.Name(id=name):
                return name not in self.columns or self.columns[name].minimum >= 1
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Pow(), right=right):
                exponent = isinstance(node.op, ast.Pow)
                return self.positive(left) and (exponent or self.positive(right))
        return False

    def name(self, node: ast.Name) -> _Tree:
        if node.id not in self.columns:
            seen = "; a filter sees configurations, not results"
            hint = seen if node.id in RESULTS else nearest(node.id, self.columns)
            return self.refuse(node, f"unknown name '{node.id}'{hint}")
        self.names.setdefault(node.id)
        return node.id


def _combine(both: bool, conditions: Sequence[_Tree]) -> _Tree:
    operation = operator.and_ if both else operator.or_
    return _Apply(operation, tuple(conditions)) if len(conditions) > 1 else conditions[0]
