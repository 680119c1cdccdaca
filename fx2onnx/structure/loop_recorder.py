"""Record a run with loops: the calls of each loop are numbered as if it had only the kept iterations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import get_ident
from types import FrameType
from typing import Any

import torch

from ..patches.registry import apply_patches, register_patch
from ..trace.data_dependent_while import ends_it, error_of_while, is_while
from ..trace.events import OpEvent, Ref, TensorMeta, alike, plain
from ..trace.python_scalars import keep_python_scalars
from ..trace.refusal import TestInLoop, TraceUnsupported
from ..trace.size_domain import new_symbol
from ..trace.source_location import CodeLocation, is_within_torch, line_of, outside, place_of
from ..trace.tracer import Tracer
from .filled_lists import Filled
from .iteration_proxies import IterationProxy
from .iteration_shapes import Shape, schedule
from .loop import STACKED, Loop
from .loop_sites import ENUMERATE, LEN, RANGE, DynamicLoops, LoopSites, bounds, has_at_least, range_over_chunks, ranges_by

CHECKED = 6  # iterations after the kept ones in which Python numbers are compared


@register_patch("turns", "builtins.len", reason="the length of a list that a loop fills is that of the example")
def _replace_len(plain: Any, length: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return length


@register_patch("turns", "builtins.enumerate", reason="it counts the iterations of a loop in Python numbers")
def _replace_enumerate(plain: Any, enumerated: Callable[..., Any]) -> Callable[..., Any]:
    return enumerated


class LoopTracer(Filled):
    """Records the loops of a run, and numbers the calls of further iterations like those of the last kept one.

    The `Ref` of a tensor contains its iterations, which distinguishes it from the tensor of the previous iteration.

    Args:
        moving: the loops whose number of iterations depends on sizes or values, and how their iterations differ. The last chunk of an
            axis follows the loop.
        environment: makes the number of an iteration a symbol, except the first; without it, it is a concrete number.
        explores: whether to answer unknown tests with False, and record the shapes of iterations.
    """

    def __init__(self, moving: DynamicLoops, environment: Any = None, explores: bool = False) -> None:
        self._moving, self._environment, self._explores = moving, environment, explores
        self._places, self._chunked = moving.places, moving.in_parts
        self._thread = get_ident()
        super().__init__()
        self.shapes: dict[CodeLocation, list[Shape]] = {}  # seen in an exploring run
        self.position = 0  # of the next call
        self._waiting: list[Loop] = []  # created, but not begun
        self._held: dict[Loop, dict[str, Any]] = {}
        self._memory: dict[int, int] = {}  # memory of iterations after the kept ones, mapped to that of the last kept one
        self._symbols: dict[Any, tuple[int, Any]] = {}

    @contextmanager
    def watch(self, tracer: Tracer) -> Iterator[None]:
        """Record the loops of a run."""
        self._tracer, tracer.loops = tracer, self
        with ExitStack() as stack:
            if self._places:
                stack.enter_context(ranges_by(self._range, (IterationProxy,)))
                stack.enter_context(apply_patches("as_written"))
                stack.enter_context(apply_patches("taken_apart", rows=self._unbind, parts=self._split))
            if self._places and self._environment is not None:
                stack.enter_context(apply_patches("turns", length=self._length, enumerated=self._enumerate))
            yield

    def refusal(self, why: str) -> Exception:
        """Return the error, with the line, for a loop that cannot be rolled."""
        return self._tracer.refuse(TraceUnsupported(f"{why} at {line_of(sys._getframe(1))}"))

    def _range(self, place: CodeLocation, *args: Any) -> Any:
        if place not in self._places:
            return RANGE(*args)
        turns = IterationProxy(self, place, *bounds(*args))
        if place not in self._chunked:
            return turns
        if not has_at_least(turns.count, 2):
            return range_over_chunks(place, *args)
        last = turns.count - 1
        return IterationProxy(self, place, 0, last, item=turns.at, rest=partial(turns.at, last))

    def _unbind(self, place: CodeLocation, tensor: torch.Tensor, dim: int = 0) -> Any:
        if place not in self._places:
            return None
        return IterationProxy(self, place, 0, tensor.shape[dim], item=lambda index: tensor.select(dim, index))

    def _split(self, place: CodeLocation, tensor: torch.Tensor, size: int, dim: int = 0) -> Any:
        """Iterate over chunks of this size; a shorter one follows if a test of sizes decides that there is one."""
        if place not in self._places:
            return None
        length = tensor.shape[dim]
        whole, has_rest = length // size, bool(length % size != 0)
        rest = partial(tensor.narrow, dim, whole * size, 1 if size == 2 else length - whole * size) if has_rest else None
        return IterationProxy(self, place, 0, whole, item=lambda index: tensor.narrow(dim, size * index, size), rest=rest)

    def _enumerate(self, iterable: Any, start: int = 0) -> Iterator[Any]:
        if isinstance(iterable, torch.Tensor) and get_ident() == self._thread:
            iterable = iterable.unbind(0)
        return iterable.enumerate_from(start) if isinstance(iterable, IterationProxy) else ENUMERATE(iterable, start)

    def _length(self, value: Any) -> Any:
        if is_within_torch(sys._getframe(1).f_code.co_filename) or get_ident() != self._thread:
            return LEN(value)
        if isinstance(value, torch.Tensor) and value.dim():
            return value.shape[0]
        if isinstance(value, IterationProxy):
            return value.length
        parts = [self._tracer.ref(part) for part in value if isinstance(part, torch.Tensor)] if isinstance(value, (list, tuple)) else []
        if LEN(parts) < LEN(value) or not any(ref.turns for ref in parts):
            return LEN(value)
        return sum(self.found[ref.turns[0][0]].size - 1 if ref.kind in STACKED else 1 for ref in self._group_refs(parts))

    def open_loop(self, place: CodeLocation) -> Loop:
        """Return the loop of an iterator; the iterators of a `zip` share one."""
        if not self._waiting:
            self._waiting.append(Loop(line_of(sys._getframe(1)), place))
        return self._waiting[0]

    def next_iteration(self, loop: Loop, turns: IterationProxy, turn: int) -> Any:
        """Begin an iteration, and return its number."""
        if turn == 0:
            loop.size = turns.count
            self._begin(loop)
        if not self._open or self._open[-1] is not loop:
            raise self.refusal("an outer loop continues before its inner loop has ended")
        self._advance(loop)
        return self._shown_number(loop, turn)

    def _shown_number(self, loop: Loop, turn: int) -> Any:
        return turn if self._environment is None or turn == 0 else self._environment.create_symintnode(loop.symbol, hint=turn)

    def same_iteration(self, loop: Loop, turn: int) -> Any:
        """Return the number of an iteration that another iterator of the same `zip` has begun."""
        if not self._open or self._open[-1] is not loop or loop.turn != turn:
            raise self.refusal("iterators over dynamic dimensions do not advance together")
        return self._shown_number(loop, turn)

    def _begin(self, loop: Loop) -> None:
        self._waiting.clear()
        loop.schedule = schedule(self._moving.shapes.get(loop.place, ()))
        if not self._moving.leave and loop.schedule[-1].leaves:
            loop.schedule, loop.is_cut = loop.schedule[:-1], True
        loop.begin = self.position
        loop.bound = frozenset(self.names())
        loop.lengths_of_lists = {name: LEN(held) for name, held in self.lists()}
        again = next(
            (other for other in self.found if (other.place, other.begin) == (loop.place, self.position) and other not in self._open), None
        )
        if self.position < LEN(self._tracer.rows) and again is not None:
            loop.starts, loop.end, loop.symbol, loop.number = again.starts, again.end, again.symbol, again.number
            loop.repeats = again
        else:
            self.found.append(loop)
            key = (loop.place, plain(loop.size), tuple(other.number for other in self._open))
            if key not in self._symbols:
                number = LEN(self._symbols)
                environment = self._environment
                known = environment.iterations if environment is not None else {}
                if environment is not None and number not in known:
                    known[number] = new_symbol(environment, f"turn_{number}", 1)
                self._symbols[key] = number, known.get(number)
            loop.number, loop.symbol = self._symbols[key]
        self._open.append(loop)

    def _advance(self, loop: Loop) -> None:
        """End an iteration, and begin the next."""
        if loop.turn >= 0:
            self._close_iteration(loop)
        loop.turn += 1
        loop.answers, loop.tested = [], {}
        if loop.turn < loop.kept_count:
            self._check_position(loop.starts, loop.turn)
            if loop.repeats is None:
                loop.states.append(self.state())
        else:
            self.position = loop.starts[-1]
        self._check_counters(loop)

    def _check_position(self, starts: list[int], turn: int) -> None:
        if LEN(starts) == turn:
            starts.append(self.position)
        elif starts[turn] != self.position:
            raise self.refusal("an iteration runs different operators than the previous one")

    def _close_iteration(self, loop: Loop, leaves: bool = False) -> None:
        """Check the shape and the end of an iteration."""
        shape, last = Shape(tuple(loop.answers), leaves), min(loop.turn, loop.kept_count - 1)
        if self._explores:
            self.shapes.setdefault(loop.place, []).append(shape)
            loop.end = self.position
            return
        if shape != loop.schedule[last]:
            raise self.refusal("an iteration evaluates other conditions than the previous one")
        if loop.turn and self.position - loop.starts[last] != loop.lengths.setdefault(shape, self.position - loop.starts[last]):
            raise self.refusal("an iteration runs different operators than the previous one")
        if loop.turn >= loop.kept_count - 1:
            loop.end = self.position if loop.end < 0 else loop.end
            if self.position != loop.end:
                raise self.refusal("an iteration runs different operators than the previous one")

    def over(self, loop: Loop) -> None:
        """End a loop after its last iteration."""
        if loop.turn >= 0:
            self._close_iteration(loop)
        loop.turns = loop.turn + 1
        if loop.turns < loop.kept_count and not self._explores and self._moving.iterations is None:
            raise self.refusal(f"a loop has too few iterations ({loop.turns}) to find what they have in common,")
        self._close_loop(loop)

    def _close_loop(self, loop: Loop) -> None:
        if loop.repeats is not None and loop.repeats.turns != loop.turns:
            raise self.refusal("the number of iterations of an inner loop changes with the outer loop")
        self._open.pop()
        if loop.end < 0:
            loop.end = self.position
        if loop.repeats is None:
            loop.last = self.state()
        loop.grown = list(self.grown(loop))
        self._over.append(loop)

    def left(self, loop: Loop, turns: int) -> None:
        """End a loop that is left early, which is only allowed if a value decided it."""
        if loop.turns is not None or self._tracer.refused is not None:
            return
        expected = self._explores or (loop.turn == loop.kept_count - 1 and loop.schedule[-1] == Shape(tuple(loop.answers), True))
        if not loop.answers or not expected or self._open[-1] is not loop:
            self._tracer.refuse(
                TraceUnsupported(f"the loop at {loop.line} is left before its last iteration, for example by break or return")
            )
            return
        self._close_iteration(loop, leaves=True)
        loop.turns = turns
        self._close_loop(loop)

    def answer(self, ref: Ref, frame: FrameType | None) -> tuple[bool | None, bool]:
        """Return the outcome of a value test in a loop (None outside all loops), and whether it is new.

        Raises:
            TestInLoop: If the shapes of the iterations of this loop are unknown.
        """
        place = place_of(frame) if frame is not None else None
        if place in self._moving.whiles:
            return self._head(place, frame), True
        if not self._open:
            return None, True
        loop = self._open[-1]
        if place is not None and is_while(place):
            raise self._tracer.refuse(error_of_while(place, frame))
        if ref in loop.tested:
            return loop.tested[ref], False
        shape = loop.schedule[min(loop.turn, loop.kept_count - 1)]
        if loop.place not in self._moving.shapes:
            unknown = TestInLoop(f"a condition on a value is evaluated in the loop at {loop.line}")
            unknown.place = loop.place
            raise self._tracer.refuse(unknown)
        known = LEN(loop.answers) < LEN(shape.answers)
        if not known and not self._explores:
            raise self.refusal("an iteration evaluates other conditions than the previous one")
        loop.tested[ref] = shape.answers[LEN(loop.answers)] if known else False
        loop.answers.append(loop.tested[ref])
        return loop.tested[ref], True

    def _head(self, place: Any, frame: Any) -> bool:
        """Return the outcome of the condition of a `while`."""
        loop = self._open[-1] if self._open and self._open[-1].place == place else None
        if loop is None:
            loop = Loop(line_of(frame), place, is_while=True)
            self._begin(loop)
        many = loop.kept_count + 2 if self._moving.iterations is None else self._moving.iterations
        if loop.turn + 1 < many:
            self._advance(loop)
            return not ends_it(place)
        self.over(loop)
        return ends_it(place)

    def _check_counters(self, loop: Loop) -> None:
        """Refuse Python numbers that change between iterations, because tests of them would go unnoticed."""
        frame = outside(sys._getframe(1))
        if (
            frame is None
            or (self._environment is None and not loop.is_while)
            or not 2 - loop.is_while <= loop.turn <= loop.kept_count + CHECKED
        ):
            return
        if loop.is_while and (steps := [name for name, value in frame.f_locals.items() if hasattr(value, "__next__")]):
            raise self.refusal(f"the iterator `{min(steps)}` may advance in each iteration of a while loop on a value,")
        now = dict(keep_python_scalars(frame.f_locals))
        before = self._held.setdefault(loop, now)
        if changed := [name for name in now.keys() | before.keys() if now.get(name, ...) != before.get(name, ...)]:
            kind = " of a while loop" if loop.is_while else ""
            raise self.refusal(
                f"`{min(changed)}` is a Python number that changes in each iteration{kind}, and a Loop carries only tensors,"
            )

    def take(self, row: OpEvent) -> bool:
        """Record a call, and return whether it is not a repetition of one in earlier iterations."""
        rows = self._tracer.rows
        row.made = [self._remap_memory(result) for result in row.made]
        row.turns = {loop.number: loop.turn for loop in self._open}
        self.position += 1
        if getattr(row.op, "_schema", None) is None or row.op._schema.is_mutable:
            for loop in self._open:
                loop.tested.clear()
        if self.position > LEN(rows):
            rows.append(row)
            return True
        known = rows[self.position - 1]
        if not _like(known, row, self._environment is None):
            raise self.refusal(f"{row.op} is not called in iteration {self._open[-1].turn + 1} as in the previous one,")
        self._memory.update((_storage(one), _storage(other)) for one, other in zip(row.made, known.made, strict=True))
        if self._environment is None:
            known.later.append((row.turns, row.leaves))
        return False

    def _remap_memory(self, result: Any) -> Any:
        """The result with the memory that it would have in the last kept iteration."""
        return result._replace(storage=self._memory.get(result.storage, result.storage)) if isinstance(result, TensorMeta) else result

    def resolve_ref(self, ref: Ref) -> Ref:
        """Return a reference as seen in the last kept iteration, or after the loop."""
        key = self.key_of(ref)
        if key is None:
            pairs = [(loop, iteration) for loop, iteration in reversed(ref.turns) if not self._keys(loop, iteration, int(ref.key))]
            loop, iteration = pairs[0] if pairs else ref.turns[-1]
            if loop.turns is None:
                raise self.refusal(f"iteration {loop.turn + 1} reads a value of iteration {iteration + 1} instead of the previous one,")
            raise self._tracer.refuse(
                TraceUnsupported(f"a value made only in iteration {iteration + 1} of the loop at {loop.line} is read after it")
            )
        return Ref(ref.kind, key, ref.part)

    def key_of(self, ref: Ref) -> Any:
        """Return the number of a call, mapped to the kept iterations; None if there is none."""
        keys: list[Any] = [ref.key]
        for loop, iteration in reversed(ref.turns):
            keys = [other for key in keys for other in self._keys(loop, iteration, int(key))]
        rows = self._tracer.rows
        known = {leaf for leaf in rows[self.position].leaves if isinstance(leaf, Ref)} if self.position < LEN(rows) else set()
        return next((key for key in keys if Ref(ref.kind, key, ref.part) in known), keys[0] if keys else None)

    def _keys(self, loop: Loop, iteration: int, key: int) -> list[int]:
        """The possible numbers of a call of this iteration: unchanged, or with the same distance from the last kept iteration."""
        is_kept = iteration < loop.kept_count - 1
        if loop.turn < loop.kept_count or iteration == loop.turn or (is_kept and loop.turns is not None):
            return [key]
        target = loop.kept_count - 1 - (loop.turn - iteration)
        moved = [key - loop.starts[min(iteration, loop.kept_count - 1)] + loop.starts[target]] if target >= 0 else []
        return [*moved, key] if is_kept else moved


def _storage(result: Any) -> int:
    return result.storage if isinstance(result, TensorMeta) else 0


def _like(one: OpEvent, other: OpEvent, numbers_may_differ: bool) -> bool:
    if one.kind != other.kind or not all(map(_same_result, one.made, other.made)):
        return False
    return all(alike(a, b) for a, b in zip(one.leaves, other.leaves, strict=True) if not (numbers_may_differ and _is_number(a, b)))


def _is_number(a: Any, b: Any) -> bool:
    return type(a) in (int, float) and type(b) is type(a)


def _same_result(one: Any, other: Any) -> bool:
    if isinstance(one, TensorMeta) and isinstance(other, TensorMeta):
        return (one.shape, one.dtype) == (other.shape, other.dtype)
    return type(one) is type(other)


@contextmanager
def watch_both(places: LoopSites, loops: LoopTracer, tracer: Tracer) -> Iterator[None]:
    """Record the locations of loops and the loops, with few iterations where values end them."""
    with places.watch(tracer), loops.watch(tracer):
        yield
