"""Draw a row of dots for each model: where each exporter stands, whether its result is right, and who has no dot, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from . import figures
from .layout import LEAST, NARROW, layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTER = 0.62  # average width of a letter, relative to its height
STEPS = [step * 10.0**power for power in range(-3, 5) for step in (1, 3)]
RIGHT, MASKED, NOT_RIGHT = "right at every size", "right except where a mask hides everything", "not right"
SIGNS: Mapping[str, dict[str, Any]] = {
    RIGHT: {"marker": "o"},
    MASKED: {"marker": "o", "markerfacecolor": "#ffffff", "markeredgewidth": 2},
    NOT_RIGHT: {"marker": "x", "markeredgewidth": 2.5},
}
OPAQUE = {"facecolor": "#ffffff", "edgecolor": "none", "pad": 0.5}  # hides lines behind a text


@dataclass(frozen=True)
class Row:
    """One model.

    Attributes:
        values: the value of each name that has one.
        marks: `RIGHT`, `MASKED` or `NOT_RIGHT` for each of these names.
        notes: the reasons of the names that are not right, by name.
    """

    values: Mapping[str, float]
    marks: Mapping[str, str]
    notes: Mapping[str, str]


def draw_dots(rows: Mapping[str, Row], joined: tuple[str, str], title: str, unit: str) -> Axes:
    """Draw a figure with a logarithmic axis.

    Args:
        joined: two names that a line connects in each row, with their values below.
        title: below it, the marks are explained.
    """
    lines = {name: _lines(row) for name, row in rows.items()}
    (axes,) = figures.panels("\n".join([title, *legend(rows)]), height=_height(lines))
    colored = figures.colors(name for row in rows.values() for name in row.marks)
    place, names = 0.0, []
    for name, row in rows.items():
        _draw_row(axes, place, name, row, joined, colored, unit)
        names.append(place)
        place -= lines[name]
    axes.set_ylim(place + 1.5, 2.6)
    values = [value for row in rows.values() for value in row.values.values()]
    figures.scale_axis(axes.xaxis, [min(values) * 0.8, *values, max(values) * 1.2], True, unit)
    axes.set_xticks([tick for tick in STEPS if min(values) * 0.8 < tick < max(values) * 1.3])
    axes.set_yticks([] if layout() is NARROW else names, [] if layout() is NARROW else list(rows))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    _name_dots(axes, next(iter(rows.values())), colored)
    return axes


def legend(rows: Mapping[str, Row]) -> list[str]:
    """Return the lines that explain the marks."""
    used = {mark for row in rows.values() for name, mark in row.marks.items() if name in row.values}
    signs = {RIGHT: "●", MASKED: "○", NOT_RIGHT: "✕"}
    told = [f"{sign} {mark}" for mark, sign in signs.items() if mark in used]
    return told if layout() is NARROW else [" \N{EM SPACE}".join(told)]


def _lines(row: Row) -> float:
    """Return the height of a row in lines of text."""
    notes = len(_notes(row, layout().line - 4))
    return 3.6 + notes if layout() is NARROW else max(2.6, notes + 0.6)


def _height(lines: Mapping[str, float]) -> float:
    """Return the height of the figure for `panels`, which scales it by the size of the text."""
    return (sum(lines.values()) + 6.5) * figures.SIZE * 1.12 / 72


def _notes(row: Row, width: int) -> list[tuple[str, str]]:
    """Return the lines with the reasons, each with the name whose colour it has."""
    told = [(f"✕ {figures.shown(name)}: {why}", name) for name, why in row.notes.items()]
    return [(line, name) for text, name in told for line in wrap(text, width)]


def _draw_row(axes: Axes, place: float, title: str, row: Row, joined: tuple[str, str], colored: Mapping[str, str], unit: str) -> None:
    small = max(layout().size - 2, LEAST)
    axes.axhline(place, color="#777777", alpha=0.25, linewidth=1)
    ends = [row.values[name] for name in joined if name in row.values]
    axes.plot(ends, [place] * len(ends), color="#777777", linewidth=2)
    for name, value in row.values.items():
        axes.plot([value], [place], color=colored[name], markersize=layout().size * 0.75, linestyle="none", **SIGNS[row.marks[name]])
        if name in joined:
            _write(axes, (value, place - 0.55), f"{rough(value)} {unit}", colored[name], size=small, ha="center")
    beside = layout() is not NARROW
    if not beside:
        axes.text(0, place + 0.75, title, transform=axes.get_yaxis_transform(), fontsize=layout().size)
    top = place if beside else place - 2.2
    for i, (line, name) in enumerate(_notes(row, 60 if beside else layout().line - 4)):
        at = (1.02 if beside else 0.0, top + 0.45 - i)
        _write(axes, at, line, colored[name], size=small, ha="left", transform=axes.get_yaxis_transform())


def rough(value: float) -> str:
    """Format a number with two digits: `0.37`, `4.4`, `30`."""
    return figures.short(float(f"{value:.2g}"))


def _write(axes: Axes, at: tuple[float, float], text: str, color: str, size: float, **how: Any) -> None:
    axes.text(*at, text, color=figures.readable(color), fontsize=size, va="top", **how)


def _name_dots(axes: Axes, row: Row, colored: Mapping[str, str]) -> None:
    """Name the dots of the first row, in as many lines as they need."""
    size = layout().small
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # fixes the scale of the axis
    box, dots = axes.get_window_extent(), 72 / figure.dpi
    width = box.width * dots
    places = {name: (axes.transData.transform((value, 0))[0] - box.x0) * dots for name, value in row.values.items()}
    sizes = {name: len(figures.shown(name)) * size * LETTER for name in places}
    centers = {name: min(max(place, sizes[name] / 2), width - sizes[name] / 2) for name, place in places.items()}
    level = levels({name: (centers[name] - sizes[name] / 2, centers[name] + sizes[name] / 2) for name in places})
    base = 0.75 if layout() is not NARROW else 1.95
    for name in places:
        at = (centers[name] / width, base + 0.85 * level[name])
        axes.plot([row.values[name]] * 2, [0.3, at[1]], color=colored[name], linewidth=0.8, alpha=0.6)
        how: Any = {"color": figures.readable(colored[name]), "fontsize": size, "ha": "center", "bbox": OPAQUE}
        axes.text(*at, figures.shown(name), transform=axes.get_yaxis_transform(), **how)


def levels(spans: Mapping[str, tuple[float, float]]) -> dict[str, int]:
    """Return for each span the lowest line on which it overlaps no other, the shortest span first."""
    found: dict[str, int] = {}
    for name in sorted(spans, key=lambda name: spans[name][1] - spans[name][0]):
        left, right = spans[name]
        taken = {found[other] for other in found if spans[other][1] + 2 > left and right + 2 > spans[other][0]}
        found[name] = next(level for level in range(len(spans)) if level not in taken)
    return found
