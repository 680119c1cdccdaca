"""The page for addresses that are not there: a server shows it at any depth, so its links begin at the address of the site."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

PAGE = "404"


def setup(app: Sphinx) -> dict[str, bool]:
    """Give the page a base, where the address of the site is configured."""
    app.connect("html-page-context", begin_at_the_site)
    return {"parallel_read_safe": True}


def begin_at_the_site(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Let the page's links and style sheets begin at `html_baseurl`."""
    if pagename == PAGE and app.config.html_baseurl:
        context["metatags"] = f'<base href="{app.config.html_baseurl.rstrip("/")}/">{context.get("metatags", "")}'
