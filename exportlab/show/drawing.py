"""What a picture of a graph is made of. Not here: where the boxes come from (graph), their layout (boxes), the figure (figure)."""

from __future__ import annotations

from pathlib import Path

from .boxes import Boxes
from .boxes import Edge as Edge
from .boxes import Node as Node


class Drawing(Boxes):
    """Nodes and the edges between them, which can be drawn."""

    def draw(self, title: str = "", save: str | Path | None = None) -> None:
        """Draw on a new matplotlib figure, which notebooks and pages show by themselves; `save` writes it (.svg, .png) as well."""
        from .figure import show_drawings  # matplotlib, for who draws

        show_drawings({title: self}, save)
