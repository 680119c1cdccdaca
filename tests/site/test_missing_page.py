"""The page for addresses that are not there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import missing_page
import pytest


def context_of(page: str, address: str) -> dict[str, Any]:
    context: dict[str, Any] = {"metatags": "<meta>"}
    missing_page.begin_at_the_site(SimpleNamespace(config=SimpleNamespace(html_baseurl=address)), page, "page.html", context, None)
    return context


def test_it_begins_at_the_address_of_the_site() -> None:
    assert context_of("404", "https://example.org/lab")["metatags"] == '<base href="https://example.org/lab/"><meta>'


@pytest.mark.parametrize(("page", "address"), [("index", "https://example.org/lab"), ("404", "")])
def test_other_pages_and_sites_without_address_stay_as_they_are(page: str, address: str) -> None:
    assert context_of(page, address)["metatags"] == "<meta>"
