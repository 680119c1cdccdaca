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
from ..diagnostics import ANSI
from ..entry_points import collect_by_name
from ..exporters import Exported
from ..messages import chain, heard
from ..outcomes import Outcome
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
ANY_NUMBERS = re.compile(r"(?:export inputs|unseen size|other values|called twice): output")  # many defects make the same numbers
QUOTED = re.compile(r'File "(?!(?:[^"\n]*/)?(?:site-packages|torch)/)[^"\n]+", line \d+[^\n]*\n[ \t]*([^\n]+)')
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
            from others that have the same message.
        kin: a regular expression found in messages that this error may be the cause of, though others are as likely.
        advice: the smallest change of the code that gets past these, in one line.
        wraps: whether the message is put around another one, which is what has to be known.
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
    wraps: bool = False

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
def load_known_errors() -> tuple[KnownError, ...]:
    """Return every known error that an installed package registers, by stage, the silent ones first.

    Raises:
        BrokenEntryPoint: what a package registers cannot be used.
    """
    return tuple(sorted(collect_by_name(GROUP, KnownError).values(), key=lambda error: (list(STAGES).index(error.stage), error.name)))


def get(name: str) -> KnownError:
    """Return the known error of this name.

    Raises:
        KeyError: there is none.
    """
    return {error.name: error for error in load_known_errors()}[name]


def recognise(message: BaseException | str, code: str | None = None) -> list[KnownError]:
    """Return the known errors that a message, or that of an error or its causes, can only be of; the longest match first.

    Args:
        code: the line of the user's or the operator that the message is about; else the lines that the message quotes.
    """
    said = message if isinstance(message, str) else text_of(message)
    return [error for error, is_sure in _found(said, extract_quoted_code(said) if code is None else code) if is_sure]


def candidates(message: str, code: str | None = None) -> list[KnownError]:
    """Return the known errors that a message may be of, where others have the same message: nothing in it tells which one it is."""
    found = _found(message, extract_quoted_code(message) if code is None else code)
    sure = [error for error, is_sure in found if is_sure]
    return [error for error in dict.fromkeys([*(error for error, _ in found), *_kin(message)]) if error not in sure]


def _kin(message: str) -> list[KnownError]:
    return [error for error in load_known_errors() if error.kin and re.search(error.kin, message)]


def extract_quoted_code(message: str) -> str:
    """Return the lines of code that a message or a traceback quotes, those of installed packages left out."""
    return "\n".join(QUOTED.findall(message))


def _found(said: str, code: str) -> list[tuple[KnownError, bool]]:
    """The errors whose pattern is found, the longest match first, and whether it can be no other; what only wraps another comes last."""
    found = [(match[0], error) for error in load_known_errors() if (match := re.search(error.message, said))]
    alone = len(found) == 1 and not _kin(said)
    judged = [(match, error, (alone or not error.wraps) and _is_sure(match, error, code)) for match, error in found]
    judged.sort(key=lambda one: (one[1].wraps, not (one[2] and one[1].op), -len(one[0])))  # what the line confirms comes first
    return [(error, is_sure) for _, error, is_sure in judged]


def _is_sure(match: str, error: KnownError, code: str) -> bool:
    return bool(re.search(error.op, code, re.MULTILINE)) if error.op else not ANY_NUMBERS.match(match)


def smallest_change(message: str, known: KnownError | None = None, code: str = "") -> str:
    """Return what to change in one line: the first fix of the error that a message was recognised as, else the advice of its kin."""
    if known and known.fixes:
        return known.fixes[0].line
    kin = [error for error in _kin(message) if error.advice]
    at_this_line = [error for error in kin if error.op and re.search(error.op, code)]
    return next((error.advice for error in (*at_this_line, *kin)), "")


def text_of(error: BaseException) -> str:
    """Return the messages of an error and its causes, the first cause first, colours removed."""
    return "\n".join(f"{type(cause).__name__}: {ANSI.sub('', str(cause)).strip()}" for cause in reversed(list(chain(error))))


def reproduce(error: KnownError) -> Reproduced:
    """Run the reproducer.

    Raises:
        OutOfDate: it does not fail, or not with this message, or raises though it is said to be silent.
    """
    seen = _run_reproducer(error)
    if not re.search(error.message, seen.message):
        raise OutOfDate(f"{error.name}: the message is another: {seen.message}") from seen.error
    if error.stage == "silent" and seen.error is not None:
        raise OutOfDate(f"{error.name}: it is said to be silent, and it raises: {seen.message}") from seen.error
    return seen


def _run_reproducer(error: KnownError) -> Reproduced:
    try:
        with heard():
            claim = error.breaks()
    except Exception as raised:  # noqa: BLE001 - whatever it raises is held against the message that it is known by
        return Reproduced(text_of(raised), error=raised)
    report = _verify_claim(claim)
    if report.outcome == Outcome.OK:
        raise OutOfDate(f"{error.name}: this does not fail any more")
    return Reproduced("\n".join(f"{c.name}: {c.detail}" for c in report.failed), report=report)


def verify_fix(fix: Fix) -> Report:
    """Go a way past an error, and verify what comes out at sizes that the export never saw.

    Raises:
        OutOfDate: what comes out is not right, or it was looked at in one size only. What the fix raises is raised as it is.
    """
    with heard():
        claim = fix.make()
    if len(claim[2]) < 2:
        raise OutOfDate(f"{fix.make.__qualname__}: a fix is verified at sizes that the export never saw")
    report = _verify_claim(claim)
    if report.outcome != Outcome.OK:
        raise OutOfDate(f"{fix.make.__module__}.{fix.make.__name__} does not fix it:\n{report}")
    return report


def _verify_claim(claim: Claim) -> Report:
    with heard():
        return verify(*claim)
