"""Each sentence of a page with a strong word (always, never, silently …) is in claims.csv, with the cell or the test that proves it."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("tutorials/*.md", "gallery/**/*.py", "docs/*.md", "index.md", "README.md", "content/errors/*.py")
STRONG = re.compile(
    r"\b(always|never(?! saw\b| seen\b)|nobody|the only|only one|silent(?:ly)?|says nothing|no (?:error|warning)|guarantee[sd]?|impossible"
    r"|cannot|without (?:a word|an? (?:error|warning))|nothing (?:checks|warns|warned|is said|complain(?:s|ed))|takes the same|no matter"
    r"|at any (?:size|length|batch))\b",
    re.IGNORECASE,
)
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|#>:]|\d\.) ?)")
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[{\"(])")
FENCED = re.compile(r"^(`{3,}).*?^\1", re.DOTALL | re.MULTILINE)


def prose(path: Path) -> str:
    """The text of a page without its code: of Python, docstrings and comments that begin a line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return FENCED.sub("", text)
    holders = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef))
    comments = "\n".join(line.removeprefix("# ") if line.startswith("# ") and line != "# %%" else "" for line in text.splitlines())
    return "\n\n".join([*(ast.get_docstring(node) or "" for node in holders), comments])


def claims() -> Iterator[tuple[str, str]]:
    for path in (path for pattern in PAGES for path in sorted(ROOT.glob(pattern))):
        for paragraph in PARAGRAPH.split(prose(path)):
            for sentence in SENTENCE.split(" ".join(paragraph.split())):
                if STRONG.search(sentence):
                    yield path.relative_to(ROOT).as_posix(), sentence


def is_defined(proof: str) -> bool:
    """Whether the cell of a page, or the test, is there: `page#code` or `file::test`."""
    path, _, code = proof.replace("::", "#def ").partition("#")
    return bool(code) and (ROOT / path).is_file() and code in (ROOT / path).read_text(encoding="utf-8")


def test_strong_claims_and_their_proofs() -> None:
    with (ROOT / "tests/site/claims.csv").open(encoding="utf-8", newline="") as file:
        listed = {(row["page"], row["sentence"]): row for row in csv.DictReader(file)}
    found = set(claims())
    assert sorted(found - listed.keys()) == [], "say less, or list the sentence in claims.csv with the cell or the test that proves it"
    assert sorted(listed.keys() - found) == [], "on its page no more: take it out of claims.csv"
    assert [row for row in listed.values() if row["kind"] == "proved" and not is_defined(row["proof"])] == []
