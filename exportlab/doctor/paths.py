"""Record the lines of the user's code that a call executes, and find the branch at which two calls diverge."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from torch import nn

from .lines import SourceLine, is_own, source_line

LONGEST = 20_000  # maximum number of recorded lines
Path = list[tuple[str, int]]


class _Watch:
    """A trace function that records the executed lines of the user's code during one call of a function."""

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
    """Return the lines that a call executes during the first run of the module's `forward`.

    Raises:
        Any exception of the call.
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
    """Return the last line before two calls diverge, or None if they don't."""
    pairs = zip(one, other, strict=False)
    same = next((i for i, (mine, its) in enumerate(pairs) if mine != its), min(len(one), len(other)))
    if same == 0 or same == len(one) == len(other):
        return None
    return source_line(*one[same - 1])
