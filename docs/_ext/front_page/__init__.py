"""Build the parts of the landing page: a demo of a wrong export, all outcomes as strips, and the date. The text is in index.md."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from freshness import is_fresh, made_of, mark_fresh
from get_it import wheel_name
from site_files import PARTS, ROOT, STATIC, write
from sphinx.application import Sphinx
from web_runtime import add_runtime

from exportlab.exporters.display_names import spoken
from exportlab.show.templates import environment
from exportlab.sweep.page.counts import Sweep

from . import fingerprint, instrument

HERE = Path(__file__).parent
STORED = ROOT / "docs/data/matrix.jsonl"
INSTRUMENT = PARTS / "front-instrument.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the parts of the page before it is read, and add its style and script."""
    app.connect("builder-inited", lambda _: store_parts())
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}


def store_parts() -> None:
    """Write the files that index.md includes. The exports are repeated if a source has changed."""
    store_instrument()
    write(PARTS / "front-buttons.html", render_template("buttons.html", wheel=wheel_name(), **opened_by(repository())))
    sweep = Sweep.read(STORED)
    write(PARTS / "front-fingerprint.html", render_template("fingerprint.html", **fingerprint.build_strip_data(sweep.runs)))
    write(PARTS / "front-stamp.html", render_template("stamp.html", **fingerprint.stamp(sweep)))
    if not is_fresh(card := STATIC / "card.png", made_of(Path(fingerprint.__file__), STORED)):
        fingerprint.draw_card(sweep.runs, card)
        mark_fresh(card, made_of(Path(fingerprint.__file__), STORED))


def store_instrument() -> None:
    """Export the demo's model with both exporters, and write the models and their outputs into its part of the page."""
    sources = made_of(Path(instrument.__file__), Path(__file__), HERE / "templates/instrument.html")
    if is_fresh(INSTRUMENT, sources):
        return
    seen = instrument.measure_all()
    write(
        INSTRUMENT,
        render_template("instrument.html", files=seen, data=instrument.to_json(seen), code=instrument.code(), start=instrument.ROWS),
    )
    mark_fresh(INSTRUMENT, sources)


def repository() -> str:
    """Return the address of the repository from pyproject.toml, or ""."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get("repository", ""))


def opened_by(repository: str) -> dict[str, str]:
    """Return the install command, and the address of lesson 101 on Colab, which requires a public repository.

    Args:
        repository: such as `https://github.com/OWNER/NAME`, or "".
    """
    owner_and_name = repository.removeprefix("https://github.com/").rstrip("/")
    hosted = repository.startswith("https://github.com/")
    cloned = f"git clone {repository} && cd {owner_and_name.rpartition('/')[2]} && " if repository else ""
    colab = f"https://colab.research.google.com/github/{owner_and_name}/blob/main/tutorials/101_module_to_file.ipynb"
    return {"command": f"{cloned}make lab", "colab": colab if hosted else "", "where": "" if repository else "in the repository's folder"}


def add_files(app: Sphinx, page: str, *_: Any) -> None:
    """Add the style and the script of the landing page."""
    if page == "index":
        app.add_css_file("front.css")
        add_runtime(app)
        app.add_js_file("front.js", loading_method="defer")


def render_template(template: str, **values: Any) -> str:
    """Render a template of this folder. Values are escaped."""
    made = environment(HERE / "templates")
    made.filters["spoken"] = spoken
    return made.get_template(template).render(values)
