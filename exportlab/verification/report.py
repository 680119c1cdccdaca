"""What `verify` saw: one check for each thing that was looked at, and the report that holds them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from .. import show
from ..diagnostics import names_cause
from ..exporters.session import USUAL
from ..outcomes import Outcome

VALUES = "other values"
REFUSED = "eager refuses these inputs"
ROUNDING = "rounding: "
NOT_JUDGED = "not judged"
SERIOUS = list(Outcome)
WIDTH = 48  # characters of a line of names
_TOGETHER = "\N{NO-BREAK SPACE}"


class VerificationError(AssertionError):
    """The artifact is not right."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: on which inputs, with which outcome, how far off, and what was seen.

    `values` names the change of the inputs that `other values` made, and `excuse` the one of `excuses.EXCUSES` for which an answer that
    differs is no error. `judged` are the numbers of the outputs that were compared with
    eager, and `unjudged` those that differ where eager itself is too inexact.
    """

    name: str
    inputs: str
    outcome: Outcome
    worst: float | None = None
    detail: str = ""
    values: str = ""
    excuse: str = ""
    judged: frozenset[int] = frozenset()
    unjudged: frozenset[int] = frozenset()

    @property
    def failed(self) -> bool:
        """Whether something is not right; what was skipped says nothing."""
        return self.outcome not in (Outcome.OK, Outcome.SKIPPED)

    @property
    def refused(self) -> bool:
        """Whether eager itself refuses the inputs."""
        return self.outcome is Outcome.SKIPPED and self.detail.startswith(REFUSED)

    @property
    def is_open(self) -> bool:
        """Whether it lists outputs that no check could judge."""
        return self.outcome is Outcome.SKIPPED and self.name == NOT_JUDGED

    @property
    def is_rounding(self) -> bool:
        """Whether file and eager differ, by rounding alone."""
        return self.detail.startswith(ROUNDING)

    @property
    def given(self) -> str:
        """The inputs, and what was changed of them."""
        return f"{self.values}: {self.inputs}" if self.values else self.inputs


@dataclass(frozen=True, repr=False)
class Report(show.Tabular):
    """All checks of one artifact; prints as a table, renders as HTML.

    In `said` are the warnings that came with them; of an attempt to export, those of the exporter too. In `ran_on` are the providers of
    ONNX Runtime that ran it, the first one first, or the device; in `settings` the options that these were given; in `instead` a line,
    where another was asked for.
    """

    exporter: str
    checks: tuple[Check, ...]
    tolerance: str
    said: tuple[str, ...] = ()
    ran_on: tuple[str, ...] = ()
    instead: str = ""
    settings: str = ""

    @property
    def outcome(self) -> Outcome:
        """The most serious outcome of its checks; `skipped` where eager refused all that it was given, or some outputs were never judged.

        What does not even run at the size of the export is `run`, and never `frozen`.
        """
        seen = {check.outcome for check in self.failed}
        compared = any(check.worst is not None for check in self.checks)
        if not seen and (not compared or any(check.is_open for check in self.checks)):
            return Outcome.SKIPPED
        return Outcome.worst(seen - {Outcome.FROZEN} if Outcome.RUN in seen else seen)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks in which something is not right."""
        return tuple(check for check in self.checks if check.failed)

    @property
    def worst(self) -> float:
        """The largest absolute difference of all checks."""
        return max((check.worst for check in self.checks if check.worst is not None), default=0.0)

    def check(self) -> Report:
        """Return itself when all is right.

        Raises:
            VerificationError: something is not; the message holds the worst element, its position, and both values.
        """
        if self.outcome is Outcome.OK:
            return self
        lines = [f"  {c.name} ({c.given}): {c.outcome}: {c.detail}" for c in self.failed or self.checks]
        lines += [f"  it warned: {line}" for line in self.said if names_cause(line)]
        raise VerificationError("\n".join([f"{self.exporter}: {self.outcome}, tolerance {self.tolerance}", *lines]))

    def _table(self) -> show.Table:
        rows = [*_said_once(_rows(self.checks)), *_warnings(self.said), *_make_note_rows("ran elsewhere", filter(None, [self.instead]))]
        return show.table(rows, f"{self.exporter}: {self._verdict()}{self._place()} ({self.tolerance})")

    def _place(self) -> str:
        """Where it ran, if that is not what everybody takes for granted."""
        if set(self.ran_on) <= set(USUAL) and not self.instead:
            return ""
        return f", on {', '.join(self.ran_on)}{f' with {self.settings}' if self.settings else ''}"

    def _verdict(self) -> str:
        return f"{self.outcome} at every size given" if self.outcome is Outcome.OK else str(self.outcome)


def _said_once(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The sentence that rounding is all stands in the first row that it holds for; those after it have their numbers."""
    said = set()
    for row in rows:
        sentence, comma, numbers = row["what was seen"].partition(", ")
        repeated = sentence in said and bool(comma)
        said |= {sentence} if sentence.startswith(ROUNDING) else set()
        yield {**row, "what was seen": f"as above, {numbers}"} if repeated else row


def _rows(checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    """One for each check; but changes of values that came out alike, and not wrong, share one, after those that are."""
    for kind, group in groupby(_sort_by_severity(checks), _row_of):
        found = list(group)
        yield from _make_shared_rows(found) if isinstance(kind, str) else [_row(found[0])]


def _sort_by_severity(checks: Sequence[Check]) -> list[Check]:
    """Changes of values by seriousness, where the first of them stands."""
    values = sorted((check for check in checks if check.values), key=lambda check: SERIOUS.index(check.outcome))
    first = next((i for i, check in enumerate(checks) if check.values), 0)
    return [*checks[:first], *values, *(check for check in checks[first:] if not check.values)]


def _row_of(check: Check) -> str | int:
    return str(check.outcome) if check.values and not check.failed else id(check)


def _row(check: Check) -> dict[str, Any]:
    return {
        "check": check.name,
        "inputs": check.given,
        "outcome": check.outcome,
        "max diff": "" if check.worst is None else f"{check.worst:.1e}",
        "what was seen": check.detail,
    }


def _warnings(said: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One for each line that names a cause."""
    return _make_note_rows("it warned", filter(names_cause, said))


def _make_note_rows(what: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        yield {"check": what, "inputs": "", "outcome": "", "max diff": "", "what was seen": line}


def _make_shared_rows(checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    """As many as their names need, at a width that a page holds."""
    names = textwrap.wrap(", ".join(check.values.replace(" ", _TOGETHER) for check in checks), WIDTH)
    worst = [check.worst for check in checks if check.worst is not None]
    largest, detail = f"{max(worst):.1e}" if worst else "", "; ".join(dict.fromkeys(_details(checks)))
    for i, line in enumerate(names):
        yield {
            "check": VALUES,
            "inputs": line.rstrip(",").replace(_TOGETHER, " "),
            "outcome": checks[0].outcome,
            "max diff": "" if i else largest,
            "what was seen": "" if i else detail,
        }


def _details(checks: Sequence[Check]) -> Iterator[str]:
    """What was seen; of those that differ by rounding, where it was most; of those that were not judged, the first."""
    yield from (check.detail for check in checks if check.detail and not check.is_rounding and not check.unjudged)
    yield from [check.detail for check in checks if check.unjudged][:1]
    if (rounded := most_rounded(checks)) is not None:
        yield rounded.detail


def never_judged(checks: Sequence[Check]) -> list[Check]:
    """Return a check that names the outputs which no check could judge, at the size of the export or at the others; else none."""
    here = [check for check in checks if check.inputs == checks[0].inputs]
    elsewhere = [check for check in checks if check.inputs != checks[0].inputs]
    found = []
    for where, some in (("the size of the export", here), ("other sizes", elsewhere)):
        judged, unjudged = (frozenset().union(*(getattr(check, what) for check in some)) for what in ("judged", "unjudged"))
        if open_ := sorted(unjudged - judged):
            detail = f"no check at {where} could judge output {', '.join(map(str, open_))}, which differs: eager itself is too inexact"
            found.append(Check(NOT_JUDGED, "", Outcome.SKIPPED, detail=detail))
    return found


def most_rounded(checks: Iterable[Check]) -> Check | None:
    """Return the check in which file and eager are furthest apart by rounding; None where none is that."""
    return max((check for check in checks if check.is_rounding), key=lambda check: check.worst or 0.0, default=None)
