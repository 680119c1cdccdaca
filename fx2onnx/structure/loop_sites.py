"""Locate the loops of a model: `range`, `unbind` and `split`, with their lines and numbers of iterations."""

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

from ..compat.shape_env import sizes_known_to
from ..compat.symbols import CeilToInt, FloorDiv
from ..guards.decisions import MOST, is_implied
from ..ir.expressions import expression
from ..patches.registry import apply_patches, register_context, register_patch
from ..trace.events import OpEvent, Trace, plain
from ..trace.refusal import TraceUnsupported
from ..trace.size_domain import SizeAssignment
from ..trace.source_location import CodeLocation, is_within_torch, outside, place_of
from ..trace.tracer import Tracer
from .iteration_shapes import Shape, schedule

RANGE, LEN, ENUMERATE = range, len, enumerate
UNBINDS = (torch.Tensor.unbind, torch.unbind)
SPLITS = (torch.Tensor.split, torch.split)
SPLIT = torch.ops.aten.split.Tensor
TRIED = (0, 1, 12)  # iterations to run in loops that values end


class LoopSites:
    """Counts the iterations of `range`, `unbind` and `split` at each location."""

    def __init__(self) -> None:
        self.counts: dict[CodeLocation, set[int]] = defaultdict(set)
        self.ranges: dict[CodeLocation, tuple[int, int]] = {}  # the end and step of the last one

    @contextmanager
    def watch(self, tracer: Tracer) -> Iterator[None]:
        """Count the iterations."""
        with ranges_by(self._range), apply_patches("taken_apart", rows=self._unbind, parts=self._split):
            yield

    def _range(self, place: CodeLocation, *args: Any) -> Any:
        found = RANGE(*args)
        self.counts[place].add(len(found))
        self.ranges[place] = found.stop, found.step
        return found

    def steps(self, place: CodeLocation) -> bool:
        """Return whether a range there has a step greater than 1."""
        return place in self.ranges and abs(self.ranges[place][1]) > 1

    def _unbind(self, place: CodeLocation, tensor: torch.Tensor, dim: int = 0) -> Any:
        self.counts[place].add(tensor.shape[dim])
        return None

    def _split(self, place: CodeLocation, tensor: torch.Tensor, size: int, dim: int = 0) -> Any:
        self.counts[place].add(-(-tensor.shape[dim] // size))
        return None


@dataclass(frozen=True)
class DynamicLoops:
    """The loops whose number of iterations depends on sizes or values.

    Attributes:
        places: the locations of loops over sizes.
        in_parts: those with one iteration per chunk of an axis, the last of which may be shorter.
        strides: the step of loops along a dynamic axis (the largest of several), by its size.
        whiles: the value tests that end loops.
        shapes: the shapes of the iterations of loops that test values, by location.
        iterations: the iterations of loops that values end; None for as many as are needed to record their shapes.
        leave: whether loops that can end early do so.
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
        """The minimum number of iterations in a run that records their shapes."""
        return max((len(schedule(shapes)) + 3 for shapes in self.shapes.values()), default=0)

    def ways_to_end(self) -> Iterator[DynamicLoops]:
        """Yield this, and versions in which loops that values end run shorter or longer, so that what follows them can be compared."""
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
        """Return the loops whose counts differ between two runs at these settings; `chunk_sizes` are the lengths of chunks."""
        found = frozenset(place for place in one.counts.keys() | other.counts.keys() if one.counts[place] != other.counts[place])
        runs = tuple(zip((one, other), settings, strict=True))
        ways = found if chunk_sizes else ()
        parts = (
            place for place in ways if one.steps(place) or any(_iterates_over_chunks(place, runs, *unit) for unit in chunk_sizes.items())
        )
        return cls(found, frozenset(parts), _largest(_strides(one, other, settings)))


def _iterates_over_chunks(place: CodeLocation, runs: Sequence[tuple[LoopSites, SizeAssignment]], symbol: sympy.Symbol, unit: int) -> bool:
    return all(run.counts[place] == {-(-setting[symbol] // unit)} for run, setting in runs)


def _strides(one: LoopSites, other: LoopSites, settings: Sequence[SizeAssignment]) -> Iterator[tuple[sympy.Symbol, int]]:
    for place in one.ranges.keys() & other.ranges.keys():
        (end, step), (other_end, other_step) = one.ranges[place], other.ranges[place]
        if step == other_step > 1:
            yield from ((symbol, step) for symbol in _symbols_with([end, other_end], settings))


def sizes_of_parts(traces: Sequence[Trace], settings: Sequence[SizeAssignment]) -> dict[sympy.Symbol, int]:
    """Return the lengths of chunks into which runs split a dynamic axis (the largest of several), by its size."""
    cuts = (rows for rows in zip(*(trace.rows for trace in traces), strict=False) if _is_same_split(rows))
    return _largest((symbol, int(rows[0].leaves[1])) for rows in cuts for symbol in _symbols_with([*map(_length, rows)], settings))


def _is_same_split(rows: Sequence[OpEvent]) -> bool:
    return all(row.op is SPLIT and row.leaves == rows[0].leaves for row in rows)


def _symbols_with(lengths: list[int], settings: Sequence[SizeAssignment]) -> Iterator[sympy.Symbol]:
    """The symbols with these sizes at these settings."""
    return (symbol for symbol in settings[0] if lengths == [setting[symbol] for setting in settings])


def _largest(found: Iterable[tuple[sympy.Symbol, int]]) -> dict[sympy.Symbol, int]:
    """The largest of several lengths for a symbol."""
    return dict(sorted(found, key=lambda pair: pair[1]))


def _length(row: OpEvent) -> int:
    """The length of the axis that was split."""
    return sum(part.shape[row.leaves[2] if len(row.leaves) > 2 else 0] for part in row.made)


@contextmanager
def ranges_by(make: Callable[..., Any], kinds: tuple[type, ...] = ()) -> Iterator[None]:
    """Let calls of `range` outside torch return what `make` returns for the location and arguments."""

    thread = get_ident()

    class Kind(type):
        def __call__(cls, *args: Any) -> Any:
            frame = sys._getframe(1)
            if is_within_torch(frame.f_code.co_filename) or get_ident() != thread:
                return RANGE(*args)
            return make(place_of(frame), *args)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, (RANGE, *kinds))

    with apply_patches("range", kind=Kind("range", (), {})):
        yield


@register_patch("range", "builtins.range", reason="a loop over a dynamic size has as many iterations as in the example")
def _range_of(original: Any, kind: type) -> type:
    return kind


def trip_count(start: Any, stop: Any, step: Any) -> Any:
    """Return the length of a range, which may be symbolic."""
    span = stop - start if step > 0 else start - stop
    if not isinstance(span, torch.SymInt):
        return LEN(RANGE(*(map(plain, (start, stop, step)))))
    least = (span + abs(step) - 1) // abs(step) if abs(step) != 1 else span
    return torch.sym_max(least, 0)


def bounds(*args: Any) -> tuple[Any, Any, Any]:
    """Return the start, end and step of the arguments of `range`."""
    start, stop, step = (0, *args, 1) if LEN(args) == 1 else (*args, 1)[:3]
    return start, stop, step


def range_over_chunks(place: CodeLocation, *args: Any) -> Sequence[Any]:
    """Return the numbers of a range over chunks of a dynamic size, with a guard only on the number of chunks."""
    start, stop, step = bounds(*args)
    if type(step) is not int or not any(isinstance(bound, torch.SymInt) for bound in (start, stop)):
        return RANGE(*args)
    turns = trip_count(start, stop, step)
    if not isinstance(turns, torch.SymInt) or not sympy.sympify(expression(turns)).has(FloorDiv, CeilToInt):
        return RANGE(*args)
    number, environment = plain(turns), turns.node.shape_env
    known = LEN(environment.guards)
    if not (has_at_least(turns, number) and turns < number + 1):  # an equation would specialise the size
        raise TraceUnsupported(f"the loop at {place} has {turns} iterations, not {number} as at the sizes of this run")
    environment.of_turns.update(guard.expr for guard in environment.guards[known:])
    return tuple(start + step * turn for turn in RANGE(number))


def has_at_least(turns: Any, number: int) -> bool:
    """Return whether a loop along one axis has at least `number` iterations, with a guard on the size itself."""
    count = expression(turns)
    if isinstance(count, int) or len(count.free_symbols) != 1:
        return bool(turns >= number)
    (symbol,) = count.free_symbols

    def many(size: int) -> int:
        return int(count.subs(symbol, size))

    least = 1 + bisect_left(RANGE(1, MOST), number, key=many)
    alike = sympy.Or(sympy.And(count >= number, symbol >= least), sympy.And(count < number, symbol < least))
    if not is_implied(alike, {symbol: (1, MOST)}):  # a longer axis may have fewer
        return bool(turns >= number)
    environment = turns.node.shape_env
    return bool(environment.create_symintnode(symbol, hint=int(sizes_known_to(environment)[symbol])) >= least)


@register_context("taken_apart", "torch.unbind", "torch.split", reason="a loop over rows or parts has as many iterations as in the example")
class UnbindIntercept(TorchFunctionMode):
    """Replaces results of `unbind` and `split` outside torch by those of a function of the location; None keeps torch's result.

    Args:
        rows: for `unbind`, and for `for row in x`.
        parts: for `split` into equal chunks.
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
