"""Show figures of recipes and graphs of lessons as inline SVG in the colours of the theme."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from exportlab.show.figure import UNSHOWN, Picture
from exportlab.show.svg import frame
from exportlab.show.themed import render_themed_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRAME, GRAPH = 'class="graph-frame"', 'class="drawn-graph"'
BEFORE_PICTURES_ARE_COPIED = 100  # a priority


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the graph viewer to pages with a graph."""
    app.connect("html-page-context", add_viewer)
    app.add_transform(StoredGraphs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class StoredGraphs(SphinxTransform):
    """Inline the SVG graphs of a lesson's notebook, so that they follow the theme and have tooltips."""

    default_priority = BEFORE_PICTURES_ARE_COPIED

    def apply(self, **options: Any) -> None:
        """Apply the transform."""
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.env.srcdir, image["uri"].lstrip("/"))
            if path.suffix == ".svg" and path.is_file() and GRAPH in (drawn := path.read_text(encoding="utf-8")):
                image.replace_self(nodes.raw("", frame(drawn, "Graph"), format="html"))


def scrape(block: tuple[Any, ...], block_vars: dict[str, Any], gallery_conf: dict[str, Any], **kwargs: Any) -> str:
    """Return the drawings of a recipe's cell as HTML: graphs, then figures."""
    from matplotlib import pyplot

    paths = block_vars["image_path_iterator"]
    drawn = [save_picture(UNSHOWN.popleft(), paths) for _ in range(len(UNSHOWN))]
    return "".join([*drawn, *(save_figure(pyplot.figure(number), paths) for number in pyplot.get_fignums())])


def save_picture(picture: Picture, paths: Any) -> str:
    """Store a graph for the thumbnail, and return its HTML."""
    Path(paths.next()).with_suffix(".svg").write_text(picture.svg(), encoding="utf-8")
    return to_raw(picture.html())


def save_figure(figure: Figure, paths: Any) -> str:
    """Store a matplotlib figure for the thumbnail, close it, and return its HTML."""
    from matplotlib import pyplot

    path = Path(paths.next()).with_suffix(".svg")
    path.write_text(drawn := render_themed_svg(figure, path.stem), encoding="utf-8")
    pyplot.close(figure)
    return to_raw(drawn)


def to_raw(text: str) -> str:
    """Return HTML as a raw directive of reStructuredText."""
    return f"\n.. raw:: html\n\n{indent(text, '    ')}\n\n"


def add_viewer(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Load the script and the style sheet on pages with a graph."""
    if FRAME in context.get("body", ""):
        app.add_css_file("graphs.css")
        app.add_js_file("graphs.js", loading_method="defer")
