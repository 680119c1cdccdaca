"""Link to pages of the site from elsewhere: by URL if it is known, otherwise by name.

The URL is the project's documentation URL in pyproject.toml. After a change, any target of the Makefile installs it:

    [project.urls]
    documentation = "https://exportlab.example/"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

LABELS = ("documentation", "docs")  # labels that the package index recognises for this URL


@cache
def base() -> str:
    """Return the URL of the site with a trailing slash; empty if none is configured."""
    try:
        named = [line.partition(", ") for line in metadata("exportlab").get_all("Project-URL") or ()]
    except PackageNotFoundError:  # run from a checkout
        return ""
    found = next((address for label, _, address in named if label.lower() in LABELS), "")
    return f"{found.rstrip('/')}/" if found else ""


def address(page: str) -> str:
    """Return the URL of a page, given as `generated/errors/NAME.html`; empty if the site's URL is not known."""
    return base() and base() + page


def words(page: str) -> str:
    """Return the name of a page for text without links: `docs page errors/NAME`."""
    return f"docs page {page.removeprefix('generated/').removesuffix('.html')}"
