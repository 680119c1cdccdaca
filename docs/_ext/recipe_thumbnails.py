"""Draw the thumbnail of a recipe from its page: the outcomes of the first comparison where they differ, or the nodes of a small graph."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from exportlab.outcomes import Outcome

TABLE = re.compile(r'<table class="exportlab"><thead><tr><th>exporter</th><th>outcome</th>.*?</table>')
ROW = re.compile(r"<tr><td class=short>([\w.]+)</td><td class=short[^>]*>(\w+)</td>")
GRAPH = re.compile(r'class="drawn-graph".*?</svg>', re.DOTALL)
NODE = re.compile(r'<g class="(?:op|function)".*?<text[^>]*>([\w.]+)</text>', re.DOTALL)
NAMES = {"dynamo": "torch.onnx.export", "torchscript": "dynamo=False"}
SIZES = range(2, 5)  # numbers of nodes that a thumbnail shows


def render_thumbnail(printed: str) -> str:
    """Return the thumbnail of a page of reStructuredText as HTML, or "" if nothing on the page fits into one."""
    first = ROW.findall("".join(TABLE.findall(printed)[:1]))
    if len({outcome for _, outcome in first}) > 1:
        return render_outcomes(first)
    graphs = (NODE.findall(graph) for graph in GRAPH.findall(printed))
    return render_nodes(next((nodes for nodes in graphs if len(nodes) in SIZES), []))


def render_outcomes(rows: Sequence[tuple[str, str]]) -> str:
    """Return the outcome of each exporter for the model at the start of the page, in words and colours."""
    lines = "".join(
        f'<li style="--outcome: var(--outcome-{Outcome(outcome).value})">{NAMES.get(exporter, exporter)} <b>{outcome}</b></li>'
        for exporter, outcome in rows
    )
    return f'<ul class="recipe-thumb" aria-label="Outcomes of the first comparison on the page">{lines}</ul>'


def render_nodes(nodes: Sequence[str]) -> str:
    """Return the nodes of a graph as a list in order."""
    lines = "".join(f"<li>{html.escape(node)}</li>" for node in nodes)
    return f'<ol class="recipe-thumb recipe-nodes" aria-label="Nodes of a graph on the page">{lines}</ol>' if nodes else ""
