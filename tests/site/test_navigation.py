"""The menu and the sidebars: their names are the titles of the pages, and no page is listed twice or left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOCTREE = re.compile(r"^```\{toctree\}\n(?::.*\n)*\n([^`]*)```", re.MULTILINE)
ENTRY = re.compile(r"(?:(?P<name>.*) <)?(?P<page>[^<>]+)>?")
TITLED = {"generated/gallery/index": "gallery/GALLERY_HEADER.rst", "generated/benchmarks/index": "benchmarks/GALLERY_HEADER.rst"}


def listed(text: str) -> list[tuple[str | None, str]]:
    """The entries of a page's lists of pages: a name, if there is one, and the page."""
    lines = [line for body in TOCTREE.findall((ROOT / text).read_text(encoding="utf-8")) for line in body.split("\n") if line]
    return [(found["name"], found["page"]) for found in map(ENTRY.fullmatch, lines) if found]


def title_of(page: str) -> str:
    """The title in a page's source."""
    first = (ROOT / TITLED.get(page, f"{page}.md")).read_text(encoding="utf-8").splitlines()[0]
    return first.removeprefix("# ")


def test_the_menu_has_the_titles_of_its_pages() -> None:
    menu = listed("index.md")
    assert [name for name, _ in menu] == ["Lessons", "Recipes", "Fix an error", "Support", "Benchmarks", "Docs"]
    assert [title_of(page) for _, page in menu] == [name for name, _ in menu]


def test_every_page_of_the_docs_is_in_one_list() -> None:
    pages = [page.strip("/") for text in ("docs/reference.md", "docs/errors.md", "docs/support.md") for _, page in listed(text)]
    menu = {page.removeprefix("docs/") for _, page in listed("index.md")}
    assert sorted(pages) == sorted([*({path.stem for path in (ROOT / "docs").glob("*.md")} - menu), "CONTRIBUTING", "CHANGELOG"])


def test_the_docs_are_described_in_the_order_of_the_sidebar() -> None:
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    assert re.findall(r"^- \{doc\}`(.*?)`", text, re.MULTILINE) == [page for _, page in listed("docs/reference.md")]


def test_the_lessons_are_listed_in_the_order_of_their_cards() -> None:
    text = (ROOT / "tutorials/index.md").read_text(encoding="utf-8")
    assert re.findall(r"^:link: (\w+)$", text, re.MULTILINE) == [page for _, page in listed("tutorials/index.md")]


@pytest.mark.parametrize("pages", [("support", "atlas"), ("errors", "doctor")])
def test_tabs_lead_to_the_other_page(pages: tuple[str, str]) -> None:
    for page in pages:
        tabs = re.search(r'<nav class="page-tabs".*</nav>', (ROOT / f"docs/{page}.md").read_text(encoding="utf-8"))
        assert tabs is not None
        assert re.findall(r'href="(\w+)\.html"', tabs[0]) == list(pages)
        assert re.findall(r'href="(\w+)\.html" aria-current="page"', tabs[0]) == [page]
