"""Sweep files, space files and filters: which configurations are meant, in TOML.

- `sweep_files`: problems, kernels and machines to predict, as the product of what a file lists
  (`load_spec` -> `Spec`); its docstring is the file's reference;
- `spaces`: the kernels to choose from (`load_space` -> `Space`), in the same form;
- `axes`: what a key of either may say: a value, a list, a range, factors;
- `where`: the filter's language, judged over numbers, arrays or Z3 terms.

The values themselves are judged by `wsjax.schema`. Called by `wsjax.sweeps`, `wsjax.search` and
`wsjax.portfolio`; read `wsjax.engine` next: it predicts a product's rows.
"""

from wsjax.spec.spaces import FACTS, Space, load_space
from wsjax.spec.sweep_files import GIVEN, PRECISIONS, Spec, load_spec, parse_spec, split
from wsjax.spec.where import Filter, Logic, Predicate, filter_of, parse

__all__ = [
    "FACTS",
    "GIVEN",
    "PRECISIONS",
    "Filter",
    "Logic",
    "Predicate",
    "Space",
    "Spec",
    "filter_of",
    "load_space",
    "load_spec",
    "parse",
    "parse_spec",
    "split",
]
