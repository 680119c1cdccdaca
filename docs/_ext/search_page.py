"""Make the search find a page by what readers type, and describe error pages by their cause. docs/scorer.js ranks the results."""

from __future__ import annotations

import json
import re
from typing import Any

from docutils import nodes
from error_box import WISHES, wishes
from gallery_pages import BEFORE_THE_GALLERY
from site_files import GENERATED, ROOT, write
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from exportlab.errors import get, load_known_errors

ERRORS = "generated/errors/"
MARKUP = re.compile(r"\{\w+\}`([^`<]*?)(?:\s*<[^`]*>)?`|[`*]")  # roles and marks of MyST


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the metadata, and show sentences in the results instead of the text around a word."""
    app.config.html_show_search_summary = False
    app.connect("builder-inited", lambda _: write(GENERATED / "scorer.js", scorer()), priority=BEFORE_THE_GALLERY)
    app.add_transform(PageMetadata)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}


def scorer() -> str:
    """Return the script that ranks the results, with the patterns of errors and what readers type."""
    known = {f"{ERRORS}{error.name}": error.message for error in load_known_errors()}
    data = f"const knownErrors = {json.dumps(known, indent=0)};\nconst wishes = {json.dumps(wishes(), indent=0)};\n"
    return data + (ROOT / "docs/scorer.js").read_text(encoding="utf-8")


def add_files(app: Sphinx, page: str, *_: Any) -> None:
    """Add the script and the style of the results to the page of the search."""
    if page == "search":
        app.add_css_file("search_results.css")
        app.add_js_file("search_results.js", loading_method="defer")


class PageMetadata(SphinxTransform):
    """Add keywords to the pages of wishes.csv, and a description to the pages of errors."""

    default_priority = 100

    def apply(self, **options: Any) -> None:
        """Add both as meta elements."""
        page = self.env.docname
        self.env.note_dependency(str(WISHES))
        if wished := wishes().get(page):
            self.document.append(nodes.meta(name="keywords", content=", ".join(keywords(wished))))
        if page.startswith(ERRORS):
            self.document.append(nodes.meta(name="description", content=describe_error(page.removeprefix(ERRORS))))


def keywords(wished: tuple[str, ...]) -> list[str]:
    """Return the words of these wishes. Sphinx indexes each keyword as a word."""
    return list(dict.fromkeys(word for wish in wished for word in wish.split()))


def describe_error(name: str) -> str:
    """Return the first sentence of an error's cause, and its first fix."""
    error = get(name)
    cause = re.split(r"(?<=[.!?])\s", error.why, maxsplit=1)[0]
    return " ".join(MARKUP.sub(r"\1", f"{cause} Fix: {error.fixes[0].name}.").split())
