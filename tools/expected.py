"""The outcomes that are expected: their file, and which of its cases show them all. It needs no torch."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

EXPECTED = Path(__file__).parents[1] / "tests/expected/matrix.csv"
MODES = ("static", "dynamic")  # in the order of the file
QUICK = 20  # cases

Run = tuple[str, str, str]  # case, exporter, mode
Kind = TypeVar("Kind", bound=str)


def to_csv(outcomes: Mapping[Run, str], cases: Sequence[str], names: Sequence[str]) -> str:
    """Return a line a case and mode, a column an exporter, in the order given; cases not named come last."""
    places = {case: place for place, case in enumerate([*cases, *sorted({run[0] for run in outcomes}.difference(cases))])}
    rows = sorted({(case, mode) for case, _, mode in outcomes}, key=lambda row: (places[row[0]], MODES.index(row[1])))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", "mode", *names])
    writer.writerows([case, mode, *(outcomes.get((case, name, mode), "") for name in names)] for case, mode in rows)
    return text.getvalue()


def from_csv(text: str) -> dict[Run, str]:
    """Return what `to_csv` wrote."""
    rows = csv.DictReader(io.StringIO(text))
    found = {(row.pop("case"), row.pop("mode")): row for row in rows}
    return {(case, name, mode): outcome for (case, mode), row in found.items() for name, outcome in row.items() if outcome}


def covering(expected: Mapping[Run, str], count: int = QUICK) -> list[str]:
    """Return so many cases that between them show every outcome, and as many outcomes of each exporter in each mode as they can."""
    shows: dict[str, set[tuple[str, str, str]]] = {}
    for (case, exporter, mode), outcome in expected.items():
        shows.setdefault(case, set()).add((outcome, exporter, mode))
    chosen: list[str] = []
    shown: set[tuple[str, str, str]] = set()
    while len(chosen) < min(count, len(shows)):
        chosen.append(max((case for case in shows if case not in chosen), key=lambda case: _new(shows[case], shown)))
        shown |= shows[chosen[-1]]
    return chosen


def _new(shows: set[tuple[str, str, str]], shown: set[tuple[str, str, str]]) -> tuple[int, int]:
    """How many outcomes a case shows that none before it did, by themselves and by exporter and mode."""
    return len({outcome for outcome, *_ in shows} - {outcome for outcome, *_ in shown}), len(shows - shown)


def moving(expected: Mapping[Run, Kind]) -> dict[Run, Kind]:
    """Return each case in one mode: dynamic, or static where its sizes never move."""
    return {run: outcome for run, outcome in expected.items() if run[2] == "dynamic" or (*run[:2], "dynamic") not in expected}
