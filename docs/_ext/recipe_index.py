"""Build the index of recipes and their sidebar, both from recipes.csv: groups, answers, filters and thumbnails."""

from __future__ import annotations

import ast
import csv
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from docutils import nodes
from recipe_answers import read_answer
from recipe_thumbnails import render_thumbnail
from site_files import ROOT
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

GALLERY = "generated/gallery"
TABLE = Path(__file__).with_name("recipes.csv")
FACETS = {
    "api": ("API", ("torch.export", "torch.onnx", "to_onnx", "runtime")),
    "symptom": ("Symptom", ("fails", "wrong", "slow")),
    "model": ("Model", ("vision", "language", "audio")),
}


@dataclass(frozen=True)
class Recipe:
    """A row of the index: what recipes.csv, the script and the page contain."""

    title: str
    page: str
    answer: str
    label: str = ""
    tags: tuple[str, ...] = ()
    thumbnail: str = ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform of the indexes and the sidebar."""
    app.add_transform(Index)
    app.connect("html-page-context", add_sidebar)
    app.add_css_file("recipe_index.css", priority=850)  # after the style sheets of sphinx-gallery
    return {"parallel_read_safe": True}


def read_table() -> dict[str, list[dict[str, str]]]:
    """Return the rows of recipes.csv by group, in order."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {title: list(rows) for title, rows in groupby(csv.DictReader(file), itemgetter("group"))}


def list_names() -> tuple[str, ...]:
    """Return the names of all recipes in their order on the index."""
    return tuple(row["name"] for rows in read_table().values() for row in rows)


def find_scripts() -> dict[str, Path]:
    """Return the scripts of all recipes by name."""
    return {script.stem: script for script in sorted((ROOT / "gallery").rglob("*.py"))}


class Index(SphinxTransform):
    """Replace the thumbnails of sphinx-gallery by a filter and a list, on the index of all recipes and of each chapter."""

    default_priority = 100

    def apply(self, **options: object) -> None:
        """Insert the list if this is an index page."""
        if not re.fullmatch(rf"{GALLERY}/(\w+/)?index", self.env.docname):
            return
        folder = self.env.docname.removesuffix("/index").removeprefix(GALLERY).strip("/")
        scripts = {name: script for name, script in find_scripts().items() if (ROOT / "gallery" / folder) in script.parents}
        for script in (TABLE, *scripts.values()):
            self.env.note_dependency(str(script))
        recipes = {row["name"]: read(row, scripts[row["name"]], folder) for row in rows_of(scripts)}
        top = next(self.document.findall(nodes.section))
        kept = [node for node in top.children if isinstance(node, (nodes.title, nodes.paragraph))]
        top.children = []
        top += kept
        if folder:
            self.document.insert(0, nodes.docinfo("", nodes.field("", nodes.field_name("", "orphan"), nodes.field_body())))
        else:
            top += [nodes.raw("", render_filter(), format="html"), list_pages(scripts)]
        top += list(groups(recipes))


def rows_of(scripts: Mapping[str, Path]) -> Iterator[dict[str, str]]:
    """Yield the rows of these scripts in the order of the table."""
    return (row for rows in read_table().values() for row in rows if row["name"] in scripts)


def list_pages(scripts: Mapping[str, Path]) -> addnodes.toctree:
    """Return the hidden list that puts the pages into the order of the index."""
    pages = [f"{GALLERY}/{scripts[row['name']].relative_to(ROOT / 'gallery').with_suffix('').as_posix()}" for row in rows_of(scripts)]
    entries = [(None, page) for page in pages]
    return addnodes.toctree(
        "", parent=f"{GALLERY}/index", entries=entries, includefiles=pages, maxdepth=-1, caption=None, glob=False,
        hidden=True, includehidden=False, numbered=0, titlesonly=True,
    )  # fmt: skip


def groups(recipes: Mapping[str, Recipe]) -> Iterator[nodes.section]:
    """Yield a section for each group that contains some of these recipes, given by name."""
    for title, rows in read_table().items():
        here = [recipes[row["name"]] for row in rows if row["name"] in recipes]
        if here:
            section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(title)], classes=["recipe-group"])
            section += nodes.raw("", render_list(here), format="html")
            yield section


def read(row: Mapping[str, str], script: Path, folder: str) -> Recipe:
    """Return a recipe for an index in a folder of the gallery."""
    source = script.read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    page = script.relative_to(ROOT / "gallery" / folder).with_suffix(".html").as_posix()
    stored = ROOT / GALLERY / script.relative_to(ROOT / "gallery").with_suffix(".rst")
    printed = stored.read_text(encoding="utf-8") if stored.exists() else ""
    tags = tuple(f"{facet}={tag}" for facet in FACETS for tag in row[facet].split())
    return Recipe(title, page, read_answer(source), row["label"], tags, render_thumbnail(printed))


def render_filter() -> str:
    """Return the filter as HTML: one group of buttons for each facet, hidden without JavaScript."""
    facets = "".join(
        f'<div role="group" aria-label="{title}"><span>{title}</span>{"".join(render_chip(facet, tag) for tag in tags)}</div>'
        for facet, (title, tags) in FACETS.items()
    )
    counted = '<p class="recipe-count" role="status"></p>'
    return f'<noscript><style>.recipe-filter {{ display: none }}</style></noscript><div class="recipe-filter">{facets}{counted}</div>'


def render_chip(facet: str, tag: str) -> str:
    """Return one button of the filter."""
    return f'<button type="button" aria-pressed="false" data-facet="{facet}" data-tag="{tag}">{tag}</button>'


def render_list(recipes: Sequence[Recipe]) -> str:
    """Return recipes as an HTML list."""
    return f'<ul class="recipe-list">{"".join(map(render_row, recipes))}</ul>'


def render_row(recipe: Recipe) -> str:
    """Return one recipe: its title, its answer, and its thumbnail if there is one."""
    tags = html.escape(" ".join(recipe.tags))
    text = f'<a href="{recipe.page}">{to_html(recipe.title)}</a><p>{to_html(recipe.answer)}</p>'
    return f'<li data-tags="{tags}"><div>{text}</div>{recipe.thumbnail}</li>'


def to_html(text: str) -> str:
    """Return a line of a docstring as HTML."""
    text = re.sub(r"``(.+?)``", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"(?<!\*)\*([^*]+)\*(?!\*)", r"<em>\1</em>", text)


def add_sidebar(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Store the sidebar of a page of the gallery for recipe-sidebar.html, and load the script of the index."""
    if pagename.startswith(f"{GALLERY}/"):
        context["recipe_groups"] = "".join(render_sidebar(pagename, context["pathto"]))
    if pagename == f"{GALLERY}/index":
        app.add_js_file("recipe_index.js", loading_method="defer")


def render_sidebar(pagename: str, pathto: Any) -> Iterator[str]:
    """Yield the groups of the index with short labels. The group of the page is open, and all are on the index."""
    scripts = find_scripts()
    for title, rows in read_table().items():
        pages = {f"{GALLERY}/{scripts[row['name']].parent.name}/{row['name']}": row["label"] for row in rows}
        opened = " open" if pagename in pages or pagename.endswith("/index") else ""
        links = "".join(render_link(pathto(page), label, page == pagename) for page, label in pages.items())
        yield f'<details{opened}><summary>{title}</summary><ul class="nav bd-sidenav">{links}</ul></details>'


def render_link(address: str, label: str, current: bool) -> str:
    """Return one link of the sidebar."""
    mark, said = (" current active", ' aria-current="page"') if current else ("", "")
    return f'<li class="toctree-l1{mark}"><a class="reference internal" href="{address}"{said}>{html.escape(label)}</a></li>'
