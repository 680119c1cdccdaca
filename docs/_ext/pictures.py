"""Pictures that pages of the site include, in generated/parts/: drawn where they are missing, or what draws them changed."""

from __future__ import annotations

from pathlib import Path

import capture_drawing
import drawings
from freshness import is_fresh, made_of, mark_fresh
from site_files import PARTS
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw them before the pages are read."""
    app.connect("builder-inited", lambda _: store_pictures())
    return {"parallel_read_safe": True}


def store_pictures() -> None:
    """Draw those that are not fresh."""
    sources = made_of(Path(drawings.__file__), Path(capture_drawing.__file__), Path(__file__))
    PARTS.mkdir(parents=True, exist_ok=True)
    pictures = {"converter.svg": drawings.draw_converter, "worlds.svg": drawings.draw_worlds, "capture.svg": capture_drawing.draw_capture}
    for name, draw in pictures.items():
        if not is_fresh(PARTS / name, sources):
            draw(PARTS / name)
            mark_fresh(PARTS / name, sources)
