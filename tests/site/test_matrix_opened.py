"""The page of the support matrix in Chromium, opened as a file: cells open, the search finds errors, and what a browser lacks is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import support_matrix as page
from swept import RECORDS, sweep_of

from content import zoo
from exportlab.sweep import page as swept

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def opened_as_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The table with its script, as a file, in Chromium."""
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium (Debian: apt install chromium)")
    folder = tmp_path_factory.mktemp("site")
    parts = page.parts(sweep_of(*RECORDS), zoo.cases())
    (folder / "_static").mkdir()
    (folder / "docs").mkdir()
    (folder / "_static" / page.DATA).write_text(parts[f"static/{page.DATA}"], encoding="utf-8")
    made = f'<!doctype html><meta charset="utf-8"><body>{parts["parts/matrix-table.html"]}<script>{swept.script()}</script>'
    (folder / "docs/support.html").write_text(made, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tutorials")
        from browser.chromium import opened
    with opened((folder / "docs/support.html").as_uri()) as tab:
        tab.wait_for("document.readyState == 'complete' && document.forms[0]?.hidden === false")
        yield tab


def test_a_cell_opens_its_panel_in_a_page_that_is_a_file(opened_as_file: Any) -> None:
    opened_as_file.evaluate("location.hash = 'cell=branch_on_value/dynamo/dynamic'")
    said = opened_as_file.wait_for("document.querySelector('#matrix-panel .said')?.textContent")
    assert said == "E: </script><!-- 1 < 2"
    assert "def branch_on_value" in opened_as_file.evaluate("document.querySelector('#matrix-panel .highlight').textContent")


@pytest.mark.parametrize(
    ("mode", "shown"), [("static", [["dynamo", 1]]), ("", [["torch.export", 1], ["to_onnx", 1], ["dynamo", 2], ["torchscript", 1]])]
)
def test_a_filter_by_mode_hides_exporters_without_it(mode: str, shown: list[list[Any]], opened_as_file: Any) -> None:
    opened_as_file.evaluate(f"location.hash = 'mode={mode}'")
    heads = "[...document.querySelectorAll('[scope=colgroup]')].filter((head) => head.offsetWidth)"
    assert (
        opened_as_file.wait_for(f"{heads}.length === {len(shown)} && {heads}.map((head) => [head.dataset.exporter, head.colSpan])") == shown
    )


def test_the_search_finds_an_error_in_a_page_that_is_a_file(opened_as_file: Any) -> None:
    search(opened_as_file, "<!-- 1")
    assert opened_as_file.wait_for("document.querySelector('output').textContent.startsWith('1 of')")
    assert opened_as_file.evaluate("[...document.querySelectorAll('tr[data-case]:not([hidden])')].map((row) => row.dataset.case)") == [
        "branch_on_value"
    ]


def test_a_browser_that_cannot_unpack_says_so(opened_as_file: Any) -> None:
    opened_as_file.evaluate("location.hash = ''")
    opened_as_file.call("Page.enable")
    opened_as_file.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    opened_as_file.call("Page.reload")
    opened_as_file.wait_for("document.readyState == 'complete' && !window.DecompressionStream && !document.forms[0].hidden")
    opened_as_file.evaluate("document.querySelector('[data-case=mlp] td.wrong').click()")
    assert "too old" in opened_as_file.wait_for("document.getElementById('matrix-panel').textContent")
    search(opened_as_file, "gemm")
    assert opened_as_file.wait_for("document.querySelector('output').textContent.includes('too old')")


def search(tab: Any, words: str) -> None:
    tab.evaluate(f"document.forms[0].elements.search.value = {json.dumps(words)}")
    tab.evaluate("document.forms[0].dispatchEvent(new Event('input'))")
