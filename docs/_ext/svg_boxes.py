"""Boxes, arrows and text of drawings that stand in a page itself: in the colours of its theme, 360 wide, so that they fit a phone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH = 360
STYLE = """
.drawing { display: block; width: 100%; max-width: 34rem; margin: 1rem auto; }
.drawing text { font: 12.5px var(--pst-font-family-base, sans-serif); fill: var(--pst-color-text-base, #222); }
.drawing .strong { font-weight: 600; }
.drawing rect { fill: var(--pst-color-surface, #f3f4f5); stroke: var(--pst-color-border, #c9c9c9); }
.drawing .written { stroke: var(--pst-color-primary, #0a7d91); stroke-width: 1.5; }
.drawing .else { stroke-dasharray: 4 3; }
.drawing path { fill: none; stroke: var(--pst-color-text-muted, #666); stroke-width: 1.3; }
"""


def drawing(title: str, height: float, parts: Sequence[str]) -> str:
    """Return the whole of it; the title is for who does not see it."""
    head = f'<svg class="drawing" viewBox="-1 -1 {WIDTH + 2} {height}" role="img" aria-label="{escape(title)}"><style>{STYLE}</style>'
    return "\n".join([head, *parts, "</svg>"])


def box(x: float, y: float, width: float, height: float, lines: Sequence[str], kind: str = "", *, headed: bool = True) -> str:
    """Return a box; where it is `headed` and has lines more than one, the first is strong."""
    middle = y + height / 2 + 4.5
    texts = [
        text(x + width / 2, middle + 16 * (i - (len(lines) - 1) / 2), line, strong=headed and i == 0 and len(lines) > 1)
        for i, line in enumerate(lines)
    ]
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>' + "".join(texts)


def text(x: float, y: float, line: str, *, strong: bool = False, anchor: str = "middle") -> str:
    """Return a line of text."""
    kind = ' class="strong"' if strong else ""
    return f'<text{kind} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(line)}</text>'


def draw_down_arrow(x: float, start: float, end: float) -> str:
    """Return an arrow."""
    return f'<path d="M{x} {start} V{end} m-4 -6 l4 6 l4 -6"/>'
