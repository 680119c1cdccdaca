"""Watch which of the user's lines a call goes through, and where two calls part: the branch that one of them did not take."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from torch import nn

from .lines import SourceLine, is_own, source_line

LONGEST = 20_000  # lines of a call that are watched
Path = list[tuple[str, int]]


class _Watch:
    """A tracer of one call of a function, which notes the lines of the user's own that are run until it returns."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.path: Path = []
        self.outermost: FrameType | None = None
        self.done = False
        self.own: dict[str, bool] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.outermost is None and frame.f_code is self.code and not self.done:
            self.outermost = frame
        if self.outermost is None or len(self.path) > LONGEST or not self._is_own(frame.f_code.co_filename):
            return None
        if event == "line":
            self.path.append((frame.f_code.co_filename, frame.f_lineno))
        if event == "return" and frame is self.outermost:
            self.outermost, self.done = None, True
        return self

    def _is_own(self, file: str) -> bool:
        if file not in self.own:
            self.own[file] = is_own(file)
        return self.own[file]


def path_of(module: nn.Module, call: Callable[[], Any]) -> Path:
    """Return the lines that a call goes through while it is in the module's `forward` for the first time.

    Raises:
        whatever the call raises.
    """
    watch = _Watch(inspect.unwrap(type(module).forward).__code__)
    _traced(watch, call)
    return watch.path


def _traced(watch: Callable[[FrameType, str, Any], Any], call: Callable[[], Any]) -> None:
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        call()
    finally:
        sys.settrace(before)


def parting(one: Path, other: Path) -> SourceLine | None:
    """Return the last line before two calls go different ways; None where they do not."""
    pairs = zip(one, other, strict=False)
    same = next((i for i, (mine, its) in enumerate(pairs) if mine != its), min(len(one), len(other)))
    if same == 0 or same == len(one) == len(other):
        return None
    return source_line(*one[same - 1])


@dataclass(frozen=True)
class Seen:
    """What a line could read when it was about to run: the names of its module, and its own."""

    names: Mapping[str, Any]
    own: Mapping[str, Any]

    def value(self, expression: str) -> Any:
        """Evaluate an expression there.

        Raises:
            whatever it raises.
        """
        return eval(expression, dict(self.names), dict(self.own))


def seen_at(file: str, line: int, calls: Sequence[Callable[[], Any]]) -> list[Seen]:
    """Return what a line saw at first in each of these calls; nothing of one that does not come there."""
    found: list[Seen] = []
    for call in calls:
        here: list[Seen] = []

        def watch(frame: FrameType, event: str, arg: Any, here: list[Seen] = here) -> Any:
            if here or frame.f_code.co_filename != file:
                return None
            if event == "line" and frame.f_lineno == line:
                here.append(Seen(frame.f_globals, dict(frame.f_locals)))
            return watch

        _traced(watch, call)
        found += here
    return found
