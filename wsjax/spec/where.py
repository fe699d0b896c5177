"""Filters over columns, such as `block_m * block_n <= 32768 and schedule == 'pingpong'`.

The language is a small part of Python's expressions: `and or not ( )`, comparisons (chained ones
too), `in (a, b)`, `+ - * // %`, `**` with a small whole exponent, `power_of_two(…)`, column names,
numbers, and quoted words for text columns. A filter only compares and computes, so that one parsed
`Predicate` judges Python numbers and arrays, and, given their `Logic`, Z3 terms.

A sweep's filter may read what a problem gives and what is tried on it: `Filter` says which of its
rows pass, without making the product of both where it needs not.
"""

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from wsjax.errors import InputError, nearest
from wsjax.schema import COLUMNS, DEFAULTS, DERIVED, PREDICTION_COLUMNS, Column, Product

EXPONENT_MAX = 4
POWERS = tuple(2**power for power in range(63))
NUMBER_MAX = 1e300
DEPTH_MAX = 100

_ARITHMETIC: dict[type[ast.operator], Callable | str] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: "floor_divide",
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_BOUND: dict[Callable | str, Callable[..., float]] = {
    operator.add: operator.add,
    operator.sub: operator.add,
    operator.mul: lambda a, b: max(a, b, a * b),
}
"""From bounds of the operands' magnitudes, one of theirs and the result's (others: the largest)."""


def _is_among(number: Any, choices: tuple[float, ...]) -> Any:
    """Whether a number, or each of an array, is one of the choices, which are in order."""
    if not isinstance(number, np.ndarray | np.generic):
        return reduce(operator.or_, (number == choice for choice in choices))
    table = np.asarray(choices, None if number.dtype.kind == "i" else float)
    at = np.searchsorted(table, number)
    return table[np.minimum(at, len(table) - 1)] == number


class Logic(NamedTuple):
    """The operations on conditions, and those on whole numbers, that Python's operators don't give
    all kinds of terms.

    both, either: of two conditions. negation: of one. floor_divide: of two numbers. is_among: of a
    number and a tuple of sorted constants.
    """

    both: Callable[[Any, Any], Any]
    either: Callable[[Any, Any], Any]
    negation: Callable[[Any], Any]
    floor_divide: Callable[[Any, Any], Any]
    is_among: Callable[[Any, tuple[float, ...]], Any]


ARRAYS = Logic(operator.and_, operator.or_, lambda x: x ^ True, operator.floordiv, _is_among)
"""Of Python numbers, and of NumPy and JAX arrays."""


@dataclass(frozen=True)
class _Apply:
    """An operation, or the name of one of `Logic`, on numbers, names of columns, or further
    operations; folded over many."""

    operation: Callable | str
    operands: tuple["_Tree", ...]
    choices: tuple[float, ...] = ()


_Tree = int | float | str | _Apply


def _evaluate(tree: _Tree, terms: Mapping[str, Any], logic: Logic) -> Any:
    if not isinstance(tree, _Apply):
        return terms[tree] if isinstance(tree, str) else tree
    operands = [_evaluate(operand, terms, logic) for operand in tree.operands]
    operation = tree.operation
    if isinstance(operation, str):
        operation = getattr(logic, operation)
    if tree.choices:
        return operation(*operands, tree.choices)
    return reduce(operation, operands) if len(operands) > 1 else operation(*operands)


def _bound(tree: _Tree, largest: Mapping[str, float]) -> float:
    """A bound of the magnitude of every number in `tree`, from those of its columns."""
    if isinstance(tree, _Apply):
        operands = [_bound(operand, largest) for operand in tree.operands]
        operands += [float(max(map(abs, tree.choices)))] if tree.choices else []
        return reduce(_BOUND.get(tree.operation, max), operands)
    return largest[tree] if isinstance(tree, str) else abs(float(tree))


def _is_whole(tree: _Tree) -> bool:
    if isinstance(tree, _Apply):
        return all(map(_is_whole, (*tree.operands, *tree.choices)))
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

    def __call__(self, terms: Mapping[str, Any], logic: Logic = ARRAYS) -> Any:
        """The filter's value over `terms`: names to anything that computes and compares.

        Arrays of fixed-width whole numbers can overflow here; in `mask` they can't.
        """
        return _evaluate(self.tree, terms, logic)

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
    tree = reader.condition(body)
    if reader.problems or not isinstance(tree, _Apply):
        raise InputError(dict.fromkeys(reader.problems))
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

    def condition(self, node: ast.expr) -> _Tree:
        match node:
            case ast.BoolOp(op=op, values=values):
                return _combine(isinstance(op, ast.And), [self.condition(v) for v in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _Apply("negation", (self.condition(operand),))
            case ast.Compare():
                lefts = [node.left, *node.comparators[:-1]]
                parts = zip(lefts, node.ops, node.comparators, strict=True)
                return _combine(True, [self.comparison(*part) for part in parts])
            case ast.Call(func=ast.Name("power_of_two"), args=[operand], keywords=[]):
                return _Apply("is_among", (self.number(operand),), POWERS)
        hint = _INSTEAD.get(type(getattr(node, "op", None)), _HINT)
        return self.refuse(node, f"{ast.unparse(node)} is not a condition{hint}")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Tree:
        if type(op) in _COMPARE:
            operation = _COMPARE[type(op)]
            return _Apply(operation, self.operands(left, right, operation))
        if not isinstance(op, ast.In | ast.NotIn):
            return self.refuse(right, "'is' is not available; write ==")
        if not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
            return self.refuse(right, "'in' takes a list of values; write in (64, 128)")
        found = self.among(left, right.elts)
        return found if isinstance(op, ast.In) else _Apply("negation", (found,))

    def among(self, left: ast.expr, items: Sequence[ast.expr]) -> _Tree:
        """Whether a value is one of a list: of constants, however many, by one look-up."""
        pairs = [self.operands(left, item, operator.eq) for item in items]
        number = pairs[0][0]
        constants = sorted({item for _, item in pairs if isinstance(item, int | float)})
        parts = [_Apply(operator.eq, pair) for pair in pairs if isinstance(pair[1], str | _Apply)]
        parts += [_Apply("is_among", (number,), tuple(constants))] if constants else []
        return _combine(False, parts)

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
            written = ast.unparse(node)
            hint = f"; write '{written}'" if written in words else nearest(written, words)
            return self.refuse(node, f"{written} is not a word in quotes{hint}")
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
            hint = seen if node.id in PREDICTION_COLUMNS else nearest(node.id, self.columns)
            return self.refuse(node, f"unknown name '{node.id}'{hint}")
        self.names.setdefault(node.id)
        return node.id


def _combine(both: bool, conditions: Sequence[_Tree]) -> _Tree:
    name = "both" if both else "either"
    return _Apply(name, tuple(conditions)) if len(conditions) > 1 else conditions[0]


@dataclass(frozen=True)
class Filter:
    """A condition over the product of problems and what is tried on each.

    `fixed`: columns of one value. `outer`, `inner`: those that the condition reads and that vary
    with the problem, or with what is tried on it.
    """

    predicate: Predicate | None
    fixed: Mapping[str, Any]
    outer: tuple[str, ...]
    inner: tuple[str, ...]

    def problems(self, given: Mapping[str, Any], count: int) -> np.ndarray:
        """Which of `count` problems pass, as far as the filter reads nothing else."""
        if self.predicate is None or self.inner or not self.outer:
            return np.ones(count, bool)
        return self.predicate.mask({**self.fixed, **given}, count)

    def rows(self, columns: Mapping[str, Any], count: int) -> np.ndarray:
        """Which of `count` inner rows pass, as far as the filter reads nothing else."""
        if self.predicate is None or self.outer:
            return np.ones(count, bool)
        return self.predicate.mask({**self.fixed, **columns}, count)

    def both(
        self, given: Mapping[str, Any], columns: Mapping[str, Any], count: int
    ) -> np.ndarray | None:
        """(problems, inner rows) that pass, where the filter reads both; else None."""
        if self.predicate is None or not (self.inner and self.outer):
            return None
        mine = {name: np.asarray(columns[name])[:count] for name in self.inner}
        problems = zip(*(given[name] for name in self.outer), strict=True)
        return np.stack(
            [
                self.predicate.mask(
                    {**self.fixed, **mine, **dict(zip(self.outer, values, strict=True))}, count
                )
                for values in problems
            ]
        )


def filter_of(predicate: Predicate | None, outer: Product, inner: Product) -> Filter:
    """A filter over the product of two, the defaults filled in."""
    names = () if predicate is None else predicate.names
    fixed = DEFAULTS | outer.constants | inner.constants
    varies = {name for name in outer.names if name not in outer.constants}
    derived = {name for name in DERIVED if name not in fixed}
    tried = {name for name in inner.names if name not in inner.constants} | derived
    return Filter(
        predicate,
        fixed,
        tuple(name for name in names if name in varies),
        tuple(name for name in names if name in tried),
    )
