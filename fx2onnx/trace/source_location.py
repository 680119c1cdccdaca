"""Locations in the user's code: the innermost frame outside torch and this package."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import CodeType, FrameType
from typing import Any, TypeAlias

import sympy

from ..compat.shape_env import ShapeEnv, sizes_known_to, uninteresting_files
from ..compat.symbols import ValueRanges, int_oo
from ..errors import shown_path
from ..libraries import CAPTURE, NUMPY, PACKAGE, TORCH, is_in

CodeLocation: TypeAlias = tuple[CodeType, Any]  # a position in a function
FRAME = re.compile(r'File "(?P<path>.*)", line (?P<line>\d+), in (?P<name>.*)')


def line_of(frame: Any) -> str:
    """Return `file.py:14 in forward` of the innermost frame outside torch and this package."""
    found = outside(frame)
    return f"{shown_path(found.f_code.co_filename)}:{found.f_lineno} in {found.f_code.co_name}" if found is not None else "an unknown line"


def frame_text(frame: Any) -> str:
    """Return the innermost frame outside torch in the format of a traceback."""
    found = outside(frame)
    return f'File "{found.f_code.co_filename}", line {found.f_lineno}, in {found.f_code.co_name}' if found is not None else ""


def line_in(text: str) -> str:
    """Return `file.py:14 in forward` for a frame in the format of a traceback."""
    found = FRAME.match(text)
    return f"{shown_path(found['path'])}:{found['line']} in {found['name']}" if found else "an unknown line"


def outside(frame: Any) -> Any:
    """Return the innermost frame that is outside torch and the capture; None if the model contains only torch's code."""
    while frame is not None and is_within_torch(frame.f_code.co_filename):
        frame = frame.f_back
    return frame if frame is not None and not is_in(frame.f_code.co_filename, PACKAGE) else None


def python_frames(frame: Any) -> Iterator[Any]:
    """Yield the active frames of the model, innermost first."""
    while (frame := outside(frame)) is not None:
        yield frame
        frame = frame.f_back


def place_of(frame: FrameType) -> CodeLocation:
    """Return the location of a frame by line and column, because calls of C and Python functions differ in instruction offsets."""
    return frame.f_code, next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)


class Environment(ShapeEnv):
    """The ShapeEnv of traced runs, which does not specialise sizes for being 0, 1 or equal.

    Attributes:
        of_turns: tests of the number of iterations of a loop, which have one outcome per number.
        followed: the calls of example runs whose guards it has recorded, by what else decides such a run.
        iterations: the symbols of the iteration numbers of loops.
        has_longer_runs: whether it has also recorded guards of runs at sizes at which loops have several iterations.
        fresh: symbols of data-dependent sizes and numbers.
    """

    def __init__(self) -> None:
        super().__init__(specialize_zero_one=False, duck_shape=False)
        self.of_turns: set[Any] = set()
        self.followed: dict[Any, Sequence[Any]] = {}
        self.has_longer_runs = False
        self.fresh: set[Any] = set()
        self.iterations: dict[int, Any] = {}

    def add_fresh(self, symbol: Any, number: int) -> None:
        """Add a data-dependent symbol with its value in this run."""
        self.fresh.add(symbol)
        self.var_to_range[symbol] = ValueRanges(0 if symbol.is_nonnegative else -int_oo, int_oo)
        sizes_known_to(self)[symbol] = sympy.Integer(number)

    def _maybe_guard_rel(self, expr: Any) -> None:  # type: ignore[override]  # torch caches its own
        """Let torch simplify by a guard, except for data-dependent symbols, because the exported model reads those."""
        if self.fresh.isdisjoint(expr.free_symbols):
            super()._maybe_guard_rel(expr)

    def has_followed_at(self, sizes: Mapping[Any, int]) -> bool:
        """Return whether it has recorded the guards of runs at these sizes and of no longer ones."""
        known = sizes_known_to(self)
        return bool(self.followed) and not self.has_longer_runs and all(known.get(symbol) == size for symbol, size in sizes.items())

    def _get_user_frame(self) -> Any:
        """The frame that a guard is attributed to: the caller of this package, if that is between the model and torch."""
        noted: Any = sys._getframe(1)
        while noted is not None and noted.f_code.co_filename in uninteresting_files():
            noted = noted.f_back
        frame = noted
        while frame is not None and is_in(frame.f_code.co_filename, *CAPTURE):
            frame = frame.f_back
            while frame is not None and frame.f_code.co_filename in uninteresting_files():
                frame = frame.f_back
        if frame is not None and is_in(frame.f_code.co_filename, TORCH):
            frame = outside(frame) if frame is not noted else None  # torch passed a call of the model to this package
        return noted if frame is None else frame


def is_within_torch(path: str) -> bool:
    """Return whether a file belongs to torch, NumPy or the capture."""
    return is_in(path, TORCH, NUMPY, *CAPTURE, "<")
