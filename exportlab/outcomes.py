"""One word for what became of an export, and the mark that pages count it by.

An `Outcome` has its order of seriousness, whether it is silent, its colour, sign, grade and meaning. Of several outcomes a page makes one
`Mark`, by `mark` alone, so that every page counts the same export alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """What became of an export; the most serious stands first. Equal to its own word, and printed as it."""

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

    __repr__ = str.__repr__  # lists of outcomes are printed on pages

    @property
    def silent(self) -> bool:
        """Whether a wrong answer comes without an error; what was said nevertheless, a record knows."""
        return self in (Outcome.WRONG, Outcome.FROZEN)

    @property
    def refused(self) -> bool:
        """Whether the exporter itself said no."""
        return self in (Outcome.CONVERT, Outcome.CAPTURE)

    @property
    def grade(self) -> int:
        """0 for right, 1 for a failure that is known, 2 for a silent one: a higher grade than before is a step back."""
        return 2 if self.silent else 0 if self is Outcome.OK else 1

    @property
    def color(self) -> str:
        """As `#RRGGBB`, of Okabe and Ito's palette, which stays apart under the common forms of colour blindness."""
        return _COLORS[self]

    @property
    def sign(self) -> str:
        """One character, for the cells of the support matrix."""
        return _SIGNS[self]

    @property
    def meaning(self) -> str:
        """What it says, in one sentence."""
        return _MEANINGS[self]

    @classmethod
    def worst(cls, outcomes: Iterable[str]) -> Outcome:
        """Return the most serious of these; `ok` when there is none.

        Raises:
            ValueError: one of them is no outcome.
        """
        seen = {cls(outcome) for outcome in outcomes}
        return next((outcome for outcome in cls if outcome in seen), cls.OK)


CLOSED = ("integers zero", "integers at their least", "masks all false")  # values at which a mask hides everything
CLOSED_ALONE = "only where a mask hides everything"


def only_closed(outcome: Outcome, values: Iterable[str]) -> bool:
    """Whether an outcome is wrong, and all that failed were answers to values at which a mask hides everything.

    Args:
        values: of each check that failed, the name of the values; empty where it was no check of other values.
    """
    failed = set(values)
    return outcome.silent and bool(failed) and failed <= set(CLOSED)


class Mark(StrEnum):
    """What pages count an export as. `MASKED` is neither right nor wrong: no text is hidden as a whole, and eager does answer there."""

    OK = "ok"
    MASKED = "masked"
    NARROW = "narrow"
    REFUSED = "refused"
    FAILED = "failed"
    WARNED = "warned"
    SILENT = "silent"

    @property
    def works(self) -> bool:
        """Whether it can be timed, and compared with what others took: its answers are eager's wherever a mask leaves something."""
        return self in (Mark.OK, Mark.MASKED)

    @property
    def meaning(self) -> str:
        """What it says, in a few words."""
        return _MARKS[self]

    @property
    def sign(self) -> str:
        """One character, for what is counted by its mark and not by its outcome."""
        return "◐" if self is Mark.MASKED else Outcome.OK.sign if self is Mark.OK else self[0].upper()


_MARKS = {
    Mark.OK: "right",
    Mark.MASKED: "right except where a mask hides everything",
    Mark.NARROW: "right, and refuses a size",
    Mark.REFUSED: "refused by the exporter",
    Mark.FAILED: "failed with an error",
    Mark.WARNED: "wrong, with a warning",
    Mark.SILENT: "wrong without a word",
}


def mark(outcome: Outcome, values: Iterable[str] = (), warned: bool = False) -> Mark:
    """Return what an export counts as.

    Args:
        values: of each check that failed, the name of the values; empty where it was no check of other values.
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
    Outcome.WRONG: "it ran, and the numbers, shapes, dtypes or structure differ",
    Outcome.FROZEN: "right at the size of the export, and differs at another: a size or a branch became a constant",
    Outcome.CRASH: "the process died",
    Outcome.TIMEOUT: "the process was ended",
    Outcome.RUN: "the runtime refused the call at the export's own size",
    Outcome.LOAD: "the runtime refused the file",
    Outcome.NARROW: "right where it answers; a size that was asked for is refused, by a guard or by the runtime",
    Outcome.CONVERT: "refused by the conversion that follows the capture",
    Outcome.CAPTURE: "refused by the capture of the model",
    Outcome.SKIPPED: "not tried, or not judged: eager itself is too inexact there",
    Outcome.OK: "right at every size given, those of the export and others",
}
