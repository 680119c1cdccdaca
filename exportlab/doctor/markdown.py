"""Write the diagnosis as Markdown for an issue tracker, with fenced code, tables and links, but without HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .. import show, site
from ..exporters.to_onnx import SAID
from ..printable import plain
from .facts import Facts
from .finding import Finding, claim
from .report import MESSAGE, sizes
from .verdict import Verdict


def issue(facts: Facts, findings: Sequence[Finding], verdict: Verdict, attempts: show.Table) -> str:
    """Return the report. Text from the model or its errors is formatted as code, which a tracker doesn't interpret."""
    return "\n".join(_lines(facts, findings, verdict, attempts)) + "\n"


def _lines(facts: Facts, findings: Sequence[Finding], verdict: Verdict, attempts: show.Table) -> Iterator[str]:
    yield from ("## Report of `exportlab doctor`", "", _code(verdict.line))
    if facts.target:
        yield from ("", f"Model: {_code(facts.target)}")
    if facts.summary is not None and facts.summary.was_training:
        yield from ("", f"{SAID[0].upper()}{SAID[1:]}.")
    if facts.unusable is not None:
        yield from ("", "### Error", "", *_render_code_block(facts.unusable.message or facts.unusable.error, "text"))
    for number, finding in enumerate(findings, 1):
        yield from ("", f"### Finding {number}", "", *_finding(finding))
    if verdict.recipe:
        yield from ("", "### Correct export", "", *_render_code_block("\n".join(verdict.recipe), "python"), "", f"Reason: {verdict.why}.")
    if facts.tried:
        yield from ("", "### Exports tried", "", *_table(attempts.rows))
    if facts.summary is not None:
        yield from ("", "### Sizes", "", *_table([{"item": name, "value": text} for name, text in sizes(facts).items() if text]))
    yield from ("", "### Environment", "", *_table([{"item": name, "value": text} for name, text in facts.environment.items() if text]))


def _finding(finding: Finding) -> Iterator[str]:
    yield f"**{_prose(claim(finding))}:** {_code(finding.defect)}"
    if finding.place is not None:
        yield from ("", f"At {_code(finding.place.where)}:", "", *_render_code_block(finding.place.source, "python"))
    if finding.fix:
        yield from ("", f"Fix: {_prose(finding.fix)}")
    if finding.code:
        yield from ("", "Code to paste:", "", *_render_code_block(finding.code, "python"))
    if finding.known is not None:
        yield from ("", f"Known error: {_render_link(finding.known.title, finding.known.page)}")
    if finding.detail:
        yield from ("", "Full message:", "", *_render_code_block(finding.detail, "text"))


def _prose(text: str) -> str:
    """Format a sentence of the report as text, or as code if an @ in it could notify a user of the tracker."""
    return _code(text) if "@" in text else _escape_markdown(" ".join(text.split()))


def _render_code_block(text: str, language: str) -> Iterator[str]:
    """Yield a code block whose fence is longer than any run of backticks in it."""
    shown = plain(text[:MESSAGE])
    fence = "`" * max(3, _longest_run(shown) + 1)
    yield from (f"{fence}{language}", *shown.splitlines(), fence)


def _code(text: object) -> str:
    """Format text as inline code, with a longer delimiter than any run of backticks in it."""
    shown = " ".join(plain(text).split())
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _table(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    if rows:
        yield f"| {' | '.join(rows[0])} |"
        yield f"|{' --- |' * len(rows[0])}"
        yield from (f"| {' | '.join(_cell(value) for value in row.values())} |" for row in rows)


def _cell(value: object) -> str:
    return _code(value).replace("|", "\\|") if str(value).strip() else ""


def _render_link(title: str, page: str) -> str:
    """Format a link to a page of the site, or its name if the site has no address."""
    address = site.address(page)
    return f"[{_escape_markdown(title)}]({address})" if address else f"{_escape_markdown(title)} ({site.words(page)})"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", plain(text))
