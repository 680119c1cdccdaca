"""Search for a change of the user's code that makes the export correct. Only verified changes are reported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..cases import Sample
from ..eager import fresh, run_calls
from ..exporters import get
from ..exporters.to_onnx import shown_path
from ..messages import heard
from ..outcomes import Outcome
from ..verification.comparison import run_export_step, run_load_step, run_verify_step
from ..verification.difference import difference_of
from .edits import Draft, blocks, draft_of, use_draft
from .events import AppliedFix, Tell
from .lines import SourceLine
from .rewrite import Function, Source, source_at
from .rules import Rule, propose_changes
from .subject import Subject

TRIALS = 20  # maximum number of changes to try
READS = re.compile(r"\.item\(|\.tolist\(|\bint\(|\bfloat\(|\bbool\(")


@dataclass
class Search:
    """A search that tries one change at a time, until a change is correct with all exporters."""

    patient: Subject
    exporters: Sequence[str]
    folder: Path
    tell: Tell
    expected: list[Any] = field(default_factory=list)
    right: tuple[str, ...] = ()
    drafts: int = 0

    def run(self, places: Sequence[SourceLine]) -> None:
        """Report each change that is correct with more exporters than the previous ones."""
        with heard():
            self.expected = [self._eager(sample) for sample in self.patient.all]
            for place in places:
                for rule, draft in self._drafts(place):
                    self._try(rule, draft, place)
                    if len(self.right) == len(self.exporters) or self.drafts >= TRIALS:
                        return

    def _eager(self, sample: Sample) -> Any:
        return run_calls(fresh(self.patient.module), (sample,))

    def _drafts(self, place: SourceLine) -> Iterator[tuple[Rule, Draft]]:
        """Yield the changes that the rules make to a line or to the lines it depends on."""
        for line in dict.fromkeys(_find_related_lines(place.file, place.line)):
            source = source_at(place.file, line)
            for rule, change in propose_changes(source) if source else ():
                self.drafts += 1
                yield rule, draft_of(place.file).with_change(change, self.folder, self.drafts)

    def _try(self, rule: Rule, draft: Draft, place: SourceLine) -> None:
        right = self._right_with(draft)
        if len(right) > len(self.right):
            self.right = right
            shown = place.where.rpartition(":")[0] or shown_path(draft.file)
            self.tell(AppliedFix(place, rule.what, blocks(draft, shown), right))

    def _right_with(self, draft: Draft) -> tuple[str, ...]:
        """Return the exporters that are correct with the draft, if the draft has the same results as the original."""
        try:
            with use_draft(draft):
                return tuple(filter(self._is_right, self.exporters)) if self._is_same() else ()
        except Exception:  # noqa: BLE001 - a draft that can't run is ignored
            return ()

    def _is_same(self) -> bool:
        pairs = zip(self.patient.all, self.expected, strict=True)
        return not any(difference_of(wanted, self._eager(sample)).problem for sample, wanted in pairs)

    def _is_right(self, exporter: str) -> bool:
        attempt = run_export_step(get(exporter), self.patient.module, self.patient.samples[0], self.patient.dynamic_shapes)
        return run_verify_step(run_load_step(attempt), self.patient.module, self.patient.all).outcome is Outcome.OK


def _find_related_lines(file: str, line: int) -> list[int]:
    """Return the line, the `if` lines around it, and the earlier lines that read the numbers it uses."""
    source = source_at(file, line)
    statement = source.innermost(ast.stmt) if source else None
    if source is None or statement is None:
        return [line]
    heads = [n.lineno for n in ast.walk(source.tree) if isinstance(n, ast.If) and n.lineno < line <= (n.end_lineno or 0)]
    return [line, *sorted(heads, reverse=True), *_readers(source, statement)]


def _readers(source: Source, statement: ast.stmt) -> list[int]:
    """Return the lines that assign a number read from a tensor to a variable that the statement uses."""
    functions = [n for n in ast.walk(source.tree) if isinstance(n, Function) and n.lineno <= source.line <= (n.end_lineno or 0)]
    used = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}
    lines = []
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.Assign) and node.lineno < source.line and READS.search(ast.unparse(node.value)):
            names = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            lines += [node.lineno] if names & used else []
    return sorted(set(lines), reverse=True)


def mend(patient: Subject, exporters: Sequence[str], places: Sequence[SourceLine], folder: Path, tell: Tell) -> None:
    """Report the verified changes of these lines, if there are any, and the end of the search."""
    Search(patient, exporters, folder, tell).run(places)
    tell(AppliedFix())
