"""Define the results of `verify`: one check for each comparison, and the report that contains them."""

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
NOT_CHECKED = "not checked"  # prefix of the reason why `verify` itself could not run a check
ROUNDING = "rounding: "
NOT_JUDGED = "not judged"
SERIOUS = list(Outcome)
WIDTH = 48  # maximum number of characters of a line of names
_TOGETHER = "\N{NO-BREAK SPACE}"


class VerificationError(AssertionError):
    """The artifact failed its verification."""


@dataclass(frozen=True)
class Check:
    """The result of one comparison: its inputs, outcome, largest difference and a description.

    `values` names the change of the inputs in `other values`, and `excuse` the entry of `excuses.EXCUSES` that explains a difference.
    `judged` contains the indices of the outputs that were compared with eager, and `unjudged` those of outputs that differ, but for which
    eager is too inexact.
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
        """Whether the check failed; skipped checks don't count."""
        return self.outcome not in (Outcome.OK, Outcome.SKIPPED)

    @property
    def refused(self) -> bool:
        """Whether eager itself rejected the inputs."""
        return self.outcome is Outcome.SKIPPED and self.detail.startswith(REFUSED)

    @property
    def is_unchecked(self) -> bool:
        """Whether `verify` itself could not run the check. It is not evidence for the model, unlike inputs that eager rejects."""
        return self.outcome is Outcome.SKIPPED and self.detail.startswith(NOT_CHECKED)

    @property
    def is_open(self) -> bool:
        """Whether the check lists outputs that were never judged."""
        return self.outcome is Outcome.SKIPPED and self.name == NOT_JUDGED

    @property
    def is_rounding(self) -> bool:
        """Whether the model and eager differ only by rounding."""
        return self.detail.startswith(ROUNDING)

    @property
    def given(self) -> str:
        """The inputs, and how they were changed."""
        return f"{self.values}: {self.inputs}" if self.values else self.inputs


@dataclass(frozen=True, repr=False)
class Report(show.Tabular):
    """All checks of one artifact, printed as a table and rendered as HTML.

    `said` contains the warnings of the checks, and for an export attempt also those of the exporter. `ran_on` contains the ONNX Runtime
    providers, most used first, or the device, and `settings` their options. `instead` describes a requested provider that was not used.
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
        """The most severe outcome; `skipped` if eager rejected all inputs, an output was never judged, or a check could not run.

        A model that doesn't run at the size of the export is `run`, never `frozen`.
        """
        seen = {check.outcome for check in self.failed}
        compared = any(check.worst is not None for check in self.checks)
        if not seen and (not compared or any(check.is_open or check.is_unchecked for check in self.checks)):
            return Outcome.SKIPPED
        return Outcome.worst(seen - {Outcome.FROZEN} if Outcome.RUN in seen else seen)

    @property
    def unchecked(self) -> str:
        """Which checks `verify` itself could not run, with the first reason; empty if all ran."""
        unchecked = [check for check in self.checks if check.is_unchecked]
        names = ", ".join(dict.fromkeys(check.name for check in unchecked))
        return f"{names} {unchecked[0].detail}" if unchecked else ""

    @property
    def failed(self) -> tuple[Check, ...]:
        """The failed checks."""
        return tuple(check for check in self.checks if check.failed)

    @property
    def worst(self) -> float:
        """The largest absolute difference of all checks."""
        return max((check.worst for check in self.checks if check.worst is not None), default=0.0)

    def check(self) -> Report:
        """Return the report itself if the artifact is right.

        Raises:
            VerificationError: a check failed; the message contains the worst element, its position, and both values.
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
        """Describe where the model ran, if not on the CPU."""
        if set(self.ran_on) <= set(USUAL) and not self.instead:
            return ""
        return f", on {', '.join(self.ran_on)}{f' with {self.settings}' if self.settings else ''}"

    def _verdict(self) -> str:
        if self.outcome is Outcome.SKIPPED and self.unchecked:
            return f"{self.outcome}: right where it was compared, but {self.unchecked}"
        return f"{self.outcome} at every size given" if self.outcome is Outcome.OK else str(self.outcome)


def _said_once(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Shorten repeated statements about rounding to their numbers."""
    said = set()
    for row in rows:
        sentence, comma, numbers = row["what was seen"].partition(", ")
        repeated = sentence in said and bool(comma)
        said |= {sentence} if sentence.startswith(ROUNDING) else set()
        yield {**row, "what was seen": f"as above, {numbers}"} if repeated else row


def _rows(checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    """Yield one row per check. Changes of values with the same passing outcome share rows, after the failed ones."""
    for kind, group in groupby(_sort_by_severity(checks), _row_of):
        found = list(group)
        yield from _make_shared_rows(found) if isinstance(kind, str) else [_row(found[0])]


def _sort_by_severity(checks: Sequence[Check]) -> list[Check]:
    """Sort checks of other values by severity, at the position of the first one."""
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
    """Yield a row for each warning that names a cause."""
    return _make_note_rows("it warned", filter(names_cause, said))


def _make_note_rows(what: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        yield {"check": what, "inputs": "", "outcome": "", "max diff": "", "what was seen": line}


def _make_shared_rows(checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    """Yield rows that share one outcome, wrapped to the width of a page."""
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
    """Yield the distinct details; of rounding only the largest, and of unjudged checks only the first."""
    yield from (check.detail for check in checks if check.detail and not check.is_rounding and not check.unjudged)
    yield from [check.detail for check in checks if check.unjudged][:1]
    if (rounded := most_rounded(checks)) is not None:
        yield rounded.detail


def never_judged(checks: Sequence[Check]) -> list[Check]:
    """Return checks for outputs that no check could judge, at the size of the export and at other sizes."""
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
    """Return the check with the largest difference by rounding, or None."""
    return max((check for check in checks if check.is_rounding), key=lambda check: check.worst or 0.0, default=None)
