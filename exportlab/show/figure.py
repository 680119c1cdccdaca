"""Drawings as a matplotlib figure, which notebooks and pages show by themselves, and which is SVG where that can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from ..files import written_whole
from .boxes import FILL, Boxes, Edge, Node, Point, bounds, layout
from .svg import frame_drawing, render_tabs, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = 0.35  # height of the title, inches
TITLE_CHARACTER = 0.095  # width of one of its characters, inches


class GraphFigure(Figure):
    """A figure of drawings by their titles: a notebook shows SVG, where a box says more of itself, or the dots that matplotlib makes."""

    drawings: Mapping[str, Boxes]

    def html(self) -> str:
        """Return it for a page: one drawing, or a button for each."""
        if len(self.drawings) > 1:
            return render_tabs(self.drawings)
        ((title, drawing),) = self.drawings.items()
        return frame_drawing(drawing, title)

    def _repr_html_(self) -> str | None:
        return render_tabs(self.drawings) if len(self.drawings) > 1 else None

    def _repr_svg_(self) -> str | None:
        if len(self.drawings) > 1:
            return None
        ((title, drawing),) = self.drawings.items()
        return svg(drawing, title)


def show_drawings(drawings: Mapping[str, Boxes], save: str | Path | None = None) -> None:
    """Draw on a new figure, one beside the other; `save` writes it (.svg, .png) as well."""
    from matplotlib import pyplot

    laid = {title: (drawing, *_lay_out(drawing, title)) for title, drawing in drawings.items()}
    widths = [right - left for _, _, _, (left, right, _, _) in laid.values()]
    height = max(bottom - top for _, _, _, (_, _, top, bottom) in laid.values())
    figure: Any = pyplot.figure(figsize=(sum(widths), height), FigureClass=GraphFigure)
    figure.drawings = dict(drawings)
    start = 0.0
    for (title, (drawing, places, routes, (left, right, top, bottom))), width in zip(laid.items(), widths, strict=True):
        tall = bottom - top
        place = (start / sum(widths), 1 - tall / height, width / sum(widths), tall / height)
        _paint(figure.add_axes(place, xlim=(left, right), ylim=(bottom, top)), drawing, title, places, routes)
        start += width
    if save is not None:
        _save(figure, save)


Laid = tuple[dict[str, Point], list[list[Point]], tuple[float, float, float, float]]


def _lay_out(drawing: Boxes, title: str) -> Laid:
    """Where everything is, and left, right, top and bottom of it, with room for the title."""
    places, routes = layout(drawing)
    left, right, top, bottom = bounds(drawing.nodes, places, routes)
    if title:
        right, top = max(right, left + len(title) * TITLE_CHARACTER + 0.2), top - TITLE
    return places, routes, (left, right, top, bottom)


def _paint(axes: Axes, drawing: Boxes, title: str, places: Mapping[str, Point], routes: list[list[Point]]) -> None:
    axes.axis("off")
    axes.text(axes.get_xlim()[0] + 0.1, axes.get_ylim()[1] + TITLE / 2, title, fontsize=11, va="center")
    axes.set_title(drawing.description, visible=False)  # sphinx-gallery reads it: the picture's alt text
    for edge, route in zip(drawing.edges, routes, strict=True):
        _draw_edge(axes, edge, route)
    for node in drawing.nodes:
        _draw_node(axes, node, places[node.key])


def _save(figure: GraphFigure, path: str | Path) -> None:
    with written_whole(path) as draft:
        if Path(path).suffix == ".svg":
            Path(draft).write_text(figure._repr_svg_() or "", encoding="utf-8")
        else:
            figure.savefig(draft)


def _draw_node(axes: Axes, node: Node, place: Point) -> None:
    from matplotlib.patches import FancyBboxPatch

    (x, y), (width, height) = place, node.size
    corner = (x - width / 2 + 0.06, y - height / 2 + 0.06)
    style = "round,pad=0.06,rounding_size=0.08"
    face = FILL[node.kind]
    axes.add_patch(FancyBboxPatch(corner, width - 0.12, height - 0.12, boxstyle=style, fc=face, ec="#555555", lw=0.9, zorder=2))
    axes.text(x, y, node.label, ha="center", va="center", fontsize=9, family="monospace", color="#111111", zorder=3)


def _draw_edge(axes: Axes, edge: Edge, route: list[Point]) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Outline

    axes.add_patch(FancyArrowPatch(path=Outline(route), arrowstyle="-|>", mutation_scale=9, lw=0.9, color="#777777", fill=False, zorder=1))
    if edge.label:
        x, y = ((a + b) / 2 for a, b in zip(route[0], route[1], strict=True))
        axes.text(x, y, edge.label, fontsize=7, color="#555555", ha="center", va="center", zorder=4)
