"""Other tools' measurements as one table.

Every tool that times GEMM kernels writes its own columns, words and units. `read` makes one table
of any of them: configuration columns (`wsjax.schema.COLUMNS`) in our words, times in µs, and for
each row what became of it. Nothing is dropped: column `excluded` says why a fit leaves a row out,
and a report counts the rows by reason. `calibrate`, `validate`, `choose` and `predict --table` read
files through this package too, so that a file that one of them takes means the same to all.

How a file passes through, and where to read on:

1. `source`: what a file is by its first bytes (Parquet, compressed, encoding), its text by lines.
2. `formats`: one module a format. The first whose `recognises` says yes reads the file (`pieces`)
   and gives our columns (`translate`). `texts` finds the header of a CSV behind log lines, marks
   ragged rows, and keeps what is whole of a JSON text that ends early.
3. `values` reads numbers with any separators and units, and knows the field's words for types and
   the like; `kernel_names` what the names of CUTLASS kernels tell.
4. `columns`: `--map ours=theirs` for what no format tells; numbers and words checked, defaults
   filled in.
5. `outcome`: finds repeats and kernels that the model has no terms for, such as sparse ones, and
   gives each row its `status` and `excluded`; `checks` compares what a table says twice, such as a
   time and a rate.

`reading` puts these together.

To add a format `foo`:

1. Write `formats/foo.py` with `NEEDS`, `recognises`, `pieces` and `translate` (see
   `formats.Format`; `formats/aiconfigurator.py` is a short one). `translate` returns what the file
   tells: `values.times_us(column, values.US_PER["ms"])` as `time_us_measured`, sizes as `m n k
   block_m …`, element types in the file's own words, the kernel's name as `kernel`, a word of
   `outcome.REASONS` as `status` where a run failed. Defaults, words, blanks and repeats are not its
   business.
2. Name it in `formats/__init__.py`, before those whose files it would be taken for.

Its values get a sample in `tests/importers/test_importers_golden.py`.
"""

from wsjax.importers.columns import joined, parse_mapping
from wsjax.importers.formats import FORMATS
from wsjax.importers.formats.plain import TRACED, pieces
from wsjax.importers.formats.plain import columns as column_names
from wsjax.importers.formats.triton import SETTINGS as TRITON_SETTINGS
from wsjax.importers.outcome import REASONS, Report, counts
from wsjax.importers.reading import (
    READ,
    TIME,
    Imported,
    convert,
    has_times,
    import_table,
    is_measured,
    read,
    read_frame,
    read_own,
    together,
)
from wsjax.importers.source import open_source
from wsjax.importers.texts import MALFORMED
from wsjax.importers.values import dtype as dtype_word

__all__ = [
    "FORMATS",
    "MALFORMED",
    "READ",
    "REASONS",
    "TIME",
    "TRACED",
    "TRITON_SETTINGS",
    "Imported",
    "Report",
    "column_names",
    "convert",
    "counts",
    "dtype_word",
    "has_times",
    "import_table",
    "is_measured",
    "joined",
    "open_source",
    "parse_mapping",
    "pieces",
    "read",
    "read_frame",
    "read_own",
    "together",
]
