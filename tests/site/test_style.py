"""The style page has its pairs, and what stands there as before is on no page any more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("index.md", "README.md", "docs/**/*.md", "tutorials/*.md", "gallery/**/*.py", "benchmarks/*.py", "content/errors/*.py")
FEWEST = 12


def before() -> Iterator[str]:
    """Yield the left side of each pair."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| before | after |\n| --- | --- |\n")[2]
    for line in table.partition("\n\n")[0].splitlines():
        yield line.strip("| ").split(" | ")[0]


def plain(text: str) -> str:
    """Return text without its marks and line breaks."""
    return " ".join(re.sub(r"^# ?|[`*]", "", text, flags=re.MULTILINE).split())


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """What all pages say, by their place."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    return {path.relative_to(ROOT).as_posix(): plain(path.read_text(encoding="utf-8")) for path in sorted(found)}


def test_the_style_page_has_its_pairs() -> None:
    assert len({*before()}) >= FEWEST


@pytest.mark.parametrize("said", [*before()])
def test_what_was_rewritten_stands_on_no_page(said: str, pages: dict[str, str]) -> None:
    assert [name for name, text in pages.items() if plain(said) in text] == []
