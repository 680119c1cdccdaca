"""Where the pages of the site are, for what is read away from it: by address where one is known, by name elsewhere.

The address is that of the project's documentation, in pyproject.toml, which any target of the Makefile then installs again:

    [project.urls]
    documentation = "https://exportlab.example/"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

LABELS = ("documentation", "docs")  # of an address, as the index of packages knows them


@cache
def base() -> str:
    """Return the address of the site, with a slash at its end; empty where none is configured."""
    try:
        named = [line.partition(", ") for line in metadata("exportlab").get_all("Project-URL") or ()]
    except PackageNotFoundError:  # run from a checkout
        return ""
    found = next((address for label, _, address in named if label.lower() in LABELS), "")
    return f"{found.rstrip('/')}/" if found else ""


def address(page: str) -> str:
    """Return the address of a page, given as `generated/errors/NAME.html`; empty where that of the site is not known."""
    return base() and base() + page


def words(page: str) -> str:
    """Return how a page is named where there is no link to it: `docs page errors/NAME`."""
    return f"docs page {page.removeprefix('generated/').removesuffix('.html')}"
