"""The picture on the card of a lesson: the last one of its stored pair, in generated/thumbnails/."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from site_files import GENERATED, ROOT, write
from sphinx.application import Sphinx

FOLDER = GENERATED / "thumbnails"


def setup(app: Sphinx) -> dict[str, bool]:
    """Store them before the pages are read."""
    app.connect("builder-inited", lambda _: store_thumbnails())
    return {"parallel_read_safe": True}


def store_thumbnails() -> None:
    """Write generated/thumbnails/NAME.png for each lesson.

    Raises:
        ValueError: a lesson has no picture.
    """
    for path in sorted((ROOT / "tutorials").glob("*.ipynb")):
        write(FOLDER / f"{path.stem}.png", thumbnail(path))


def thumbnail(pair: Path) -> bytes:
    """Return the last picture of a lesson.

    Raises:
        ValueError: there is none.
    """
    picture = last_picture(json.loads(pair.read_text(encoding="utf-8")))
    if picture is None:
        raise ValueError(f"{pair.name} has no picture: every lesson needs one for its card")
    return picture


def last_picture(notebook: dict[str, Any]) -> bytes | None:
    """Return the last PNG among the outputs; exercises come after the lesson and do not count."""
    cells = notebook["cells"]
    titles = ["".join(cell["source"]) if cell["cell_type"] == "markdown" else "" for cell in cells]
    end = next((i for i, title in enumerate(titles) if title.startswith("## Exercises")), len(cells))
    data = [output.get("data", {}) for cell in cells[:end] for output in cell.get("outputs", [])]
    pictures = [d["image/png"] for d in data if "image/png" in d]
    return base64.b64decode(pictures[-1]) if pictures else None
