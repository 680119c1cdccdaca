"""Fill the footer with versions, date and licence. If pyproject.toml contains the repository's address, link pages to it as well."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from site_files import ROOT
from sphinx.application import Sphinx
from sphinx.config import Config
from to_notebooks import has_install_cell

STORED = ROOT / "docs/data/matrix.jsonl"
GITHUB = "https://github.com/"
SOURCES = {"generated/errors/": "content/errors/", "generated/": ""}  # folders of generated pages and of their scripts
NAMED = ("torch", "onnxruntime")  # packages in the footer


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the links of the header, and the values of the footer and of the sidebar of lessons."""
    app.connect("config-inited", add_repository)
    app.connect("html-page-context", add_values)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_repository(app: Sphinx, config: Config) -> None:
    """Add the repository's icon to the header, if its address is known."""
    if address := repository():
        icon = "fa-brands fa-github" if address.startswith(GITHUB) else "fa-solid fa-code-branch"
        config.html_theme_options["icon_links"] = [{"name": "Repository", "url": address, "icon": icon, "type": "fontawesome"}]


def add_values(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    """Add the values that stamp.html and download-lesson.html show."""
    context["stamp"] = stamp()
    context["repository_links"] = find_links(repository(), pagename)


@cache
def project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def repository() -> str:
    """Return the address of the repository from pyproject.toml, without a trailing slash, or ""."""
    return str(project().get("urls", {}).get("repository", "")).rstrip("/")


@cache
def stamp() -> list[str]:
    """Return the packages and the date of the support matrix, and the licence of the site."""
    from exportlab.sweep.page.counts import Sweep

    sweep = Sweep.read(STORED)
    versions = [version for version in sweep.versions() if version.split()[0] in NAMED]
    days = [f"support matrix of {max(str(made.get('date', ''))[:10] for made in sweep.environments)}"] if sweep.environments else []
    return [*versions, *days, f"{project()['license']} licence"]


def find_links(repository: str, page: str) -> dict[str, str]:
    """Return the links of a page by their text: to its source, and for a lesson to Colab and Binder.

    Args:
        repository: its address. Without one on GitHub, there are no links.
        page: the page's name, without `.html`.
    """
    name, source = repository.removeprefix(GITHUB), source_of(page)
    if name == repository or source is None:
        return {}
    links = {"Edit this page": f"{repository}/edit/main/{source}"}
    notebook = f"{page}.ipynb"
    if (ROOT / notebook).exists():
        if has_install_cell(ROOT / notebook):  # which tools/store_pairs.py adds
            links["Open in Colab"] = f"https://colab.research.google.com/github/{name}/blob/main/{notebook}"
        links["Open in Binder"] = f"https://mybinder.org/v2/gh/{name}/main?labpath={quote(notebook, safe='')}"
    return links


def source_of(page: str) -> str | None:
    """Return the path of a page's source in the repository, or None if the page was made from several files."""
    folder = next((made for made in SOURCES if page.startswith(made)), "")
    path = Path(SOURCES.get(folder, "") + page.removeprefix(folder))
    return next((f"{path}{end}" for end in (".md", ".py") if (ROOT / f"{path}{end}").is_file()), None)
