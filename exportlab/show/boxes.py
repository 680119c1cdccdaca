"""Lay out boxes and the edges between them in layers. `graph` creates them, and `svg` draws them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]

KINDS = ("input", "output", "op", "function")
CHARACTER = 0.078  # width of one character of the box font, inches
LINE = 0.17  # height of one line of text, inches
PADDING = 0.12  # inches
MARGIN = 0.1  # inches


@dataclass(frozen=True)
class Node:
    """A box: its key, its lines of text, its kind (`input`, `output`, `op` or `function`), and the text of its tooltip."""

    key: str
    label: str
    kind: str = "op"
    said: str = ""

    @property
    def size(self) -> Point:
        """Width and height, inches."""
        lines = self.label.split("\n")
        return max(map(len, lines)) * CHARACTER + 2 * PADDING, len(lines) * LINE + 2 * PADDING


@dataclass(frozen=True)
class Edge:
    """An arrow from one node's key to another's, with a label."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True)
class Boxes:
    """Nodes and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def description(self) -> str:
        """A description for screen readers: the inputs, the number of nodes by operator, and the outputs."""
        first = {kind: [n.label.split("\n")[0] for n in self.nodes if n.kind == kind] for kind in KINDS}
        counts = Counter(first["op"] + first["function"])
        nodes = ", ".join(f"{name} {n}" if n > 1 else name for name, n in counts.most_common())
        return (
            f"A graph from {', '.join(first['input']) or 'no input'} to {', '.join(first['output']) or 'no output'}; "
            f"nodes: {counts.total()}{f' ({nodes})' if nodes else ''}"
        )


def layout(drawing: Boxes) -> tuple[dict[str, Point], list[list[Point]]]:
    """Compute a layered (Sugiyama) layout with igraph, in inches, y downwards: a position for each node, a polyline for each edge."""
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


def _route(drawing: Boxes, edge: Edge, places: dict[str, Point], bends: list[Point]) -> list[Point]:
    heights = {node.key: node.size[1] for node in drawing.nodes}
    (x0, y0), (x1, y1) = places[edge.source], places[edge.target]
    return [(x0, y0 + heights[edge.source] / 2), *bends, (x1, y1 - heights[edge.target] / 2)]


def bounds(nodes: Sequence[Node], places: dict[str, Point], routes: list[list[Point]]) -> tuple[float, float, float, float]:
    """Return left, right, top and bottom of the drawing with a margin, in inches."""
    boxes = [(*places[n.key], *n.size) for n in nodes] + [(x, y, 0.0, 0.0) for route in routes for x, y in route]
    return (
        min(x - w / 2 for x, _, w, _ in boxes) - MARGIN,
        max(x + w / 2 for x, _, w, _ in boxes) + MARGIN,
        min(y - h / 2 for _, y, _, h in boxes) - MARGIN,
        max(y + h / 2 for _, y, _, h in boxes) + MARGIN,
    )
