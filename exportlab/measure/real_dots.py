"""Draw the exports of models of real size as dots: benchmarks/real_sizes.py."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..exporters.display_names import SPOKEN
from ..outcomes import Mark, Outcome
from .benchmark import Run
from .dot_plot import MASKED, NOT_RIGHT, RIGHT, Row, draw_dots

OURS, OFFICIAL = "to_onnx", "dynamo"
MARKS: Mapping[str, str] = {Outcome.OK: RIGHT, Mark.MASKED.meaning: MASKED}
REASONS: Mapping[str, str] = {
    Outcome.WRONG: "wrong",
    Outcome.FROZEN: "wrong",
    Outcome.CRASH: "crashes",
    Outcome.TIMEOUT: "out of time",
    Outcome.RUN: "does not run",
    Outcome.LOAD: "does not load",
    Outcome.NARROW: "refuses a size",
    Outcome.CONVERT: "refused",
    Outcome.CAPTURE: "refused",
}


def draw(run: Run) -> None:
    """Draw the seconds of each export. Models are sorted by the seconds of the official exporter, then of to_onnx."""
    models = sorted(run.facts["outcomes"], key=lambda model: costs(run, model))
    draw_dots({model: row(run, model) for model in models}, (OURS, OFFICIAL), "Seconds for one export on one thread, medians", "s")


def costs(run: Run, model: str) -> list[float]:
    """Return the seconds of both exporters, infinite for one that refuses the model."""
    exports = run[f"export, {model}"]
    return [exports.median(name) if name in exports.rounds[0] else math.inf for name in (OFFICIAL, OURS)]


def row(run: Run, model: str) -> Row:
    """Return the seconds, marks and reasons of one model. torch.export alone writes no file, so it has no dot."""
    outcomes = {name: outcome for name, outcome in run.facts["outcomes"][model].items() if name in SPOKEN}
    exports = run[f"export, {model}"]
    return Row(
        {name: exports.median(name) for name in outcomes if name in exports.rounds[0]},
        {name: MARKS.get(outcome, NOT_RIGHT) for name, outcome in outcomes.items()},
        {name: reason(run, model, name) for name, outcome in outcomes.items() if outcome not in MARKS},
    )


def reason(run: Run, model: str, name: str) -> str:
    """Return in a few words why an exporter isn't right."""
    why = run.facts["why"][model].get(name, "")
    return "out of memory" if why.startswith("MemoryLimit") else REASONS[run.facts["outcomes"][model][name]]
