"""Build the parts of the landing page: a demo of a wrong export, three numbers, and a heatmap. The text is in index.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from freshness import is_fresh, made_of, mark_fresh
from get_it import render_command, wheel_name
from site_files import PARTS, ROOT, STATIC, write
from sphinx.application import Sphinx
from support_matrix import heatmap, render_heatmap
from web_runtime import add_runtime

from content import zoo
from exportlab.exporters.display_names import spoken
from exportlab.show.templates import environment
from exportlab.sweep.page.cells import marked_up
from exportlab.sweep.page.counts import Sweep

from . import card, instrument, tiles

HERE = Path(__file__).parent
STORED = ROOT / "docs/data/matrix.jsonl"
REAL_SIZES = ROOT / "benchmarks/data/real_sizes.json"
INSTRUMENT = PARTS / "front-instrument.html"
FAMILIES = 10  # of test cases, in the heatmap


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the parts of the page before it is read, and add its style and script."""
    app.connect("builder-inited", store_parts)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}


def store_parts(app: Sphinx) -> None:
    """Write the files that index.md includes. The exports are repeated if a source has changed."""
    store_instrument()
    command = render_command(wheel_name(), f"_static/{wheel_name()}", app.config.html_baseurl)
    write(PARTS / "front-install.html", render_template("install.html", install=command))
    sweep = Sweep.read(STORED)
    write(PARTS / "front-tiles.html", render_template("tiles.html", tiles=tiles.build_tiles(sweep.runs, REAL_SIZES)))
    write(PARTS / "front-heatmap.html", render_heatmap(sweep, zoo.cases(), "docs/", FAMILIES))
    if not is_fresh(picture := STATIC / "card.png", made_of(Path(card.__file__), STORED)):
        card.draw_card(heatmap.build_heatmap(sweep.runs, zoo.cases()), picture)
        mark_fresh(picture, made_of(Path(card.__file__), STORED))


def store_instrument() -> None:
    """Export the demo's model with both exporters, and write the models and their outputs into its part of the page."""
    sources = made_of(Path(instrument.__file__), Path(__file__), HERE / "templates/instrument.html")
    if not is_fresh(INSTRUMENT, sources):
        write(INSTRUMENT, render_instrument(instrument.measure_all()))
        mark_fresh(INSTRUMENT, sources)


def render_instrument(files: list[instrument.Measured]) -> str:
    """Return the demo. It starts at a batch size where the first file is wrong."""
    sizes = {"start": instrument.START, "rows": instrument.ROWS, "width": instrument.WIDTH}
    return render_template(
        "instrument.html", files=files, eager=files[0].eager, data=instrument.to_json(files), code=instrument.code(), **sizes
    )


def add_files(app: Sphinx, page: str, *_: Any) -> None:
    """Add the style and the script of the landing page."""
    if page == "index":
        app.add_css_file("front.css")
        app.add_css_file(heatmap.STYLE)
        add_runtime(app)
        app.add_js_file("front.js", loading_method="defer")


def render_template(template: str, **values: Any) -> str:
    """Render a template of this folder. Values are escaped."""
    from markupsafe import Markup

    made = environment(HERE / "templates", trim=True)
    made.filters |= {"spoken": spoken, "marked_up": lambda text: Markup(marked_up(text))}
    return made.get_template(template).render(values)
