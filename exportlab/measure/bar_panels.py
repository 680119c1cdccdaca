"""Draw small multiples: a panel of horizontal bars for each group, with the numbers at the bars and the names at the left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import figures
from .seconds import size_of
from .timing import Timings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = Mapping[str, Mapping[str, Sequence[float]]]  # by panel and name
ROW = 0.27  # height of a row in inches


def values_of(found: Mapping[str, Timings], names: Sequence[str] = (), factor: float = 1) -> dict[str, dict[str, list[float]]]:
    """Return the values of each group, of `names` or of all names, multiplied by `factor`."""
    return {
        group: {name: [factor * value for value in timings.of(name)] for name in timings.rounds[0] if not names or name in names}
        for group, timings in found.items()
    }


def draw_bar_panels(found: Values, title: str, unit: str, one_scale: bool = False) -> None:
    """Draw a panel for each group on a linear axis from 0. A cross stands for a name without values.

    Args:
        title: what the bars are. unit: of the values, as for `figures.plain`; it is written at the numbers only if it is `B`.
        one_scale: whether lengths can be compared between panels.
    """
    names = list(dict.fromkeys(name for group in found.values() for name in group))
    panels = figures.panels(title, len(found), height=1.1 + ROW * len(names))
    colored, longest = figures.colors(names), {group: find_longest(values) for group, values in found.items()}
    axes: Any
    for axes, (group, values) in zip(panels, found.items(), strict=True):
        for place, name in enumerate(names):
            draw_bar(axes, place, values.get(name, ()), colored[name], unit)
        axes.set_title(group, fontsize=size_of(axes))
        axes.set_yticks(
            [-place for place in range(len(names))],
            [figures.shown(name) for name in names] if axes.get_subplotspec().is_first_col() else [],
        )
        axes.set_ylim(0.6 - len(names), 0.6)
        axes.set_xlim(0, 1.6 * (max(longest.values()) if one_scale else longest[group]))
        axes.set_xticks([])
        axes.tick_params(axis="y", length=0)
        axes.spines["bottom"].set_visible(False)


def find_longest(values: Mapping[str, Sequence[float]]) -> float:
    """Return the highest median of a panel."""
    return max(figures.spread(seen)[1] for seen in values.values())


def draw_bar(axes: Axes, place: int, seen: Sequence[float], color: str, unit: str) -> None:
    """Draw the median as a bar, a whisker from the lowest to the highest value, and the number; a cross if there are no values."""
    if not seen:
        figures.note(axes, 0, -place, "✕", color)
        return
    low, middle, high = figures.spread(seen)
    axes.barh(-place, middle, height=0.7, color=color)
    axes.plot([low, high], [-place, -place], color="#333333", linewidth=1.2)
    figures.note(axes, high, -place, figures.plain(middle, unit if unit == "B" else ""), "#333333")
