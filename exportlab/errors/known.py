"""Known errors, and how to check them: the reproducer has to fail with the documented message, and each fix has to pass `verify`.

A package registers its known errors under the entry-point group `exportlab.known_errors`, with a function that takes no arguments and
returns a list of `KnownError`.
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
    "silent": "no error is raised, but the output is wrong",
    "capture": "the model is captured as a graph, usually by torch.export",
    "decomposition": "operators are decomposed into simpler ones",
    "translation": "operators are translated to ONNX",
    "optimiser": "the graph is optimised",
    "saving": "the file is written",
    "load": "the runtime loads the file",
    "run": "the runtime runs the model",
}
ANY_NUMBERS = re.compile(r"(?:export inputs|unseen size|other values|called twice): output")  # many defects cause such messages
QUOTED = re.compile(r'File "(?!(?:[^"\n]*/)?(?:site-packages|dist-packages|torch)/)[^"\n]+", line \d+[^\n]*\n[ \t]*([^\n]+)')
FIRST_SENTENCE = re.compile(r"\.(?:\s+|$)")  # where the first sentence of a docstring ends
WAYS = ("change the model", "change the call", "patch", "another exporter")
Claim = tuple[Exported, nn.Module, Sequence[Inputs]]
"""The exported model, the module to compare it with, and samples: first the sample of the export, then other sizes."""


@dataclass(frozen=True)
class Fix:
    """A fix: its kind, one of `WAYS`, and a function that applies it. The first sentence of the function's docstring is the fix's name."""

    way: str
    make: Callable[[], Claim]

    @property
    def doc(self) -> str:
        """Its name, what it does, and what it costs."""
        return inspect.getdoc(self.make) or ""

    @property
    def name(self) -> str:
        """Return the first sentence of its docstring, in Markdown and without the full stop."""
        return " ".join(FIRST_SENTENCE.split(self.doc, maxsplit=1)[0].split())

    @property
    def text(self) -> str:
        """Return its docstring after the first sentence."""
        return "".join(FIRST_SENTENCE.split(self.doc, maxsplit=1)[1:])

    @property
    def line(self) -> str:
        """Return its kind and its name, without Markdown."""
        return f"{self.way}: {self.name.replace('`', '')}"


@dataclass(frozen=True)
class KnownError:
    """An error that people meet.

    Args:
        stage: one of `STAGES`.
        message: a regular expression that matches the message, or the report of `verify` if the error is silent.
        breaks: reproduces the error: it raises, or returns an exported model that is wrong.
        fixes: the fixes, best first within each kind.
        threads: public discussions, as `owner/repository#number`.
        check: the check of `verify` that finds the error, if the error is silent.
        op: a regular expression that matches the captured operator that causes the error, or the line that calls it. Needed if other errors
            have the same message.
        kin: a regular expression that matches messages with several likely causes, of which this error is one.
        advice: the smallest change to the code for messages that match `kin`, in one line.
        wraps: whether the message only wraps another message, which has the cause.
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
        """Return the name of its module."""
        return self.breaks.__module__.rpartition(".")[2]

    @property
    def title(self) -> str:
        """Return what a user would search for."""
        return self._doc().split("\n")[0]

    @property
    def page(self) -> str:
        """Return its address on the site."""
        return f"generated/errors/{self.name}.html"

    @property
    def why(self) -> str:
        """Return its cause, in Markdown."""
        return self._doc().partition("\n")[2].strip()

    def _doc(self) -> str:
        return inspect.getdoc(inspect.getmodule(self.breaks)) or ""


@dataclass(frozen=True)
class Reproduced:
    """The result of a reproducer: the message, and the exception or the report."""

    message: str
    error: Exception | None = None
    report: Report | None = None


class OutOfDate(AssertionError):
    """A known error that no longer fails as documented, or a fix that doesn't work."""


@cache
def load_known_errors() -> tuple[KnownError, ...]:
    """Return the known errors of all installed packages, sorted by stage, silent errors first.

    Raises:
        BrokenEntryPoint: a package registers something unusable.
    """
    return tuple(sorted(collect_by_name(GROUP, KnownError).values(), key=lambda error: (list(STAGES).index(error.stage), error.name)))


def get(name: str) -> KnownError:
    """Return the known error of this name.

    Raises:
        KeyError: no known error has this name.
    """
    return {error.name: error for error in load_known_errors()}[name]


def recognise(message: BaseException | str, code: str | None = None) -> list[KnownError]:
    """Return the known errors that a message identifies with certainty, the longest match first. An error's causes are searched too.

    Args:
        code: the user's line or the operator that the message is about. The default is the lines that the message quotes.
    """
    said = message if isinstance(message, str) else text_of(message)
    return [error for error, is_sure in _found(said, extract_quoted_code(said) if code is None else code) if is_sure]


def candidates(message: str) -> list[KnownError]:
    """Return the known errors that a message may belong to, if the message alone doesn't identify the cause."""
    found = _found(message, extract_quoted_code(message))
    sure = [error for error, is_sure in found if is_sure]
    return [error for error in dict.fromkeys([*(error for error, _ in found), *_kin(message)]) if error not in sure]


def _kin(message: str) -> list[KnownError]:
    return [error for error in load_known_errors() if error.kin and re.search(error.kin, message)]


def extract_quoted_code(message: str) -> str:
    """Return the lines of code that a message or a traceback quotes, without those of installed packages."""
    return "\n".join(QUOTED.findall(message))


def _found(said: str, code: str) -> list[tuple[KnownError, bool]]:
    """Return the errors whose pattern matches, and whether the match is certain. The longest match comes first, wrapping messages last."""
    found = [(match[0], error) for error in load_known_errors() if (match := re.search(error.message, said))]
    alone = len(found) == 1 and not _kin(said)
    judged = [(match, error, (alone or not error.wraps) and _is_sure(match, error, code)) for match, error in found]
    judged.sort(key=lambda one: (one[1].wraps, not (one[2] and one[1].op), -len(one[0])))  # what the line confirms comes first
    return [(error, is_sure) for _, error, is_sure in judged]


def _is_sure(match: str, error: KnownError, code: str) -> bool:
    return bool(re.search(error.op, code, re.MULTILINE)) if error.op else not ANY_NUMBERS.match(match)


def smallest_change(message: str, known: KnownError | None = None, code: str = "") -> str:
    """Return what to change, in one line: the first fix of the recognised error, or the advice of an error whose `kin` matches."""
    if known and known.fixes:
        return known.fixes[0].line
    kin = [error for error in _kin(message) if error.advice]
    at_this_line = [error for error in kin if error.op and re.search(error.op, code)]
    return next((error.advice for error in (*at_this_line, *kin)), "")


def text_of(error: BaseException) -> str:
    """Return the messages of an error and its causes without colours, the first cause first."""
    return "\n".join(f"{type(cause).__name__}: {ANSI.sub('', str(cause)).strip()}" for cause in reversed(list(chain(error))))


def reproduce(error: KnownError) -> Reproduced:
    """Run the reproducer.

    Raises:
        OutOfDate: it doesn't fail, has another message, or raises although the error is documented as silent.
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
    except Exception as raised:  # noqa: BLE001 - any exception is compared with the documented message
        return Reproduced(text_of(raised), error=raised)
    report = _verify_claim(claim)
    if report.outcome == Outcome.OK:
        raise OutOfDate(f"{error.name}: this does not fail any more")
    return Reproduced("\n".join(f"{c.name}: {c.detail}" for c in report.failed), report=report)


def verify_fix(fix: Fix) -> Report:
    """Apply a fix, and verify the result at sizes other than the exported one. Exceptions of the fix are passed on.

    Raises:
        OutOfDate: the result is wrong, or the fix has samples of one size only.
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
