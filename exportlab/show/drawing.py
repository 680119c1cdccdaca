"""Define the parts of a picture of a graph. `graph` creates the boxes, `boxes` lays them out, and `figure` shows them."""

from __future__ import annotations

from pathlib import Path

from .boxes import Boxes
from .boxes import Edge as Edge
from .boxes import Node as Node
from .figure import show_drawings


class Drawing(Boxes):
    """Nodes and the edges between them, which can be shown."""

    def draw(self, title: str = "", save: str | Path | None = None) -> None:
        """Show it in a notebook or page; `save` writes it to a .svg file as well."""
        show_drawings({title: self}, save)
