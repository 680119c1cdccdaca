"""What a picture of a graph is made of, and how it is drawn: boxes laid out in layers. Not here: where the boxes come from (graph)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]

FILL = {"input": "#D6E9F8", "output": "#FCE8C8", "op": "#FFFFFF", "function": "#D5EFE3"}
CHARACTER = 0.078  # width of one character of the box font, inches
LINE = 0.17  # height of one line of text, inches
PADDING = 0.12  # inches
MARGIN = 0.1  # inches
TITLE = 0.35  # height of the title, inches
TITLE_CHARACTER = 0.095  # width of one of its characters, inches


@dataclass(frozen=True)
class Node:
    """A box: its key, its text (lines), and whether it is an `input`, `output`, `op` or `function`."""

    key: str
    label: str
    kind: str = "op"

    @property
    def size(self) -> Point:
        """Width and height, inches."""
        lines = self.label.split("\n")
        return max(map(len, lines)) * CHARACTER + 2 * PADDING, len(lines) * LINE + 2 * PADDING


@dataclass(frozen=True)
class Edge:
    """An arrow from one node's key to another's, with the text beside it."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True)
class Drawing:
    """Nodes and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def description(self) -> str:
        """What is seen, in words, for who cannot see it: the inputs, how many nodes of which operators, the outputs."""
        first = {kind: [n.label.split("\n")[0] for n in self.nodes if n.kind == kind] for kind in FILL}
        counts = Counter(first["op"] + first["function"])
        nodes = ", ".join(f"{name} {n}" if n > 1 else name for name, n in counts.most_common())
        return (
            f"A graph from {', '.join(first['input']) or 'no input'} to {', '.join(first['output']) or 'no output'}; "
            f"nodes: {counts.total()}{f' ({nodes})' if nodes else ''}"
        )

    def draw(self, title: str = "", save: str | Path | None = None) -> None:
        """Draw on a new matplotlib figure, which notebooks and pages show by themselves; `save` writes it (.svg, .png) as well."""
        from matplotlib import pyplot

        places, routes = _layout(self)
        left, right, top, bottom = _bounds(self.nodes, places, routes)
        head, right = (TITLE, max(right, left + len(title) * TITLE_CHARACTER + 0.2)) if title else (0.0, right)
        figure = pyplot.figure(figsize=(right - left, bottom - top + head))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(left, right), ylim=(bottom, top - head))
        axes.axis("off")
        axes.text(left + 0.1, top - head / 2, title, fontsize=11, va="center")
        axes.set_title(self.description, visible=False)  # sphinx-gallery reads it: the picture's alt text
        for edge, route in zip(self.edges, routes, strict=True):
            _draw_edge(axes, edge, route)
        for node in self.nodes:
            _draw_node(axes, node, places[node.key])
        if save is not None:
            with written_whole(save) as draft:
                figure.savefig(draft)


def _layout(drawing: Drawing) -> tuple[dict[str, Point], list[list[Point]]]:
    """Layered (Sugiyama) layout by igraph, in inches, y downwards: a place for each node, a polyline for each edge."""
    from igraph import Graph

    index = {node.key: i for i, node in enumerate(drawing.nodes)}
    graph = Graph(n=len(index), edges=[(index[e.source], index[e.target]) for e in drawing.edges], directed=True)
    widest = max(node.size[0] for node in drawing.nodes)
    tallest = max(node.size[1] for node in drawing.nodes)
    layout = graph.layout_sugiyama(hgap=widest + 0.3, vgap=tallest + 0.32, maxiter=400)
    places = {node.key: (layout.coords[i][0], layout.coords[i][1]) for i, node in enumerate(drawing.nodes)}
    routes = [
        _route(drawing, edge, places, [tuple(p) for p in bends]) for edge, bends in zip(drawing.edges, layout.edge_routing, strict=True)
    ]
    return places, routes


def _route(drawing: Drawing, edge: Edge, places: dict[str, Point], bends: list[Point]) -> list[Point]:
    heights = {node.key: node.size[1] for node in drawing.nodes}
    (x0, y0), (x1, y1) = places[edge.source], places[edge.target]
    return [(x0, y0 + heights[edge.source] / 2), *bends, (x1, y1 - heights[edge.target] / 2)]


def _bounds(nodes: Sequence[Node], places: dict[str, Point], routes: list[list[Point]]) -> tuple[float, float, float, float]:
    """Left, right, top and bottom of all that is drawn, with a margin, inches."""
    boxes = [(*places[n.key], *n.size) for n in nodes] + [(x, y, 0.0, 0.0) for route in routes for x, y in route]
    return (
        min(x - w / 2 for x, _, w, _ in boxes) - MARGIN,
        max(x + w / 2 for x, _, w, _ in boxes) + MARGIN,
        min(y - h / 2 for _, y, _, h in boxes) - MARGIN,
        max(y + h / 2 for _, y, _, h in boxes) + MARGIN,
    )


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
