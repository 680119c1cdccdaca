"""docs/coverage.md says how far each topic goes: by what the pages of its row do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"/generated/gallery/": "gallery/{}.py", "/generated/benchmarks/": "benchmarks/{}.py", "/tutorials/": "tutorials/{}.md"}
SWEPT = {
    "/docs/support",
    "/docs/errors",
    "/docs/old_runtimes",
    "/docs/across_time",
    "/docs/converter",
}  # run and compared
LINK = re.compile(r"<(/[\w/]+)>")


def rows() -> list[list[str]]:
    """The cells of each row: the topic, its pages, whether they are executed, and how far they go."""
    lines = (ROOT / "docs/coverage.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return [row for row in cells if row[0] not in ("topic", "---")]


def depth_of(row: Sequence[str]) -> str:
    """Described, executed, or verified; and whether it is measured, and practised in exercises with solutions."""
    if row[2].startswith("no"):
        return "described"
    pages = LINK.findall(row[1])
    texts = [text for page in pages for text in _source(page)]
    verified = any(re.search(r"\b(verify|compare|sweep)\(", text) for text in texts) or SWEPT & set(pages)
    first = "verified" if verified else "executed"
    measured = ["measured"] if any(page.startswith("/generated/benchmarks/") for page in pages) else []
    practised = ["practised"] if any("## Check yourself" in text for text in texts) else []
    return ", ".join([first, *measured, *practised])


def _source(page: str) -> Iterator[str]:
    for start, path in SOURCES.items():
        if page.startswith(start):
            yield (ROOT / path.format(page.removeprefix(start))).read_text(encoding="utf-8")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_row_says_how_far_its_pages_go(row: list[str]) -> None:
    assert row[3] == depth_of(row)
