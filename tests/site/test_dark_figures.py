"""In the dark theme no figure of a page is a white box: neither what a recipe or benchmark draws, nor what a lesson stores."""

from __future__ import annotations

import base64
import io
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot
from PIL import Image

from exportlab.show.themed import DARK, render_themed_svg

ROOT = Path(__file__).parents[2]
PALE = 160  # of 255: the page has 30, its text 200
PAGE = """<!doctype html><html data-theme="dark"><meta charset="utf-8"><style>{style}
  html {{ background: {dark}; color: #ced6dd; }} body {{ margin: 0; }} svg, img {{ width: 480px; height: 360px; }}</style>
  <body><main class="bd-content">{figure}</main>"""


@pytest.fixture
def figure() -> Iterator[Any]:
    made, axes = pyplot.subplots(figsize=(4, 3))
    axes.plot([1, 2], [1, 2], color="black")
    axes.set_title("a line")
    yield made
    pyplot.close(made)


def dots(figure: Any) -> str:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    return f'<div class="cell_output"><img CLASS src="data:image/png;base64,{base64.b64encode(drawn.getvalue()).decode()}"></div>'


def pale_share(figure: str, folder: Path) -> float:
    """How much of the figure is nearly white in Chromium, and whether there is anything to see."""
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium (Debian: apt install chromium)")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tutorials")
        from browser.chromium import opened
    style = (ROOT / "docs/_static/tables_and_code.css").read_text(encoding="utf-8")
    page = folder / "page.html"
    page.write_text(PAGE.format(style=style, dark=DARK, figure=figure), encoding="utf-8")
    with opened(page.as_uri()) as tab:
        tab.wait_for("document.readyState == 'complete' && [...document.images].every(it => it.complete)")
        with Image.open(io.BytesIO(tab.screenshot())) as seen:
            grey = seen.convert("L").crop((0, 0, 480, 360)).histogram()
    return sum(grey[PALE:]) / sum(grey)


def test_a_figure_of_a_recipe_has_the_page_behind_it_and_is_seen(figure: Any, tmp_path: Path) -> None:
    assert 0.002 < pale_share(render_themed_svg(figure, "a"), tmp_path) < 0.1


def test_a_figure_that_a_lesson_stores_has_the_page_behind_it_and_is_seen(figure: Any, tmp_path: Path) -> None:
    assert 0.002 < pale_share(dots(figure).replace("CLASS", ""), tmp_path) < 0.1


def test_what_is_a_photograph_stays_as_it_was_taken(figure: Any, tmp_path: Path) -> None:
    assert pale_share(dots(figure).replace("CLASS", 'class="photo"'), tmp_path) > 0.8


def test_every_figure_of_a_recipe_is_drawn_for_both_themes() -> None:
    settings = runpy.run_path(str(Path(__file__).parents[2] / "conf.py"))
    assert settings["sphinx_gallery_conf"]["image_scrapers"] == ("graph_pictures.scrape",)
