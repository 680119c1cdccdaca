"""Draw the plots of benchmarks in a uniform style: one colour per exporter, visible spread, and labels next to the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..show.themed import READABLE, contrast
from .layout import NARROW, layout
from .timing import Ratio
from .words import spoken

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Seen = Ratio | Sequence[float] | float  # all values, or a single number
Named = Mapping[str, Seen]

# Okabe-Ito palette, safe for colour blindness. Each exporter has the same colour on all pages.
COLORS: Mapping[str, str] = {
    "torch.export": "#000000",
    "to_onnx": "#D55E00",
    "dynamo": "#0072B2",
    "torchscript": "#009E73",
    "openvino": "#CC79A7",
    "executorch": "#E69F00",
    "aoti": "#999933",
    "torch.compile": "#7A4FE0",
    "transformers": "#885522",
    "eager": "#777777",
}
FURTHER = ("#882255", "#56B4E9", "#44AA99", "#AA5577", "#6666BB", "#C0A000", "#335533", "#BB8899")  # for other names than exporters
SIZE = 12  # points: readable on a phone, 390 pixels wide, in a figure of 8 inches
LONG = 6  # characters of a tick's label of which only two fit in a narrow figure
GAP = 0.085  # minimum distance of side labels, relative to the height of the plot
BAR = 0.8  # height of a group of bars, relative to the row


def colors(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name. Exporters have fixed colours, other names get the next further colour.

    Text after a comma describes how the exporter was used, and lightens its colour: `to_onnx, one file`.
    """
    distinct = list(dict.fromkeys(names))
    further = [name for name in distinct if _base(name) not in COLORS]
    found = {name: FURTHER[i % len(FURTHER)] for i, name in enumerate(further)}
    variants = [name for name in distinct if name not in found and name not in COLORS]
    for name in variants:
        before = variants[: variants.index(name)]
        found[name] = lightened(COLORS[_base(name)], 1 + sum(_base(other) == _base(name) for other in before))
    return {name: found.get(name) or COLORS[name] for name in distinct}


def _base(name: str) -> str:
    return name.split(",")[0]


def lightened(color: str, steps: int) -> str:
    """Lighten a colour by one third per step, at most two steps."""
    share = min(steps, 2) / 3
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(part + (255 - part) * share):02X}" for part in parts)


def panels(title: str, count: int = 1, *, widths: Sequence[float] = (), height: float = 3.6) -> list[Axes]:
    """Create a figure of 8 by 3.6 inches with `count` plots side by side and a title. Notebooks and pages display it automatically.

    In a narrow layout, the plots are one below the other.
    """
    from matplotlib import pyplot

    now = layout()
    below = now is NARROW
    figure, axes = pyplot.subplots(
        count if below else 1,
        1 if below else count,
        figsize=(now.width, height * now.height * (count if below else 1)),
        width_ratios=None if below else widths or [1] * count,
        squeeze=False,
        layout="constrained",
    )
    figure.suptitle(now.title(title), fontsize=now.size + 1)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=now.size)
    return list(axes.flat)


def lines(
    axes: Axes,
    series: Mapping[str, Mapping[float, Seen]],
    *,
    title: str = "",
    along: str = "",
    unit: str = "x",
    log: bool = True,
    zero: bool = False,
) -> None:
    """Draw a line for each name: the medians, a band from the lowest to the highest value, and the name at the end.

    Args:
        series: for each name, the values at each point.
        along: the label of the x axis, such as `layers`. Both axes are logarithmic if `log`.
        unit: unit of the values: `x`, `B` for bytes, or any text that follows the number.
        zero: whether the y axis starts at 0, if `log` is False.
    """
    colored = colors(series)
    for name, points in series.items():
        low, middle, high = zip(*map(spread, points.values()), strict=True)
        axes.plot(list(points), middle, color=colored[name], marker="o", markersize=4)
        axes.fill_between(list(points), low, high, color=colored[name], alpha=0.2, linewidth=0)
    places = sorted({place for points in series.values() for place in points})
    axes.set_title(layout().title(title), fontsize=layout().size)
    axes.set_xlabel(along, fontsize=layout().size)
    axes.grid(axis="y", alpha=0.3)
    scale_axis(axes.xaxis, places, log, "")
    scale_axis(axes.yaxis, [value for points in series.values() for seen in points.values() for value in spread(seen)], log, unit, zero)
    ends = {name: spread(points[max(points)])[1] for name, points in series.items()}
    write_side_labels(
        axes, {name: (axes.transData + axes.transAxes.inverted()).transform((1, end))[1] for name, end in ends.items()}, colored
    )


def bars(
    axes: Axes, rows: Mapping[str, Named | Seen], *, title: str = "", unit: str = "x", log: bool = False, mark: float | None = None
) -> None:
    """Draw horizontal bars of the medians, with a whisker from the lowest to the highest value and the number at the end.

    Args:
        rows: the values of each row, or a group of names with values for each row.
        mark: position of a line across all bars, for the reference value.
    """
    groups = group_rows(rows)
    colored, start = row_colors(groups), beginning(groups, unit) if log else 0.0
    for place, name, seen, height, first in place_groups(groups):
        low, middle, high = spread(seen)
        axes.barh(place, middle - start, left=start, height=height * 0.9, color=colored[name])
        axes.plot([low, high], [place, place], color="#333333", linewidth=1.5)
        label = f"{shown(name)} {plain(middle, unit)}" if first and apart_from_rows(groups) else plain(middle, unit)
        note(axes, high, place, label, colored[name])
    if mark is not None:
        axes.axvline(mark, color="black", linewidth=1)
    across(axes, groups, [*values_of(groups), start], title, unit, log)


def beginning(groups: Mapping[str, Named], unit: str) -> float:
    """Return the start of logarithmic bars: 1 for ratios, otherwise below all values, so that longer bars mean more."""
    return 1.0 if unit == "x" else min(values_of(groups)) / 2


def stacks(axes: Axes, rows: Mapping[str, Named], *, title: str = "", unit: str = "x") -> None:
    """Draw horizontal bars whose parts are medians. A legend above names the parts."""
    colored = colors(names_of(rows))
    for place, parts in enumerate(rows.values()):
        start = 0.0
        for name, seen in parts.items():
            middle = spread(seen)[1]
            axes.barh(-place, middle, left=start, height=0.6, color=colored[name], label=None if place else name)
            start += middle
        note(axes, start, -place, plain(start, unit), "#333333")
    axes.legend(
        [axes.barh(0, 0, color=colored[name]) for name in colored], list(colored), loc="lower left", bbox_to_anchor=(0, 1),
        ncols=3, frameon=False, fontsize=layout().small, handlelength=1, columnspacing=1,
    )  # fmt: skip
    totals = [sum(spread(seen)[1] for seen in parts.values()) for parts in rows.values()]
    across(axes, rows, [0, *totals], title, unit, False)


def dots(axes: Axes, rows: Mapping[str, Named | Seen], *, title: str = "", at: float = 1, unit: str = "x") -> None:
    """Draw each ratio as a point around a line at 1, and the median as a mark. Points are grey if no difference was seen.

    Args:
        rows: a ratio for each row, or several named ratios for each row.
    """
    groups = group_rows(rows)
    colored = row_colors(groups)
    axes.axvline(at, color="black", linewidth=1)
    for place, name, seen, height, first in place_groups(groups):
        ratio = to_ratio(seen)
        color = colored[name] if ratio.differs else "#AAAAAA"
        axes.plot(ratio.seen, [place] * len(ratio.seen), "o", color=color, alpha=0.5, markersize=5, markeredgewidth=0)
        axes.plot([ratio.median] * 2, [place - height / 3, place + height / 3], color=color, linewidth=2.5)
        if first and apart_from_rows(groups):
            note(axes, ratio.high, place, shown(name), colored[name])
    across(axes, groups, [at, *values_of(groups)], title, unit, True)


def readable(color: str) -> str:
    """Mix a colour with as little black as is needed to make text of this colour readable on white."""
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = ("#" + "".join(f"{round(part * share / 50):02X}" for part in parts) for share in range(50, -1, -1))
    return next(one for one in mixed if contrast(one, "#ffffff") >= READABLE)


def to_ratio(seen: Seen) -> Ratio:
    """Return all values as a Ratio."""
    return seen if isinstance(seen, Ratio) else Ratio(tuple(seen) if isinstance(seen, Sequence) else (seen,))


def spread(seen: Seen) -> tuple[float, float, float]:
    """Return the lowest, the median and the highest value."""
    ratio = to_ratio(seen)
    return ratio.low, ratio.median, ratio.high


def plain(value: float, unit: str = "") -> str:
    """Format a number for readers: `1.25x`, `64 MB`, `12,345`, `0.03 s`."""
    if unit == "B":
        return in_bytes(value)
    return f"{short(value)}{unit if unit in ('x', '%', '') else f' {unit}'}"


def in_bytes(count: float) -> str:
    """Format bytes in powers of 1000: `64 MB`, `1.5 GB`, `512 B`."""
    power = min(int(math.log10(count) / 3), 4) if count >= 1 else 0
    return f"{short(count / 1000**power)} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"


def short(value: float) -> str:
    """Format a number with three significant digits and thousands separators, and without an exponent from 0.001 on."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, min(6, 2 - math.floor(math.log10(abs(value)))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return round numbers for the ticks of a logarithmic axis: 1, 2, 5, 10, … or finer if `low` and `high` are close.

    Args:
        most: maximum number of ticks.
    """
    from matplotlib.ticker import MaxNLocator

    if high / low < 4:
        return [tick for tick in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high) if low <= tick <= high]
    steps = (1, 2, 5) if high / low < 200 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
    return found[:: math.ceil(len(found) / most)]


def scale_axis(axis: Any, values: Sequence[float], log: bool, unit: str, zero: bool = False) -> None:
    """Set the limits, scale and tick labels of an axis. If there are few values, each gets a tick."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    limits = getattr(axis.axes, f"set_{axis.axis_name}lim")
    low, high = min(values), max(values)
    if log:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
        margin = max((high / low) ** 0.05, 1.02)
        low, high = low / margin, high * margin
        room = (layout().ticks if len(axis.axes.figure.axes) == 1 else 4) if axis.axis_name == "x" else 8
        if layout() is NARROW and axis.axis_name == "x" and len(plain(high, unit)) > LONG:
            room = 2
        axis.set_ticks(list(values) if axis.axis_name == "x" and len(values) <= 7 and not unit else ticks(low, high, room))
        axis.set_minor_locator(NullLocator())
    else:
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1
        low, high = 0 if zero or low == 0 else low - margin, high + margin
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    limits(low, high)
    axis.set_major_formatter(FuncFormatter(lambda value, place: plain(value, unit)))


def across(axes: Axes, rows: Mapping[str, Any], values: Sequence[float], title: str, unit: str, log: bool) -> None:
    """Prepare the axes of a plot with rows: row names at the left, the scale below, and space for numbers at the right."""
    axes.set_title(layout().title(title), fontsize=layout().size)
    axes.set_yticks([-place for place in range(len(rows))], [layout().row(shown(row)) for row in rows])
    axes.set_ylim(0.55 - len(rows), 0.55)
    scale_axis(axes.xaxis, values, log, unit)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def shown(name: str) -> str:
    """Return the display name of an exporter. Return other names unchanged."""
    return spoken(name, ", ")


def entitle(finding: str) -> None:
    """Add a finding as title of the current figure, above its own title, and enlarge the figure accordingly."""
    from matplotlib import pyplot

    figure, size = pyplot.gcf(), layout().size
    told = layout().title(finding)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + size / 60 * (told.count("\n") + 1))
    figure.suptitle("\n".join(filter(None, [told, figure.get_suptitle()])), fontsize=size)


def note(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    """Write a short text to the right of a point."""
    axes.annotate(text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", color=readable(color), fontsize=layout().small)


def write_side_labels(axes: Axes, places: Mapping[str, float], colored: Mapping[str, str]) -> None:
    """Write names to the right of the axes at heights from 0 to 1, spread so that they don't overlap."""
    for name, place in moved_apart(places).items():
        axes.text(1.02, place, shown(name), transform=axes.transAxes, va="center", color=readable(colored[name]), fontsize=layout().size)


def moved_apart(places: Mapping[str, float], gap: float = GAP) -> dict[str, float]:
    """Spread heights to a minimum distance, in the same order, below 1 if possible."""
    names = sorted(places, key=lambda name: places[name])
    heights: list[float] = []
    for name in names:
        heights.append(max(places[name], heights[-1] + gap) if heights else places[name])
    top = 1.0
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], top)
        top = heights[i] - gap
    return dict(zip(names, heights, strict=True))


def group_rows(rows: Mapping[str, Named | Seen]) -> dict[str, Named]:
    """Return each row as a group. A row without names becomes a group with itself as the only name."""
    return {row: seen if isinstance(seen, Mapping) else {row: seen} for row, seen in rows.items()}


def names_of(groups: Mapping[str, Named]) -> list[str]:
    """Return the names in all groups, without duplicates."""
    return list(dict.fromkeys(name for named in groups.values() for name in named))


def apart_from_rows(groups: Mapping[str, Named]) -> bool:
    """Return whether the groups contain names other than the row names."""
    return any(list(named) != [row] for row, named in groups.items())


def row_colors(groups: Mapping[str, Named]) -> dict[str, str]:
    """Return the colours of the names. If rows and names are the same, other names than exporters are grey."""
    names = names_of(groups)
    if apart_from_rows(groups):
        return colors(names)
    return {name: colors(names)[name] if _base(name) in COLORS else "#444444" for name in names}


def values_of(groups: Mapping[str, Named]) -> list[float]:
    """Return all values that the axis must include."""
    return [value for named in groups.values() for seen in named.values() for value in spread(seen)]


def place_groups(groups: Mapping[str, Named]) -> list[tuple[float, str, Seen, float, bool]]:
    """Return for each entry its position on the axis, name, values, available height, and whether its name is new."""
    found, met = [], set()
    for row, named in enumerate(groups.values()):
        height = BAR / len(named)
        for i, (name, seen) in enumerate(named.items()):
            found.append((BAR / 2 - height * (i + 0.5) - row, name, seen, height, name not in met))
            met.add(name)
    return found
