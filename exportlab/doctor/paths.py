"""Watch which of the user's lines a call goes through, and where two calls part: the branch that one of them did not take."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
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
    _trace_call(watch, call)
    return watch.path


def _trace_call(watch: Callable[[FrameType, str, Any], Any], call: Callable[[], Any]) -> None:
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
