"""Build the 404 page. A server shows it at any depth, so its links start at the address of the site."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

PAGE = "404"


def setup(app: Sphinx) -> dict[str, bool]:
    """Set the base of the page if the address of the site is configured."""
    app.connect("html-page-context", begin_at_the_site)
    return {"parallel_read_safe": True}


def begin_at_the_site(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Make the page's links and style sheets relative to `html_baseurl`."""
    if pagename == PAGE and app.config.html_baseurl:
        context["metatags"] = f'<base href="{app.config.html_baseurl.rstrip("/")}/">{context.get("metatags", "")}'
