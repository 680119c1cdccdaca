"""What a known error is, and running it: its reproducer has to fail as it says, its fixes have to be right.

A package registers the errors that it knows under the entry-point group `exportlab.known_errors`, by a function that takes nothing and
returns a list of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from torch import nn

from ..cases import Inputs
from ..entry_points import listed
from ..exporters import Exported
from ..messages import chain, heard
from ..outcomes import Outcome
from ..said import ANSI
from ..verification.report import Report
from ..verification.verify import verify

GROUP = "exportlab.known_errors"
STAGES = {
    "silent": "nothing is raised, and the answer is wrong",
    "capture": "the model becomes a graph, mostly by torch.export",
    "decomposition": "operators become simpler ones",
    "translation": "operators become ONNX",
    "optimiser": "the graph is made smaller",
    "saving": "the file is written",
    "load": "the runtime reads the file",
    "run": "the runtime runs it",
}
WAYS = ("change the model", "change the call", "patch", "another exporter")
Claim = tuple[Exported, nn.Module, Sequence[Inputs]]
"""What was exported, the module it has to agree with, and samples: that of the export first, then sizes it never saw."""


@dataclass(frozen=True)
class Fix:
    """A way past an error: one of `WAYS`, and a function that goes it. The docstring of the function says what it does."""

    way: str
    make: Callable[[], Claim]

    @property
    def doc(self) -> str:
        """What it does, and what it costs."""
        return inspect.getdoc(self.make) or ""

    @property
    def line(self) -> str:
        """Return the way, and in one sentence without Markdown what is done."""
        return f"{self.way}: {self.doc.partition('. ')[0].rstrip('.').replace('`', '')}"


@dataclass(frozen=True)
class KnownError:
    """An error that people meet.

    Args:
        stage: one of `STAGES`.
        message: a regular expression found in the message; of a silent one, in what `verify` says.
        breaks: fails in this way: it raises, or what it returns is not right.
        fixes: ways past it, the best first.
        threads: where it is discussed, as `owner/repository#number`.
        check: of a silent one, the check of `verify` that finds it.
        op: a regular expression found in the name of the captured operator that does it, or in the line that calls it, where that tells it
            from others that look the same. A silent one without it is recognised in no other model: many things make the same numbers.
        kin: a regular expression found in messages that mean the same for the code, though they are not this error's.
        advice: the smallest change of the code that gets past these, in one line.
    """

    stage: str
    message: str
    breaks: Callable[[], Claim]
    fixes: tuple[Fix, ...]
    threads: tuple[str, ...] = ()
    check: str = ""
    kin: str = ""
    advice: str = ""
    op: str = ""

    @property
    def name(self) -> str:
        """The name of its module."""
        return self.breaks.__module__.rpartition(".")[2]

    @property
    def title(self) -> str:
        """What a person would type."""
        return self._doc().split("\n")[0]

    @property
    def page(self) -> str:
        """Its address on the site."""
        return f"generated/errors/{self.name}.html"

    @property
    def why(self) -> str:
        """Why it happens, in Markdown."""
        return self._doc().partition("\n")[2].strip()

    def _doc(self) -> str:
        return inspect.getdoc(inspect.getmodule(self.breaks)) or ""


@dataclass(frozen=True)
class Reproduced:
    """What a reproducer did: the message, and what was raised or reported."""

    message: str
    error: Exception | None = None
    report: Report | None = None


class OutOfDate(AssertionError):
    """A known error that no longer fails as it says, or a fix that is none."""


@cache
def registered() -> tuple[KnownError, ...]:
    """Return every known error that an installed package registers, by stage, the silent ones first.

    Raises:
        BrokenEntryPoint: what a package registers cannot be used.
    """
    return tuple(sorted(listed(GROUP, KnownError).values(), key=lambda error: (list(STAGES).index(error.stage), error.name)))


def get(name: str) -> KnownError:
    """Return the known error of this name.

    Raises:
        KeyError: there is none.
    """
    return {error.name: error for error in registered()}[name]


def recognise(message: BaseException | str) -> list[KnownError]:
    """Return the known errors whose pattern is found in a message, or in that of an error or its causes; the longest match first."""
    said = message if isinstance(message, str) else text_of(message)
    found = [(match, error) for error in registered() if (match := re.search(error.message, said))]
    return [error for match, error in sorted(found, key=lambda pair: -len(pair[0][0]))]


def smallest_change(message: str, known: KnownError | None = None) -> str:
    """Return what to change in one line: the first fix of the error that a message was recognised as, else the advice of its kin."""
    if known and known.fixes:
        return known.fixes[0].line
    return next((error.advice for error in registered() if error.kin and re.search(error.kin, message)), "")


def text_of(error: BaseException) -> str:
    """Return the messages of an error and its causes, the first cause first, colours removed."""
    return "\n".join(f"{type(cause).__name__}: {ANSI.sub('', str(cause)).strip()}" for cause in reversed(list(chain(error))))


def reproduced(error: KnownError) -> Reproduced:
    """Run the reproducer.

    Raises:
        OutOfDate: it does not fail, or not with this message, or raises though it is said to be silent.
    """
    seen = _seen(error)
    if not re.search(error.message, seen.message):
        raise OutOfDate(f"{error.name}: the message is another: {seen.message}") from seen.error
    if error.stage == "silent" and seen.error is not None:
        raise OutOfDate(f"{error.name}: it is said to be silent, and it raises: {seen.message}") from seen.error
    return seen


def _seen(error: KnownError) -> Reproduced:
    try:
        with heard():
            claim = error.breaks()
    except Exception as raised:  # noqa: BLE001 - whatever it raises is held against the message that it is known by
        return Reproduced(text_of(raised), error=raised)
    report = _verified(claim)
    if report.outcome == Outcome.OK:
        raise OutOfDate(f"{error.name}: this does not fail any more")
    return Reproduced("\n".join(f"{c.name}: {c.detail}" for c in report.failed), report=report)


def fixed(fix: Fix) -> Report:
    """Go a way past an error, and verify what comes out at sizes that the export never saw.

    Raises:
        OutOfDate: what comes out is not right, or it was looked at in one size only. What the fix raises is raised as it is.
    """
    with heard():
        claim = fix.make()
    if len(claim[2]) < 2:
        raise OutOfDate(f"{fix.make.__qualname__}: a fix is verified at sizes that the export never saw")
    report = _verified(claim)
    if report.outcome != Outcome.OK:
        raise OutOfDate(f"{fix.make.__module__}.{fix.make.__name__} does not fix it:\n{report}")
    return report


def _verified(claim: Claim) -> Report:
    with heard():
        return verify(*claim)
