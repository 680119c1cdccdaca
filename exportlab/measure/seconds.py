"""Draw export times in seconds: by number of layers on linear axes with slopes, and by model with a point for each exporter."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import figures
from .timing import Ratio, Timings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ByLayers = Mapping[int, Timings]  # by number of layers
APART = 0.12  # of the height of a row, between points that may be equal
CROSS = "✕ not right"


def slope(found: ByLayers, name: str) -> Ratio | None:
    """Return the seconds of one more layer, from each round: the fewest layers to the most. None if measured at one number only."""
    at = [layers for layers, timings in found.items() if name in timings.rounds[0]]
    if len(at) < 2:
        return None
    few, many = min(at), max(at)
    pairs = zip(found[few].of(name), found[many].of(name), strict=True)
    return Ratio(tuple((late - early) / (many - few) for early, late in pairs))


def spoken_time(seconds: float) -> str:
    """Format seconds with a unit that fits: `29 ms`, `1.2 s`, `47 µs`."""
    factor, unit = (1, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")
    return f"{_two_digits(factor * seconds)} {unit}"


def _two_digits(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def size_of(axes: Axes) -> float:
    """Return the size of text in a plot, in points."""
    return float(axes.xaxis.get_tick_params()["labelsize"])


def is_narrow(axes: Axes) -> bool:
    """Return whether the figure is drawn for a narrow screen."""
    figure: Any = axes.get_figure()
    return bool(figure.get_figwidth() < 6)


def draw_layers(axes: Axes, found: ByLayers, *, title: str = "", unit: str = "s", names: Sequence[str] = ()) -> None:
    """Draw a line for each name over the number of layers, both axes linear, with its slope at the end.

    Args:
        unit: `s` or `ms`. names: what to draw; by default, all names.
    """
    factor = {"s": 1.0, "ms": 1e3}[unit]
    names = names or list(dict.fromkeys(name for timings in found.values() for name in timings.rounds[0]))
    colored, ends = figures.colors(names), {}
    for name in names:
        points = {layers: timings.of(name) for layers, timings in found.items() if name in timings.rounds[0]}
        values = [[factor * figures.spread(seen)[place] for seen in points.values()] for place in range(3)]
        axes.plot(list(points), values[1], color=colored[name], marker="o", markersize=4)
        axes.vlines(list(points), values[0], values[2], color=colored[name], linewidth=1.5)
        ends[name] = max(points), values[1][-1]
    axes.set_title(title, fontsize=size_of(axes))
    axes.set_xlabel("layers", fontsize=size_of(axes))
    axes.set_xticks(list(found))
    axes.grid(axis="y", alpha=0.3)
    axes.set_xlim(0, 1.02 * max(found))
    axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
    axes.yaxis.set_major_formatter(lambda value, _: figures.plain(value, unit))
    _write_slopes(axes, ends, {name: slope(found, name) for name in names}, colored)


def _write_slopes(
    axes: Axes, ends: Mapping[str, tuple[float, float]], slopes: Mapping[str, Ratio | None], colored: Mapping[str, str]
) -> None:
    """Write each name and its slope to the right of the axes, and a thin line from there to the end of its curve."""
    inside = axes.transData + axes.transAxes.inverted()
    at = {name: inside.transform(end) for name, end in ends.items()}
    gap, between = (2 * figures.GAP, ":\n") if is_narrow(axes) else (figures.GAP, ": ")
    for name, height in figures.moved_apart({name: float(y) for name, (_, y) in at.items()}, gap).items():
        steep = slopes[name]
        text = f"{figures.shown(name)}{between}{spoken_time(steep.median)} a layer" if steep else figures.shown(name)
        axes.text(1.05, height, text, transform=axes.transAxes, va="center", color=colored[name], fontsize=size_of(axes))
        axes.plot(
            [at[name][0], 1.04],
            [at[name][1], height],
            transform=axes.transAxes,
            color=colored[name],
            linewidth=0.7,
            linestyle=":",
            clip_on=False,
        )


def draw_models(axes: Axes, found: Mapping[str, Timings], names: Sequence[str], *, title: str = "", unit: str = "s") -> None:
    """Draw a row for each model and a point for each name, on a logarithmic axis. A cross stands for what was not right.

    Args:
        names: what to draw, in the order of the legend.
    """
    colored = figures.colors(names)
    for place, timings in enumerate(found.values()):
        timed = {name: timings.of(name) for name in names if name in timings.rounds[0]}
        medians = [statistics.median(seen) for seen in timed.values()]
        axes.plot([min(medians), max(medians)], [-place, -place], color="#AAAAAA", linewidth=1, zorder=1)
        for name, seen in timed.items():
            height = -place + APART * ((len(names) - 1) / 2 - names.index(name))
            axes.plot(sorted(seen), [height] * len(seen), color=colored[name], linewidth=2, solid_capstyle="round")
            axes.plot(statistics.median(seen), height, "o", color=colored[name], markersize=7)
    _label_models(axes, found, names, unit)
    _add_legend(axes, colored, missing=any(set(names) - set(timings.rounds[0]) for timings in found.values()))
    axes.set_xlabel(title, fontsize=size_of(axes))


def _label_models(axes: Axes, found: Mapping[str, Timings], names: Sequence[str], unit: str) -> None:
    """Set the rows and the scale, and write the crosses at the right edge."""
    figures.across(axes, found, [value for t in found.values() for n in names if n in t.rounds[0] for value in t.of(n)], "", unit, True)
    colored = figures.colors(names)
    for place, timings in enumerate(found.values()):
        missing = [name for name in names if name not in timings.rounds[0]]
        for nth, name in enumerate(missing):
            axes.annotate(
                "✕", (1, -place), xycoords=("axes fraction", "data"), xytext=(8 + 12 * nth, 0), textcoords="offset points",
                va="center", color=colored[name], fontsize=size_of(axes),
            )  # fmt: skip


def _add_legend(axes: Axes, colored: Mapping[str, str], missing: bool) -> None:
    """Write the names above the plot, and what a cross means if there is one."""
    from matplotlib.lines import Line2D

    entries = [Line2D([], [], marker="o", linestyle="", color=color, label=figures.shown(name)) for name, color in colored.items()]
    entries += [Line2D([], [], linestyle="", label=CROSS)] * missing
    axes.legend(
        handles=entries,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2 if is_narrow(axes) else 3,
        frameon=False,
        fontsize=size_of(axes) - 1,
        handletextpad=0.2,
    )
