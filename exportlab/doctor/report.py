"""Render the diagnosis as one self-contained HTML page to attach to a bug report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .. import show, site
from ..exporters.to_onnx import SAID
from ..outcomes import Outcome
from ..show.templates import environment
from .events import Captured
from .facts import Facts
from .finding import Finding, describe_finding
from .verdict import Verdict

if TYPE_CHECKING:
    from jinja2 import Template

GRAPH, AROUND = 50, 20  # lines of the graph in the report, and lines before the failing one
MESSAGE = 4000  # maximum length of a message, in characters
MARKS = {0: Outcome.OK.color, 1: Outcome.WRONG.color, 2: Outcome.SKIPPED.color}


@dataclass(frozen=True)
class Excerpt:
    """Lines `first` to `last`, counted from 1, of `total`."""

    first: int
    last: int
    total: int
    text: str


def page(facts: Facts, findings: Sequence[Finding], verdict: Verdict, attempts: show.Table) -> str:
    """Return the report. Text from the model or its errors is escaped."""
    return _template().render(
        facts=facts,
        findings=findings,
        verdict=verdict,
        attempts=attempts,
        describe_finding=describe_finding,
        address_of=site.address,
        words=site.words,
        was_training=SAID,
        mark=MARKS[verdict.code],
        sizes=sizes(facts),
        graph=_graph(facts),
        message=MESSAGE,
    )


@cache
def _template() -> Template:
    return environment(Path(__file__).parent).get_template("report.html.j2")


def sizes(facts: Facts) -> dict[str, str]:
    """Return a description of the samples and their dynamic dimensions, by name."""
    summary = facts.summary
    if summary is None:
        return {}
    return {
        "samples": "; ".join(summary.samples),
        "dynamic": summary.unlike or "; ".join(size.how() for size in summary.moving) or "none",
        "generated": "; ".join(summary.made),
        "shapes": f"dynamic_shapes={summary.dynamic_shapes}",
        "skipped": ", ".join(facts.left_out),
    }


def _graph(facts: Facts) -> Excerpt | None:
    """Return an excerpt of the captured graph around the node that differs, without weights."""
    captured = next((found for found in facts.captures.values() if isinstance(found, Captured)), None)
    if captured is None:
        return None
    node = next(iter(facts.diverged.values())).node if facts.diverged else ""
    at = next((i for i, line in enumerate(captured.graph) if node and line.startswith(f"{node}:")), 0)
    begin = max(at - AROUND, 0)
    kept = captured.graph[begin : begin + GRAPH]
    return Excerpt(begin + 1, begin + len(kept), len(captured.graph), "\n".join(kept))
