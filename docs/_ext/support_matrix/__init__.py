"""Build the page of the support matrix from a stored sweep: the package's page of a sweep, with additions for the site."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from site_files import GENERATED, ROOT, STATIC, publish_static, write
from sphinx.application import Sphinx

from content import zoo
from exportlab.cases import Case
from exportlab.diagnostics import CAUSES, NOISE, name_of
from exportlab.sweep import page as swept
from exportlab.sweep.page.cells import pack_texts, texts
from exportlab.sweep.page.counts import Sweep

from . import heatmap, links

STORED = ROOT / "docs/data/matrix.jsonl"
DATA, STYLE, SCRIPT = "matrix-data.js", "matrix.css", "matrix.js"
WHOSE = "this site"


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the page's parts before it is read, and add its style and script."""
    app.connect("builder-inited", store_parts)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}


def store_parts(app: Sphinx) -> None:
    """Write the files that docs/support.md includes and loads, from the stored sweeps and the test suite."""
    publish_static(app)
    write(STATIC / STYLE, swept.style())
    write(STATIC / SCRIPT, swept.script())
    for name, text in parts(Sweep.read(STORED), zoo.cases()).items():
        write(GENERATED / name, text)


def add_files(app: Sphinx, page: str, *_: Any) -> None:
    """Add the style and the script of the matrix."""
    if page == "docs/support":
        app.add_css_file(STYLE)
        app.add_css_file(heatmap.STYLE)
        app.add_js_file(SCRIPT, loading_method="defer")


def parts(sweep: Sweep, cases: Sequence[Case]) -> dict[str, str]:
    """Return the generated files by their names in generated/."""
    loaded = texts(sweep.runs, cases, link_from_matrix, links.links_of)
    version = hashlib.sha256(loaded.encode()).hexdigest()[:8]
    return {
        "parts/matrix-table.html": swept.table(sweep.runs, cases, f"../_static/{DATA}?v={version}", WHOSE),
        "parts/matrix-heatmap.html": render_heatmap(sweep, cases),
        "parts/matrix-totals.html": swept.totals(sweep, WHOSE, beside=True),
        "parts/matrix-causes.html": render_template("lines.html", lines=[("", cause.pattern, cause.why) for cause in CAUSES]),
        "parts/matrix-noise.html": render_template(
            "lines.html", lines=[(name_of(noise.source), noise.pattern, noise.why) for noise in NOISE]
        ),
        f"static/{DATA}": pack_texts(loaded),
    }


def render_heatmap(sweep: Sweep, cases: Sequence[Case], docs: str = "", shown: int | None = None) -> str:
    """Return the heatmap of silently wrong exports: see `heatmap.template_values`."""
    found = heatmap.build_heatmap(sweep.runs, cases)
    return render_template("heatmap.html", **heatmap.template_values(found, docs, shown))


def link_from_matrix(page: str) -> str:
    """Return the relative address of a page, from the page of the matrix."""
    return f"../{page}"


def render_template(template: str, **values: Any) -> str:
    """Render a template of this folder. Values are escaped."""
    return swept.environment_of(Path(__file__).parent / "templates").get_template(template).render(values)
