"""A benchmark's page begins with what its stored run found, which the script writes when the site runs it; its code is folded."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from own_exporter import OURS, box
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAGES = ("generated/benchmarks", "generated/page-benchmarks")  # the second is what make page makes
PICTURE = "images/sphx_glr_{name}_001.svg"  # the first of the page


def setup(app: Sphinx) -> dict[str, bool]:
    """Add what puts them there."""
    app.add_transform(FindingFirst)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}


def page_arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the command line of a page: a benchmark runs quick, and writes its finding where its first picture belongs."""
    folders = zip(gallery_conf["examples_dirs"], gallery_conf["gallery_dirs"], strict=True)
    benchmarks = {Path(gallery_conf["src_dir"], scripts) for scripts, pages in folders if pages in PAGES}
    if Path(script_vars["src_file"]).parent not in benchmarks:
        return []
    return ["--quick", "--finding", str(Path(script_vars["image_path_iterator"].next()).with_suffix(".svg"))]


def add_files(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Load script and style on the pages of benchmarks alone."""
    if str(PurePosixPath(page).parent) in PAGES:
        app.add_css_file("findings.css", priority=860)  # after those of all tables
        app.add_js_file("findings.js", loading_method="defer")


class FindingFirst(SphinxTransform):
    """Put the finding of a benchmark's page under its title, and fold its code."""

    default_priority = 100  # text that is added is treated as the text that is there

    def apply(self, **options: Any) -> None:
        """Do it, where the page has one."""
        page = PurePosixPath(self.env.docname)
        drawn = page.parent / PICTURE.format(name=page.name)
        written = (self.env.srcdir / drawn).with_suffix(".json")
        if str(page.parent) not in PAGES:
            return
        for block in list(self.document.findall(is_code)):
            fold(block)
        if not written.exists():
            return
        self.env.note_dependency(str(written))
        finding = json.loads(written.read_text(encoding="utf-8"))
        title = next(self.document.findall(nodes.title))
        said, *rest = words(finding)
        compared = [box()] if OURS in f"{finding['first']} {finding['others']}" else []
        figure = html((self.env.srcdir / drawn).read_text(encoding="utf-8"))
        title.parent[1:1] = [said, *compared, *rest, *map(wrap_table, finding["tables"]), figure]


def html(text: str) -> nodes.raw:
    """Return what stands in the page as it is."""
    return nodes.raw("", text, format="html")


def wrap_table(table: dict[str, str]) -> nodes.raw:
    """Return a table in a box that scrolls, by keys too."""
    return html(f'<div class="finding-table" tabindex="0" role="region" aria-label="{escape(table["title"])}">{table["html"]}</div>')


def is_code(node: nodes.Node) -> bool:
    """Whether this is code of the page, and not what it printed."""
    return isinstance(node, nodes.literal_block) and node.get("language", "").lower().startswith("python")


def fold(block: nodes.literal_block) -> None:
    """Put code behind a line that opens it."""
    lines = block.astext().count("\n") + 1
    head = html(f'<details class="finding-code"><summary>Code, {lines} line{"s" * (lines > 1)}</summary>')
    block.replace_self([head, block.deepcopy(), html("</details>")])


def words(finding: dict[str, Any]) -> list[nodes.Node]:
    """Return what was found, what else was, and where it was seen."""
    points = (nodes.list_item("", nodes.paragraph("", line)) for line in finding["others"])
    badge = [nodes.paragraph("", f"{finding['badge']}.", classes=["stale-run"])] if finding.get("badge") else []
    return [
        nodes.paragraph("", f"{finding['first']}.", classes=["finding"]),
        *badge,
        nodes.bullet_list("", *points, bullet="-"),
        nodes.paragraph("", f"{finding['origin']}."),
    ]
