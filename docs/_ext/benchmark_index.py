"""Build the index of benchmarks: a card for each, with its title, the finding of its stored run, and a small chart, in three groups."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from benchmark_cards import chart_of
from docutils import nodes
from findings import PICTURE, head
from recipe_index import to_html
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NUMBER = re.compile(r"(?<![\w.-])\d[\d.,]*\d(?!\w)|(?<![\w.-])\d(?!\w)")
INDEX = "generated/benchmarks/index"
GROUPS = {
    "Making the file": ("export_time", "real_sizes", "memory", "graph_size"),
    "Running it": ("latency", "pays_off", "start_up", "transformer_files", "optimisers", "cpp_programs"),
    "Can the results be trusted?": ("how_we_measure",),
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform that inserts the cards."""
    app.add_transform(Cards)
    return {"parallel_read_safe": True}


class Cards(SphinxTransform):
    """Replace the thumbnails by a card for each benchmark."""

    default_priority = 100

    def apply(self, **options: Any) -> None:
        """Insert the cards if this is the index page."""
        if self.env.docname != INDEX:
            return
        top = next(self.document.findall(nodes.section))
        kept = [node for node in top.children if isinstance(node, (nodes.title, nodes.paragraph))]
        trees = [tree.deepcopy() for tree in self.document.findall(addnodes.toctree)]
        top.children = []
        top += [*kept, *(self.build_group(title, names) for title, names in GROUPS.items()), *trees]

    def build_group(self, title: str, names: tuple[str, ...]) -> nodes.section:
        """Return a group of cards under its heading."""
        pages = [page for page in (Path(self.env.srcdir, f"generated/benchmarks/{name}.rst") for name in names) if page.exists()]
        for page in pages:
            self.env.note_dependency(str(finding_of(page)))
        cards = f'<ul class="recipe-cards benchmark-cards">{"".join(map(card, pages))}</ul>'
        return head(title, [nodes.raw("", cards, format="html")])


def finding_of(page: Path) -> Path:
    """Return the file with the finding of a benchmark's script."""
    return (page.parent / PICTURE.format(name=page.stem)).with_suffix(".json")


def card(page: Path) -> str:
    """Return the card of a benchmark, with its finding if there is one."""
    title = page.read_text(encoding="utf-8").partition("\n====")[0].rpartition("\n")[2]
    written = finding_of(page)
    found = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    said = f'<span class="finding">{highlight_numbers(found["first"])}.</span>{badge(found)}{chart_of(page.stem)}' if found else ""
    return f'<li><a href="{page.stem}.html"><strong>{to_html(title)}</strong>{said}</a></li>'


def badge(found: dict[str, Any]) -> str:
    """Return the badge for a stored run that is older than the code that it measured."""
    return f'<span class="stale-run">{html.escape(found["badge"])}.</span>' if found.get("badge") else ""


def highlight_numbers(text: str) -> str:
    """Return a line as HTML with highlighted numbers."""
    return NUMBER.sub(r"<b>\g<0></b>", html.escape(text, quote=False))
