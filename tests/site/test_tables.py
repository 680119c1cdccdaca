"""What the script of all pages does to tables and to code, in Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LONG = "an exporter that refuses the model, with a message"
PAGE = """<!doctype html><html><head><meta charset="utf-8"><link rel="stylesheet" href="tables_and_code.css"></head><body>
<main class="bd-main"><div class="bd-content"><div class="bd-article-container">
<table id="x"></table><table class="exportlab">{short}</table><table class="exportlab">{long}</table>
<div class="highlight"><pre>{code}</pre></div></div></div></main><script src="manners.js" defer></script></body></html>"""


def table(rows: list[list[str]]) -> str:
    head, *body = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f"<thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody>"


SHORT = table([["model", "ms", "by", "outcome"], *([f"m{row}", f"{row}.5", "1.2–3.4 x", "ok"] for row in range(4))])
PROSE = table([["name", "why", "where"], *([f"{row}", LONG, LONG] for row in range(4))])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tutorials")
        from browser.chromium import opened
        from browser.hosting import served
    folder = tmp_path_factory.mktemp("site")
    for name in ("manners.js", "tables_and_code.css"):
        shutil.copy(ROOT / "docs/_static" / name, folder)
    (folder / "index.html").write_text(PAGE.format(short=SHORT, long=PROSE, code="    x = 1  # " + "long " * 60))
    with served(folder) as root, opened(f"{root}index.html") as page:
        page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
        page.wait_for("document.querySelector('.folds') != null")
        yield page


def test_a_column_of_numbers_is_aligned_at_the_right(page: Any) -> None:
    assert page.evaluate("[...document.querySelectorAll('.compares tr:nth-child(3) .number')].map((cell) => cell.cellIndex)") == [1, 2]
    assert page.evaluate("getComputedStyle(document.querySelector('.compares tbody td.number')).textAlign") == "right"


def test_short_values_stay_beside_each_other_and_sentences_fold_on_a_phone(page: Any) -> None:
    assert page.evaluate("[...document.querySelectorAll('.exportlab')].map((table) => table.className)") == [
        "exportlab compares",
        "exportlab folds",
    ]
    assert page.evaluate("getComputedStyle(document.querySelector('.compares tbody td')).position") == "sticky"
    assert page.evaluate("document.querySelector('.folds tbody td:nth-child(2)').dataset.label") == "why"


def test_a_long_line_of_code_scrolls_by_the_keyboard(page: Any) -> None:
    assert (
        page.evaluate("(({scrollWidth, clientWidth, tabIndex}) => scrollWidth > clientWidth && tabIndex)(document.querySelector('pre'))")
        == 0
    )
    assert page.evaluate("getComputedStyle(document.querySelector('pre')).overflowX") == "auto"
