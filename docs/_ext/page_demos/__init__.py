"""Embed demos in a recipe and a lesson: a model runs in the page, next to results of eager mode from the build of the site."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from docutils import nodes
from freshness import is_fresh, made_of, mark_fresh
from site_files import GENERATED, STATIC, write
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from web_runtime import add_runtime

from exportlab.show.templates import environment

HERE = Path(__file__).parent
STORED = GENERATED / "demos"
SENTENCE = STATIC / "demos/sentence.onnx"  # downloaded at the first interaction
DEMOS = {"cond": "branches", "302_language_model_with_cache": "sentence"}  # by the last part of a page's name
START = -1.0  # initial value of the slider


def setup(app: Sphinx) -> dict[str, bool]:
    """Build models and results before the pages are read, and insert each demo into its page."""
    app.connect("builder-inited", lambda _: store_demos())
    app.connect("html-page-context", add_files)
    app.add_transform(DemoBeforeCode)
    return {"parallel_read_safe": True}


def store_demos() -> None:
    """Write the data of each demo, if a source has changed."""
    from . import branches, sentence

    if not is_fresh(made := STORED / "branches.json", sources := made_of(branches.RECIPE, Path(__file__), Path(branches.__file__))):
        with contextlib.redirect_stdout(io.StringIO()):  # the recipe prints
            write(made, json.dumps(branches.build_demo()))
        mark_fresh(made, sources)
    sources = made_of(Path(sentence.__file__), Path(__file__))
    if not is_fresh(made := STORED / "sentence.json", sources) or not SENTENCE.is_file():
        file, data = sentence.build_demo()
        write(SENTENCE, file)
        write(made, json.dumps(data))
        mark_fresh(made, sources)


def render_demo(name: str) -> str:
    """Render a demo as HTML. It is self-contained except for the runtime and a large model."""
    data = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    text = json.dumps(data).replace("<", "\\u003c")  # so that the data can't close the script element
    return environment(HERE / "templates").get_template(f"{name}.html").render(**data, data=text, start=START)


def add_files(app: Sphinx, page: str, *_: Any) -> None:
    """Add the style and scripts to a page with a demo."""
    if name := DEMOS.get(page.rpartition("/")[2]):
        app.add_css_file("page_demos.css")
        add_runtime(app)
        app.add_js_file(f"demo_{name}.js", loading_method="defer")


class DemoBeforeCode(SphinxTransform):
    """Insert a page's demo before its first code."""

    default_priority = 100

    def apply(self, **options: Any) -> None:
        """Insert the demo, if the page has one."""
        if name := DEMOS.get(self.env.docname.rpartition("/")[2]):
            self.env.note_dependency(str(STORED / f"{name}.json"))
            self.env.note_dependency(str(HERE / f"templates/{name}.html"))
            code = next(self.document.findall(lambda node: isinstance(node, nodes.literal_block) or "cell" in node_classes(node)))
            code.parent.insert(code.parent.index(code), nodes.raw("", render_demo(name), format="html"))


def node_classes(node: nodes.Node) -> list[str]:
    """Return the classes of an element. Texts don't have any."""
    return list(node["classes"]) if isinstance(node, nodes.Element) else []
