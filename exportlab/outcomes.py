"""Define the outcomes of an export, and the marks that pages use to count them.

An `Outcome` has an order of severity, a colour, a sign, a grade and a meaning. Pages reduce outcomes to a `Mark` only with the function
`mark`, so that all pages count an export in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of an export, most severe first. It is equal to its string and printed as that string."""

    WRONG = "wrong"
    FROZEN = "frozen"
    CRASH = "crash"
    TIMEOUT = "timeout"
    RUN = "run"
    LOAD = "load"
    NARROW = "narrow"
    CONVERT = "convert"
    CAPTURE = "capture"
    SKIPPED = "skipped"
    OK = "ok"

    __repr__ = str.__repr__  # pages print lists of outcomes

    @property
    def silent(self) -> bool:
        """Whether the output is wrong without an error. A record also contains any warnings."""
        return self in (Outcome.WRONG, Outcome.FROZEN)

    @property
    def refused(self) -> bool:
        """Whether the exporter itself raised an error."""
        return self in (Outcome.CONVERT, Outcome.CAPTURE)

    @property
    def grade(self) -> int:
        """0 for right, 1 for a visible failure, 2 for a silent one. A higher grade than in an earlier run is a regression."""
        return 2 if self.silent else 0 if self is Outcome.OK else 1

    @property
    def color(self) -> str:
        """The colour as `#RRGGBB`, from the Okabe–Ito palette, which is safe for colour blindness."""
        return _COLORS[self]

    @property
    def sign(self) -> str:
        """The one-character sign in cells of the support matrix."""
        return _SIGNS[self]

    @property
    def meaning(self) -> str:
        """The meaning in one sentence."""
        return _MEANINGS[self]

    @classmethod
    def worst(cls, outcomes: Iterable[str]) -> Outcome:
        """Return the most severe of these outcomes, or `ok` for an empty list.

        Raises:
            ValueError: a string is not an outcome.
        """
        seen = {cls(outcome) for outcome in outcomes}
        return next((outcome for outcome in cls if outcome in seen), cls.OK)


CLOSED = ("integers zero", "integers at their least", "masks all false")  # names of values with which a mask hides all positions
CLOSED_ALONE = "only where a mask hides everything"


def only_closed(outcome: Outcome, values: Iterable[str]) -> bool:
    """Whether an outcome is wrong only for values with which a mask hides all positions.

    Args:
        values: for each failed check, the name of its values; empty if the check doesn't use other values.
    """
    failed = set(values)
    return outcome.silent and bool(failed) and failed <= set(CLOSED)


class Mark(StrEnum):
    """How pages count an export. `MASKED` counts as neither right nor wrong: real inputs don't mask everything, but eager has an answer."""

    OK = "ok"
    MASKED = "masked"
    NARROW = "narrow"
    REFUSED = "refused"
    FAILED = "failed"
    WARNED = "warned"
    SILENT = "silent"

    @property
    def works(self) -> bool:
        """Whether the export can be timed and compared: its answers match eager's, except where a mask hides everything."""
        return self in (Mark.OK, Mark.MASKED)

    @property
    def meaning(self) -> str:
        """The meaning in a few words."""
        return _MARKS[self]

    @property
    def sign(self) -> str:
        """The one-character sign in tables that count by mark."""
        return "◐" if self is Mark.MASKED else Outcome.OK.sign if self is Mark.OK else self[0].upper()


_MARKS = {
    Mark.OK: "right",
    Mark.MASKED: "right except where a mask hides everything",
    Mark.NARROW: "right, but rejects some sizes",
    Mark.REFUSED: "refused by the exporter",
    Mark.FAILED: "failed with an error",
    Mark.WARNED: "wrong, with a warning",
    Mark.SILENT: "silently wrong",
}


def mark(outcome: Outcome, values: Iterable[str] = (), warned: bool = False) -> Mark:
    """Return the mark of an export.

    Args:
        values: for each failed check, the name of its values; empty if the check doesn't use other values.
        warned: whether a message names the cause.
    """
    if only_closed(outcome, values):
        return Mark.MASKED
    if outcome.silent:
        return Mark.WARNED if warned else Mark.SILENT
    if outcome in (Outcome.OK, Outcome.NARROW):
        return Mark(str(outcome))
    return Mark.REFUSED if outcome.refused else Mark.FAILED


_COLORS = {
    Outcome.OK: "#009E73",
    Outcome.WRONG: "#D55E00",
    Outcome.FROZEN: "#E69F00",
    Outcome.NARROW: "#F0E442",
    Outcome.CAPTURE: "#56B4E9",
    Outcome.CONVERT: "#0072B2",
    Outcome.LOAD: "#CC79A7",
    Outcome.RUN: "#CC79A7",
    Outcome.TIMEOUT: "#999999",
    Outcome.CRASH: "#999999",
    Outcome.SKIPPED: "#999999",
}
_SIGNS = {
    Outcome.WRONG: "W",
    Outcome.FROZEN: "F",
    Outcome.CRASH: "X",
    Outcome.TIMEOUT: "T",
    Outcome.RUN: "R",
    Outcome.LOAD: "L",
    Outcome.NARROW: "N",
    Outcome.CONVERT: "V",
    Outcome.CAPTURE: "C",
    Outcome.SKIPPED: "–",
    Outcome.OK: "✓",
}
_MEANINGS = {
    Outcome.WRONG: "the model ran, but numbers, shapes, dtypes or structure differ from eager",
    Outcome.FROZEN: "right at the size of the export, different at another: a size or a branch was specialised",
    Outcome.CRASH: "the process died",
    Outcome.TIMEOUT: "the process was ended",
    Outcome.RUN: "the runtime refused the call at the size of the export",
    Outcome.LOAD: "the runtime refused the model",
    Outcome.NARROW: "right where it answers, but a guard or the runtime refuses a requested size",
    Outcome.CONVERT: "refused by the conversion that follows the capture",
    Outcome.CAPTURE: "refused by the capture of the model",
    Outcome.SKIPPED: "not run, or not judged because eager itself is too inexact",
    Outcome.OK: "right at all sizes given, those of the export and others",
}
