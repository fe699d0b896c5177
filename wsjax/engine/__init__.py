"""Many rows -> their times, compiled: the spine from columns of numbers to columns of µs.

**What it is for.** `evaluate` predicts rows given as columns, `evaluate_rows` rows of a product
given by their numbers (`Candidates`), which are made on the device. Both go the same way:

1. `rows`: row i of a product from i, read in the mixed radix of the axes' lengths.
2. `programs`: what a row depends on (`Inputs`: configuration, machine, legality), and its
   prediction (`predict_row`: legality, durations, closed form), vmapped and compiled for chunks of
   a few fixed sizes; the number of rows never makes a program, only which columns vary (`Form`).
   Terms of parameters that are neutral in all rows are left out.
3. `batch`: chunks through the programs on two host threads, a few rows through the same functions
   as NumPy operations, which start at once (`tapes`); rows whose closed form is not proved are
   queued by ring depth and solved by jumps, what these leave is scanned.

**What calls it.** `wsjax.predictions`, `wsjax.sweeps`, `wsjax.search`, `wsjax.portfolio`,
`wsjax.fit`, `wsjax.timelines`.

**What must stay so.** Few programs (a first call compiles one or two), none that depends on the
number of rows, float64 throughout but where single precision is asked for, and the same bits for a
row whatever its chunk: resumed sweeps compare bytes.

**What to read next.** `wsjax.engine.programs.predict_row`, then `wsjax.model`.
"""

from wsjax import kept
from wsjax.engine.batch import (
    columns,
    evaluate,
    evaluate_rows,
    times_of_rows,
    times_on_device,
    times_us,
    widening,
)
from wsjax.engine.corrections import SINGLE, bracket, learned
from wsjax.engine.programs import (
    UNPROVED,
    WIDE,
    Inputs,
    floats,
    in_single,
    neutral_names,
    predict_row,
    reason_of,
    without,
)
from wsjax.engine.rows import (
    SHAPING,
    Axes,
    Base,
    Candidates,
    Columns,
    Shape,
    assemble,
    axes_of,
    columns_at,
    digits,
    lengthened,
    on_one_device,
    shape_of,
)
from wsjax.engine.tapes import Tape

kept.keep_compiled()

__all__ = [
    "SHAPING",
    "SINGLE",
    "UNPROVED",
    "WIDE",
    "Axes",
    "Base",
    "Candidates",
    "Columns",
    "Inputs",
    "Shape",
    "Tape",
    "assemble",
    "axes_of",
    "bracket",
    "columns",
    "columns_at",
    "digits",
    "evaluate",
    "evaluate_rows",
    "floats",
    "in_single",
    "learned",
    "lengthened",
    "neutral_names",
    "on_one_device",
    "predict_row",
    "reason_of",
    "shape_of",
    "times_of_rows",
    "times_on_device",
    "times_us",
    "widening",
    "without",
]
