"""Show the finding of the stored run at the top of a benchmark's page, and fold the text and code that describe the measurement."""

from __future__ import annotations

import json
import runpy
import sys
from contextlib import suppress
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from freshness import is_fresh, made_of, mark_fresh
from gallery_pages import BEFORE_THE_GALLERY
from own_exporter import OURS, box
from site_files import ROOT
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from exportlab.isolation import run_isolated

PAGES = ("generated/benchmarks", "generated/page-benchmarks")  # the second is what make page makes
PICTURE = "images/finding_{name}.svg"
SECONDS, BYTES = 300, 16 << 30  # limits for a script until it has written its finding


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the findings before the gallery copies the scripts, and add the transform that inserts them."""
    app.add_transform(FindingFirst)
    app.connect("builder-inited", write_findings, priority=BEFORE_THE_GALLERY)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}


def write_findings(app: Sphinx) -> None:
    """Write the finding of each benchmark, if it is missing or one of its sources has changed."""
    gallery = app.config.sphinx_gallery_conf
    for scripts, pages in zip(gallery["examples_dirs"], gallery["gallery_dirs"], strict=True):
        for script in sorted(Path(app.srcdir, scripts).glob("*.py")) if pages in PAGES else ():
            picture = Path(app.srcdir, pages, PICTURE.format(name=script.stem))
            sources = made_of(script, Path(__file__), *stored_runs(script.stem))
            if not is_fresh(picture, sources):
                write_finding(script, picture)
                mark_fresh(picture, sources)


def stored_runs(name: str) -> list[Path]:
    """Return the files with the stored run of a benchmark: its own file, or the matrix."""
    run = ROOT / f"benchmarks/data/{name}.json"
    return [run] if run.exists() else [ROOT / "docs/data/matrix.jsonl"]


def write_finding(script: Path, picture: Path) -> None:
    """Run a script up to its finding, in a separate process.

    Raises:
        RuntimeError: the script fails or writes no finding.
    """
    picture.parent.mkdir(parents=True, exist_ok=True)
    failure = run_isolated(lambda: run_to_finding(script, picture), seconds=SECONDS, memory=BYTES).failure
    if failure is not None or not picture.exists():
        raise RuntimeError(f"{script.name} writes no finding: {failure.message if failure else 'it never calls page.open or page.begin'}")


def run_to_finding(script: Path, picture: Path) -> None:
    """Run a script, which exits after it has written its finding."""
    sys.argv = [str(script), "--finding", str(picture)]
    with suppress(SystemExit):
        runpy.run_path(str(script), run_name="__main__")


def add_files(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Load the script and the style sheet on pages of benchmarks."""
    if str(PurePosixPath(page).parent) in PAGES:
        app.add_css_file("findings.css", priority=860)  # after those of all tables
        app.add_js_file("findings.js", loading_method="defer")


class FindingFirst(SphinxTransform):
    """Insert the finding of a benchmark below the title of its page, and fold what follows the introduction."""

    default_priority = 100  # text that is added is treated as the text that is there

    def apply(self, **options: Any) -> None:
        """Apply the transform to a page that has a finding."""
        page = PurePosixPath(self.env.docname)
        drawn = page.parent / PICTURE.format(name=page.name)
        written = (self.env.srcdir / drawn).with_suffix(".json")
        if str(page.parent) not in PAGES or not written.exists():
            return
        self.env.note_dependency(str(written))
        section = next(self.document.findall(nodes.section))
        fold(section, after=section.first_child_matching_class(nodes.paragraph) or 0)
        finding = json.loads(written.read_text(encoding="utf-8"))
        said, *rest = words(finding)
        compared = [box()] if OURS in f"{finding['first']} {finding['others']}" else []
        figure = html((self.env.srcdir / drawn).read_text(encoding="utf-8"))
        section[1:1] = [said, *compared, *rest, *map(wrap_table, finding["tables"]), figure]


def html(text: str) -> nodes.raw:
    """Return HTML that the page contains unchanged."""
    return nodes.raw("", text, format="html")


def wrap_table(table: dict[str, str]) -> nodes.raw:
    """Return a table in a box that scrolls, also with the keyboard."""
    return html(f'<div class="finding-table" tabindex="0" role="region" aria-label="{escape(table["title"])}">{table["html"]}</div>')


def is_code(node: nodes.Node) -> bool:
    """Return whether a node is Python code."""
    return isinstance(node, nodes.literal_block) and node.get("language", "").lower().startswith("python")


def fold(section: nodes.section, after: int) -> None:
    """Fold what follows a child of a section, if it contains code."""
    folded = section[after + 1 :]
    lines = sum(block.astext().count("\n") + 1 for child in folded for block in child.findall(is_code))
    if lines:
        head = html(f'<details class="finding-code"><summary>How it is measured: text and {lines} lines of code</summary>')
        section[after + 1 :] = [head, *folded, html("</details>")]


def words(finding: dict[str, Any]) -> list[nodes.Node]:
    """Return the finding, the badge, the further findings and the origin as nodes."""
    points = (nodes.list_item("", nodes.paragraph("", line)) for line in finding["others"])
    badge = [nodes.paragraph("", f"{finding['badge']}.", classes=["stale-run"])] if finding.get("badge") else []
    return [
        nodes.paragraph("", f"{finding['first']}.", classes=["finding"]),
        *badge,
        nodes.bullet_list("", *points, bullet="-"),
        nodes.paragraph("", f"{finding['origin']}."),
    ]
