"""Build the tables of a benchmark's page: medians with their ratios to a base, and the same medians with a column for each name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from ..show.table import Table, table
from .figures import short, shown
from .timing import Ratio, Timings, rounded

SCALES: Mapping[str, float] = {"ms": 1e3, "s": 1.0, "µs": 1e6, "MB": 1e-6, "nodes": 1.0}  # factors from seconds, bytes and counts
UNSEEN = ", no difference seen"
BEST = "Bold: the lowest, and what does not differ from it."


@dataclass(frozen=True)
class Compared(Table):
    """A table with a row for each group and name. `pivot_html` has a row for each group and a column for each name."""

    groups: Mapping[str, Timings] = field(default_factory=dict)
    first: str = "model"
    unit: str = "ms"

    def pivot_html(self) -> str:
        """Return the medians as HTML. A dash stands for a name that was not measured, because it was not right."""
        names = list(dict.fromkeys(name for timings in self.groups.values() for name in timings.rounds[0]))
        head = "".join(f'<th scope="col">{escape(shown(name))}</th>' for name in names)
        rows = "".join(f'<tr><th scope="row">{escape(group)}</th>{"".join(self._cells(group, names))}</tr>' for group in self.groups)
        caption = f"<caption>{escape(f'{self.title}, {self.unit}. {BEST}')}</caption>"
        heads = f"<thead><tr><th>{escape(self.first)}</th>{head}</tr></thead>"
        return f'<table class="exportlab pivot">{caption}{heads}<tbody>{rows}</tbody></table>'

    def _cells(self, group: str, names: list[str]) -> Iterator[str]:
        timings = self.groups[group]
        best = find_best(timings)
        for name in names:
            text = short(SCALES[self.unit] * timings.median(name)) if name in timings.rounds[0] else "–"
            yield f"<td>{f'<b>{text}</b>' if name in best else text}</td>"


def find_best(timings: Timings) -> set[str]:
    """Return the name with the lowest median, and the names that do not differ from it; none if there is only one name."""
    names = list(timings.rounds[0])
    lowest = min(names, key=timings.median)
    equal = {name for name in names if not timings.ratio(name, lowest).differs}
    return {lowest, *equal} if len(names) > 1 else set()


def compared(
    groups: Mapping[str, Timings], base: str, *, first: str = "model", who: str = "exporter", unit: str = "ms", title: str
) -> Compared:
    """Return a row for each group and name: the median, its ratio to `base` in the same group, and the interval of that ratio.

    Args:
        groups: the measurements by the label in the first column.
        base: the name that all others in a group are compared with. A group without it shows no ratios.
        first, who: the headings of the first two columns.
        unit: the unit of the medians, a key of `SCALES`. All rows use the same unit so that they can be sorted.
        title: what is measured, and whether lower is better.

    Raises:
        KeyError: the unit is unknown.
    """
    over = f"times {shown(base)}"
    rows = []
    for group, timings in groups.items():
        for name in timings.rounds[0]:
            quotient, interval = format_ratio_cells(timings.ratio(name, base)) if base in timings.rounds[0] else ("", "")
            middle = short(SCALES[unit] * timings.median(name))
            rows.append({first: group, who: shown(name), unit: middle, over: quotient, "interval": interval if name != base else ""})
    return Compared(table(rows, title).rows, title, groups, first, unit)


def format_ratio_cells(ratio: Ratio) -> tuple[str, str]:
    """Return the two cells of a ratio. With one round, the interval is empty."""
    if len(ratio.seen) == 1:
        return rounded(ratio.median), ""
    low, high = map(rounded, ratio.interval)
    return rounded(ratio.median), f"{low}–{high}{'' if ratio.differs else UNSEEN}"
