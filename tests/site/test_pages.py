"""Pages keep their form: the README, each lesson and its stored pair, each recipe."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from check_links import find_broken_links
from check_links import read as read_pages
from jupytext.compare import compare_notebooks

from exportlab.sweep.records import read

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "tutorials").glob("[0-9]*.md"))
RECIPES = sorted((ROOT / "gallery").rglob("*.py"))


def test_readme_prints_what_it_says() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code, said = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL).group(1) for kind in ("python", "text"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.rstrip() for line in done.stdout.splitlines()] == [line.rstrip() for line in said.splitlines()]
    assert len([line for line in code.splitlines() if line.strip()]) == 8


def test_readme_keeps_an_if_and_a_loop(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, then, _ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    before, said = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    script = tmp_path / "bybatch.py"  # a loop is told by its source
    script.write_text(first + then)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[len(before.splitlines()) :] == said.splitlines()


def test_readme_sweeps_the_readers_own_cases(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[2])
    command = re.search(r"exportlab (sweep --cases mine\.py.*)", text).group(1).split()
    subprocess.run([Path(sys.executable).with_name("exportlab"), *command], cwd=tmp_path, check=True)
    assert {record.outcome for record in read(tmp_path / "before.jsonl")} == {"ok"}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_files_that_a_page_links_to_exist(page: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.stem)
def test_lesson_and_stored_pair_agree(lesson: Path) -> None:
    stored = nbformat.read(lesson.with_suffix(".ipynb"), as_version=4)
    compare_notebooks(stored, jupytext.read(lesson), fmt="md:myst")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.stem)
def test_stored_pair_is_clean(lesson: Path) -> None:
    stored = nbformat.read(lesson.with_suffix(".ipynb"), as_version=4)
    assert all(cell.execution_count for cell in stored.cells if cell.cell_type == "code")
    outputs = [output for cell in stored.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    text = "\n".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)
    assert not re.search(r"(?<![\w.])/(tmp|root|home|work)/", text)
    assert max(map(len, text.splitlines())) <= 160


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.stem)
def test_no_stored_output_ends_where_it_promises_more(lesson: Path) -> None:
    stored = nbformat.read(lesson.with_suffix(".ipynb"), as_version=4)
    outputs = [output for cell in stored.cells for output in cell.get("outputs", [])]
    texts = [output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs]
    assert [text for text in texts if text.rstrip().endswith(":")] == []


@pytest.mark.parametrize("page", [*LESSONS, *RECIPES], ids=lambda p: p.stem)
def test_no_page_hides_the_message_that_it_expects(page: Path) -> None:
    assert not re.search(r"\blines=(0|-\d)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.stem)
def test_lesson_has_a_promise_a_check_and_solved_exercises(lesson: Path) -> None:
    text = lesson.read_text(encoding="utf-8")
    for needed in ("**You will**", "**You need**", "**Time**", "## Check yourself", "## Exercises", "## Where next"):
        assert needed in text
    assert text.count("Show a solution") >= 2


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)
def test_recipe_has_a_title_a_check_and_a_way_on(recipe: Path) -> None:
    text = recipe.read_text(encoding="utf-8")
    title, underline = text.split("\n")[1:3]
    assert set(underline) == {"="}
    assert len(underline) == len(title)
    assert re.search(r"^assert |\.check\(\)|expect_failure\(", text, re.MULTILINE)
    assert ":doc:`" in text.rsplit("# %%", 1)[1]
    hidden = r"^ *# sphinx_gallery_start_ignore\n(?s:.*?)# sphinx_gallery_end_ignore\n|^ *# sphinx_gallery_\w+\n"
    shown = re.sub(hidden, "", text, flags=re.MULTILINE)
    assert 40 <= len(shown.splitlines()) <= 225


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)
def test_recipe_draws(recipe: Path) -> None:
    assert re.search(r"show\.graphs?\(|pyplot|plt\.|panels\(", recipe.read_text(encoding="utf-8"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)
def test_a_plot_of_a_recipe_has_a_title_which_is_its_alternative_text_as_well(recipe: Path) -> None:
    for plot in re.findall(r"plt\.subplots\(.*?plt\.show\(\)", recipe.read_text(encoding="utf-8"), re.DOTALL):
        assert re.search(r"title=|set_title\(|suptitle\(", plot)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.stem)
def test_a_picture_of_a_lesson_says_what_is_seen(lesson: Path) -> None:
    for cell in nbformat.read(lesson.with_suffix(".ipynb"), as_version=4).cells:
        for picture in (o["data"] for o in cell.get("outputs", []) if "image/png" in o.get("data", {})):
            said = cell.metadata.get("mystnb", {}).get("image", {}).get("alt") or re.findall(
                'aria-label="(.*?)"', picture.get("image/svg+xml", "")
            )
            assert len("".join(said)) > 30, cell.source


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<a href="b.html#there">x</a><a href="b.html#gone">x</a><a href="c.html">x</a><img src="d.png">')
    (tmp_path / "b.html").write_text('<p id="there"><a href="https://elsewhere.example/">x</a>')
    assert sorted(find_broken_links(tmp_path, read_pages(tmp_path))) == [
        "index.html: b.html#gone: no such anchor",
        "index.html: c.html: no such file",
        "index.html: d.png: no such file",
    ]
