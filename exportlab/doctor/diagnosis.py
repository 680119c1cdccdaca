"""Define the result of the doctor: facts, findings and a verdict, with their text format."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .. import show
from ..exporters.to_onnx import SAID
from ..files import atomic_write
from ..printable import plain
from ..sweep.records import CLOSED_ALONE
from .events import Captured, Trial
from .facts import Facts
from .failures import sentence
from .finding import Finding, describe_finding
from .findings import findings_of
from .markdown import issue
from .report import page
from .verdict import Verdict, verdict_of

WIDTH, LINES = 118, 100
CELL = 70  # longest text in the last column of the table
FOUND = 4  # maximum number of findings in the text


@dataclass(frozen=True)
class Diagnosis:
    """The result of `doctor`. It prints as text and displays as the HTML report in a notebook."""

    facts: Facts

    @cached_property
    def findings(self) -> list[Finding]:
        """The problems found, silent ones first."""
        return findings_of(self.facts)

    @cached_property
    def verdict(self) -> Verdict:
        """The summary line, the exit code and the best export."""
        return verdict_of(self.facts, self.findings)

    def save(self, path: str | Path) -> Path:
        """Write the report: Markdown for an issue tracker if the path ends in `.md`, otherwise one self-contained HTML file."""
        text = self.markdown() if Path(path).suffix == ".md" else self._repr_html_()
        with atomic_write(path) as draft:
            Path(draft).write_text(text, encoding="utf-8")
        return Path(path)

    def markdown(self) -> str:
        """Return the report as Markdown for an issue tracker."""
        return issue(self.facts, self.findings, self.verdict, self.attempts())

    def __repr__(self) -> str:
        return plain("\n".join(list(self._lines())[:LINES]))

    def _repr_html_(self) -> str:
        return page(self.facts, self.findings, self.verdict, self.attempts())

    def _lines(self) -> Iterator[str]:
        if self.facts.summary and self.facts.summary.was_training:
            yield from (SAID, "")
        yield from textwrap.wrap(plain(self.verdict.line).replace("\n", " "), WIDTH, subsequent_indent="  ")
        for finding in self.findings[:FOUND]:
            yield ""
            yield from _finding(finding)
        if self.verdict.recipe:
            yield ""
            yield from ("export", *self.verdict.recipe)
            yield from _wrap_with_label("why", self.verdict.why)
        if self.facts.tried:
            yield from ("", *repr(self.attempts()).splitlines())
        if self.facts.summary:
            yield from ("", *self._how())

    def attempts(self) -> show.Table:
        """Return a table of the exports that were tried."""
        return show.table([_row(trial, self.facts) for trial in self.facts.tried])

    def _how(self) -> Iterator[str]:
        """Yield the lines about dynamic dimensions, generated samples, captures and skipped steps."""
        summary = self.facts.summary
        assert summary is not None
        moving = "; ".join(size.how() for size in summary.moving) or _nothing_moves(len(summary.samples))
        yield from _wrap_with_label("sizes", summary.unlike or (f"as named in the @case: {moving}" if summary.declared else moving))
        if summary.dynamic_shapes != "None":
            yield f"{'shapes':<9} dynamic_shapes={summary.dynamic_shapes}"
        if summary.made:
            yield from _wrap_with_label("tested", f"also with generated samples: {'; '.join(summary.made)}")
        if self.facts.captures:
            how_far = (f"{how} {'ok' if isinstance(found, Captured) else found.kind}" for how, found in self.facts.captures.items())
            yield from _wrap_with_label("capture", ", ".join(how_far))
        if self.facts.left_out:
            yield from _wrap_with_label("skipped", ", ".join(self.facts.left_out))


def _nothing_moves(samples: int) -> str:
    if samples == 1:
        return "no dynamic dimensions, because there is only one sample: add a second sample with different sizes"
    return "no dynamic dimensions, because all samples have the same sizes"


def _finding(finding: Finding) -> Iterator[str]:
    yield from _wrap_with_label("defect", describe_finding(finding))
    if finding.place:
        yield from _wrap_with_label("line", str(finding.place))
    if finding.fix:
        yield from _wrap_with_label("fix", finding.fix)
    if finding.code:
        yield from ("paste", *finding.code.splitlines())
    if finding.known:
        yield from _wrap_with_label("known", finding.known.title)
        yield from _wrap_with_label("page", finding.known.page)


def _wrap_with_label(label: str, text: str) -> Iterator[str]:
    """Yield `fix      …`, wrapped to at most three lines."""
    lines = [line for part in text.splitlines() for line in textwrap.wrap(part, WIDTH - 10)][:3]
    for i, line in enumerate(lines):
        yield f"{'' if i else label:<9} {line}"


def _row(trial: Trial, facts: Facts) -> dict[str, object]:
    failure = trial.failure or trial.save
    seen = sentence(failure) if failure else _first_problem(trial)
    if facts.forgets(trial):
        seen = "the outputs are correct, but the arguments are not modified"
    return {
        "export": trial.label,
        "outcome": trial.outcome,
        "nodes": trial.nodes or "",
        "bytes": f"{trial.bytes:,}" if trial.bytes else "",
        "call time / eager": f"{trial.ratio:.2g}" if trial.ratio else "",
        "what was seen": textwrap.shorten(
            plain(f"only for {trial.only}: {seen or 'correct'}" if trial.only else seen), CELL, placeholder=" …"
        ),
    }


def _first_problem(trial: Trial) -> str:
    failed = next((check for check in trial.checks if check.failed), None)
    where = CLOSED_ALONE if trial.only_closed else failed.name if failed else ""
    return f"{where} ({failed.inputs}): {failed.detail}" if failed else ""
