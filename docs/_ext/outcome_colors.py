"""The colours of outcomes for style sheets: a variable each, `--outcome-wrong` and so on, in generated/static/outcomes.css."""

from __future__ import annotations

from site_files import STATIC, publish_static, write
from sphinx.application import Sphinx

NAME = "outcomes.css"


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the style sheet, and give it to every page."""
    app.connect("builder-inited", store_colors)
    app.add_css_file(NAME, priority=400)  # before those that read it
    return {"parallel_read_safe": True}


def store_colors(app: Sphinx) -> None:
    """Write the style sheet."""
    publish_static(app)
    write(STATIC / NAME, style_sheet())


def style_sheet() -> str:
    """Return a rule that names the colour of every outcome."""
    from exportlab.outcomes import Outcome

    colors = "\n".join(f"  --outcome-{outcome}: {outcome.color};" for outcome in Outcome)
    return f":root {{\n{colors}\n}}\n"
