"""Python's `while` with the test of a value, found by the place that asks."""

from __future__ import annotations

import ast
import linecache
from functools import cache, partial
from types import FrameType
from typing import Any

import torch

from .events import Ref
from .plan import Plan
from .refusal import Restart
from .source_location import CodeLocation, line_of, place_of

TESTS_ONCE = (ast.Call, ast.Name, ast.Attribute, ast.BinOp, ast.Subscript)  # expressions that ask for one truth value
LEFT = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.Yield, ast.YieldFrom, ast.Await, ast.Assert)


class Whiles:
    """Finds loops that tests of values end, by the places that ask a second time.

    Args:
        places: of those that are known.
    """

    def __init__(self, places: frozenset[CodeLocation] = frozenset()) -> None:
        self._places = places
        self._asked: set[CodeLocation] = set()

    def look(self, tracer: Any, tensor: torch.Tensor, ref: Ref, frame: FrameType | None) -> None:
        """Note a test.

        Raises:
            Restart: it is asked a second time by a `while`.
        """
        place = place_of(frame) if frame is not None else None
        if place is None or place in self._places:
            return
        is_fixed = tracer.loops is None and tracer.constness.depends_on_sizes(tensor, ref) is not None
        if place in self._asked and is_while(place) and not is_fixed:
            raise tracer.refuse(error_of_while(place, frame))
        self._asked.add(place)


def error_of_while(place: CodeLocation, frame: FrameType | None) -> Restart:
    """Return the error that restarts a run which has found a `while` that a value ends."""
    return Restart(f"a `while` has a condition on a value at {line_of(frame)}", partial(Plan.roll_while, place=place))


@cache
def is_while(place: CodeLocation) -> bool:
    """Return whether this is the whole test of a `while` that nothing else ends."""
    code, position = place
    return any(position in _spans(loop) and _is_plain(loop) for loop in _loops(code.co_filename))


@cache
def ends_it(place: CodeLocation) -> bool:
    """Return the answer that ends a `while` which is at this place: yes where it goes on while something is not."""
    code, position = place
    return any(position in _spans(loop) and _is_negated(loop.test) for loop in _loops(code.co_filename))


def _spans(loop: ast.While) -> list[tuple[Any, ...]]:
    """What Python may say of where the test of a loop is."""
    return [_span(loop), _span(loop.test), _span(_strip_not(loop.test))]


def _is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _strip_not(test: ast.expr) -> ast.expr:
    return test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test


@cache
def _loops(path: str) -> list[ast.While]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:  # a cell of a notebook with commands of its own
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.While)]


def _span(node: ast.expr | ast.stmt) -> tuple[Any, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _is_plain(loop: ast.While) -> bool:
    test = _strip_not(loop.test)
    tests_once = len(test.ops) == 1 if isinstance(test, ast.Compare) else isinstance(test, TESTS_ONCE)
    return tests_once and not loop.orelse and not any(isinstance(node, LEFT) for part in loop.body for node in ast.walk(part))
