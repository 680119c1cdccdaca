"""Tell readers how to install the packages that a page imports: build a wheel, and add an install line to each page and notebook."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from changes import digest
from docutils import nodes
from freshness import is_fresh, mark_fresh
from recipe_answers import END
from site_files import ROOT, STATIC, publish_static
from sphinx.application import Sphinx
from to_notebooks import NOTE, install_cell

PACKAGES = ("exportlab", "fx2onnx", "content")
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")  # files of the wheel beside the packages
IMPORTED = re.compile(r"^\s*(?:from|import) (?:exportlab|fx2onnx)\b", re.MULTILINE)
FROM_THE_REPOSITORY = {  # lessons that read files in the repository
    "tutorials/301_transformer_whole_road": "tutorials/serving",
    "tutorials/304_cpp_with_aotinductor": "tutorials/cpp",
    "tutorials/306_in_the_browser": "tutorials/browser",
    "tutorials/307_the_same_tomorrow": "docs/data",
    "tutorials/308_onnx_in_cpp": "tutorials/cpp/onnx",
    "tutorials/310_text_in_text_out": "tutorials",
}
CODE = re.compile(r'<div class="(?:cell docutils|highlight-)')
THE_SAME_EACH_TIME = "1767225600"  # timestamp of the files in a wheel, in seconds since 1970
BLOCK, TAG = re.compile(r"<pre>(.*?)</pre>", re.DOTALL), re.compile(r"<[^>]+>")
MARK = "exportlab_get_it"


def setup(app: Sphinx) -> dict[str, bool]:
    """Build the wheel before the pages are read, and add the install line to each page and notebook."""
    app.connect("builder-inited", lambda _: store_wheel())
    app.connect("builder-inited", publish_static)
    app.connect("html-page-context", add_line)
    app.connect("build-finished", introduce_notebooks)
    app.add_js_file("get_it.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def store_wheel() -> Path:
    """Build the wheel of both packages into generated/static if a source has changed, and return its path."""
    files = [
        path for package in PACKAGES for path in sorted((ROOT / package).rglob("*")) if path.is_file() and "__pycache__" not in path.parts
    ]
    sources = f"{digest([*(ROOT / name for name in BUILT_FROM), Path(__file__), *files])}\n"
    stored = next(STATIC.glob("exportlab-*.whl"), STATIC / "none")
    if is_fresh(stored, sources):
        return stored
    STATIC.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        built = build_wheel(Path(folder))
        for old in STATIC.glob("exportlab-*.whl*"):
            old.unlink()
        draft = shutil.copy(built, STATIC / f"{built.name}.new")
        stored = Path(draft).replace(STATIC / built.name)
    mark_fresh(stored, sources)
    return stored


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy, because setuptools would leave folders next to the packages.

    Raises:
        RuntimeError: pip failed. The message contains the end of its output.
    """
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "-q")
    command = [sys.executable, "-m", "pip", "wheel", *offline, "-w", str(folder / "out"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"SOURCE_DATE_EPOCH": THE_SAME_EACH_TIME})
    if done.returncode:
        raise RuntimeError(f"the wheel of exportlab could not be built: {done.stderr.strip()[-600:]}")
    return next((folder / "out").glob("*.whl"))


def wheel_name() -> str:
    """Return the file name of the wheel, even before it is built."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return f"exportlab-{version}-py3-none-any.whl"


def add_line(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Insert the install line above the first code of a page that imports the package, below the answer of a recipe."""
    body = context.get("body", "") if doctree is not None else ""
    first = CODE.search(body, after_answer(body))
    if first is None or not any(IMPORTED.search(TAG.sub("", block)) for block in BLOCK.findall(body)):
        return
    wheel = next(STATIC.glob("exportlab-*.whl")).name
    where = context["pathto"](f"_static/{wheel}", 1)
    if pagename in FROM_THE_REPOSITORY:
        line = render_repository_line(pagename)
    else:
        line = render_install_line(render_command(wheel, where, app.config.html_baseurl))
    context["body"] = body[: first.start()] + line + body[first.start() :]


def after_answer(body: str) -> int:
    """Return where the answer of a recipe ends in a page, or 0."""
    return max(0, body.find(END))


def render_repository_line(pagename: str) -> str:
    """Return the line of a page that reads files of the repository."""
    read = f"<code>{FROM_THE_REPOSITORY[pagename]}</code>"
    return f'<p class="get-it">To run this page, open it with <code>make lab</code> in the repository: it reads {read}.</p>\n'


def render_install_line(command: str) -> str:
    """Return the line of a page that only needs the installed package."""
    return f'<p class="get-it">To run this page in your own environment (Python 3.11 to 3.13), {command}</p>\n'


def render_command(wheel: str, where: str, site: str) -> str:
    """Return what readers do to install the packages, the end of a sentence.

    Args:
        wheel: the name of the file.
        where: its address, relative to the page.
        site: the address of the site, or "". Without it, readers download the file first, unless a script inserts the site's address.
    """
    command = html.escape(install_command(f"{site}_static/{wheel}" if site else wheel), quote=False)
    download = "" if site else f'<span class="get-file">download <a href="{where}" download>this file</a>, then </span>'
    return f'{download}run <code data-wheel="{where}">{command}</code>'


def install_command(wheel: str) -> str:
    """Return the command that installs a wheel, given by address or name, with all packages that the pages import."""
    return f'pip install "exportlab[book] @ {wheel}"' if "://" in wheel else f'pip install "{wheel}[book]"'


def introduce_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Insert the install cell into each notebook of the site."""
    if error or app.builder.format != "html":
        return
    site, wheel = Path(app.outdir), next(STATIC.glob("exportlab-*.whl")).name
    address = f"{app.config.html_baseurl}_static/{wheel}" if app.config.html_baseurl else wheel
    for path in (*site.glob("_sources/tutorials/*.ipynb"), *site.glob("_downloads/*/*.ipynb")):
        if f"tutorials/{path.stem}" not in FROM_THE_REPOSITORY:
            introduce(path, address)


def introduce(path: Path, wheel: str) -> None:
    """Insert the install cell at the start of a notebook that imports the package, or replace the one that is there."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    others = [other for other in notebook["cells"] if not other["metadata"].get(MARK)]
    code = "\n".join("".join(cell["source"]) for cell in others if cell["cell_type"] == "code")
    if not IMPORTED.search(code):
        return
    beside = "" if "://" in wheel else f" First download {wheel} from the page of this notebook."
    text = install_cell(f"exportlab[lab] @ {wheel}" if "://" in wheel else f"{wheel}[lab]", code, NOTE + beside)
    cell = {"cell_type": "code", "id": "get-it", "metadata": {MARK: True}, "source": [text], "outputs": [], "execution_count": None}
    if notebook["nbformat_minor"] < 5:
        del cell["id"]
    notebook["cells"] = [cell, *others]
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)
