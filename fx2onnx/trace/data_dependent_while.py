"""Detect a Python `while` whose condition is a value, by the source location of the test."""

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

TESTS_ONCE = (ast.Call, ast.Name, ast.Attribute, ast.BinOp, ast.Subscript)  # expressions that are tested once
LEFT = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.Yield, ast.YieldFrom, ast.Await, ast.Assert)


class Whiles:
    """Finds loops that end by a test of a value: their locations test a second time.

    Args:
        places: the locations of known loops.
    """

    def __init__(self, places: frozenset[CodeLocation] = frozenset()) -> None:
        self._places = places
        self._visited: set[CodeLocation] = set()

    def look(self, tracer: Any, tensor: torch.Tensor, ref: Ref, frame: FrameType | None) -> None:
        """Record a test.

        Raises:
            Restart: If a `while` tests a value for the second time.
        """
        place = place_of(frame) if frame is not None else None
        if place is None or place in self._places:
            return
        is_fixed = tracer.loops is None and tracer.constness.depends_on_sizes(tensor, ref) is not None
        if place in self._visited and is_while(place) and not is_fixed:
            raise tracer.refuse(error_of_while(place, frame))
        self._visited.add(place)


def error_of_while(place: CodeLocation, frame: FrameType | None) -> Restart:
    """Return the error that restarts a run at a `while` that tests a value."""
    return Restart(f"a `while` has a condition on a value at {line_of(frame)}", partial(Plan.roll_while, place=place))


@cache
def is_while(place: CodeLocation) -> bool:
    """Return whether this location is the whole condition of a `while`, which ends in no other way."""
    code, position = place
    return any(position in _spans(loop) and _is_plain(loop) for loop in _loops(code.co_filename))


@cache
def ends_it(place: CodeLocation) -> bool:
    """Return the outcome that ends the `while` at this location: True if its condition is negated."""
    code, position = place
    return any(position in _spans(loop) and _is_negated(loop.test) for loop in _loops(code.co_filename))


def _spans(loop: ast.While) -> list[tuple[Any, ...]]:
    """The positions that Python may report for the condition of a loop."""
    return [_span(loop), _span(loop.test), _span(_strip_not(loop.test))]


def _is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _strip_not(test: ast.expr) -> ast.expr:
    return test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test


@cache
def _loops(path: str) -> list[ast.While]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:  # a notebook cell with magic commands
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.While)]


def _span(node: ast.expr | ast.stmt) -> tuple[Any, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _is_plain(loop: ast.While) -> bool:
    test = _strip_not(loop.test)
    tests_once = len(test.ops) == 1 if isinstance(test, ast.Compare) else isinstance(test, TESTS_ONCE)
    return tests_once and not loop.orelse and not any(isinstance(node, LEFT) for part in loop.body for node in ast.walk(part))
