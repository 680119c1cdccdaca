"""Draw the outcomes of the support matrix with dynamic shapes as strips, one per exporter, for the landing page and the link card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from exportlab.outcomes import Mark, Outcome
from exportlab.sweep.changes import find_worst_record
from exportlab.sweep.page.counts import Runs, Score, Sweep, scores

MODE = "dynamic"
COLORS = {  # the marks in the strips, the most serious last
    Mark.OK: Outcome.OK,
    Mark.MASKED: Outcome.CONVERT,
    Mark.NARROW: Outcome.NARROW,
    Mark.REFUSED: Outcome.CAPTURE,
    Mark.FAILED: Outcome.CRASH,
    Mark.WARNED: Outcome.FROZEN,
    Mark.SILENT: Outcome.WRONG,
}
TITLES = {kind: "right at every size" if kind is Mark.OK else kind.meaning for kind in COLORS}

Kinds = dict[str, dict[str, Mark]]  # by exporter and case


def kinds(runs: Runs) -> Kinds:
    """Return the colour of each case, by exporter."""
    found: Kinds = {}
    for (case, exporter, mode), rounds in runs.items():
        if mode == MODE:
            found.setdefault(exporter, {})[case] = find_worst_record(rounds).mark
    return found


def order(found: Kinds) -> list[str]:
    """Return the order of the cases, which all strips share: cases that most exporters get right come first."""
    cases = {case for by_case in found.values() for case in by_case}
    rank = list(COLORS)

    def hardness(case: str) -> tuple[float, str]:
        seen = [rank.index(by_case[case]) for by_case in found.values() if case in by_case]
        return sum(seen) / len(seen), case

    return sorted(cases, key=hardness)


def strips(runs: Runs) -> Iterator[tuple[Score, list[tuple[str, int, int]]]]:
    """Yield each exporter's score and strip: runs of equal cells as kind, start and length. Cases that weren't tested are empty."""
    found = kinds(runs)
    cases = order(found)
    for score in scores(runs):
        cells = [found[score.name].get(case) for case in cases]
        groups = groupby(range(len(cells)), key=cells.__getitem__)
        spans = [(kind, [*places]) for kind, places in groups]
        yield score, [(kind, places[0], len(places)) for kind, places in spans if kind is not None]


def build_strip_data(runs: Runs) -> dict[str, Any]:
    """Return the values for the template: paths by colour, counts and titles."""
    rows = [
        {"score": score, "paths": {kind: path_of(span[1:] for span in spans if span[0] == kind) for kind in COLORS}}
        for score, spans in strips(runs)
    ]
    sums = {what: sum(getattr(row["score"], what) for row in rows) for what in ("total", "silent", "masked")}
    colors = {kind: str(outcome) for kind, outcome in COLORS.items()}
    return {"rows": rows, "width": len(order(kinds(runs))), "colors": colors, "titles": TITLES, **sums}


def path_of(spans: Iterator[Sequence[int]]) -> str:
    """Return rectangles of height 1 as an SVG path."""
    return "".join(f"M{start} 0h{length}v1h-{length}z" for start, length in spans)


def stamp(sweep: Sweep) -> dict[str, Any]:
    """Return the data of the page's last line: what was run, when, and with which versions."""
    right = sum(find_worst_record(rounds).outcome is Outcome.OK for rounds in sweep.runs.values())
    days = sorted(str(made.get("date", ""))[:10] for made in sweep.environments)
    versions = [version for version in sweep.versions() if version.split()[0] in ("torch", "onnxruntime")]
    return {"versions": versions, "day": days[-1], "right": right, "of": len(sweep.runs)}


def draw_card(runs: Runs, path: Path) -> None:
    """Draw the picture for shared links, 1200 by 630 pixels: the strips and the description of the site."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    figure.text(0.06, 0.84, "Export Lab", fontsize=44, weight="bold")
    figure.text(0.06, 0.76, "Export PyTorch models, and verify the results.", fontsize=21, color="0.3")
    axes = figure.add_axes((0.06, 0.1, 0.88, 0.58))
    draw_strips(axes.broken_barh, [*strips(runs)])
    axes.axis("off")
    draft = path.with_name("card.new.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(draft)
    pyplot.close(figure)
    draft.replace(path)


def draw_strips(bars: Callable[..., Any], rows: Sequence[tuple[Score, Sequence[tuple[str, int, int]]]]) -> None:
    """Draw a row of bars for each exporter, from top to bottom."""
    for row, (_, spans) in enumerate(rows):
        for kind, outcome in COLORS.items():
            bars([span[1:] for span in spans if span[0] == kind], (-row, 0.8), facecolors=outcome.color)
