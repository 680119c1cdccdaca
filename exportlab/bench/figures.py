"""Draw the figures of a benchmark. Wrong models are left out of the figures of calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..files import atomic_write
from ..measure.figures import bars, dots, lines, panels
from ..show.themed import SETTINGS, render_themed_svg
from .result import CALL, Bench, Way, batch_of


def draw_figures(bench: Bench) -> Iterator[tuple[str, str]]:
    """Draw each figure for which there is data, and yield its name and caption."""
    ranked = [way for way in bench.ways().values() if way.ranked]
    yield from _calls(ranked, bench.sizes())
    yield from _batches(ranked, bench.sizes())
    yield from _exports(list(bench.ways().values()))


def _calls(ways: Sequence[Way], sizes: Sequence[str]) -> Iterator[tuple[str, str]]:
    calls = {size: {way.name: way.ratio(size) for way in ways if size in way.sizes() and way.name != "eager"} for size in sizes}
    calls = {size: named for size, named in calls.items() if named}
    if calls:
        (axes,) = panels("Time of a call relative to eager mode (lower is faster)", height=1.4 + 0.36 * sum(map(len, calls.values())))
        dots(axes, calls)
        yield "calls", "Time of a call relative to eager mode; lower is faster. A point is a round, grey without a significant difference."


def _batches(ways: Sequence[Way], sizes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Draw the time by batch size, if the sizes differ only in the batch."""
    batches = {batch_of(size) for size in sizes}
    if not 1 < len(batches) == len(sizes):
        return
    (axes,) = panels("Time of a call by batch size (ms, lower is faster)")
    by_way = {way.name: {float(batch_of(s)): [1000 * t for t in way.seconds(CALL + s)] for s in way.sizes()} for way in ways}
    lines(axes, {name: points for name, points in by_way.items() if points}, along="batch", unit=" ms")
    yield "batches", "Time of a call by batch size in milliseconds; lower is faster. The band spans the lowest to the highest round."


def _exports(ways: Sequence[Way]) -> Iterator[tuple[str, str]]:
    exports = {way.name: way.seconds("export") for way in ways if way.seconds("export") and way.name != "eager"}
    if exports:
        (axes,) = panels("Time of the export (s, lower is faster)", height=1.4 + 0.4 * len(exports))
        bars(axes, exports, unit=" s")
        yield "exports", "Time of the export in seconds; lower is faster. The whisker spans the lowest to the highest round."


def save_figures(bench: Bench, folder: Path) -> dict[str, tuple[str, str]]:
    """Write each figure as PNG and SVG. Return by name its caption, and an SVG that adapts to the colours of the page."""
    from matplotlib import pyplot, rc_context

    found: dict[str, tuple[str, str]] = {}
    with rc_context(SETTINGS):
        for name, title in draw_figures(bench):
            figure = pyplot.gcf()
            for suffix in ("png", "svg"):
                with atomic_write(folder / f"{name}.{suffix}") as draft:
                    figure.savefig(draft, format=suffix, dpi=150)
            found[name] = title, render_themed_svg(figure, name)
            pyplot.close(figure)
    return found
