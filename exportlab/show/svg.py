"""Render a laid-out graph as SVG in the colours of the page. Each box has a tooltip. The module `boxes` computes the layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape

from .boxes import LINE, Boxes, Node, Point, bounds, layout

DOTS = 96  # per inch
READABLE = 0.7  # minimum scale; on narrower pages, the frame scrolls
HEAD = 7  # length of an arrowhead in dots
STYLE = """
.drawn-graph { background: var(--pst-color-background, #fff); display: block; margin: 0 auto; }
.drawn-graph text { font: 12px "DejaVu Sans Mono", Consolas, monospace; fill: var(--pst-color-text-base, #222); text-anchor: middle; }
.drawn-graph rect { fill: var(--pst-color-surface, #f3f4f5); stroke: var(--pst-color-text-muted, #555); }
.drawn-graph .input rect { fill: var(--pst-color-info-bg, #d6e9f8); }
.drawn-graph .output rect { fill: var(--pst-color-warning-bg, #fce8c8); }
.drawn-graph .function rect { fill: var(--pst-color-success-bg, #d5efe3); }
.drawn-graph path { fill: none; stroke: var(--pst-color-text-muted, #666); stroke-width: 1.1; }
"""
TAB_STYLE = """
.graph-tabs > label { display: inline-block; padding: 0.2rem 0.7rem; cursor: pointer; border-bottom: 3px solid transparent; }
.graph-tabs > input { position: absolute; opacity: 0; }
.graph-tabs > input:checked + label { border-color: var(--pst-color-primary, #0a7d91); font-weight: 600; }
.graph-tabs > input:focus-visible + label { outline: 2px solid var(--pst-color-primary, #0a7d91); }
.graph-tabs > div { display: none; }
"""


def svg(drawing: Boxes, title: str = "") -> str:
    """Return the complete picture. Its accessible name is the title and the content."""
    places, routes = layout(drawing)
    left, right, top, bottom = (edge * DOTS for edge in bounds(drawing.nodes, places, routes))
    width, height = math.ceil(right - left), math.ceil(bottom - top)
    order = {node.key: i for i, node in enumerate(drawing.nodes)}
    arrows = [
        _arrow([_to_svg_point(p, left, top) for p in route], order[e.source], order[e.target], e.label)
        for e, route in zip(drawing.edges, routes, strict=True)
    ]
    boxes = [_box(node, _to_svg_point(places[node.key], left, top)) for node in drawing.nodes]
    name = escape(f"{title}: {drawing.description}" if title else drawing.description)
    least = f"width: 100%; height: auto; max-width: {width}px; min-width: {READABLE * width:.0f}px"
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" style="{least}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn-graph" {size} role="group" aria-label="{name}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *arrows, *boxes, "</svg>"])


def frame_drawing(drawing: Boxes, title: str = "") -> str:
    """Return the title and the picture in a frame that scrolls if the picture is wider than the page."""
    above = f'<p class="graph-title">{escape(title)}</p>\n' if title else ""
    return above + frame(svg(drawing, title), f"Graph: {title}" if title else "Graph")


def frame(picture: str, name: str) -> str:
    """Return a frame with an accessible name around an SVG picture."""
    return f'<div class="graph-frame" style="overflow: auto" tabindex="0" role="region" aria-label="{escape(name)}">\n{picture}\n</div>'


def render_tabs(drawings: Mapping[str, Boxes]) -> str:
    """Return several pictures as tabs, without a script."""
    pictures = [f'<div class="graph-tab">\n{frame_drawing(drawing, name)}\n</div>' for name, drawing in drawings.items()]
    key = f"graphs-{sha256(''.join(pictures).encode()).hexdigest()[:8]}"
    shown = ", ".join(f".graph-tabs > input:nth-of-type({n}):checked ~ div:nth-of-type({n})" for n in range(1, len(pictures) + 1))
    style = f"{TAB_STYLE}{shown} {{ display: block; }}\n.graph-tabs .graph-title {{ display: none; }}"
    buttons = [_button(f"{key}-{i}", key, name, checked=i == 0) for i, name in enumerate(drawings)]
    return "\n".join(
        [f"<style>{style}</style>", '<div class="graph-tabs" role="group" aria-label="Graphs to compare">', *buttons, *pictures, "</div>"]
    )


def _button(key: str, group: str, name: str, *, checked: bool) -> str:
    state = ' checked=""' if checked else ""
    return f'<input type="radio" name="{group}" id="{key}"{state}/><label for="{key}">{escape(name)}</label>'


def _to_svg_point(place: Point, left: float, top: float) -> Point:
    return place[0] * DOTS - left, place[1] * DOTS - top


def _box(node: Node, place: Point) -> str:
    (x, y), (width, height) = place, (length * DOTS for length in node.size)
    lines = node.label.split("\n")
    first = y - (len(lines) - 1) * LINE * DOTS / 2 + 4
    texts = "".join(f'<text x="{x:.1f}" y="{first + i * LINE * DOTS:.1f}">{escape(line)}</text>' for i, line in enumerate(lines))
    rect = f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" rx="7"/>'
    return f'<g class="{node.kind}" role="img"><title>{escape(node.said or node.label)}</title>{rect}{texts}</g>'


def _arrow(route: Sequence[Point], source: int, target: int, label: str) -> str:
    (x0, y0), (x1, y1) = route[-2:]
    angle = math.atan2(y1 - y0, x1 - x0)
    wings = [(x1 - HEAD * math.cos(angle + turn), y1 - HEAD * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in route)
    head = f"M{wings[0][0]:.1f} {wings[0][1]:.1f}L{x1:.1f} {y1:.1f}L{wings[1][0]:.1f} {wings[1][1]:.1f}"
    x, y = ((a + b) / 2 for a, b in zip(route[0], route[1], strict=True))
    said = f'<text x="{x:.1f}" y="{y:.1f}" font-size="9">{escape(label)}</text>' if label else ""
    return f'<path data-ends="{source} {target}" d="M{line}{head}"/>{said}'
