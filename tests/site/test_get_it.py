"""The line that says how to get what a page imports, on pages and in the notebooks that the site hands out, and what it installs."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import get_it
import nbformat
import pytest
from docutils.core import publish_doctree
from site_files import ROOT
from store_pairs import add_install_cell
from to_notebooks import has_install_cell, install_cell

WHEEL = "exportlab-0.1.0-py3-none-any.whl"
CODE = '<span class="kn">import</span> <span>torch</span>\n<span class="kn">from</span> <span>exportlab</span> <span>import</span> verify'


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(get_it, "STATIC", tmp_path)
    (tmp_path / WHEEL).touch()
    return SimpleNamespace(config=SimpleNamespace(html_baseurl=""), outdir=tmp_path, builder=SimpleNamespace(format="html"))


def page(app: Any, code: str, pagename: str = "generated/gallery/cond") -> str:
    body = f'<p>Words.</p><div class="highlight-Python"><div class="highlight"><pre>{code}</pre></div></div>'
    context = {"body": body, "pathto": lambda path, _: f"../{path}"}
    get_it.add_line(app, pagename, "page.html", context, publish_doctree("T"))
    return str(context["body"])


def test_a_page_that_imports_the_package_says_how_to_get_it(app: Any) -> None:
    body = page(app, CODE)
    assert body.index("pip install") < body.index("highlight")
    assert f'<code data-wheel="../_static/{WHEEL}">pip install "{WHEEL}[book]"</code>' in body


@pytest.mark.parametrize(("address", "local"), [("http://127.0.0.1:{}/", True), ("http://lab.localhost:{}/", False)])
def test_an_address_that_others_cannot_reach_is_not_shown(address: str, local: bool, app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium (Debian: apt install chromium)")
    monkeypatch.syspath_prepend(ROOT / "tutorials")
    from browser.chromium import opened
    from browser.hosting import served

    script = (ROOT / "docs/_static/get_it.js").read_text(encoding="utf-8")
    (app.outdir / "page.html").write_text(f"<script>{script}</script>{page(app, CODE)}", encoding="utf-8")
    with served(app.outdir) as root, opened((address := address.format(root.strip("/").rpartition(":")[2])) + "page.html") as tab:
        assert tab.wait_for("document.querySelector('.get-it button')?.textContent") == "copy"
        said = tab.evaluate("document.querySelector('.get-it').textContent")
    assert ("download this file, then run" in said) is local
    assert (f'pip install "{WHEEL}[book]"' in said) is local
    assert (address in said) is not local


def test_a_page_that_does_not_import_it_says_nothing(app: Any) -> None:
    assert "get-it" not in page(app, "import torch  # not exportlab")


def test_the_address_of_the_site_is_used_where_there_is_one(app: Any) -> None:
    app.config.html_baseurl = "https://lab.example/"
    assert f'pip install "exportlab[book] @ https://lab.example/_static/{WHEEL}"' in page(app, CODE)


def test_a_lesson_that_reads_the_repository_says_that(app: Any) -> None:
    body = page(app, CODE, "tutorials/306_in_the_browser")
    assert "make lab" in body
    assert "pip install" not in body


@pytest.mark.parametrize("lesson", get_it.FROM_THE_REPOSITORY)
def test_what_such_a_lesson_reads_is_there(lesson: str) -> None:
    assert (ROOT / f"{lesson}.md").is_file()
    assert (ROOT / get_it.FROM_THE_REPOSITORY[lesson]).is_dir()


def test_a_notebook_says_it_once(app: Any) -> None:
    notebook = app.outdir / "_downloads/1/a.ipynb"
    notebook.parent.mkdir(parents=True)
    cells = [{"cell_type": kind, "metadata": {}, "source": [text]} for kind, text in (("markdown", "# T"), ("code", "import fx2onnx"))]
    notebook.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 4}))
    for _ in range(2):
        get_it.introduce_notebooks(app, None)
    install, first, code = json.loads(notebook.read_text())["cells"]
    assert (first["source"], code["source"]) == (["# T"], ["import fx2onnx"])
    assert install["source"][0].endswith(f'    %pip install -q "{WHEEL}[lab]"')


def test_a_notebook_installs_the_other_packages_that_it_uses() -> None:
    cell = install_cell("exportlab[lab] @ https://lab.example/x.whl", 'from sklearn import datasets\nexport("openvino", model)')
    assert cell.splitlines()[-1] == '    %pip install -q "exportlab[lab] @ https://lab.example/x.whl" openvino scikit-learn'


def test_a_stored_lesson_installs_first_if_the_repository_is_known(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import exportlab")])
    nbformat.write(notebook, tmp_path / "without.ipynb")
    add_install_cell(notebook, "https://github.com/one/lab")
    nbformat.write(notebook, tmp_path / "with.ipynb")
    assert [has_install_cell(tmp_path / name) for name in ("without.ipynb", "with.ipynb")] == [False, True]
    assert '"exportlab[lab] @ git+https://github.com/one/lab"' in notebook.cells[0].source


def test_a_book_has_the_versions_that_it_was_tested_with() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    tested = re.findall(r"^[\w-]+==\S+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert set(extras["book"]) <= set(tested)
    names = {requirement.partition("==")[0] for requirement in extras["book"]}
    assert {*extras["lab"]} - {"pygments"} <= names, "jinja2 and jupyterlab bring pygments"


def test_the_wheel_has_what_the_packages_read(tmp_path: Path) -> None:
    wheel = get_it.build_wheel(tmp_path)
    assert wheel.name == get_it.wheel_name()
    names = ZipFile(wheel).namelist()
    assert {"exportlab/__init__.py", "fx2onnx/ir/cpu_kernels.txt", "exportlab/doctor/report.html.j2"} <= set(names)
    data = {
        p.relative_to(ROOT).as_posix() for p in (ROOT / "exportlab").rglob("*") if p.suffix in {".j2", ".html", ".css", ".js", ".typed"}
    }
    assert data <= set(names)
