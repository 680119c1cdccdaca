"""Format the records of a sweep as a table of cases and exporters: summarised for a terminal, complete as CSV, Markdown or HTML."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import show
from ..cases import Case
from ..files import atomic_write
from ..measure.words import spoken
from ..outcomes import Outcome
from ..printable import one_line
from ..sweep.changes import find_worst_record
from ..sweep.page import page
from ..sweep.page.counts import Sweep, exporters_of
from ..sweep.records import Record, environments, groups

FEW = 30  # up to this number of cases, each case has its own row
NAMED = 3  # number of cases listed in a row that stands for several
COLUMNS = ("case", "exporter", "mode", "round", "outcome", "error", "where", "nodes", "bytes", "worst", "peak_bytes", "weights_bytes")
SECONDS = ("export", "save", "load", "call", "eager")

Row = tuple[str, ...]  # the outcomes of a case, one per exporter


def matrix(records: Sequence[Record], exporters: Sequence[str]) -> show.Table:
    """Return a table with a row per case and a column per exporter, failures first. Many cases with the same outcomes share a row."""
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
    """Return one outcome if both modes have the same one, otherwise both, with the dynamic one first."""
    found = {mode: _word(find_worst_record(rounds)) for (_, _, mode), rounds in groups(records).items()}
    if len(set(found.values())) < 2:
        return next(iter(found.values()), "")
    return f"{found['dynamic']} ({found['static']} static)"


def _word(record: Record) -> str:
    return f"{record.outcome}, warned" if record.warned else str(record.outcome)


def names(cases: Sequence[str]) -> str:
    """Return the first few names, and the number of the others."""
    more = f" and {len(cases) - NAMED} more" if len(cases) > NAMED else ""
    return ", ".join(cases[:NAMED]) + more


def save_csv(records: Sequence[Record], path: Path) -> None:
    """Write the records as CSV, one line per record.

    Raises:
        OSError: the file can't be written.
    """
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *(f"{name}_seconds" for name in SECONDS), "ran_on", "instead", "silent", "said"])
        writer.writeheader()
        writer.writerows(map(_line, records))


def save_markdown(records: Sequence[Record], path: Path, changed: str = "") -> None:
    """Write a table of cases and exporters, followed by the changes since an earlier sweep, if any.

    Raises:
        OSError: the file can't be written.
    """
    names = exporters_of(groups(records))
    rows = {case: _row([r for r in records if r.case == case], names) for case in dict.fromkeys(record.case for record in records)}
    lines = [_cells(["case", *map(spoken, names)]), _cells(["---"] * (len(names) + 1))]
    lines += [_cells([case, *row]) for case, row in rows.items()]
    more = f"\n## What changed\n\n```text\n{changed}\n```\n" if changed else ""
    with atomic_write(path) as draft:
        draft.write_text("\n".join(lines) + f"\n{more}", encoding="utf-8")


def _cells(row: Sequence[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(one_line(cell).replace('|', '&#124;') for cell in row)} |"


def save_page(records: Sequence[Record], made_in: Path, cases: Sequence[Case], path: Path, changed: str = "") -> None:
    """Write the HTML page of a sweep. `made_in` is the file of records, which also contains the environments.

    Raises:
        OSError: the file can't be written.
    """
    made = page(Sweep(records, list(environments(made_in).values())), cases, changed)
    with atomic_write(path) as draft:
        draft.write_text(made, encoding="utf-8")


def _line(record: Record) -> dict[str, Any]:
    seconds = {f"{name}_seconds": record.seconds.get(name, "") for name in SECONDS}
    ran_on = {"ran_on": ", ".join(record.ran_on), "instead": record.instead}
    return {name: getattr(record, name) for name in COLUMNS} | seconds | ran_on | {"silent": record.silent, "said": " | ".join(record.said)}
