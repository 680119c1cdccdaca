"""Draw small multiples: a panel for each runtime with its time at each batch, the other runtimes in grey, and eager dashed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import figures
from .layout import LEAST, NARROW, layout
from .timing import Timings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Mapping[int, Timings]  # by batch
Rows = dict[str, dict[int, tuple[float, float, float]]]  # by name and batch: the lowest, the median and the highest µs per row
COLUMNS = 3  # in a narrow layout


def draw_multiples(groups: Mapping[str, Points], title: str, base: str) -> None:
    """Draw a figure: below each other the groups, such as numbers of threads, each with a panel for every name but `base`.

    Panels are sorted by the time of the first group at the smallest batch. Names with a comma are left out.
    """
    from matplotlib import pyplot

    seen = {group: per_row(points) for group, points in groups.items()}
    names = sort_by_speed(next(iter(seen.values())), base)
    now = layout()
    columns = COLUMNS if now is NARROW else len(names)
    deep = -(-len(names) // columns)
    figure, axes = pyplot.subplots(
        len(seen) * deep,
        columns,
        figsize=(now.width, len(seen) * deep * (1.62 if now is NARROW else 1.85)),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    figure.suptitle(now.title(title), fontsize=now.size + (now.size > LEAST))
    for place, (group, rows) in enumerate(seen.items()):
        panels = list(axes[place * deep : (place + 1) * deep].flat)
        for panel, name in zip(panels, names, strict=False):
            _draw_panel(panel, rows, name, base)
        for empty in panels[len(names) :]:
            empty.set_visible(False)
        panels[0].set_ylabel(f"{group}\nµs per row", fontsize=LEAST)
    _scale(list(axes.flat), seen)


def per_row(points: Points) -> Rows:
    """Return the microseconds per row of each name at each batch, without variants."""
    names = [name for name in next(iter(points.values())).rounds[0] if "," not in name]
    return {
        name: {batch: _times(figures.spread(timings.of(name)), 1e6 / batch) for batch, timings in points.items()} for name in names
    }  # fmt: skip


def _times(spread: tuple[float, float, float], factor: float) -> tuple[float, float, float]:
    low, middle, high = spread
    return low * factor, middle * factor, high * factor


def sort_by_speed(rows: Rows, base: str) -> list[str]:
    """Return the names except `base`, the fastest at the smallest batch first."""
    first = min(rows[base])
    return sorted((name for name in rows if name != base), key=lambda name: rows[name][first][1])


def _draw_panel(axes: Axes, rows: Rows, name: str, base: str) -> None:
    color = figures.colors(rows)[name]
    others = [_medians(points) for other, points in rows.items() if other not in (name, base)]
    gap = ([math.nan], [math.nan])  # between the lines of one path
    joined = [[value for line in others for value in [*line[axis], *gap[axis]]] for axis in (0, 1)]
    axes.plot(*joined, color="#777777", alpha=0.35, linewidth=1)
    axes.plot(*_medians(rows[base]), color="#333333", linestyle="--", linewidth=1.2)
    axes.plot(*_medians(rows[name]), color=color, linewidth=2, marker="o", markersize=3.5)
    low, _, high = zip(*rows[name].values(), strict=True)
    axes.vlines(list(rows[name]), low, high, color=color, linewidth=1)
    ends = [figures.short(float(f"{rows[name][batch][1]:.2g}")) for batch in (min(rows[name]), max(rows[name]))]
    told = figures.shown(name).replace("onnx.export", "onnx.\nexport")
    axes.set_title(f"{told}\n{' → '.join(ends)} µs", fontsize=LEAST, color=figures.readable(color))
    axes.spines[["top", "right"]].set_visible(False)


def _medians(points: Mapping[int, tuple[float, float, float]]) -> tuple[list[int], list[float]]:
    return list(points), [middle for _, middle, _ in points.values()]


def _scale(panels: Sequence[Axes], seen: Mapping[str, Rows]) -> None:
    rows = [points for group in seen.values() for points in group.values()]
    batches = sorted({batch for points in rows for batch in points})
    values = [value for points in rows for spread in points.values() for value in spread]
    for axes in panels:
        figures.scale_axis(axes.xaxis, batches, True, "")
        figures.scale_axis(axes.yaxis, values, True, "")
        axes.set_xticks([batches[0], batches[len(batches) // 2], batches[-1]])
        axes.tick_params(labelsize=LEAST)
        axes.grid(axis="y", alpha=0.25)
    panels[-1].figure.supxlabel("batch", fontsize=LEAST)
