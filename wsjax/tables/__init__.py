"""Arrow columns, and the files and object stores that hold them.

All of pyarrow is here. `columns` makes columns of Arrow from numbers, and numbers from columns;
`parquet` reads and writes them, as Parquet or CSV; `files` knows places (a directory, or what a URI
names) and writes whole files or none. A schema has the configuration columns of `wsjax.schema`,
then what identifies a row (`problem`, `hardware`), then the prediction columns; the metadata of a
Parquet file hold the versions, the machines' files, and whatever else made it (`metadata`), so that
a table alone repeats itself.

`predictions`, `importers`, `sweeps`, `portfolio` and the command line call it. Read `columns`
first, then `sweeps.shards`, which writes most of the files.
"""

from wsjax.errors import public
from wsjax.tables.columns import (
    append,
    append_to_frame,
    configuration_column,
    finite,
    from_frame,
    is_arrow,
    kind_of,
    list_column,
    number_column,
    numbers,
    prediction_columns,
    record,
    rows,
    series,
    with_interval,
    words,
)
from wsjax.tables.files import (
    Store,
    check_destination,
    check_place,
    existing,
    make_writable,
    parent,
    replacing,
    store,
)
from wsjax.tables.parquet import (
    Footer,
    metadata,
    parquet_dataset,
    parquet_names,
    read_batches,
    read_footer,
    read_metadata,
    read_table,
    shard_writer,
    write_table,
)

__all__ = [
    "Footer",
    "Store",
    "append",
    "append_to_frame",
    "check_destination",
    "check_place",
    "configuration_column",
    "existing",
    "finite",
    "from_frame",
    "is_arrow",
    "kind_of",
    "list_column",
    "make_writable",
    "metadata",
    "number_column",
    "numbers",
    "parent",
    "parquet_dataset",
    "parquet_names",
    "prediction_columns",
    "public",
    "read_batches",
    "read_footer",
    "read_metadata",
    "read_table",
    "record",
    "replacing",
    "rows",
    "series",
    "shard_writer",
    "store",
    "with_interval",
    "words",
    "write_table",
]
