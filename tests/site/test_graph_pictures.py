"""Graphs in pages: a recipe's cell leaves SVG, and in Chromium a box says what is known of it, and the picture grows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import graph_pictures
import pytest
from docutils import nodes
from docutils.utils import new_document
from matplotlib import pyplot

from exportlab import show
from exportlab.show.svg import frame_drawing, render_tabs, svg

ROOT = Path(__file__).parents[2]
DRAWING = show.Drawing(
    (
        show.Node("a", "x", "input", "x\nf32[2]"),
        show.Node("b", "Relu", said="Relu\ny: f32[2]\nreturn x.relu()"),
        show.Node("c", "y", "output"),
    ),
    (show.Edge("a", "b"), show.Edge("b", "c")),
)


def page_of(body: str) -> str:
    style, script = ((ROOT / "docs/_static" / name).read_text(encoding="utf-8") for name in ("graphs.css", "graphs.js"))
    return f'<!doctype html><meta charset="utf-8"><style>{style}</style><body>{body}<script>{script}</script>'


@contextmanager
def in_chromium(path: Path, body: str) -> Iterator[Any]:
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium (Debian: apt install chromium)")
    path.write_text(page_of(body), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tutorials")
        from browser.chromium import opened
    with opened(path.as_uri()) as page:
        page.wait_for("document.readyState == 'complete'")
        yield page


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page with a graph, in Chromium."""
    with in_chromium(tmp_path_factory.mktemp("page") / "page.html", frame_drawing(DRAWING, "Three boxes")) as page:
        yield page


def test_a_cell_leaves_its_graph_and_other_figures_as_svg(tmp_path: Path) -> None:
    paths = iter([tmp_path / "one.png", tmp_path / "two.png"])
    DRAWING.draw("Three boxes")
    pyplot.figure().suptitle("a curve")
    made = graph_pictures.scrape((), {"image_path_iterator": SimpleNamespace(next=lambda: next(paths))}, {})
    assert made.startswith("\n.. raw:: html\n\n    ")
    assert all(line.startswith("    ") for line in made.splitlines() if line and line != ".. raw:: html")
    assert "return x.relu()</title>" in made
    assert 'class="drawn-figure" role="img" aria-label="a curve"' in made
    assert {path.name for path in tmp_path.iterdir()} == {"one.svg", "two.svg"}, "what thumbnails are made of"
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(("name", "drawn", "replaced"), [("a.svg", DRAWING, True), ("b.svg", None, False), ("c.png", None, False)])
def test_a_graph_that_a_notebook_stores_stands_in_the_page_itself(
    tmp_path: Path, name: str, drawn: show.Drawing | None, replaced: bool
) -> None:
    (tmp_path / name).write_text(svg(drawn) if drawn else "<svg/>", encoding="utf-8")
    document: Any = new_document("lesson")
    document += nodes.image(uri=f"/{name}")
    document.settings.env = SimpleNamespace(srcdir=tmp_path)
    graph_pictures.StoredGraphs(document).apply()
    (made,) = document.children
    assert isinstance(made, nodes.raw if replaced else nodes.image)
    assert not replaced or (graph_pictures.FRAME in made.astext() and "return x.relu()</title>" in made.astext())


@pytest.mark.parametrize(("body", "loaded"), [("<p>graph-frame</p>", 0), ('<div class="graph-frame">', 2)])
def test_the_script_is_loaded_where_a_graph_is(body: str, loaded: int) -> None:
    files: list[str] = []
    app: Any = SimpleNamespace(add_css_file=files.append, add_js_file=lambda name, **_: files.append(name))
    graph_pictures.add_viewer(app, "page", "page.html", {"body": body}, None)
    assert len(files) == loaded


def test_a_graph_wider_than_its_frame_starts_at_its_input_in_the_tab_that_is_opened_later_too(tmp_path: Path) -> None:
    ends = [show.Node(f"y{i}", f"a result with a long name {i}", "output") for i in range(6)]
    wide = show.Drawing((show.Node("x", "x", "input"), *ends), tuple(show.Edge("x", end.key) for end in ends))
    away = """(() => {{ const frame = document.querySelectorAll('.graph-frame')[{0}].getBoundingClientRect();
      const box = document.querySelectorAll('.graph-frame')[{0}].querySelector('g').getBoundingClientRect();
      return Math.abs(box.x + box.width / 2 - frame.x - frame.width / 2); }})()"""
    with in_chromium(tmp_path / "page.html", render_tabs({"one": DRAWING, "other": wide})) as page:
        page.evaluate("document.querySelectorAll('label')[1].click()")
        assert page.wait_for("document.querySelectorAll('.graph-frame')[1].scrollLeft") > 0
        assert page.evaluate(away.format(1)) < 2


def test_a_box_says_what_is_known_of_it_and_lights_its_arrows(tab: Any) -> None:
    tab.evaluate("document.querySelectorAll('svg g')[0].focus()")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowDown")
    assert tab.wait_for(
        "document.querySelector('.graph-said').textContent.startsWith('Relu') && document.querySelector('.graph-said').textContent"
    ) == ("Relu · y: f32[2] · return x.relu()")
    assert tab.evaluate("document.querySelectorAll('path.lit').length") == 2
    assert tab.evaluate("document.querySelectorAll('svg g[tabindex=\"0\"]').length") == 1


def test_the_picture_grows_by_key_by_button_and_by_pinch_and_fits_again(tab: Any) -> None:
    width = "document.querySelector('svg').getBoundingClientRect().width"
    first = tab.evaluate(width)
    tab.evaluate("document.querySelector('.graph-frame').focus()")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="+", text="+")
    tab.evaluate("document.querySelector('[aria-label=\"Zoom in\"]').click()")
    assert tab.evaluate(width) == pytest.approx(first * 1.25**2)
    wheel(tab, "ctrlKey: true")
    assert tab.evaluate(width) == pytest.approx(first * 1.25**2 * exp(0.5), rel=1e-3)
    wheel(tab, "ctrlKey: false")
    assert tab.evaluate(width) == pytest.approx(first * 1.25**2 * exp(0.5), rel=1e-3), "a wheel alone scrolls the page"
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="0", text="0")
    assert tab.evaluate(width) == pytest.approx(first)


def wheel(tab: Any, key: str) -> None:
    options = f"{{ deltaY: -100, bubbles: true, cancelable: true, {key} }}"
    tab.evaluate(f"document.querySelector('svg').dispatchEvent(new WheelEvent('wheel', {options}))")
