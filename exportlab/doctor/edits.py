"""Give the live functions of a model the code of a changed file, for as long as a trial lasts, and show what changed as lines to paste."""

from __future__ import annotations

import difflib
import gc
import linecache
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

from .rewrite import Change

NEAR = 3  # lines between two changes that are shown as one


@dataclass(frozen=True)
class Draft:
    """A file of the user's, and its text as it is to be; the file itself is never written.

    Attributes:
        shown: where the text lies, so that a traceback can quote it.
    """

    file: str
    text: str
    shown: str

    def with_change(self, change: Change, folder: Path, number: int) -> Draft:
        """Return the draft with one more change, written beside the others."""
        lines = self.text.splitlines()
        kept = [*lines[: change.first - 1], *change.text.splitlines(), *lines[change.last :]]
        shown = folder / f"draft_{number}" / Path(self.file).name
        shown.parent.mkdir()
        shown.write_text("\n".join(kept) + "\n", encoding="utf-8")
        return Draft(self.file, "\n".join(kept) + "\n", str(shown))


def draft_of(file: str) -> Draft:
    """Return the file as it is."""
    return Draft(file, "".join(linecache.getlines(file)), file)


@contextmanager
def use_draft(draft: Draft) -> Iterator[None]:
    """Let every function that came from the file run what the draft says.

    Raises:
        SyntaxError: the draft is no Python.
    """
    new = dict(_codes(compile(draft.text, draft.shown, "exec")))
    live = [function for function in _functions(draft.file) if function.__code__.co_qualname in new]
    old = [(function, function.__code__) for function in live]
    try:
        for function in live:
            code = new[function.__code__.co_qualname]
            if code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code
        yield
    finally:
        for function, code in old:
            function.__code__ = code


def _functions(file: str) -> list[FunctionType]:
    with _unfreeze_gc():
        return [found for found in gc.get_objects() if type(found) is FunctionType and found.__code__.co_filename == file]


@contextmanager
def _unfreeze_gc() -> Iterator[None]:
    """While it lasts, the collector lists what it does not in a fork, which freezes all that it inherits; it collects nothing."""
    frozen, enabled = gc.get_freeze_count(), gc.isenabled()
    gc.disable()
    gc.unfreeze()
    try:
        yield
    finally:
        if frozen:
            gc.freeze()
        if enabled:
            gc.enable()


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The functions of a module and of its classes, and of its functions, by qualified name."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant.co_qualname, constant
            yield from _codes(constant)


def blocks(draft: Draft, where: str) -> str:
    """Return what differs from the file as lines to paste, each block under a comment that says where it goes. `where`: its shown name."""
    old, new = "".join(linecache.getlines(draft.file)).splitlines(), draft.text.splitlines()
    return "\n".join(_block(span, old, new, where) for span in _spans(old, new))


Span = tuple[int, int, int, int]


def _spans(old: list[str], new: list[str]) -> list[Span]:
    """First and last line, in the old text and the new, of all that differs; what is near another change is one with it."""
    spans: list[Span] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if spans and a - spans[-1][1] <= NEAR:
            spans[-1] = (spans[-1][0], b, spans[-1][2], d)
        else:
            spans.append((a, b, c, d))
    return [span if span[0] < span[1] else _include_line_before(span) for span in spans]


def _include_line_before(span: Span) -> Span:
    a, b, c, d = span
    return a - 1, b, c - 1, d


def _block(span: Span, old: list[str], new: list[str], where: str) -> str:
    a, b, c, d = span
    to = f" to {b}" if b > a + 1 else ""
    if c == d:
        return f"# delete {where}:{a + 1}{to}\n" + textwrap.indent("\n".join(old[a:b]), "# ", lambda _: True)
    return f"# in place of {where}:{a + 1}{to}\n" + "\n".join(new[c:d])
