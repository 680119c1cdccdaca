"""Build a preview of the site: nothing is executed, and missing parts are replaced by a note."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from site_files import GENERATED, ROOT, write
from sphinx.application import Sphinx

NOTICE = "Preview: rendered from stored results. Recipes, benchmarks and errors were not run."
MISSING = "This part is missing in a preview: make site runs its code."
EXECUTING = ("page_demos", "browser_demo", "export_options", "gallery_pages", "known_errors")  # extensions that run models
PARTS = re.compile(r"(?:include\} |:file: )(?:\.\./)?(generated/parts/[\w.-]+)")


def settings(extensions: list[str], gallery: dict[str, Any], theme: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from conf.py in a preview: no execution, and a notice on each page."""
    kept = [name for name in extensions if name not in EXECUTING]
    return {
        "extensions": [*kept, "preview"],
        "sphinx_gallery_conf": {**gallery, "plot_gallery": False},
        "html_theme_options": {**theme, "announcement": NOTICE},
        "suppress_warnings": ["ref", "toc", "myst", "image"],
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the missing parts after the other extensions have written theirs."""
    app.connect("builder-inited", lambda _: write_missing(), priority=950)
    return {"parallel_read_safe": True}


def write_missing() -> None:
    """Write placeholders for pages of known errors and included parts that an earlier make site has not left."""
    import known_errors

    for name, text in known_errors.render_index_parts().items():
        write(GENERATED / name, text)
    for error in known_errors.load_known_errors():
        if not (page := known_errors.page_of(error)).exists():
            write(page, known_errors.render_draft(error, MISSING))
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        for part in missing_parts(page):
            write(part, f"{MISSING}\n" if part.suffix == ".md" else f"<p>{MISSING}</p>\n")


def missing_parts(page: Path) -> list[Path]:
    """Return the missing generated files that a page includes."""
    return [ROOT / part for part in PARTS.findall(page.read_text(encoding="utf-8")) if not (ROOT / part).exists()]
