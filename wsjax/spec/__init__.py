"""Sweep files, space files and filters: which configurations are meant, in TOML."""

from wsjax.spec.axes import PROBLEM_COLUMNS
from wsjax.spec.filters import Sieve, sieve_of
from wsjax.spec.output import PRECISIONS
from wsjax.spec.spaces import FACTS, KERNEL, PROBLEM, Space, load_space
from wsjax.spec.sweep_files import GIVEN, Spec, load_spec, parse_spec, split
from wsjax.spec.where import Predicate, parse

__all__ = [
    "FACTS",
    "GIVEN",
    "KERNEL",
    "PRECISIONS",
    "PROBLEM",
    "PROBLEM_COLUMNS",
    "Predicate",
    "Sieve",
    "Space",
    "Spec",
    "load_space",
    "load_spec",
    "parse",
    "parse_spec",
    "sieve_of",
    "split",
]
