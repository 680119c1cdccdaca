"""Draw the picture for shared links: the heatmap of silently wrong exports, without its numbers, and the description of the site."""

from __future__ import annotations

from pathlib import Path

from support_matrix.heatmap import Heatmap

from exportlab.exporters.display_names import spoken
from exportlab.outcomes import Outcome

UNTESTED = "0.85"  # grey


def draw_card(heatmap: Heatmap, path: Path) -> None:
    """Draw the picture, 1200 by 630 pixels: a row per exporter, a column per family."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    figure.text(0.06, 0.84, "Export Lab", fontsize=44, weight="bold")
    figure.text(0.06, 0.76, "Export PyTorch models, and verify the results.", fontsize=21, color="0.3")
    axes = figure.add_axes((0.24, 0.1, 0.7, 0.58))
    axes.imshow(red_shares(heatmap), cmap=colors(), vmin=0, vmax=100, aspect="auto")
    axes.set_yticks(range(len(heatmap.exporters)), [spoken(name) for name in heatmap.exporters], fontsize=15)
    axes.set_xticks([])
    axes.set_xlabel(f"silently wrong exports of {len(heatmap.families)} families of test cases", fontsize=15)
    draft = path.with_name("card.new.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(draft)
    pyplot.close(figure)
    draft.replace(path)


def red_shares(heatmap: Heatmap) -> list[list[float]]:
    """Return how red each cell is, by exporter and family, NaN if it was not tested."""
    rows = zip(*heatmap.families.values(), strict=True)
    return [[cell.red if cell.total else float("nan") for cell in row] for row in rows]


def colors() -> object:
    """Return the colours from white to that of a wrong export."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("wrong", ["white", Outcome.WRONG.color]).with_extremes(bad=UNTESTED)
