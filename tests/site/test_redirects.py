"""Old addresses lead to the pages that replace them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redirects

ROOT = Path(__file__).parents[2]


def app(folder: Path, pages: set[str]) -> Any:
    return SimpleNamespace(outdir=folder, builder=SimpleNamespace(format="html"), env=SimpleNamespace(found_docs=pages))


def test_an_old_address_leads_to_the_new_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redirects, "REDIRECTS", {"a/old": "b/new"})
    redirects.write_redirects(app(tmp_path, {"b/new"}), None)
    text = (tmp_path / "a/old.html").read_text()
    assert 'content="0; url=../b/new.html"' in text
    assert '<a href="../b/new.html">' in text


def test_an_old_address_can_lead_to_a_section() -> None:
    assert 'url=../new.html#part"' in redirects.redirect("a/old", "new#part")


def test_a_redirect_to_no_page_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redirects, "REDIRECTS", {"a/old": "b/new"})
    with pytest.raises(ValueError, match="a/old cannot lead to b/new"):
        redirects.write_redirects(app(tmp_path, {"a/old"}), None)
    assert list(tmp_path.iterdir()) == []


def test_no_old_address_is_that_of_a_page_that_is_made_today() -> None:
    import conf

    hidden = re.compile(conf.sphinx_gallery_conf["ignore_pattern"])
    sources = {re.sub("^generated/", "", old): old for old in redirects.REDIRECTS}
    made = [old for name, old in sources.items() for end in (".py", ".md") if (ROOT / f"{name}{end}").exists()]
    assert [old for old in made if not hidden.search(f"{old.rpartition('/')[2]}.py")] == []
