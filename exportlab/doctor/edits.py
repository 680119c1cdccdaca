"""Run a model with a changed version of its source file during a trial, and show the change as lines to paste."""

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

NEAR = 3  # changes with at most this many lines between them are shown as one


@dataclass(frozen=True)
class Draft:
    """A changed version of a user's file. The file itself is not modified.

    Attributes:
        shown: path of a copy with the changed text, so that tracebacks can quote it.
    """

    file: str
    text: str
    shown: str

    def with_change(self, change: Change, folder: Path, number: int) -> Draft:
        """Return the draft with one more change, and write its text to `folder`."""
        lines = self.text.splitlines()
        kept = [*lines[: change.first - 1], *change.text.splitlines(), *lines[change.last :]]
        shown = folder / f"draft_{number}" / Path(self.file).name
        shown.parent.mkdir()
        shown.write_text("\n".join(kept) + "\n", encoding="utf-8")
        return Draft(self.file, "\n".join(kept) + "\n", str(shown))


def draft_of(file: str) -> Draft:
    """Return a draft of a file without changes."""
    return Draft(file, "".join(linecache.getlines(file)), file)


@contextmanager
def use_draft(draft: Draft) -> Iterator[None]:
    """Replace the code of the file's functions by that of the draft.

    Raises:
        SyntaxError: the draft is not valid Python.
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
    """Unfreeze the garbage collector, so that `gc.get_objects` includes inherited objects in a forked process. Collection is disabled."""
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
    """Yield all functions of a module, including methods and nested functions, by qualified name."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant.co_qualname, constant
            yield from _codes(constant)


def blocks(draft: Draft, where: str) -> str:
    """Return the changes of a file as lines to paste, with a comment above each block for its position. `where`: the displayed path."""
    old, new = "".join(linecache.getlines(draft.file)).splitlines(), draft.text.splitlines()
    return "\n".join(_block(span, old, new, where) for span in _spans(old, new))


Span = tuple[int, int, int, int]


def _spans(old: list[str], new: list[str]) -> list[Span]:
    """Return the first and last line of each change in the old and the new text. Nearby changes are merged."""
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
