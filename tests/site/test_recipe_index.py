"""The index of recipes and its sidebar: each recipe once, with its answer, its filters and a thumbnail from its page."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest
import recipe_index
from docutils import nodes
from recipe_answers import read_answer
from recipe_thumbnails import render_thumbnail
from site_files import ROOT

GALLERY = ROOT / "gallery"
SCRIPTS = sorted(GALLERY.rglob("*.py"))
CHAPTERS = {"contributing", "torch_export", "torch_onnx"}
TABLE = (
    '<table class="exportlab"><thead><tr><th>exporter</th><th>outcome</th></tr></thead><tbody>'
    '<tr><td class=short>dynamo</td><td class=short style="x">frozen</td></tr>'
    '<tr><td class=short>to_onnx</td><td class=short style="x">{}</td></tr></tbody></table>'
)
NODE = '<g class="op"><title>a node</title><text>{}</text></g>'
GRAPH = f'<svg class="drawn-graph"><g class="input"><text>x</text></g>{NODE.format("Conv")}{NODE.format("Relu")}</svg>'


def rows() -> list[dict[str, str]]:
    with recipe_index.TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read(name: str) -> recipe_index.Recipe:
    (row,) = (row for row in rows() if row["name"] == name)
    return recipe_index.read(row, recipe_index.find_scripts()[name], "")


def test_each_recipe_is_in_one_group() -> None:
    assert Counter(row["name"] for row in rows()) == Counter(script.stem for script in SCRIPTS)
    assert len(recipe_index.read_table()) == len({row["group"] for row in rows()})  # the rows of a group follow each other


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["name"])
def test_a_row_has_a_short_label_and_known_filters(row: dict[str, str]) -> None:
    assert 1 <= len(row["label"].split()) <= 5
    for facet, (_, tags) in recipe_index.FACETS.items():
        assert set(row[facet].split()) <= set(tags)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_index_has_the_answer_of_the_page(script: Path) -> None:
    recipe = read(script.stem)
    assert recipe.answer == read_answer(script.read_text(encoding="utf-8"))
    assert recipe.page == f"{script.parent.name}/{script.stem}.html"


def test_a_row_is_a_link_with_an_answer_and_its_filters() -> None:
    recipe = recipe_index.Recipe("An ``if`` & more", "a.html", "It *is*.", "", ("api=to_onnx", "symptom=wrong"), "<ul></ul>")
    assert recipe_index.render_row(recipe) == (
        '<li data-tags="api=to_onnx symptom=wrong"><div><a href="a.html">An <code>if</code> &amp; more</a>'
        "<p>It <em>is</em>.</p></div><ul></ul></li>"
    )


def test_the_filter_is_hidden_without_javascript() -> None:
    chips = recipe_index.render_filter()
    assert "<noscript><style>.recipe-filter { display: none }" in chips
    assert chips.count("<button") == sum(len(tags) for _, tags in recipe_index.FACETS.values())


def test_a_thumbnail_shows_the_first_outcomes_if_they_differ() -> None:
    shown = render_thumbnail(TABLE.format("ok") + GRAPH)
    assert "torch.onnx.export <b>frozen</b>" in shown
    assert "to_onnx <b>ok</b>" in shown


def test_a_thumbnail_shows_the_nodes_of_a_small_graph_else() -> None:
    assert "<li>Conv</li><li>Relu</li>" in render_thumbnail(TABLE.format("frozen") + GRAPH)
    assert render_thumbnail(GRAPH.replace("</svg>", NODE.format("Add") * 3 + "</svg>")) == ""
    assert render_thumbnail("a page without figures") == ""


def test_a_chapter_has_the_groups_of_its_own_recipes() -> None:
    (section,) = recipe_index.groups({"template": read("template")})
    assert next(section.findall(nodes.title)).astext() == "Write a recipe"
    assert 'href="contributing/template.html"' in section.astext()


def test_the_pages_follow_each_other_in_the_order_of_the_index() -> None:
    tree = recipe_index.list_pages(recipe_index.find_scripts())
    assert [page.rpartition("/")[2] for page in tree["includefiles"]] == [row["name"] for row in rows()]
    assert {page.split("/")[2] for page in tree["includefiles"]} == CHAPTERS


def test_the_sidebar_opens_the_group_of_the_page() -> None:
    groups = list(recipe_index.render_sidebar("generated/gallery/torch_onnx/cond", lambda page: f"../{page}.html"))
    (opened,) = (group for group in groups if "<details open>" in group)
    assert "<summary>Models that fail to export</summary>" in opened
    assert 'href="../generated/gallery/torch_onnx/cond.html" aria-current="page">if on a value</a>' in opened
    assert len(groups) == len(recipe_index.read_table())


def test_the_filter_shows_matching_rows_and_stores_the_choice_in_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium")
    monkeypatch.syspath_prepend(ROOT / "tutorials")
    from browser.chromium import opened
    from browser.hosting import served

    shown = [recipe_index.Recipe(name, "a.html", "It is.", "", tags) for name, tags in (("A", ("api=to_onnx",)), ("B", ("symptom=wrong",)))]
    shutil.copy(ROOT / "docs/_static/recipe_index.js", tmp_path)
    group = f'<section class="recipe-group">{recipe_index.render_list(shown)}</section>'
    (tmp_path / "index.html").write_text(f'<!doctype html>{recipe_index.render_filter()}{group}<script src="recipe_index.js"></script>')
    count = "document.querySelectorAll('.recipe-list li:not([hidden])').length"
    with served(tmp_path) as root, opened(f"{root}index.html#symptom=wrong") as page:
        page.wait_for("document.querySelector('.recipe-count').textContent == '1 of 2 recipes'")
        page.evaluate("document.querySelector('[data-tag=to_onnx]').click()")
        assert page.evaluate(count) == 0
        assert page.evaluate("document.querySelector('.recipe-group').hidden")
        assert page.evaluate("location.hash") == "#symptom=wrong&api=to_onnx"
        page.evaluate("document.querySelector('[data-tag=wrong]').click()")
        assert page.evaluate(count) == 1
        assert page.evaluate("document.querySelector('[data-tag=to_onnx]').getAttribute('aria-pressed')") == "true"
