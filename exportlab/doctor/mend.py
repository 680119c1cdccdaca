"""Look for a change of the user's own lines that makes the export right: each is tried, and only what was seen to work is told."""

from __future__ import annotations

import ast
import linecache
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from ..cases import Sample
from ..eager import fresh, last_returned
from ..exporters import get
from ..exporters.to_onnx import shown_path
from ..isolation import failure_of
from ..messages import heard
from ..outcomes import Outcome
from ..verification.comparison import Attempt, exported, loaded, verified
from ..verification.difference import TOLERANCES, Tolerances, difference_of
from .edits import Draft, blocks, draft_of, in_force
from .events import Mended, Tell
from .lines import SourceLine, of_locals, own_frames
from .paths import Seen, seen_at
from .patient import Patient
from .rewrite import Function, Source, source_at
from .rules import Rule, proposed

TRIALS, DEEP = 40, 4  # drafts that are exported at most, and changes in one draft
BY_ROUNDING = dict.fromkeys(TOLERANCES, TOLERANCES[torch.bfloat16])
ASKS = re.compile(r"\.item\(|\.tolist\(|\bint\(|\bfloat\(|\blen\(|\.numpy\(|\bmath\.|\bnp\.")


@dataclass(frozen=True)
class Node:
    """A draft, what was done in it, and the lines that are to be looked at in it; `exact`, `rounds`: see `Rule`."""

    draft: Draft
    done: tuple[str, ...]
    lines: tuple[int, ...]
    said: str = ""
    exact: bool = True
    rounds: bool = False

    def after(self, rule: Rule) -> Node:
        """Return the node as it is once a rule is applied."""
        return replace(self, done=(*self.done, rule.what), exact=self.exact and rule.exact, rounds=self.rounds or rule.rounds)


@dataclass
class Search:
    """Tries changes on one patient, those of fewer lines first, until one is right with all exporters."""

    patient: Patient
    exporters: Sequence[str]
    folder: Path
    tell: Tell
    expected: list[Any] = field(default_factory=list)
    right: tuple[str, ...] = ()
    drafts: int = 0
    tried: int = 0

    def run(self, places: Sequence[SourceLine]) -> None:
        """Tell every change that is right with more exporters than the one before."""
        with heard():
            self.expected = [self._eager(sample) for sample in self.patient.all]
            for place in places:
                self._from(Node(draft_of(place.file), (), (place.line,)), place)
                if len(self.right) == len(self.exporters):
                    return

    def _from(self, first: Node, place: SourceLine) -> None:
        waiting = deque([first])
        while waiting and self.tried < TRIALS:
            node = waiting.popleft()
            for rule, draft in self._drafts(node):
                found = self._tried(draft, node.after(rule), place)
                if len(self.right) == len(self.exporters):
                    return
                if found is not None and len(found.done) < DEEP:
                    waiting.append(found)

    def _eager(self, sample: Sample) -> Any:
        return last_returned(fresh(self.patient.module), (sample,))

    def _drafts(self, node: Node) -> Iterator[tuple[Rule, Draft]]:
        """Every change that a rule proposes for one of the lines or one that it depends on."""
        shown = node.draft.shown
        for line in dict.fromkeys(line for first in node.lines for line in _related(shown, first)):
            source = source_at(shown, line)
            for rule, change in proposed(source, self._seen(node.draft, line)) if source else ():
                self.drafts += 1
                yield rule, node.draft.with_change(change, self.folder, self.drafts)

    def _seen(self, draft: Draft, line: int) -> list[Seen]:
        with suppress(Exception), in_force(draft):
            return seen_at(draft.shown, line, [lambda sample=sample: self._eager(sample) for sample in self.patient.samples])  # type: ignore[misc]
        return []

    def _tried(self, draft: Draft, before: Node, place: SourceLine) -> Node | None:
        """Export it; where it is refused elsewhere than before, return it with the new line."""
        try:
            with in_force(draft):
                if not self._is_same(BY_ROUNDING if before.rounds else None):
                    return None
                self.tried += 1
                attempts = [
                    exported(get(name), self.patient.module, self.patient.samples[0], self.patient.dynamic_shapes)
                    for name in self.exporters
                ]
                seen = [self._judged(attempt) for attempt in attempts] if before.exact else []
        except Exception:  # noqa: BLE001 - a draft that cannot be run is none
            return None
        seen = seen or [self._judged(attempt) for attempt in attempts]
        right = tuple(attempt.exporter for attempt in seen if attempt.outcome is Outcome.OK)
        if len(right) > len(self.right):
            self.right = right
            shown = place.where.rpartition(":")[0] or shown_path(draft.file)
            self.tell(Mended(place, _joined(before.done), blocks(draft, shown), right))
        return None if right else _refused(draft, before, seen)

    def _is_same(self, tolerances: Tolerances | None) -> bool:
        pairs = zip(self.patient.all, self.expected, strict=True)
        return not any(difference_of(wanted, self._eager(sample), tolerances).problem for sample, wanted in pairs)

    def _judged(self, attempt: Attempt) -> Attempt:
        return verified(loaded(attempt), self.patient.module, self.patient.all)


def _joined(done: Sequence[str]) -> str:
    return "; then ".join(dict.fromkeys(done))


def _refused(draft: Draft, before: Node, attempts: Sequence[Attempt]) -> Node | None:
    """The draft with the lines at which an exporter refuses it, where that is another refusal than before."""
    errors = [attempt.error for attempt in attempts if attempt.error is not None]
    if not errors:
        return None
    failure = failure_of(errors[0])
    lines = [line for file, line in own_frames(failure) if file in (draft.shown, draft.file)]
    at = of_locals(errors[0])
    lines += [at.line] if at is not None and at.file == draft.shown else []
    said = f"{failure.error} {linecache.getline(draft.shown, lines[0]).strip() if lines else ''}"
    return replace(before, draft=draft, lines=tuple(dict.fromkeys(lines)), said=said) if lines and said != before.said else None


def _related(file: str, line: int) -> list[int]:
    """The line, the heads of what it stands in, and the lines before it that ask for the values which it reads."""
    source = source_at(file, line)
    statement = source.innermost(ast.stmt) if source else None
    if source is None or statement is None:
        return [line]
    heads = [
        n.lineno for n in ast.walk(source.tree) if isinstance(n, ast.For | ast.While | ast.If) and n.lineno < line <= (n.end_lineno or 0)
    ]
    return [line, *sorted(heads, reverse=True), *_asking(source, statement)]


def _asking(source: Source, statement: ast.stmt) -> list[int]:
    """Where the names that a statement reads got their values, if a number or an array was asked for there."""
    functions = [n for n in ast.walk(source.tree) if isinstance(n, Function) and n.lineno <= source.line <= (n.end_lineno or 0)]
    read = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}
    lines = []
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.Assign) and node.lineno < source.line and ASKS.search(ast.unparse(node.value)):
            names = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            lines += [node.lineno] if names & read else []
    return sorted(set(lines), reverse=True)


def mend(patient: Patient, exporters: Sequence[str], places: Sequence[SourceLine], folder: Path, tell: Tell) -> None:
    """Tell each change of the lines at these places that was seen to be right; nothing where there is none."""
    Search(patient, exporters, folder, tell).run(places)
    tell(Mended())
