"""Draw how `to_onnx` captures by running: an SVG that stands in the page itself, in the colours of its theme, and fits a phone."""

from __future__ import annotations

from html import escape
from pathlib import Path

WIDTH, ROW, TOP = 360, 50, 152
RUNS = (("batch = 4", "view [4, 16]", "relu"), ("batch = 7", "view [7, 16]", "relu"), ("batch = 10", "view [10, 16]", "relu"))
BECOMES = (  # what the notes of all runs show, and what is written
    (("the same in every run:", "relu, 16"), ("a node, a constant", "relu, 16")),
    (("a number that moves:", "4, 7, 10"), ("an expression", "batch")),
    (("a test that can come out", "the other way"), ("If", "run again for that side")),
    (("as many more turns as rows,", "all alike"), ("Loop", "with one turn as its body")),
    (("anything else",), ("torch.export", "or an error, with the line")),
)
STYLE = """
.capture-drawing { display: block; width: 100%; max-width: 34rem; margin: 1rem auto; }
.capture-drawing text { font: 12.5px var(--pst-font-family-base, sans-serif); fill: var(--pst-color-text-base, #222); }
.capture-drawing .strong { font-weight: 600; }
.capture-drawing rect { fill: var(--pst-color-surface, #f3f4f5); stroke: var(--pst-color-border, #c9c9c9); }
.capture-drawing .written { stroke: var(--pst-color-primary, #0a7d91); stroke-width: 1.5; }
.capture-drawing .else { stroke-dasharray: 4 3; }
.capture-drawing path { fill: none; stroke: var(--pst-color-text-muted, #666); stroke-width: 1.3; }
"""


def draw_capture(path: Path) -> None:
    """Write the drawing."""
    end = TOP + len(BECOMES) * ROW
    parts = [
        _text(WIDTH / 2, 14, "The model is run at a few sizes", strong=True),
        *(part for place, lines in enumerate(RUNS) for part in (_box(124 * place, 24, 112, 62, lines), _arrow(124 * place + 56, 88, 106))),
        _box(0, 108, WIDTH, 30, ("what it called, held against each other",)),
        *(part for place, row in enumerate(BECOMES) for part in _row(place, *row)),
        _box(0, end + 20, WIDTH, 30, ("one graph, which the converter writes as a file",)),
        _arrow(284, end - 4, end + 18),
    ]
    title = "Runs at a few sizes; what their notes have in common; the graph that is written"
    head = f'<svg class="capture-drawing" viewBox="-1 -1 {WIDTH + 2} {end + 53}" role="img" aria-label="{title}"><style>{STYLE}</style>'
    path.write_text("\n".join([head, *parts, "</svg>"]), encoding="utf-8")


def _row(place: int, seen: tuple[str, ...], written: tuple[str, ...]) -> list[str]:
    """What was seen on the left, what it becomes on the right."""
    top, last = TOP + place * ROW, place == len(BECOMES) - 1
    lines = [_text(0, top + 25 + 16 * (i - (len(seen) - 1) / 2), line, anchor="start") for i, line in enumerate(seen)]
    arrow = f'<path d="M176 {top + 21} h26 m-6 -4 l6 4 l-6 4"/>'
    return [*lines, arrow, _box(208, top, 152, 42, written, "else" if last else "written")]


def _box(x: float, y: float, width: float, height: float, lines: tuple[str, ...], kind: str = "") -> str:
    """A box, its first line strong where there are more."""
    middle = y + height / 2 + 4.5
    texts = [
        _text(x + width / 2, middle + 16 * (i - (len(lines) - 1) / 2), line, strong=i == 0 and len(lines) > 1)
        for i, line in enumerate(lines)
    ]
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>' + "".join(texts)


def _text(x: float, y: float, text: str, *, strong: bool = False, anchor: str = "middle") -> str:
    kind = ' class="strong"' if strong else ""
    return f'<text{kind} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _arrow(x: float, start: float, end: float) -> str:
    return f'<path d="M{x} {start} V{end} m-4 -6 l4 6 l4 -6"/>'
