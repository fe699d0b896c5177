"""`wsjax import`: measured tables of any format into one file, and what became of their rows."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from wsjax import importers, tables
from wsjax.cli.terminal import telling
from wsjax.errors import InputError
from wsjax.importers import Report, outcome, parse_mapping
from wsjax.tables import check_destination

WIDTH = 120


def run_import(paths: Sequence[Path], out: Path, format: str, pairs: Iterable[str]) -> int:
    """Import files into one table, and print the counts of their rows by outcome."""
    for path in paths:
        check_destination(out, path)
    mapping = parse_mapping(pairs)
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
        _show(one.report)
    if len(found) > 1:
        excluded = outcome.counts(table)
        kept = len(table) - sum(excluded.values())
        _show(Report(out, "all together", len(table), kept, excluded))
    return 0


def _show(report: Report) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    print(f"{report.path}: {report.format}")
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_row("read", f"{report.read:,}", "")
    table.add_row("kept", f"{report.kept:,}", "for a fit")
    for reason, count in report.excluded.items():
        table.add_row(reason, f"{count:,}", outcome.REASONS.get(reason, "the file's own status"))
    Console(width=WIDTH, markup=False, emoji=False).print(table)
    for note in report.notes:
        print(f"note: {note}")
