"""What the site does to generated pages. Not here: links, which check_links follows, nor the page of the matrix."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tutorials").glob("*.md")]
PRINTED = """\
.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    a_b is faster.

    - by 2x

    Full run.




"""
PICTURE = ".. image-sg:: /a.png\n   :alt: A\n\n\n"
CODE = ".. code-block:: Python\n\n\n    print('a')\n\n\n"
PAGE = "Which is faster?\n================\n\nTwo are timed.\n\n{cell}.. GENERATED FROM PYTHON SOURCE LINES 9-9\n\nMore\n----\n"


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    monkeypatch.delitem(sys.modules, "pages", raising=False)
    return import_module("pages")


def shown(pages: ModuleType, page: str, text: str) -> str:
    source = [text]
    pages.finding_first(None, page, source)
    return source[0]


@pytest.mark.parametrize("picture", [PICTURE, ""])
def test_a_benchmark_begins_with_its_finding(pages: ModuleType, picture: str) -> None:
    lines = [line for line in shown(pages, "generated/benchmarks/a", PAGE.format(cell=CODE + picture + PRINTED)).splitlines() if line]
    finding = [".. rst-class:: finding", r"a\_b is faster.", "- by 2x", "Full run."]
    drawn = [line for line in picture.splitlines() if line]
    code = [".. code-block:: Python", "    print('a')", ".. GENERATED FROM PYTHON SOURCE LINES 9-9", "More", "----"]
    assert lines == ["Which is faster?", "=" * 16, *finding, *drawn, "Two are timed.", *code]


def test_other_pages_stay_as_they_are(pages: ModuleType) -> None:
    recipe = PAGE.format(cell=CODE + PRINTED)
    assert shown(pages, "generated/gallery/a", recipe) == recipe
    silent = PAGE.format(cell=CODE)
    assert shown(pages, "generated/benchmarks/index", silent) == silent


def linked(text: Path) -> list[str]:
    """The pages that a text links to, by their paths in the repository."""
    targets = re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text.read_text(encoding="utf-8"))
    pages = (ROOT / target[1:] if target.startswith("/") else text.parent / target for target in targets)
    return [os.path.relpath(page, ROOT) for page in pages]


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_every_page_that_a_text_links_to_has_a_source(text: Path) -> None:
    sources = {page: page.removeprefix("generated/") for page in linked(text) if not page.endswith("/index")}
    assert [page for page, source in sources.items() if not any((ROOT / f"{source}{end}").exists() for end in (".md", ".py"))] == []


def test_the_paths_say_the_minutes_that_the_lessons_say() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/paths").glob("*.md"))
    said = re.findall(r"</tutorials/(\w+)>`,\s(\d+) minutes", pages)
    assert said
    for lesson, minutes in said:
        assert f"**Time** {minutes} minutes" in " ".join((ROOT / f"tutorials/{lesson}.md").read_text(encoding="utf-8").split()), lesson
