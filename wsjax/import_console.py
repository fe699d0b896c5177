"""`wsjax import`: measured tables of any format into one file, and what became of their rows."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wsjax import importers, tables
from wsjax.errors import InputError
from wsjax.files import check_destination
from wsjax.terminal import telling

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 120


def run_import(paths: Sequence[Path], out: Path, format: str, pairs: Iterable[str]) -> int:
    """Import files into one table, and print the counts of their rows by outcome."""
    for path in paths:
        check_destination(out, path)
    mapping = importers.parse_mapping(pairs)
    found, problems = [], []
    for path in paths:
        try:
            with telling(f"reading {path}"):
                found.append(importers.read(path, format, mapping))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    table = found[0].table
    if len(found) > 1:
        table = importers.together([one.table for one in found])
    counts = {str(one.report.path): dict(one.report.excluded) for one in found}
    texts = tables.metadata([], imported=json.dumps(counts, ensure_ascii=False))
    tables.write_table(tables.from_frame(table), out, texts)
    for one in found:
        _show(f"{one.report.path}: {one.report.format}", one.table, one.report.notes)
    if len(found) > 1:
        _show(f"{out}: all together", table)
    if not _kept(table):
        raise InputError(f"{out}: no row counts for a fit; the table holds them with their reasons")
    return 0


def _kept(table: "pd.DataFrame") -> int:
    """How many rows some machine's model may take."""
    counting = (table["excluded"].astype(object) == "").to_numpy()
    return int((counting & importers.modelled(table)).sum())


def _show(title: str, rows: "pd.DataFrame", notes: Sequence[str] = ()) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    excluded, kept = importers.counts(rows), _kept(rows)
    if others := len(rows) - sum(excluded.values()) - kept:
        excluded["not_modelled"] = others
    print(title)
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_row("read", f"{len(rows):,}", "")
    table.add_row("kept", f"{kept:,}", "for a fit")
    for reason, count in excluded.items():
        table.add_row(reason, f"{count:,}", importers.REASONS.get(reason, "the file's own status"))
    Console(width=WIDTH, markup=False, emoji=False).print(table)
    for note in notes:
        print(f"note: {note}")
