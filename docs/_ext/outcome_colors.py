"""Define the colours of outcomes for style sheets: CSS variables such as `--outcome-wrong` in generated/static/outcomes.css."""

from __future__ import annotations

from site_files import STATIC, publish_static, write
from sphinx.application import Sphinx

NAME = "outcomes.css"


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the style sheet and add it to all pages."""
    app.connect("builder-inited", store_colors)
    app.add_css_file(NAME, priority=400)  # before the style sheets that use it
    return {"parallel_read_safe": True}


def store_colors(app: Sphinx) -> None:
    """Write the style sheet."""
    from exportlab.sweep.page import colors

    publish_static(app)
    write(STATIC / NAME, colors())
