"""Where the pages of the site are, for what is read away from it."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message

import pytest

from exportlab import site

PAGE = "generated/errors/branch_on_value.html"


@pytest.fixture(autouse=True)
def asked_again() -> Iterator[None]:
    site.base.cache_clear()
    yield
    site.base.cache_clear()


def configured(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    about = Message()
    for address in addresses:
        about["Project-URL"] = address
    monkeypatch.setattr(site, "metadata", {"exportlab": about}.__getitem__)


@pytest.mark.parametrize("given", ["https://lab.example/book", "https://lab.example/book/"])
def test_a_page_has_an_address_where_the_site_has_one(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    configured(monkeypatch, "Source, https://code.example", f"Documentation, {given}")
    assert site.address(PAGE) == f"https://lab.example/book/{PAGE}"


def test_a_page_is_named_where_the_site_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(monkeypatch)
    assert site.address(PAGE) == ""
    assert site.words(PAGE) == "docs page errors/branch_on_value"


def test_a_checkout_that_is_not_installed_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Message:
        raise site.PackageNotFoundError(name)

    monkeypatch.setattr(site, "metadata", missing)
    assert site.address(PAGE) == ""
