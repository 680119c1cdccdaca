"""What the head of a page says of it, and what is left out of the site."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import web_manners
from docutils.core import publish_doctree

BODY = '<img src="a.png"> <img src="b.png"> <img loading="eager" src="c.png">'


@pytest.fixture
def app(tmp_path: Path) -> Any:
    config = SimpleNamespace(project="Lab", html_baseurl="", html_static_path=["."])
    return SimpleNamespace(
        config=config, confdir=tmp_path, outdir=tmp_path, builder=SimpleNamespace(format="html"), env=SimpleNamespace(dlfiles={})
    )


def test_an_address_gives_a_list_of_pages(app: Any, tmp_path: Path) -> None:
    app.config.html_baseurl = "https://lab.example/"
    app.env.found_docs = {"index", "a/b"}
    web_manners.tidy(app, None)
    assert "<loc>https://lab.example/a/b.html</loc>" in (tmp_path / "sitemap.xml").read_text()


def test_all_images_but_the_first_wait_until_they_are_about_to_be_seen() -> None:
    context = {"body": BODY}
    web_manners.let_images_wait(None, "", "", context, None)  # type: ignore[arg-type]
    assert context["body"] == '<img src="a.png"> <img loading="lazy" src="b.png"> <img loading="eager" src="c.png">'


def test_a_page_has_one_viewport() -> None:
    context = {"metatags": '<meta name="viewport" content="width=device-width" />\n<meta name="a">'}
    web_manners.leave_viewport_to_theme(None, "", "", context, None)  # type: ignore[arg-type]
    assert context["metatags"] == '<meta name="a">'


def test_what_no_page_reads_is_removed_and_notebooks_stay(app: Any, tmp_path: Path) -> None:
    app.env.dlfiles["recipes/c.py"] = {"recipes/c"}, "1/c.py"
    for name in ("_static/a.js.map", "_static/a.js", "_sources/a.md.txt", "_sources/b.ipynb", "_downloads/1/c.py", "_downloads/2/c.zip"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"cells": []}')
    web_manners.tidy(app, None)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*") if path.is_file()}
    assert left == {"_static/a.js", "_sources/b.ipynb", "_downloads/1/c.py"}


def test_the_archive_of_a_recipe_is_left_out() -> None:
    link = ".. container:: sphx-glr-download sphx-glr-download-{0}\n\n   {0}\n\n"
    document = publish_doctree("".join(link.format(kind) for kind in ("jupyter", "python", "zip")))
    web_manners.NothingTwice(document).apply()
    assert document.astext().split() == ["jupyter", "python"]


def test_a_notebook_is_handed_out_without_the_pictures_that_its_page_shows(app: Any, tmp_path: Path) -> None:
    lesson = tmp_path / "_sources/tutorials/a.ipynb"
    lesson.parent.mkdir(parents=True)
    picture = {"output_type": "display_data", "data": {"image/png": "iVBO", "text/plain": ["<Figure>"]}, "metadata": {}}
    said = {"output_type": "stream", "name": "stdout", "text": ["1 – 2\n"]}
    shown = {"output_type": "execute_result", "data": {"text/html": ["<b>3</b>"]}, "metadata": {}, "execution_count": 1}
    code = {"cell_type": "code", "source": ["plot()"], "metadata": {}, "outputs": [picture, said, shown]}
    lesson.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# T"], "metadata": {}}, code]}))
    web_manners.tidy(app, None)
    words, run = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    assert words["source"] == ["# T"]
    assert run == {**code, "outputs": [said, shown]}
