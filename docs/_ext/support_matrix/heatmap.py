"""Compute the heatmap of silently wrong exports, by family of test cases and by exporter, from the support matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from exportlab.cases import Case
from exportlab.outcomes import Mark
from exportlab.sweep.changes import find_worst_record
from exportlab.sweep.page import OWN
from exportlab.sweep.page.counts import Runs, exporters_of

STYLE = "heatmap.css"
MODE = "dynamic"
FEW = 5  # below this number of cases, a cell shows the counts, without a colour
STRONGEST = 80  # share of red in a cell of 100 %, so that its number remains readable


@dataclass(frozen=True)
class Cell:
    """How many exports are silently wrong, of those that were tested."""

    silent: int = 0
    total: int = 0

    def __add__(self, other: Cell) -> Cell:
        return Cell(self.silent + other.silent, self.total + other.total)

    @property
    def share(self) -> float:
        """The share of silently wrong exports, 0 if nothing was tested."""
        return self.silent / self.total if self.total else 0.0

    @property
    def text(self) -> str:
        """The number in the cell: per cent, or the counts if there are few cases."""
        if not self.total:
            return ""
        return f"{self.silent}/{self.total}" if self.total < FEW else percent(self.share)

    @property
    def red(self) -> int:
        """How red the cell is, in per cent. The root makes small shares visible."""
        return 0 if self.total < FEW else round(STRONGEST * self.share**0.5)


@dataclass(frozen=True)
class Heatmap:
    """The cells by family and exporter. The families with the highest share come first."""

    exporters: Sequence[str]
    families: Mapping[str, Sequence[Cell]]

    @property
    def totals(self) -> Sequence[Cell]:
        """The sum of each exporter."""
        return [add(cells) for cells in zip(*self.families.values(), strict=True)]

    @property
    def margins(self) -> Mapping[str, Cell]:
        """The sum of each family."""
        return {family: add(cells) for family, cells in self.families.items()}

    @property
    def total(self) -> Cell:
        """The sum of all cells."""
        return add(self.totals)


def percent(share: float) -> str:
    """Return a share in per cent, without the sign; a share that would round to 0 gets a digit more."""
    return f"{100 * share:.{1 if 0 < share < 0.01 else 0}f}"


def add(cells: Iterable[Cell]) -> Cell:
    """Return the sum of cells."""
    return sum(cells, Cell())


def build_heatmap(runs: Runs, cases: Sequence[Case]) -> Heatmap:
    """Count the exports with dynamic shapes. An export is silently wrong if its mark is `Mark.SILENT`."""
    family_of = {case.name: case.family for case in cases}
    names = exporters_of(runs)
    totals, silent = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for family, exporter, mark in marks(runs, family_of):
        totals[family, exporter] += 1
        silent[family, exporter] += mark is Mark.SILENT
    rows = {f: [Cell(silent[f, name], totals[f, name]) for name in names] for f in dict.fromkeys(family_of.values())}
    tested = [item for item in rows.items() if add(item[1]).total]
    return Heatmap(names, dict(sorted(tested, key=lambda item: -add(item[1]).share)))


def marks(runs: Runs, family_of: Mapping[str, str]) -> Iterator[tuple[str, str, Mark]]:
    """Yield family, exporter and mark of each export with dynamic shapes."""
    for (case, exporter, mode), rounds in runs.items():
        if mode == MODE and case in family_of:
            yield family_of[case], exporter, find_worst_record(rounds).mark


def address(family: str = "", exporter: str = "", outcome: str = "silent") -> str:
    """Return the fragment that filters the matrix."""
    fields = {"outcome": outcome, "family": family, "mode": MODE, "exporter": exporter}
    return "#" + "&".join(f"{name}={quote(value)}" for name, value in fields.items() if value)


def template_values(heatmap: Heatmap, docs: str = "", shown: int | None = None) -> dict[str, Any]:
    """Return the values of heatmap.html.

    Args:
        docs: the path of docs/ from the page that shows the heatmap; "" if this page is the matrix itself.
        shown: how many families are shown; None for all of them.
    """
    return {
        "heatmap": heatmap,
        "rows": dict(list(heatmap.families.items())[:shown]),
        "address": address,
        "matrix": f"{docs}support.html" if docs else "",
        "wrong": f"{docs}wrong.html",
        "few": FEW,
        "own": OWN,
    }
