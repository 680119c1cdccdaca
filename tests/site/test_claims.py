"""Strong claims of pages are listed, with the cell or the test that shows them; each comparison says whose exporter is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from claims import ROOT, Listed, claims, listed, pages, read_page, unlisted

KINDS = {"proved", "definition", "instruction"}
OURS = "`to_onnx` is this site's own exporter, so check what is said of it here on a model of your own."
ADVICE = "say it with less, or list it in tests/site/claims.csv with the cell or the test that proves it"
COMPARED = [page for page in pages() if page.startswith(("tutorials", "gallery")) and "compare(" in read_page(ROOT / page).code]


def in_words(text: str) -> str:
    """The text on one line, in the marks of Markdown."""
    return " ".join(text.replace("``", "`").split())


def defined(proof: str) -> bool:
    """Whether a cell of a page, or a test, is where `page#code` or `file::test` says."""
    page, _, code = proof.partition("#")
    if code:
        return (ROOT / page).exists() and code in read_page(ROOT / page).code
    file, _, test = proof.partition("::")
    return bool(test) and (ROOT / file).exists() and f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", pages())
def test_what_a_page_claims_is_listed(page: str) -> None:
    assert unlisted(page) == [], ADVICE


@pytest.mark.parametrize("line", listed(), ids=lambda line: f"{Path(line.page).stem}: {line.sentence[:40]}")
def test_a_listed_claim_stands_on_its_page_and_has_its_proof(line: Listed) -> None:
    assert line.sentence in claims(read_page(ROOT / line.page).prose), "it is on its page no more: take it out of the list"
    assert line.kind in KINDS
    assert defined(line.proof) if line.kind == "proved" else not line.proof


def test_a_claim_is_found_wherever_it_stands() -> None:
    prose = "It works.\nA guard\nis never checked. Sizes that it never saw.\n\n- nobody warns\n| a | cannot |"
    assert claims(prose) == ["A guard is never checked.", "- nobody warns", "| a | cannot |"]


def test_a_proof_that_is_gone_is_none() -> None:
    assert defined("tests/site/test_claims.py::test_a_proof_that_is_gone_is_none")
    assert not any(map(defined, ("tests/site/test_claims.py", "tests/site/test_claims.py::test_gone", "index.md#no such code")))


@pytest.mark.parametrize("page", COMPARED)
def test_a_comparison_says_whose_exporter_is_in_it(page: str) -> None:
    assert in_words(read_page(ROOT / page).prose).count(OURS) == 1
