"""Build the table of a benchmark's page: the median of each name, its ratio to a base, and the interval of the ratio."""

from __future__ import annotations

from collections.abc import Mapping

from ..show.table import Table, table
from .figures import short, shown
from .timing import Ratio, Timings, rounded

SCALES: Mapping[str, float] = {"ms": 1e3, "s": 1.0, "µs": 1e6, "MB": 1e-6, "nodes": 1.0}  # factors from seconds, bytes and counts
UNSEEN = ", no difference seen"


def compared(
    groups: Mapping[str, Timings], base: str, *, first: str = "model", who: str = "exporter", unit: str = "ms", title: str
) -> Table:
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
    return table(rows, title)


def format_ratio_cells(ratio: Ratio) -> tuple[str, str]:
    """Return the two cells of a ratio. With one round, the interval is empty."""
    if len(ratio.seen) == 1:
        return rounded(ratio.median), ""
    low, high = map(rounded, ratio.interval)
    return rounded(ratio.median), f"{low}–{high}{'' if ratio.differs else UNSEEN}"
