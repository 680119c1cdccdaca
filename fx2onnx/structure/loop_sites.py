"""Where Python code loops: `range`, `unbind` and `split`, seen while a run lasts, with the line and the number of turns."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import get_ident
from typing import Any

import sympy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._sympy.functions import CeilToInt, FloorDiv

from ..compat import sizes_known_to
from ..guards.decisions import MOST, is_implied
from ..ir.expressions import expression
from ..patches.registry import apply_patches, register_context, register_patch
from ..trace.events import OpEvent, Trace, plain
from ..trace.size_domain import SizeAssignment
from ..trace.source_location import CodeLocation, is_within_torch, outside, place_of
from ..trace.tracer import Tracer
from .iteration_shapes import Shape, schedule

RANGE, LEN, ENUMERATE = range, len, enumerate
UNBINDS = (torch.Tensor.unbind, torch.unbind)
SPLITS = (torch.Tensor.split, torch.split)
SPLIT = torch.ops.aten.split.Tensor
TRIED = (0, 1, 12)  # iterations of loops that values end


class LoopSites:
    """Counts the turns that `range`, `unbind` and `split` give at each place."""

    def __init__(self) -> None:
        self.counts: dict[CodeLocation, set[int]] = defaultdict(set)
        self.ranges: dict[CodeLocation, tuple[int, int]] = {}  # the end and the step of the last one

    @contextmanager
    def watch(self, tracer: Tracer) -> Iterator[None]:
        """Count while it lasts."""
        with ranges_by(self._range), apply_patches("taken_apart", rows=self._unbind, parts=self._split):
            yield

    def _range(self, place: CodeLocation, *args: Any) -> Any:
        found = RANGE(*args)
        self.counts[place].add(len(found))
        self.ranges[place] = found.stop, found.step
        return found

    def steps(self, place: CodeLocation) -> bool:
        """Return whether a range goes there in steps."""
        return place in self.ranges and abs(self.ranges[place][1]) > 1

    def _unbind(self, place: CodeLocation, tensor: torch.Tensor, dim: int = 0) -> Any:
        self.counts[place].add(tensor.shape[dim])
        return None

    def _split(self, place: CodeLocation, tensor: torch.Tensor, size: int, dim: int = 0) -> Any:
        self.counts[place].add(-(-tensor.shape[dim] // size))
        return None


@dataclass(frozen=True)
class DynamicLoops:
    """Where a model loops more often at larger sizes.

    Attributes:
        places: of all such loops.
        in_parts: of those with a turn for each part of an axis, the last of which may be shorter.
        strides: by how many elements loops go along a moving axis, the longest of several, by the size of that axis.
        whiles: the tests of values that end loops.
        shapes: how iterations may differ, by the place of their loop, where they test values.
        iterations: how many loops have that values end, if not as many as show how they go.
        leave: whether loops are left early that may be.
    """

    places: frozenset[CodeLocation] = frozenset()
    in_parts: frozenset[CodeLocation] = frozenset()
    strides: Mapping[sympy.Symbol, int] = field(default_factory=dict)
    whiles: frozenset[CodeLocation] = frozenset()
    shapes: Mapping[CodeLocation, tuple[Shape, ...]] = field(default_factory=dict)
    iterations: int | None = None
    leave: bool = True

    @property
    def least(self) -> int:
        """How many iterations loops have at least in a run that shows how they go."""
        return max((len(schedule(shapes)) + 3 for shapes in self.shapes.values()), default=0)

    def ways_to_end(self) -> Iterator[DynamicLoops]:
        """Yield the same, and where a value may end loops, with earlier and later ends, behind which the model goes on alike."""
        yield self
        if self.whiles:
            yield from (replace(self, iterations=number) for number in TRIED)
        if any(shape.leaves for shapes in self.shapes.values() for shape in shapes):
            yield replace(self, leave=False)

    def __bool__(self) -> bool:
        """Whether there is any loop to roll."""
        return bool(self.places or self.whiles)

    @classmethod
    def between(
        cls, one: LoopSites, other: LoopSites, settings: Sequence[SizeAssignment], chunk_sizes: Mapping[sympy.Symbol, int]
    ) -> DynamicLoops:
        """Return what two runs at these settings show; `units` says how long parts are."""
        found = frozenset(place for place in one.counts.keys() | other.counts.keys() if one.counts[place] != other.counts[place])
        runs = tuple(zip((one, other), settings, strict=True))
        ways = found if chunk_sizes else ()
        parts = (
            place for place in ways if one.steps(place) or any(_has_a_turn_for_each(place, runs, *unit) for unit in chunk_sizes.items())
        )
        return cls(found, frozenset(parts), _longest(_strides(one, other, settings)))


def _has_a_turn_for_each(place: CodeLocation, runs: Sequence[tuple[LoopSites, SizeAssignment]], symbol: sympy.Symbol, unit: int) -> bool:
    return all(run.counts[place] == {-(-setting[symbol] // unit)} for run, setting in runs)


def _strides(one: LoopSites, other: LoopSites, settings: Sequence[SizeAssignment]) -> Iterator[tuple[sympy.Symbol, int]]:
    for place in one.ranges.keys() & other.ranges.keys():
        (end, step), (other_end, other_step) = one.ranges[place], other.ranges[place]
        if step == other_step > 1:
            yield from ((symbol, step) for symbol in _that_are([end, other_end], settings))


def sizes_of_parts(traces: Sequence[Trace], settings: Sequence[SizeAssignment]) -> dict[sympy.Symbol, int]:
    """Return how long the parts are that runs cut a moving axis into, the longest of several, by the size of that axis."""
    cuts = (rows for rows in zip(*(trace.rows for trace in traces), strict=False) if _are_one_cut(rows))
    return _longest((symbol, int(rows[0].leaves[1])) for rows in cuts for symbol in _that_are([*map(_length, rows)], settings))


def _are_one_cut(rows: Sequence[OpEvent]) -> bool:
    return all(row.op is SPLIT and row.leaves == rows[0].leaves for row in rows)


def _that_are(lengths: list[int], settings: Sequence[SizeAssignment]) -> Iterator[sympy.Symbol]:
    """The sizes that have these lengths at these settings."""
    return (symbol for symbol in settings[0] if lengths == [setting[symbol] for setting in settings])


def _longest(found: Iterable[tuple[sympy.Symbol, int]]) -> dict[sympy.Symbol, int]:
    """Of several lengths for one size, the longest."""
    return dict(sorted(found, key=lambda pair: pair[1]))


def _length(row: OpEvent) -> int:
    """How long an axis is that was cut."""
    return sum(part.shape[row.leaves[2] if len(row.leaves) > 2 else 0] for part in row.made)


@contextmanager
def ranges_by(made: Callable[..., Any], kinds: tuple[type, ...] = ()) -> Iterator[None]:
    """Let `range`, called outside torch, give what `made` returns for a place and the arguments, while it lasts."""

    thread = get_ident()

    class Kind(type):
        def __call__(cls, *args: Any) -> Any:
            frame = sys._getframe(1)
            if is_within_torch(frame.f_code.co_filename) or get_ident() != thread:
                return RANGE(*args)
            return made(place_of(frame), *args)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, (RANGE, *kinds))

    with apply_patches("range", kind=Kind("range", (), {})):
        yield


@register_patch("range", "builtins.range", reason="a loop over a dynamic size has as many iterations as in the example")
def _range_of(original: Any, kind: type) -> type:
    return kind


def trip_count(start: Any, stop: Any, step: Any) -> Any:
    """Return how many numbers a range of sizes has: a size, or a number."""
    span = stop - start if step > 0 else start - stop
    if not isinstance(span, torch.SymInt):
        return LEN(RANGE(*(map(plain, (start, stop, step)))))
    least = (span + abs(step) - 1) // abs(step) if abs(step) != 1 else span
    return torch.sym_max(least, 0)


def bounds(*args: Any) -> tuple[Any, Any, Any]:
    """Return the start, the end and the step that `range` is given."""
    start, stop, step = (0, *args, 1) if LEN(args) == 1 else (*args, 1)[:3]
    return start, stop, step


def range_over_chunks(place: CodeLocation, *args: Any) -> Sequence[Any]:
    """Return the numbers of a range over parts of a moving size, of which no more is asked than how many these are."""
    start, stop, step = bounds(*args)
    if type(step) is not int or not any(isinstance(bound, torch.SymInt) for bound in (start, stop)):
        return RANGE(*args)
    turns = trip_count(start, stop, step)
    if not isinstance(turns, torch.SymInt) or not sympy.sympify(expression(turns)).has(FloorDiv, CeilToInt):
        return RANGE(*args)
    number, environment = plain(turns), turns.node.shape_env
    known = LEN(environment.guards)
    if not (has_at_least(turns, number) and turns < number + 1):  # an equation would make a constant of the size
        raise AssertionError(f"{turns} is not {number}")
    environment.of_turns.update(guard.expr for guard in environment.guards[known:])
    return tuple(start + step * turn for turn in RANGE(number))


def has_at_least(turns: Any, number: int) -> bool:
    """Return whether a loop along one axis has so many turns, asked of its size: what asks if 1 is less than 2 may be of no meaning."""
    told = expression(turns)
    if isinstance(told, int) or len(told.free_symbols) != 1:
        return bool(turns >= number)
    (symbol,) = told.free_symbols

    def many(size: int) -> int:
        return int(told.subs(symbol, size))

    least = 1 + bisect_left(RANGE(1, MOST), number, key=many)
    alike = sympy.Or(sympy.And(told >= number, symbol >= least), sympy.And(told < number, symbol < least))
    if not is_implied(alike, {symbol: (1, MOST)}):  # a longer axis may have fewer
        return bool(turns >= number)
    environment = turns.node.shape_env
    return bool(environment.create_symintnode(symbol, hint=int(sizes_known_to(environment)[symbol])) >= least)


@register_context("taken_apart", "torch.unbind", "torch.split", reason="a loop over rows or parts has as many iterations as in the example")
class UnbindIntercept(TorchFunctionMode):
    """While it lasts, a tensor is taken apart outside torch into what a function returns for a place; None is for torch's own result.

    Args:
        rows: gives those of `unbind`, and of `for row in x`.
        parts: gives those of `split`, where these have one size.
    """

    def __init__(self, rows: Callable[..., Any], parts: Callable[..., Any]) -> None:
        super().__init__()
        self._made: dict[Any, Callable[..., Any]] = dict.fromkeys(UNBINDS, rows) | dict.fromkeys(SPLITS, parts)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        kwargs = kwargs or {}
        if self._is_taken_apart(func, args) and (frame := outside(sys._getframe(1))) is not None:
            found = self._made[func](place_of(frame), *args, **kwargs)
            if found is not None:
                return found
        return func(*args, **kwargs)

    def _is_taken_apart(self, func: Any, args: Any) -> bool:
        return func in UNBINDS or (func in SPLITS and len(args) > 1 and type(args[1]) is int)
