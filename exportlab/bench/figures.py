"""The figures of a bench, each titled with what its axes show. What is wrong has no point in those of calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..files import written_whole
from ..measure.figures import bars, dots, lines, panels
from ..show.themed import SETTINGS, render_themed_svg
from .result import CALL, Bench, Way, batch_of


def draw_figures(bench: Bench) -> Iterator[tuple[str, str]]:
    """Draw every figure that there is something for, one after the other, and yield its name and what it shows."""
    ranked = [way for way in bench.ways().values() if way.ranked]
    yield from _calls(ranked, bench.sizes())
    yield from _batches(ranked, bench.sizes())
    yield from _exports(list(bench.ways().values()))


def _calls(ways: Sequence[Way], sizes: Sequence[str]) -> Iterator[tuple[str, str]]:
    calls = {size: {way.name: way.ratio(size) for way in ways if size in way.sizes() and way.name != "eager"} for size in sizes}
    calls = {size: named for size, named in calls.items() if named}
    if calls:
        (axes,) = panels("A call, in calls of eager (lower is faster)", height=1.4 + 0.36 * sum(map(len, calls.values())))
        dots(axes, calls)
        yield "calls", "A call, in calls of eager; lower is faster. A point is a round, grey where no difference was seen."


def _batches(ways: Sequence[Way], sizes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Where nothing but the batch differs between the sizes."""
    batches = {batch_of(size) for size in sizes}
    if not 1 < len(batches) == len(sizes):
        return
    (axes,) = panels("Milliseconds of a call, by batch (lower is faster)")
    by_way = {way.name: {float(batch_of(s)): [1000 * t for t in way.seconds(CALL + s)] for s in way.sizes()} for way in ways}
    lines(axes, {name: points for name, points in by_way.items() if points}, along="batch", unit=" ms")
    yield "batches", "Milliseconds of a call, by batch; lower is faster. The band is from the lowest round to the highest."


def _exports(ways: Sequence[Way]) -> Iterator[tuple[str, str]]:
    exports = {way.name: way.seconds("export") for way in ways if way.seconds("export") and way.name != "eager"}
    if exports:
        (axes,) = panels("Seconds of the export (lower is faster)", height=1.4 + 0.4 * len(exports))
        bars(axes, exports, unit=" s")
        yield "exports", "Seconds of the export; lower is faster. The whisker is from the lowest round to the highest."


def save_figures(bench: Bench, folder: Path) -> dict[str, tuple[str, str]]:
    """Write every figure as PNG and SVG, and return by name what it shows, and an SVG that takes the colours of the page it stands in."""
    from matplotlib import pyplot, rc_context

    found: dict[str, tuple[str, str]] = {}
    with rc_context(SETTINGS):
        for name, title in draw_figures(bench):
            figure = pyplot.gcf()
            for suffix in ("png", "svg"):
                with written_whole(folder / f"{name}.{suffix}") as draft:
                    figure.savefig(draft, format=suffix, dpi=150)
            found[name] = title, render_themed_svg(figure, name)
            pyplot.close(figure)
    return found
