"""Choose the layout of figures: wide, or narrow for phones. A page contains both, and its style sheet shows the one that fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from textwrap import fill

LEAST = 9.0  # points of any text; 12 pixels where a figure has its original size


@dataclass(frozen=True)
class Layout:
    """The measures of a layout.

    Attributes:
        width: of the figure, in inches.
        size: of text, in points.
        line: characters in a line of the title. label: characters in a line of a row's name.
        height: of a figure, relative to the height that its function requests.
        ticks: the maximum number of ticks of a logarithmic x axis.
    """

    width: float
    size: float
    line: int
    label: int
    height: float
    ticks: int

    @property
    def small(self) -> float:
        """The size of notes, in points."""
        return max(self.size - 1, LEAST)

    def title(self, text: str) -> str:
        """Wrap a title."""
        return "\n".join(fill(line, self.line) for line in text.splitlines())

    def row(self, name: str) -> str:
        """Wrap the name of a row."""
        return fill(name, self.label, break_long_words=False)


WIDE = Layout(8, 12, 88, 60, 1, 8)
NARROW = Layout(3.75, 9, 46, 17, 0.85, 4)  # 360 pixels wide, its text 12 pixels high
_current = ContextVar("_current", default=WIDE)


def layout() -> Layout:
    """Return the layout of the figure that is drawn now."""
    return _current.get()


@contextmanager
def use_layout(wanted: Layout) -> Iterator[None]:
    """Draw the figures of this block in a layout."""
    token = _current.set(wanted)
    try:
        yield
    finally:
        _current.reset(token)
