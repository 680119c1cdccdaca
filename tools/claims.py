"""Finds the sentences of pages that claim much (always, never, nobody, silently …), and prints those that no list says the proof of.

usage: claims.py      the list is tests/site/claims.csv
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jupytext
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

ROOT = Path(__file__).parent.parent
LISTED = ROOT / "tests" / "site" / "claims.csv"
PAGES = ("tutorials/*.md", "gallery/**/*.py", "docs/*.md", "docs/paths/*.md", "index.md", "README.md", "content/errors/*.py")
STRONG = re.compile(
    r"\b(always|never(?! saw\b| seen\b)|nobody|the only|only one|silent(?:ly)?|says nothing|no (?:error|warning)"
    r"|without (?:a word|an? (?:error|warning))|nothing (?:checks|warns|warned|is said|complain(?:s|ed))"
    r"|guarantee[sd]?|impossible|cannot|takes the same|no matter|at any (?:size|length|batch))\b",
    re.IGNORECASE,
)
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|#>:]|\d\.) ?)")
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[{\"(])")
FENCED = re.compile(r"^(`{3,}).*?^\1", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page in two parts: what it says, and what it runs."""

    prose: str
    code: str


@dataclass(frozen=True)
class Listed:
    """One line of the list: a sentence, as it stands on its page, and what shows that it is true."""

    page: str
    sentence: str
    kind: str
    proof: str


def read_page(path: Path) -> Page:
    """Return the prose and the code of a lesson, a recipe, a known error or a page."""
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "errors":
        return _docstrings_apart(ast.parse(text))
    if path.suffix == ".py":
        blocks = split_code_and_text_blocks(str(path))[1]
        return Page(*("\n\n".join(block.content for block in blocks if block.type == kind) for kind in ("text", "code")))
    if "{code-cell}" in text:
        cells = jupytext.reads(text, fmt="md:myst").cells
        return Page(*("\n\n".join(cell.source for cell in cells if cell.cell_type == kind) for kind in ("markdown", "code")))
    return Page(FENCED.sub("", text), "\n\n".join(block.group() for block in FENCED.finditer(text)))


def _docstrings_apart(module: ast.Module) -> Page:
    said = []
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and (docstring := ast.get_docstring(node)):
            said.append(docstring)
            node.body = node.body[1:] or [ast.Pass()]
    return Page("\n\n".join(said), ast.unparse(module))


def sentences(prose: str) -> Iterator[str]:
    """Yield the sentences of a page, items of lists and rows of tables for themselves, each on one line."""
    for paragraph in PARAGRAPH.split(prose):
        yield from SENTENCE.split(" ".join(paragraph.split()))


def claims(prose: str) -> list[str]:
    """Return the sentences that have a strong word."""
    return [sentence for sentence in sentences(prose) if STRONG.search(sentence)]


def pages() -> list[str]:
    """Return the paths of all pages with prose, from the root of the repository."""
    return sorted(path.relative_to(ROOT).as_posix() for pattern in PAGES for path in ROOT.glob(pattern))


def listed() -> list[Listed]:
    """Return the list."""
    with LISTED.open(encoding="utf-8", newline="") as file:
        return [Listed(**row) for row in csv.DictReader(file)]


def unlisted(page: str) -> list[str]:
    """Return the claims of a page that the list does not have."""
    known = {each.sentence for each in listed() if each.page == page}
    return [sentence for sentence in claims(read_page(ROOT / page).prose) if sentence not in known]


if __name__ == "__main__":
    for path in pages():
        for claim in unlisted(path):
            print(f"{path}: {claim}")
