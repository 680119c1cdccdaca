"""Build the index of benchmarks: a card for each, with its question, the finding of its stored run, and the shape of its figure."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from findings import PICTURE
from gallery_pages import ReadingOrder
from recipe_index import to_html
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NUMBER = re.compile(r"(?<![\w.-])\d[\d.,]*\d(?!\w)|(?<![\w.-])\d(?!\w)")
WIDTH, HEIGHT, GAP = 280, 80, 16  # size of the shape on a card, and the gap between two plots
BLACK = ("#000000", "#333333")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform that inserts the cards."""
    app.add_transform(Cards)
    return {"parallel_read_safe": True}


class Cards(SphinxTransform):
    """Replace the thumbnails by a card for each benchmark."""

    default_priority = 100

    def apply(self, **options: Any) -> None:
        """Insert the cards if this is the index page."""
        if self.env.docname != "generated/benchmarks/index":
            return
        folder = Path(self.env.srcdir) / "generated/benchmarks"
        pages = sorted((page for page in folder.glob("*.rst") if page.stem not in ("index", "sg_execution_times")), key=ReadingOrder(""))
        for page in pages:
            self.env.note_dependency(str(finding_of(page)))
        top = next(self.document.findall(nodes.section))
        kept = [node for node in top.children if isinstance(node, (nodes.title, nodes.paragraph))]
        trees = [tree.deepcopy() for tree in self.document.findall(addnodes.toctree)]
        top.children = []
        cards = f'<ul class="recipe-cards">{"".join(map(card, pages))}</ul>'
        top += [*kept, nodes.raw("", cards, format="html"), *trees]


def finding_of(page: Path) -> Path:
    """Return the file with the finding of a benchmark's script."""
    return (page.parent / PICTURE.format(name=page.stem)).with_suffix(".json")


def card(page: Path) -> str:
    """Return the card of a benchmark, with its finding if there is one."""
    question = page.read_text(encoding="utf-8").partition("\n=====")[0].rpartition("\n")[2]
    written = finding_of(page)
    found = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    said = f'<span class="finding">{highlight_numbers(found["first"])}.</span>{badge(found)}{shape(found)}' if found else ""
    return f'<li><a href="{page.stem}.html"><strong>{to_html(question)}</strong>{said}</a></li>'


def badge(found: dict[str, Any]) -> str:
    """Return the badge for a stored run that is older than the code that it measured."""
    return f'<span class="stale-run">{html.escape(found["badge"])}.</span>' if found.get("badge") else ""


def highlight_numbers(text: str) -> str:
    """Return a line as HTML with highlighted numbers."""
    return NUMBER.sub(r"<b>\g<0></b>", html.escape(text, quote=False))


def shape(found: dict[str, Any]) -> str:
    """Return the figure of a finding without its words. Screen readers skip it, because the sentence above has the same facts."""
    plots = [drawn for drawn in found["shape"] if drawn]
    wide = (WIDTH - GAP * (len(plots) - 1)) / max(1, len(plots))
    groups = [
        f'<g transform="translate({place * (wide + GAP):g})">{"".join(mark(m, wide) for m in plot)}</g>' for place, plot in enumerate(plots)
    ]
    return f'<svg class="shape" viewBox="-3 -3 {WIDTH + 6} {HEIGHT + 6}" aria-hidden="true">{"".join(groups)}</svg>'


def mark(drawn: dict[str, Any], wide: float) -> str:
    """Return a bar, a line or dots as SVG. Black becomes the text colour of the page."""
    color = "currentColor" if drawn["color"] in BLACK else drawn["color"]
    if drawn["kind"] == "bar":
        left, top, right, bottom = drawn["at"]
        size = f'width="{max(1, wide * (right - left)):.0f}" height="{HEIGHT * (bottom - top):.1f}"'
        return f'<rect x="{wide * left:.0f}" y="{HEIGHT * top:.1f}" {size} fill="{color}"/>'
    points = [f"{wide * x:.0f} {HEIGHT * y:.0f}" for x, y in drawn["at"]]
    if drawn["kind"] == "line":
        return f'<path d="M{"L".join(points)}" stroke="{color}"/>'
    return f'<path class="dots" d="{"".join(f"M{point}h0" for point in dict.fromkeys(points))}" stroke="{color}"/>'
