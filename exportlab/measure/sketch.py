"""Reduce a figure to its bars, lines and dots in the unit square, for the thumbnail on a card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Mark = dict[str, Any]  # `kind` (bar, line or dots), `color`, and `at`: left, top, right, bottom of a bar, or points
DIGITS = 3


def sketch(figure: Figure) -> list[list[Mark]]:
    """Return the shapes in each of a figure's axes, scaled to a unit square with its origin at the top left."""
    figure.canvas.draw()  # matplotlib computes positions only when it draws
    return [[*_bars(axes), *_lines(axes)] for axes in figure.axes]


def _bars(axes: Axes) -> Iterator[Mark]:
    for patch in axes.patches:
        box = patch.get_window_extent()
        if box.width and box.height:
            (left, top), (right, bottom) = _to_axes_coordinates(axes, [(box.x0, box.y1), (box.x1, box.y0)])
            yield {"kind": "bar", "color": _color(patch.get_facecolor()), "at": [left, top, right, bottom]}


def _lines(axes: Axes) -> Iterator[Mark]:
    for line in axes.lines:
        points = _to_axes_coordinates(axes, line.get_transform().transform(line.get_xydata()))
        joined = line.get_linestyle() != "None"
        yield {"kind": "line" if joined else "dots", "color": _color(line.get_color()), "at": points}


def _to_axes_coordinates(axes: Axes, points: Any) -> list[list[float]]:
    """Convert display coordinates to axes coordinates, clipped to the axes."""
    inside = axes.transAxes.inverted().transform(points).clip(0, 1)
    return [[round(float(x), DIGITS), round(1 - float(y), DIGITS)] for x, y in inside]


def _color(color: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(color)
