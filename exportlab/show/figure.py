"""Show drawings as SVG: immediately in a notebook, and on a page of the site below the cell that drew them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten

from ..files import atomic_write
from .boxes import Boxes
from .svg import frame_drawing, render_tabs, svg

WIDTH = 150  # characters of the description where a picture cannot be shown
UNSHOWN: deque[Picture] = deque(maxlen=20)  # drawn outside of notebooks; the scraper of sphinx-gallery reads them


class Picture:
    """Drawings by their titles: one as SVG, several as HTML with a button for each."""

    def __init__(self, drawings: Mapping[str, Boxes]) -> None:
        self.drawings = dict(drawings)

    def html(self) -> str:
        """Return HTML for a page: one drawing in a frame that scrolls, or several with a button for each."""
        if len(self.drawings) > 1:
            return render_tabs(self.drawings)
        ((title, drawing),) = self.drawings.items()
        return frame_drawing(drawing, title)

    def svg(self) -> str:
        """Return the first drawing as SVG, which is also the thumbnail."""
        title, drawing = next(iter(self.drawings.items()))
        return svg(drawing, title)

    def _repr_html_(self) -> str | None:
        return render_tabs(self.drawings) if len(self.drawings) > 1 else None

    def _repr_svg_(self) -> str | None:
        return self.svg() if len(self.drawings) == 1 else None

    def __repr__(self) -> str:
        texts = (f"{title}: {drawing.description}" if title else drawing.description for title, drawing in self.drawings.items())
        return shorten("; ".join(texts), WIDTH, placeholder=" …")


def show_drawings(drawings: Mapping[str, Boxes], save: str | Path | None = None) -> None:
    """Show drawings; `save` writes the first as SVG as well."""
    picture = Picture(drawings)
    if save is not None:
        with atomic_write(save) as draft:
            Path(draft).write_text(picture.svg(), encoding="utf-8")
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(picture)
    else:
        UNSHOWN.append(picture)
