"""What the search finds a page by, and the sentence that it shows of a page. tools/check_search.py checks the ranking."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import search_page
from docutils import nodes
from docutils.utils import new_document
from error_box import wishes

from exportlab.errors import load_known_errors

ROOT = Path(__file__).parents[2]
LISTED = """<!doctype html><html data-content_root="./"><body><div id="search-results"></div>
<script>{script}</script><script>
const items = [["generated/gallery/a.html", ""], ["docs/api.html#f", "in API"], ["tutorials/101_b.html", ""]];
document.getElementById("search-results").innerHTML = "<ul class=search></ul>";
for (const [href, descr] of items) {{
  const item = document.createElement("li");
  item.innerHTML = `<a href="${{href}}">x</a>` + (descr && `<span>${{descr}}</span>`);
  document.querySelector("ul").append(item);
}}
</script></body></html>"""
PAGE = """<head><meta name="description" content="{description}"></head><main><article>
<div class="sphx-glr-download-link-note admonition note"><p>Go to the end to download the fp16 example.</p></div>
<table><tr><td>fp16</td><td>fp16 refused.</td></tr></table><pre>fp16 = "float16."</pre>{prose}</article></main>"""
SHOWN = "[...document.querySelectorAll('li')].map((item) => item.textContent)"


def metadata_of(page: str) -> dict[str, str]:
    document = new_document("")
    document.settings.env = SimpleNamespace(docname=page, note_dependency=lambda _: None)
    search_page.PageMetadata(document).apply()
    return {meta["name"]: meta["content"] for meta in document.findall(nodes.meta)}


def test_a_page_has_the_words_that_readers_type_for_it() -> None:
    found = metadata_of("tutorials/210_half_precision")["keywords"].split(", ")
    assert {"fp16", "mixed", "precision"} <= set(found), "Sphinx takes what stands between commas for one word"
    assert metadata_of("docs/api") == {}


def test_a_page_of_an_error_is_described_by_its_cause_and_its_fix() -> None:
    said = metadata_of("generated/errors/branch_on_value")["description"]
    assert said == "An if that depends on a tensor's values is data-dependent control flow. Fix: Use torch.where."
    described = [search_page.describe_error(error.name) for error in load_known_errors()]
    assert [text for text in described if "`" in text or "{doc}" in text] == []


def test_the_ranking_reads_patterns_and_wishes() -> None:
    first, second, *_ = search_page.scorer().split(";\n")
    assert len(json.loads(first.removeprefix("const knownErrors = "))) == len(load_known_errors())
    assert set(json.loads(second.removeprefix("const wishes = "))) == set(wishes())


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The three results of a search for fp16: a recipe with the word in its prose, an object of the API, a lesson without the word."""
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium")
    monkeypatch.syspath_prepend(ROOT / "tutorials")
    from browser.chromium import opened
    from browser.hosting import served

    script = (ROOT / "docs/_static/search_results.js").read_text(encoding="utf-8")
    pages = {
        "search.html": LISTED.format(script=script),
        "generated/gallery/a.html": PAGE.format(
            description="A recipe.", prose="<p>It is short. The model has half the bytes in fp16. More.</p>"
        ),
        "tutorials/101_b.html": PAGE.format(
            description="You will export a model. You need the ver...", prose="<p>There is nothing on it here.</p>"
        ),
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with served(tmp_path) as root, opened(f"{root}search.html?q=fp16") as page:
        page.wait_for("document.querySelectorAll('.context').length == 2")
        found: list[str] = page.evaluate(SHOWN)
    return found


def test_a_result_shows_a_whole_sentence_with_the_word_else_the_description(shown: list[str]) -> None:
    assert shown == [
        "RecipexThe model has half the bytes in fp16.",
        "Docsxin API",
        "LessonxYou will export a model.",
    ]
