"""What the web expects of a page: an address, a card for links, images that wait, and no files that nobody reads."""

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
PICTURES = {"image/png", "image/jpeg"}  # in a notebook each is text, a third longer than its file


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the metadata to each page, and tidy up behind the last."""
    app.config.html_baseurl = app.config.ogp_site_url = app.config.html_baseurl or address()
    has_card = any((Path(app.confdir) / folder / CARD).is_file() for folder in app.config.html_static_path)
    app.config.ogp_image = f"_static/{CARD}" if has_card and app.config.html_baseurl else None
    app.connect("html-page-context", let_images_wait)
    app.connect("build-finished", tidy)
    app.add_transform(NothingTwice)
    app.add_css_file("tables_and_code.css", priority=850)  # after those of the theme and of sphinx-gallery
    app.add_js_file("manners.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}


class NothingTwice(SphinxTransform):
    """Leave out the archive that sphinx-gallery links on a recipe's page: it holds the script and the notebook, linked beside it."""

    default_priority = 100  # before the files to hand out are collected

    def apply(self, **options: Any) -> None:
        """Do it, where a page has one; the links in the margin are made of those that are left."""
        for archive in list(
            self.document.findall(lambda node: "sphx-glr-download-zip" in getattr(node, "attributes", {}).get("classes", ()))
        ):
            archive.parent.remove(archive)


def address() -> str:
    """Return where the site will be, with a slash at its end; nothing where pyproject.toml does not say it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    configured = str(project.get("urls", {}).get("documentation", ""))
    return configured.rstrip("/") + "/" if configured else ""


def let_images_wait(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Load a page's images when they are about to be seen, all but its first."""
    first, found, rest = context.get("body", "").partition("<img ")
    waiting = re.sub(r"<img (?![^>]*\bloading=)", '<img loading="lazy" ', rest)
    if found:
        context["body"] = first + found + waiting


def tidy(app: Sphinx, error: Exception | None) -> None:
    """Remove what no page reads, and write the list of pages."""
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    linked = {site / "_downloads" / name for _, name in app.env.dlfiles.values()}
    sources = (path for path in site.glob("_sources/**/*.*") if path.suffix != ".ipynb")  # a lesson's notebook is downloaded
    for path in (*site.rglob("*.map"), *sources, *{*site.glob("_downloads/*/*")} - linked):
        path.unlink()
    for lesson in site.glob("_sources/**/*.ipynb"):
        leave_pictures_out(lesson)
    if app.config.html_baseurl:
        pages = sorted(app.env.found_docs)
        (site / "sitemap.xml").write_text(sitemap([f"{app.config.html_baseurl}{page}.html" for page in pages]), encoding="utf-8")


def leave_pictures_out(lesson: Path) -> None:
    """Take the pictures out of a notebook that is handed out: its page shows them, and whoever runs it sees them again."""
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
    """Return the list of pages as search engines read it."""
    lines = "".join(f"<url><loc>{html.escape(address)}</loc></url>\n" for address in addresses)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{lines}</urlset>\n'
