"""What a configuration is, and whether a machine can run it.

A configuration is one kernel on one problem: the columns of `COLUMNS`, each a whole number or a
word, held as numbers throughout (`Configuration`; words as codes). Its way through this package:

1. `columns`: names, ranges and defaults of the columns, and lazy products of their values;
2. `readers`: what a user gives (a frame's columns, keywords, options, a list of problems) becomes
   numbers, or one `InputError` with every mistake;
3. `limits`: `resolve` fills in defaults on a machine's `Facts`, `checks` says what must hold for it
   to be legal there, and `why` says it in words. The same arithmetic judges ints, NumPy and JAX
   arrays and Z3 terms.

All other packages call it. Read next: `wsjax.hardware` (the machine), `wsjax.model` (the time).
"""

from wsjax.schema.columns import (
    BLOCKS,
    COLUMNS,
    DEFAULTS,
    DERIVED,
    DTYPE_BYTES,
    DTYPES,
    GEMM,
    INTERVAL_COLUMNS,
    KERNEL,
    LAYOUTS,
    LIMITERS,
    METHODS,
    PREDICTION_COLUMNS,
    PROBLEM,
    PROMOTED,
    REQUIRED,
    SCHEDULES,
    WRITES,
    Axis,
    Column,
    Configuration,
    Product,
    kernel_words,
    problem_words,
    shown,
    sizes,
    spelled,
    toml_value,
    with_defaults,
)
from wsjax.schema.limits import (
    DEEPEST_RING,
    OVERHEAD_REGISTERS,
    REASONS,
    TMA_BYTES,
    WARPGROUP,
    Facts,
    checks,
    complete,
    deepest_stages,
    resolve,
    resolve_one,
    smem_bytes,
    why,
)
from wsjax.schema.readers import (
    Rows,
    from_keywords,
    from_options,
    prediction_name,
    problem_axis,
    read_rows,
    warn_of_misspelling,
)

__all__ = [
    "BLOCKS",
    "COLUMNS",
    "DEEPEST_RING",
    "DEFAULTS",
    "DERIVED",
    "DTYPES",
    "DTYPE_BYTES",
    "GEMM",
    "INTERVAL_COLUMNS",
    "KERNEL",
    "LAYOUTS",
    "LIMITERS",
    "METHODS",
    "OVERHEAD_REGISTERS",
    "PREDICTION_COLUMNS",
    "PROBLEM",
    "PROMOTED",
    "REASONS",
    "REQUIRED",
    "SCHEDULES",
    "TMA_BYTES",
    "WARPGROUP",
    "WRITES",
    "Axis",
    "Column",
    "Configuration",
    "Facts",
    "Product",
    "Rows",
    "checks",
    "complete",
    "deepest_stages",
    "from_keywords",
    "from_options",
    "kernel_words",
    "prediction_name",
    "problem_axis",
    "problem_words",
    "read_rows",
    "resolve",
    "resolve_one",
    "shown",
    "sizes",
    "smem_bytes",
    "spelled",
    "toml_value",
    "warn_of_misspelling",
    "why",
    "with_defaults",
]
