"""The diagnosis as one HTML page, to be attached to a bug report: nothing of it comes from elsewhere. Not here: the text for terminals."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from .. import show
from ..isolation import Failure
from .facts import Facts
from .findings import Finding, told
from .steps import Captured
from .verdict import Verdict

GRAPH, AROUND = 50, 20  # lines of the graph that are kept, those before the line that fails
MESSAGE = 4000  # characters of a message
STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --code: #f6f8fa; --back: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --soft: #9aa4af; --line: #3d444d; --code: #161b22; --back: #0d1117; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); }
body { margin: 2rem auto; max-width: 68rem; padding: 0 1rem; }
h1 { font-size: 1.35rem; border-left: 8px solid var(--mark); padding-left: .8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin-top: 2rem; }
pre, code { font-family: ui-monospace, monospace; font-size: .85rem; background: var(--code); }
pre { padding: .7rem; overflow-x: auto; border: 1px solid var(--line); border-radius: 4px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; border-top: 1px solid var(--line); padding-top: .8rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } .wide table { min-width: 46rem; } table { border-collapse: collapse; font-size: .9rem; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem; text-align: left; vertical-align: top; }
td.short { white-space: nowrap; } caption { text-align: left; color: var(--soft); }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } }
"""
MARKS = {0: "#009E73", 1: "#D55E00", 2: "#999999"}


def plain(text: str) -> str:
    """A text in which control characters, and those that turn its direction, are shown and do nothing."""
    return "".join(c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co") else f"\\u{ord(c):04x}" for c in text)


def shown(text: str) -> str:
    """The same for HTML."""
    return escape(plain(text))


def page(facts: Facts, findings: Sequence[Finding], verdict: Verdict, attempts: show.Table) -> str:
    """The report. Whatever comes from the model or its errors is escaped."""
    body = "\n".join(_body(facts, findings, verdict, attempts))
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{shown(verdict.line)}</title>'
    style = f"<style>{STYLE}:root {{ --mark: {MARKS[verdict.code]}; }}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}{style}</head>\n<body>\n{body}\n</body></html>\n'


def _body(facts: Facts, findings: Sequence[Finding], verdict: Verdict, attempts: show.Table) -> Iterator[str]:
    yield f"<h1>{shown(verdict.line)}</h1>"
    yield f"<p>{shown(facts.target)}</p>" if facts.target else ""
    if facts.unusable is not None:
        yield from _section("What was raised", _pre(_text_of(facts.unusable)))
    if findings:
        yield from _section("What is wrong", "".join(map(_finding, findings)))
    if verdict.recipe:
        yield from _section("The export that is right", f"{_pre(chr(10).join(verdict.recipe))}<p>{shown(verdict.why)}.</p>")
    if facts.tried:
        note = "<p>A call of the file is given in calls of eager, measured in turns on one thread: rough.</p>"
        yield from _section("What was tried", f'<div class="wide">{attempts._repr_html_()}</div>{note}')
    yield from _sizes(facts)
    yield from _partings(facts)
    yield from _graph(facts, findings)
    if facts.environment:
        yield from _section("Environment", _listed(facts.environment))


def _section(title: str, inner: str) -> Iterator[str]:
    yield f"<h2>{title}</h2>"
    yield inner


def _pre(text: str) -> str:
    return f"<pre>{shown(text[:MESSAGE])}</pre>"


def _text_of(failure: Failure) -> str:
    return failure.message or failure.error


def _finding(finding: Finding) -> str:
    place = f"{finding.place.where}   {finding.place.source}" if finding.place else ""
    rows = {
        "defect": told(finding),
        "line": place,
        "fix": finding.fix,
        "known": finding.known,
    }
    message = f"<details><summary>The whole message</summary>{_pre(finding.detail)}</details>" if finding.detail else ""
    return _listed({name: value for name, value in rows.items() if value}) + message


def _listed(rows: Mapping[str, Any]) -> str:
    return f"<dl>{''.join(f'<dt>{shown(str(name))}</dt><dd>{shown(str(value))}</dd>' for name, value in rows.items())}</dl>"


def _sizes(facts: Facts) -> Iterator[str]:
    summary = facts.summary
    if summary is None:
        return
    rows = {
        "samples": "; ".join(summary.samples),
        "moving": summary.unlike or "; ".join(size.how() for size in summary.moving) or "nothing",
        "made": "; ".join(summary.made),
        "shapes": f"dynamic_shapes={summary.dynamic_shapes}",
        "left out": ", ".join(facts.left_out),
    }
    yield from _section("Sizes", _listed({name: value for name, value in rows.items() if value}))


def _partings(facts: Facts) -> Iterator[str]:
    for label, parted in facts.parted.items():
        yield from _section(f"Where the file of {shown(label)} parts from eager", _pre(parted.table))


def _graph(facts: Facts, findings: Sequence[Finding]) -> Iterator[str]:
    """The captured graph around what is wrong; it has no weights in it."""
    captured = next((found for found in facts.captures.values() if isinstance(found, Captured)), None)
    if captured is None:
        return
    node = next(iter(facts.parted.values())).node if facts.parted else ""
    at = next((i for i, line in enumerate(captured.graph) if node and line.startswith(f"{node}:")), 0)
    begin = max(at - AROUND, 0)
    kept = captured.graph[begin : begin + GRAPH]
    note = f"lines {begin + 1} to {begin + len(kept)} of {len(captured.graph)}"
    yield from _section(f"The captured graph ({note})", _pre("\n".join(kept)))
