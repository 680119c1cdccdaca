"""The records of a sweep as a table of cases and exporters: folded for a terminal, in full as CSV and as a page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import show
from ..cases import Case
from ..files import written_whole
from ..measure.words import spoken
from ..outcomes import Outcome
from ..printable import one_line
from ..sweep.changes import find_worst_record
from ..sweep.page import page
from ..sweep.page.counts import Sweep, exporters_of
from ..sweep.records import Record, environments, groups

FEW = 30  # cases that each have a row
NAMED = 3  # cases of a row that are named
COLUMNS = ("case", "exporter", "mode", "round", "outcome", "error", "where", "nodes", "bytes", "worst", "peak_bytes", "weights_bytes")
SECONDS = ("export", "save", "load", "call", "eager")

Row = tuple[str, ...]  # what became of a case, by each exporter


def matrix(records: Sequence[Record], exporters: Sequence[str]) -> show.Table:
    """Return a row a case and a column an exporter; of many cases, those with the same outcomes share one. What is not ok comes first."""
    rows: dict[Row, list[str]] = {}
    for case in dict.fromkeys(record.case for record in records):
        rows.setdefault(_row([r for r in records if r.case == case], exporters), []).append(case)
    folded = sum(map(len, rows.values())) > FEW
    shown = [(name, row) for row, cases in rows.items() for name in ([names(cases)] if folded else cases)]
    ordered = sorted(shown, key=lambda pair: all(cell in (Outcome.OK, "") for cell in pair[1]))
    return show.table([{"case": one_line(name), **dict(zip(exporters, row, strict=True))} for name, row in ordered])


def _row(records: Sequence[Record], exporters: Sequence[str]) -> Row:
    return tuple(_cell([record for record in records if record.exporter == name]) for name in exporters)


def _cell(records: Sequence[Record]) -> str:
    """One word where both modes came out alike; else both, the moving one first."""
    found = {mode: _word(find_worst_record(rounds)) for (_, _, mode), rounds in groups(records).items()}
    if len(set(found.values())) < 2:
        return next(iter(found.values()), "")
    return f"{found['dynamic']} ({found['static']} static)"


def _word(record: Record) -> str:
    return f"{record.outcome}, warned" if record.warned else str(record.outcome)


def names(cases: Sequence[str]) -> str:
    """Return the names of the first few cases, and how many more there are."""
    more = f" and {len(cases) - NAMED} more" if len(cases) > NAMED else ""
    return ", ".join(cases[:NAMED]) + more


def save_csv(records: Sequence[Record], path: Path) -> None:
    """Write a line a record.

    Raises:
        OSError: it cannot be written there.
    """
    with written_whole(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *(f"{name}_seconds" for name in SECONDS), "ran_on", "instead", "silent", "said"])
        writer.writeheader()
        writer.writerows(map(_line, records))


def save_markdown(records: Sequence[Record], path: Path, changed: str = "") -> None:
    """Write a table of cases and exporters, and below it what changed.

    Raises:
        OSError: it cannot be written there.
    """
    names = exporters_of(groups(records))
    rows = {case: _row([r for r in records if r.case == case], names) for case in dict.fromkeys(record.case for record in records)}
    lines = [_cells(["case", *map(spoken, names)]), _cells(["---"] * (len(names) + 1))]
    lines += [_cells([case, *row]) for case, row in rows.items()]
    more = f"\n## What changed\n\n```text\n{changed}\n```\n" if changed else ""
    with written_whole(path) as draft:
        draft.write_text("\n".join(lines) + f"\n{more}", encoding="utf-8")


def _cells(row: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(one_line(cell).replace('|', '&#124;') for cell in row)} |"


def save_page(records: Sequence[Record], made_in: Path, cases: Sequence[Case], path: Path, changed: str = "") -> None:
    """Write the page of the records, which the file `made_in` has the environments of, and what changed since others were made.

    Raises:
        OSError: it cannot be written there.
    """
    made = page(Sweep(records, list(environments(made_in).values())), cases, changed)
    with written_whole(path) as draft:
        draft.write_text(made, encoding="utf-8")


def _line(record: Record) -> dict[str, Any]:
    seconds = {f"{name}_seconds": record.seconds.get(name, "") for name in SECONDS}
    ran_on = {"ran_on": ", ".join(record.ran_on), "instead": record.instead}
    return {name: getattr(record, name) for name in COLUMNS} | seconds | ran_on | {"silent": record.silent, "said": " | ".join(record.said)}
