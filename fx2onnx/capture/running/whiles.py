"""Python's `while` with the test of a value: found, answered so that it has a few turns, and those held against each other."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import FrameType
from typing import Any

import torch

from . import effects
from .counters import numbers_held
from .lines import Place, line_of, place_of
from .notes import Ref, Row, Trace, alike, equal
from .refusal import CannotRun, LoopOnValue

TURNS = 3  # that are rolled up
TRIED = (0, 1, 2, TURNS, 12)  # turns that are held against those
LEFT = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.Yield, ast.YieldFrom, ast.Await, ast.Assert)


@dataclass
class While:
    """One loop of a run: its line, and the numbers of the calls that test."""

    line: str
    tests: list[int] = field(default_factory=list)
    is_over: bool = False
    held: dict[str, Any] | None = None  # Python's own numbers in its first turn


class Whiles:
    """Answers the tests of loops at some places, and notes them.

    Args:
        turns: how many each has.
    """

    def __init__(self, places: frozenset[Place] = frozenset(), turns: int = TURNS) -> None:
        self._places, self._turns = places, turns
        self.found: list[While] = []
        self._asked: set[Place] = set()

    def answer(self, recorder: Any, tensor: torch.Tensor, ref: Ref, frame: FrameType | None) -> bool | None:
        """Return the answer to a test; None of one that ends no such loop.

        Raises:
            LoopOnValue: it is asked a second time by a `while`.
        """
        place = place_of(frame) if frame is not None else None
        if frame is None or place is None or place not in self._places:
            self._other(recorder, tensor, ref, place, line_of(frame))
            return None
        if self.found and self.found[-1].is_over:
            raise recorder.refusal("a while loop on a value runs a second time, or the model has a second one,")
        loop = self.found[-1] if self.found else While(line_of(frame))
        self.found[:] = [loop]
        loop.tests.append(len(recorder.rows))
        self._check_counters(recorder, loop, frame)
        loop.is_over = len(loop.tests) > self._turns
        return not loop.is_over

    def _other(self, recorder: Any, tensor: torch.Tensor, ref: Ref, place: Place | None, line: str) -> None:
        if self.found and not self.found[-1].is_over:
            raise recorder.refusal("a condition on a value is evaluated inside a while loop on a value,")
        if place is not None and place in self._asked and is_while(place) and recorder.settled.of_sizes(tensor, ref) is None:
            error = LoopOnValue(f"a `while` has a condition on a value at {line}")
            error.place = place
            raise recorder.refuse(error)
        if place is not None:
            self._asked.add(place)

    def _check_counters(self, recorder: Any, loop: While, frame: FrameType) -> None:
        """Refuse numbers of Python's own that change from turn to turn: what follows from them further on would not be seen."""
        if steps := [name for name, value in frame.f_locals.items() if hasattr(value, "__next__")]:
            raise recorder.refusal(f"the iterator `{min(steps)}` may advance in each iteration of a while loop on a value,")
        now = dict(numbers_held(frame.f_locals))
        if len(loop.tests) == 2:  # behind the first turn, which may have made variables
            loop.held = now
        before = loop.held if loop.held is not None else now
        if changed := [name for name in now.keys() | before.keys() if now.get(name, ...) != before.get(name, ...)]:
            raise recorder.refusal(
                f"`{min(changed)}` is a Python number that changes in each iteration of a while loop, and a Loop carries only tensors,"
            )


@cache
def is_while(place: Place) -> bool:
    """Return whether this is the whole test of a `while` that nothing else ends."""
    code, position = place
    return any(position in (_span(loop.test), _span(loop)) and _is_plain(loop) for loop in _loops(code.co_filename))  # Python says either


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
    test = loop.test
    tests_once = len(test.ops) == 1 if isinstance(test, ast.Compare) else isinstance(test, (ast.Call, ast.Name, ast.Attribute))
    return tests_once and not loop.orelse and not any(isinstance(node, LEFT) for part in loop.body for node in ast.walk(part))


@dataclass
class Told:
    """One run with a loop, in which references say where in it something was made, however many turns there are."""

    trace: Trace
    loop: While

    @property
    def turns(self) -> list[list[tuple[Any, ...]]]:
        """The calls of each turn, its test the last."""
        pairs = enumerate(pairwise(self.loop.tests))
        return [[self._call(row, number) for row in self.trace.rows[start + 1 : end + 1]] for number, (start, end) in pairs]

    @property
    def after(self) -> list[tuple[Any, ...]]:
        """The calls behind the loop, and what is returned."""
        last = len(self.loop.tests) - 1
        rows = [self._call(row, last) for row in self.trace.rows[self.loop.tests[-1] + 1 :]]
        return [*rows, (self.trace.spec, [self._leaf(leaf, last) for leaf in self.trace.returned])]

    def before(self) -> list[tuple[Any, ...]]:
        """The calls before the loop, and its first test."""
        return [self._call(row, 0) for row in self.trace.rows[: self.loop.tests[0] + 1]]

    def _call(self, row: Row, turn: int) -> tuple[Any, ...]:
        made = [getattr(one, "shape", None) for one in row.made]
        return (row.op, row.spec, made), [self._leaf(leaf, turn) for leaf in row.leaves]

    def _leaf(self, leaf: Any, turn: int) -> Any:
        """A reference from within a turn, or from behind the last."""
        if not isinstance(leaf, Ref) or leaf.kind != "row" or int(leaf.key) <= self.loop.tests[0]:
            return leaf
        inside = [number for number, test in enumerate(self.loop.tests) if test < int(leaf.key)][-1]
        if inside == len(self.loop.tests) - 1:
            return leaf._replace(kind="behind", key=int(leaf.key) - self.loop.tests[-1])
        kind = {turn: "own", turn - 1: "before"}.get(inside, f"turn {inside}")
        return leaf._replace(kind=kind, key=int(leaf.key) - self.loop.tests[inside])


def check_turns(traces: Sequence[Trace]) -> None:
    """Hold runs with as many turns as `TRIED` says against each other.

    Raises:
        CannotRun: a turn is another than those before, or what follows is another behind more turns or none.
    """
    told = [Told(trace, trace.whiles[0]) for trace in traces]
    line = told[0].loop.line
    why = next(_differences(told), None)
    if why is not None:
        raise CannotRun(f"the while loop at {line} cannot be exported as a Loop: {why}")


def _differences(told: Sequence[Told]) -> Iterator[str]:
    most = told[-1]
    if any(one.trace.ended is not None for one in told):
        yield "it raises an error"
    if any(
        not effects.is_harmless(row.op) for one in told for row in _rows_from(one) if row.op is not most.trace.rows[most.loop.tests[0]].op
    ):
        yield "an iteration, or the code after the loop, writes into memory or reads values"
    if not all(_same_constants(most.trace, one.trace) for one in told):
        yield "a constant tensor differs between runs"
    if not all(_same(one.before(), most.before()) for one in told):
        yield "the operators called before it differ between runs"
    first, *further = most.turns
    if not all(_same(turn, further[0]) for turn in further):
        yield "its iterations differ"
    starts = _starts(first, further[0])
    if starts is None:
        yield "its first iteration differs from the others"
    if further[0][-1][1][0].kind != "own":
        yield "its condition does not change between iterations"
    for one in told:
        if starts is not None and not _same(one.after, most.after, None if len(one.loop.tests) > 1 else starts):
            yield f"the operators called after it differ after {len(one.loop.tests) - 1} iterations"


def _rows_from(one: Told) -> Sequence[Row]:
    return one.trace.rows[one.loop.tests[0] :]


def _only_computes(row: Row, test: Row) -> bool:
    return row.op is test.op or (isinstance(row.op, torch._ops.OpOverload) and effects.is_harmless(row.op))


def _same_constants(one: Trace, other: Trace) -> bool:
    return len(one.constants) == len(other.constants) and all(map(equal, one.constants, other.constants))


def _starts(first: Sequence[tuple[Any, ...]], second: Sequence[tuple[Any, ...]]) -> dict[Ref, Any] | None:
    """What the first turn reads where the second reads the first; None where they differ otherwise."""
    found: dict[Ref, Any] = {}
    if len(first) != len(second):
        return None
    for (call, mine), (other, its) in zip(first, second, strict=True):
        if call != other or len(mine) != len(its):
            return None
        for one, leaf in zip(mine, its, strict=True):
            is_carried = isinstance(leaf, Ref) and leaf.kind == "before"
            if not alike(found.setdefault(leaf, one) if is_carried else leaf, one):
                return None
    return found


def _same(mine: Sequence[tuple[Any, ...]], its: Sequence[tuple[Any, ...]], starts: dict[Ref, Any] | None = None) -> bool:
    """Whether calls are the same; with `starts`, where one of them reads of no turn what a loop begins with."""
    return len(mine) == len(its) and all(
        call == other and len(one) == len(leaves) and all(alike(a, _begun(b, starts)) for a, b in zip(one, leaves, strict=True))
        for (call, one), (other, leaves) in zip(mine, its, strict=True)
    )


def _begun(leaf: Any, starts: dict[Ref, Any] | None) -> Any:
    return starts.get(leaf) if starts is not None and isinstance(leaf, Ref) and leaf.kind == "before" else leaf
