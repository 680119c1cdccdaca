"""Draw a run of a model as a timeline: when each node ran, with a row per operator."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from ...files import atomic_write
from ...show.themed import SETTINGS
from ..figures import SIZE, colors, panels
from .events import Run, Span
from .result import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 8  # operators with a separate row


def timeline(found: Profile) -> Figure:
    """Draw the most typical run: time in milliseconds from left to right, the slowest operators at the top."""
    from matplotlib import pyplot

    run = found.runs[found.typical()]
    names = _names(run)
    (axes,) = panels(f"A typical run of {found.file}, {run.seconds * 1e3:.3g} ms: when its nodes ran", height=1.4 + 0.36 * len(names))
    colored = colors(names)
    for place, name in enumerate(names):
        spans = [span for span in run.spans if _get_row_name(span, names) == name]
        axes.broken_barh([(span.start * 1e3, span.seconds * 1e3) for span in spans], (-place - 0.4, 0.8), color=colored[name], linewidth=0)
    axes.set_yticks([-place for place in range(len(names))], names)
    axes.set_ylim(0.55 - len(names), 0.55)
    axes.set_xlim(0, run.seconds * 1e3)
    axes.set_xlabel("ms since the start of the run", fontsize=SIZE)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    return pyplot.gcf()


def _names(run: Run) -> list[str]:
    """Return the names of the rows: the slowest operators first, then one row for all others."""
    taken: dict[str, float] = defaultdict(float)
    for span in run.spans:
        taken[span.key[1]] += span.own
    first = sorted(taken, key=lambda op: -taken[op])[:ROWS]
    return [*first, f"{len(taken) - ROWS} others"] if len(taken) > ROWS else first


def _get_row_name(span: Span, names: list[str]) -> str:
    return span.key[1] if span.key[1] in names else names[-1]


def save_timeline(found: Profile, path: Path) -> None:
    """Write the picture (.png, .svg).

    Raises:
        OSError: the file cannot be written.
    """
    from matplotlib import pyplot, rc_context

    with rc_context(SETTINGS):
        figure = timeline(found)
        try:
            with atomic_write(path) as draft:
                figure.savefig(draft, format=path.suffix[1:], dpi=150)
        finally:
            pyplot.close(figure)
