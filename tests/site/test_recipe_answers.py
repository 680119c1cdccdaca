"""A recipe opens with its answer and with code that runs; asserts and the code of figures stay out of the way."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import indent

import get_it
import pytest
import recipe_answers
from docutils import nodes
from recipe_answers import read_answer, read_snippet, remove_asserts
from site_files import ROOT

SCRIPTS = sorted((ROOT / "gallery").rglob("*.py"))
LINES = range(2, 10)
CODE = """
x = 1
for y in (1, 2):
    assert y
for y in (1, 2):
    assert y > 0
    print(y)


def check(z):
    assert z


assert x
x
"""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_recipe_opens_with_a_short_answer(script: Path) -> None:
    answer = read_answer(script.read_text(encoding="utf-8"))
    assert 60 < len(answer) < 200
    assert answer.endswith(".")
    assert 1 <= answer.count(". ") + 1 <= 2
    assert ":doc:" not in answer


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_recipe_has_code_to_copy_that_runs_with_it(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    snippet = read_snippet(source)
    assert len(snippet.splitlines()) in LINES
    ast.parse(f"def recipe():\n{indent(snippet, '    ')}")  # some return a value
    assert source.count(recipe_answers.START) == source.count(recipe_answers.STOP) > 0
    assert "assert " not in snippet


def test_parts_of_a_snippet_are_separated_where_a_block_ends() -> None:
    part = "    # sphinx_gallery_start_answer\n    {}\n    # sphinx_gallery_end_answer\n"
    assert read_snippet(part.format("a = 1") + "b = 2\n" + part.format("c = 3")) == "a = 1\nc = 3"
    assert read_snippet(part.format("a = 1") + part.format("def f(): pass")) == "a = 1\n\ndef f(): pass"
    assert read_snippet("a = 1\n") == ""


def test_asserts_are_removed_with_the_loops_that_contain_nothing_else() -> None:
    shown = remove_asserts(CODE)
    assert ast.unparse(ast.parse(shown)).splitlines() == [
        "x = 1",
        "for y in (1, 2):",
        "    print(y)",
        "",
        "def check(z):",
        "    assert z",
        "x",
    ]
    assert "\n\n\n\n" not in shown


@pytest.mark.parametrize("cell", ["assert x\nassert y", "y = x + 1\nassert y"])
def test_asserts_are_shown_where_they_are_all_that_a_cell_does(cell: str) -> None:
    assert remove_asserts(cell) == cell
    assert "assert" not in remove_asserts(f"{cell}\nx")


def test_the_code_of_a_figure_is_folded() -> None:
    figure = "figure, axes = plt.subplots()\n" + "axes.plot([1])\n" * recipe_answers.SHORT + "plt.show()"
    section = nodes.section("", nodes.literal_block(figure, figure, language="Python"))
    recipe_answers.shorten(section[0])
    assert [type(child) for child in section] == [nodes.raw, nodes.literal_block, nodes.raw]
    assert "Code of the figure (7 lines)" in section[0].astext()


def test_the_install_line_is_below_the_answer() -> None:
    code = '<div class="highlight-python"><pre>from exportlab import show</pre></div>'
    body = f"{code}{recipe_answers.END}<p>Why</p>{code}"
    assert get_it.CODE.search(body, get_it.after_answer(body)).start() == body.rindex(code)
    assert get_it.after_answer(code) == 0
