"""Add metadata to the pages: canonical address, link card and lazy images. Remove files that no page uses."""

from __future__ import annotations

import html
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from site_files import ROOT
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

CARD = "card.png"
PICTURES = {"image/png", "image/jpeg"}  # a notebook stores them as base64, which is a third larger


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the metadata to each page, and clean up after the last page."""
    app.config.html_baseurl = app.config.ogp_site_url = app.config.html_baseurl or address()
    has_card = any((Path(app.confdir) / folder / CARD).is_file() for folder in app.config.html_static_path)
    app.config.ogp_image = f"_static/{CARD}" if has_card and app.config.html_baseurl else None
    app.connect("html-page-context", let_images_wait)
    app.connect("html-page-context", leave_viewport_to_theme)
    app.connect("build-finished", tidy)
    app.add_transform(NothingTwice)
    for style in ("tables_and_code.css", "controls.css"):
        app.add_css_file(style, priority=850)  # after the style sheets of the theme and of sphinx-gallery
    app.add_js_file("manners.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}


class NothingTwice(SphinxTransform):
    """Remove sphinx-gallery's archive from a recipe's page. It contains the script and the notebook, which have separate links."""

    default_priority = 100  # before the download files are collected

    def apply(self, **options: Any) -> None:
        """Remove the archive's link, if there is one. The links in the margin follow from the remaining ones."""
        for archive in list(
            self.document.findall(lambda node: "sphx-glr-download-zip" in getattr(node, "attributes", {}).get("classes", ()))
        ):
            archive.parent.remove(archive)


def address() -> str:
    """Return the address of the site with a trailing slash, or "" if pyproject.toml doesn't contain it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    configured = str(project.get("urls", {}).get("documentation", ""))
    return configured.rstrip("/") + "/" if configured else ""


def let_images_wait(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Load a page's images lazily, except the first."""
    first, found, rest = context.get("body", "").partition("<img ")
    waiting = re.sub(r"<img (?![^>]*\bloading=)", '<img loading="lazy" ', rest)
    if found:
        context["body"] = first + found + waiting


def leave_viewport_to_theme(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Remove docutils' viewport. The theme's layout has one."""
    context["metatags"] = re.sub(r'<meta name="viewport"[^>]*>\s*', "", context.get("metatags", ""))


def tidy(app: Sphinx, error: Exception | None) -> None:
    """Remove unused files and write the sitemap."""
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    linked = {site / "_downloads" / name for _, name in app.env.dlfiles.values()}
    sources = (path for path in site.glob("_sources/**/*.*") if path.suffix != ".ipynb")  # keep the notebooks of lessons for download
    for path in (*site.rglob("*.map"), *sources, *{*site.glob("_downloads/*/*")} - linked):
        path.unlink()
    for lesson in site.glob("_sources/**/*.ipynb"):
        leave_pictures_out(lesson)
    if app.config.html_baseurl:
        pages = sorted(app.env.found_docs)
        (site / "sitemap.xml").write_text(sitemap([f"{app.config.html_baseurl}{page}.html" for page in pages]), encoding="utf-8")


def leave_pictures_out(lesson: Path) -> None:
    """Remove the pictures from a downloadable notebook. They are on the page, and running the notebook creates them again."""
    before = lesson.read_text(encoding="utf-8")
    notebook = json.loads(before)
    for cell in notebook["cells"]:
        if "outputs" in cell:
            cell["outputs"] = [output for output in cell["outputs"] if not PICTURES & output.get("data", {}).keys()]
    after = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if after != before:
        draft = lesson.with_name(f"{lesson.name}.new")
        draft.write_text(after, encoding="utf-8")
        draft.replace(lesson)


def sitemap(addresses: list[str]) -> str:
    """Return the sitemap for search engines."""
    lines = "".join(f"<url><loc>{html.escape(address)}</loc></url>\n" for address in addresses)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{lines}</urlset>\n'
