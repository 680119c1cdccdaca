"""Write the diagnosis as an issue tracker renders it: fenced code, tables, links, and no HTML."""

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
    """Return the report. Whatever comes from the model or its errors stands in code, where a tracker does nothing with it."""
    return "\n".join(_lines(facts, findings, verdict, attempts)) + "\n"


def _lines(facts: Facts, findings: Sequence[Finding], verdict: Verdict, attempts: show.Table) -> Iterator[str]:
    yield from ("## Export, looked at by exportlab doctor", "", _code(verdict.line))
    if facts.target:
        yield from ("", f"Of {_code(facts.target)}.")
    if facts.summary is not None and facts.summary.was_training:
        yield from ("", f"{SAID[0].upper()}{SAID[1:]}.")
    if facts.unusable is not None:
        yield from ("", "### What was raised", "", *_render_code_block(facts.unusable.message or facts.unusable.error, "text"))
    for number, finding in enumerate(findings, 1):
        yield from ("", f"### Finding {number}", "", *_finding(finding))
    if verdict.recipe:
        yield from ("", "### The export that is right", "", *_render_code_block("\n".join(verdict.recipe), "python"), "", f"{verdict.why}.")
    if facts.tried:
        yield from ("", "### What was tried", "", *_table(attempts.rows))
    if facts.summary is not None:
        yield from ("", "### Sizes", "", *_table([{"what": name, "is": text} for name, text in sizes(facts).items() if text]))
    yield from ("", "### Environment", "", *_table([{"what": name, "is": text} for name, text in facts.environment.items() if text]))


def _finding(finding: Finding) -> Iterator[str]:
    yield f"**{_prose(claim(finding))}:** {_code(finding.defect)}"
    if finding.place is not None:
        yield from ("", f"At {_code(finding.place.where)}:", "", *_render_code_block(finding.place.source, "python"))
    if finding.fix:
        yield from ("", f"Fix: {_prose(finding.fix)}")
    if finding.code:
        yield from ("", "To paste:", "", *_render_code_block(finding.code, "python"))
    if finding.known is not None:
        yield from ("", f"Known: {_render_link(finding.known.title, finding.known.page)}")
    if finding.detail:
        yield from ("", "The whole message:", "", *_render_code_block(finding.detail, "text"))


def _prose(text: str) -> str:
    """A sentence of ours as text; as code where a name in it could call somebody."""
    return _code(text) if "@" in text else _escape_markdown(" ".join(text.split()))


def _render_code_block(text: str, language: str) -> Iterator[str]:
    """A block of code whose fence is longer than any in it."""
    shown = plain(text[:MESSAGE])
    fence = "`" * max(3, _longest_run(shown) + 1)
    yield from (f"{fence}{language}", *shown.splitlines(), fence)


def _code(text: object) -> str:
    """A text as code in a line, of a fence that is not in it."""
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
    """A link to a page of the site; its name where the site has no address."""
    address = site.address(page)
    return f"[{_escape_markdown(title)}]({address})" if address else f"{_escape_markdown(title)} ({site.words(page)})"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", plain(text))
