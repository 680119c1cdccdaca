"""One run in which the iterations of loops are told apart: their calls are numbered as if each loop had just those that are kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from types import FrameType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ....patches.registry import patched, register_patch
from ..counters import numbers_held, tensors_held
from ..lines import Place, is_within_torch, line_of, outside, place_of, python_frames
from ..notes import Made, Ref, Row, alike, plain
from ..recorder import Recorder
from ..refusal import CannotRun, LoopOnValue, TestInLoop
from ..sample import new_symbol
from ..whiles import ends_it, is_while
from .places import ENUMERATE, LEN, RANGE, Moving, at_least, bounds, counted, number_of_turns, ranges_by
from .shapes import ALIKE, Shape, schedule

EVERY = ("every", "flipped")
CHECKED = 6  # iterations after those that are kept, in which Python's own numbers are compared


@dataclass(eq=False)
class Loop:
    """One loop of a run.

    Attributes:
        place: where it begins; `is_while`: whether the test of a value ends it.
        schedule: the shapes of the iterations that are kept; all further ones have that of the last.
        begin: where it begins. `starts`: where the calls of those iterations begin. `end`: where what follows the loop begins.
        turns: how many iterations it has, once it is over; `size`: the same, a symbol in the run that has symbols.
        symbol: of the number of the iteration. `number`: of the place, among those of the run.
        repeats: the same loop in an earlier iteration of the one around it.
        states: the tensors that variables held at the start of each iteration that is kept; `last`: after the loop.
        bound: the variables that there were before it. `lengths_of_lists`: how long lists were.
        grown: what each list got that it has filled, one value in each iteration.
        listed: such values that a call reads, by the iterations that are kept.
    """

    line: str
    place: Place
    is_while: bool = False
    schedule: tuple[Shape, ...] = ALIKE
    starts: list[int] = field(default_factory=list)
    begin: int = -1
    turn: int = -1
    end: int = -1
    turns: int | None = None
    size: Any = None
    symbol: Any = None
    number: int = -1
    repeats: Loop | None = None
    answers: list[bool] = field(default_factory=list)  # of this iteration
    asked: dict[Ref, bool] = field(default_factory=dict)
    lengths: dict[Shape, int] = field(default_factory=dict)
    states: list[dict[str, Ref]] = field(default_factory=list)
    last: dict[str, Ref] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    is_cut: bool = False  # whether it is not left early, as it may be
    lengths_of_lists: dict[str, int] = field(default_factory=dict)
    grown: list[list[Ref]] = field(default_factory=list)
    listed: list[dict[int, Ref]] = field(default_factory=list)

    @property
    def shown(self) -> int:
        """How many iterations are kept."""
        return LEN(self.schedule)

    @property
    def may_end_early(self) -> bool:
        """Whether a value may end it."""
        return self.is_while or self.schedule[-1].leaves


@register_patch("turns", "builtins.len", reason="the length of a list that a loop fills is that of the example")
def _length_by(plain: Any, length: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return length


@register_patch("turns", "builtins.enumerate", reason="it counts the iterations of a loop in Python numbers")
def _enumerated_by(plain: Any, enumerated: Callable[..., Any]) -> Callable[..., Any]:
    return enumerated


class Turns:
    """Takes the place of a `range` whose length moves, and of rows or parts of a tensor: each turn begins with a note.

    Args:
        item: what the loop's variable is, if not the number.
        rest: gives a value more, another than those, behind the last turn.
    """

    def __init__(
        self,
        loops: Loops,
        place: Place,
        start: Any,
        stop: Any,
        step: Any = 1,
        item: Callable[[Any], Any] | None = None,
        rest: Callable[[], Any] | None = None,
    ) -> None:
        self._loops, self.place, self.start, self.stop, self.step, self._item, self._rest = loops, place, start, stop, step, item, rest
        self.plain = LEN(RANGE(*(map(plain, (start, stop, step)))))

    @property
    def count(self) -> Any:
        """How many turns: a size, or a number."""
        return number_of_turns(self.start, self.stop, self.step)

    @property
    def length(self) -> Any:
        """How many values: what `len` says of them."""
        return self.count + (self._rest is not None)

    def at(self, turn: Any) -> Any:
        """Return what the loop's variable is in a turn."""
        index = self.start + self.step * turn
        return index if self._item is None else self._item(index)

    def __iter__(self) -> Iterator[Any]:
        return self._each(self._loops.opened(self.place), lambda turn, value: value)

    def numbered(self, start: int) -> Iterator[Any]:
        """Iterate as `enumerate` does."""
        return self._each(self._loops.opened(self.place), lambda turn, value: (start + turn, value))

    def _each(self, loop: Loop, shown: Callable[[Any, Any], Any]) -> Iterator[Any]:
        leads = loop.turn < 0  # those of a `zip` are advanced one after the other
        try:
            for number in RANGE(self.plain):
                turn = self._loops.next_turn(loop, self, number) if leads else self._loops.same_turn(loop, number)
                yield shown(turn, self.at(turn))
            if leads:
                self._loops.over(loop)
        finally:
            if leads:
                self._loops.left(loop, self.plain)
        if self._rest is not None:
            yield shown(self.count, self._rest())

    def __reversed__(self) -> Iterator[Any]:
        if self._rest is not None:
            raise self._loops.refusal("a loop over parts of a dynamic dimension runs backwards")
        last = self.start + self.step * (self.count - 1)
        return iter(Turns(self._loops, self.place, last, self.start - (1 if plain(self.step) > 0 else -1), -self.step, self._item))

    def __getitem__(self, index: int) -> Any:
        if not isinstance(index, int) or (index < 0 and self._rest is not None):
            raise self._loops.refusal("the parts of a dynamic dimension are indexed by a slice or from the end,")
        return self.at(index if index >= 0 else self.count + index)

    def __len__(self) -> int:
        return self.plain + (self._rest is not None)


class Loops:
    """Notes, while a run lasts, the loops at some places, and numbers the calls of further iterations as those of the last one that is kept.

    Tensors that such an iteration makes are told from those of the one before by the iterations in their `Ref`.

    Args:
        moving: where loops have more iterations the larger the sizes are, or until a value ends them, and how these differ. The last part
            of an axis comes after the loop.
        environment: in which the number of an iteration is a symbol, but for the first; without it, it is a number.
        explores: whether tests that no shape answers are answered by no, and the shapes of iterations noted.
    """

    def __init__(self, moving: Moving, environment: Any = None, explores: bool = False) -> None:
        self._moving, self._environment, self._explores = moving, environment, explores
        self._places, self._parted = moving.places, moving.in_parts
        self._thread = get_ident()
        self.found: list[Loop] = []
        self.shapes: dict[Place, list[Shape]] = {}  # that an exploring run has seen
        self.position = 0  # of the next call
        self._open: list[Loop] = []
        self._waiting: list[Loop] = []  # made, but not begun
        self._held: dict[Loop, dict[str, Any]] = {}
        self._memory: dict[int, int] = {}  # of iterations behind those that are kept, as the last one's
        self._symbols: dict[Any, tuple[int, Any]] = {}
        self._over: list[Loop] = []

    @contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Note them while it lasts."""
        self._recorder, recorder.loops = recorder, self
        with ExitStack() as stack:
            if self._places:
                stack.enter_context(ranges_by(self._range, (Turns,)))
                stack.enter_context(patched("as_written"))
                stack.enter_context(patched("taken_apart", rows=self._unbind, parts=self._split))
            if self._places and self._environment is not None:
                stack.enter_context(patched("turns", length=self._length, enumerated=self._enumerated))
            yield

    def refusal(self, why: str) -> Exception:
        """Return the error for a loop that cannot be rolled up, with the line."""
        return self._recorder.refuse(CannotRun(f"{why} at {line_of(sys._getframe(1))}"))

    def _range(self, place: Place, *args: Any) -> Any:
        if place not in self._places:
            return RANGE(*args)
        turns = Turns(self, place, *bounds(*args))
        if place not in self._parted:
            return turns
        if not at_least(turns.count, 2):
            return counted(place, *args)
        last = turns.count - 1
        return Turns(self, place, 0, last, item=turns.at, rest=partial(turns.at, last))

    def _unbind(self, place: Place, tensor: torch.Tensor, dim: int = 0) -> Any:
        if place not in self._places:
            return None
        return Turns(self, place, 0, tensor.shape[dim], item=lambda index: tensor.select(dim, index))

    def _split(self, place: Place, tensor: torch.Tensor, size: int, dim: int = 0) -> Any:
        """Parts of this size, and behind them one that is shorter, where a test of sizes says that there is one."""
        if place not in self._places:
            return None
        length = tensor.shape[dim]
        whole, has_rest = length // size, bool(length % size != 0)
        rest = partial(tensor.narrow, dim, whole * size, 1 if size == 2 else length - whole * size) if has_rest else None
        return Turns(self, place, 0, whole, item=lambda index: tensor.narrow(dim, size * index, size), rest=rest)

    def _enumerated(self, iterable: Any, start: int = 0) -> Iterator[Any]:
        if isinstance(iterable, torch.Tensor) and get_ident() == self._thread:
            iterable = iterable.unbind(0)
        return iterable.numbered(start) if isinstance(iterable, Turns) else ENUMERATE(iterable, start)

    def _length(self, value: Any) -> Any:
        if is_within_torch(sys._getframe(1).f_code.co_filename) or get_ident() != self._thread:
            return LEN(value)
        if isinstance(value, torch.Tensor) and value.dim():
            return value.shape[0]
        if isinstance(value, Turns):
            return value.length
        parts = [self._recorder.ref(part) for part in value if isinstance(part, torch.Tensor)] if isinstance(value, (list, tuple)) else []
        if LEN(parts) < LEN(value) or not any(ref.turns for ref in parts):
            return LEN(value)
        return sum(self.found[ref.turns[0][0]].size - 1 if ref.kind in EVERY else 1 for ref in self._listed(parts))

    def opened(self, place: Place) -> Loop:
        """Return the loop of an iterator: `zip` makes several before the first begins."""
        if not self._waiting:
            self._waiting.append(Loop(line_of(sys._getframe(1)), place))
        return self._waiting[0]

    def next_turn(self, loop: Loop, turns: Turns, turn: int) -> Any:
        """Begin an iteration; return its number."""
        if turn == 0:
            loop.size = turns.count
            self._begin(loop)
        if not self._open or self._open[-1] is not loop:
            raise self.refusal("an outer loop continues before its inner loop has ended")
        self._go_on(loop)
        return self._shown_number(loop, turn)

    def _shown_number(self, loop: Loop, turn: int) -> Any:
        return turn if self._environment is None or turn == 0 else self._environment.create_symintnode(loop.symbol, hint=turn)

    def same_turn(self, loop: Loop, turn: int) -> Any:
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
        loop.bound = frozenset(self._names())
        loop.lengths_of_lists = {name: LEN(held) for name, held in self._lists()}
        again = next(
            (other for other in self.found if (other.place, other.begin) == (loop.place, self.position) and other not in self._open), None
        )
        if self.position < LEN(self._recorder.rows) and again is not None:
            loop.starts, loop.end, loop.symbol, loop.number = again.starts, again.end, again.symbol, again.number
            loop.repeats = again
        else:
            self.found.append(loop)
            key = (loop.place, str(loop.size), tuple(other.number for other in self._open))
            if key not in self._symbols:
                number = LEN(self._symbols)
                environment = self._environment
                known = environment.iterations if environment is not None else {}
                if environment is not None and number not in known:
                    known[number] = new_symbol(environment, f"turn_{number}", 1)
                self._symbols[key] = number, known.get(number)
            loop.number, loop.symbol = self._symbols[key]
        self._open.append(loop)

    def _go_on(self, loop: Loop) -> None:
        """End one iteration and begin the next."""
        if loop.turn >= 0:
            self._close_turn(loop)
        loop.turn += 1
        loop.answers, loop.asked = [], {}
        if loop.turn < loop.shown:
            self._placed(loop.starts, loop.turn)
            if loop.repeats is None:
                loop.states.append(self._state())
        else:
            self.position = loop.starts[-1]
        self._check_counters(loop)

    def _placed(self, starts: list[int], turn: int) -> None:
        if LEN(starts) == turn:
            starts.append(self.position)
        elif starts[turn] != self.position:
            raise self.refusal("an iteration runs different operators than the previous one")

    def _close_turn(self, loop: Loop, leaves: bool = False) -> None:
        """Hold how an iteration goes, and where it ends, against what is expected."""
        shape, last = Shape(tuple(loop.answers), leaves), min(loop.turn, loop.shown - 1)
        if self._explores:
            self.shapes.setdefault(loop.place, []).append(shape)
            loop.end = self.position
            return
        if shape != loop.schedule[last]:
            raise self.refusal("an iteration evaluates other conditions than the previous one")
        if loop.turn and self.position - loop.starts[last] != loop.lengths.setdefault(shape, self.position - loop.starts[last]):
            raise self.refusal("an iteration runs different operators than the previous one")
        if loop.turn >= loop.shown - 1:
            loop.end = self.position if loop.end < 0 else loop.end
            if self.position != loop.end:
                raise self.refusal("an iteration runs different operators than the previous one")

    def over(self, loop: Loop) -> None:
        """End a loop after its last iteration."""
        if loop.turn >= 0:
            self._close_turn(loop)
        loop.turns = loop.turn + 1
        if loop.turns < loop.shown and not self._explores and self._moving.iterations is None:
            raise self.refusal(f"a loop has too few iterations ({loop.turns}) to find what they have in common,")
        self._ended(loop)

    def _ended(self, loop: Loop) -> None:
        if loop.repeats is not None and loop.repeats.turns != loop.turns:
            raise self.refusal("the number of iterations of an inner loop changes with the outer loop")
        self._open.pop()
        if loop.end < 0:
            loop.end = self.position
        if loop.repeats is None:
            loop.last = self._state()
        loop.grown = list(self._grown(loop))
        self._over.append(loop)

    def _lists(self) -> Iterator[tuple[str, list[Any]]]:
        frames = [(depth, frame.f_locals) for depth, frame in self._frames()]
        return ((f"{depth}.{name}", value) for depth, held in frames for name, value in held.items() if isinstance(value, list))

    def _grown(self, loop: Loop) -> Iterator[list[Ref]]:
        """What lists got that an iteration adds one value to."""
        with torch._C.DisableTorchFunction():  # as above
            for name, held in self._lists():
                added = held[loop.lengths_of_lists.get(name, 0) :]
                if LEN(added) == loop.turn + 1 and all(isinstance(one, torch.Tensor) for one in added):
                    refs = [self._recorder.known_ref(one) for one in added]
                    yield from [[ref for ref in refs if ref is not None]] if None not in refs else []

    def left(self, loop: Loop, turns: int) -> None:
        """End a loop of so many iterations that is left before its end, which a value has to have decided."""
        if loop.turns is not None or self._recorder.refused is not None:
            return
        expected = self._explores or (loop.turn == loop.shown - 1 and loop.schedule[-1] == Shape(tuple(loop.answers), True))
        if not loop.answers or not expected or self._open[-1] is not loop:
            self._recorder.refuse(CannotRun(f"the loop at {loop.line} is left before its last iteration, for example by break or return"))
            return
        self._close_turn(loop, leaves=True)
        loop.turns = turns
        self._ended(loop)

    def answer(self, ref: Ref, frame: FrameType | None) -> tuple[bool | None, bool]:
        """Return the answer to a test of a value in a loop, None of one outside all loops; and whether it is asked for the first time.

        Raises:
            TestInLoop: it is not known yet which tests an iteration makes.
        """
        place = place_of(frame) if frame is not None else None
        if place in self._moving.whiles:
            return self._head(place, frame), True
        if not self._open:
            return None, True
        loop = self._open[-1]
        if place is not None and is_while(place):
            error = LoopOnValue(f"a `while` has a condition on a value at {line_of(frame)}")
            error.place = place
            raise self._recorder.refuse(error)
        if ref in loop.asked:
            return loop.asked[ref], False
        shape = loop.schedule[min(loop.turn, loop.shown - 1)]
        if loop.place not in self._moving.shapes:
            error = TestInLoop(f"a condition on a value is evaluated in the loop at {loop.line}")
            error.place = loop.place
            raise self._recorder.refuse(error)
        known = LEN(loop.answers) < LEN(shape.answers)
        if not known and not self._explores:
            raise self.refusal("an iteration evaluates other conditions than the previous one")
        loop.asked[ref] = shape.answers[LEN(loop.answers)] if known else False
        loop.answers.append(loop.asked[ref])
        return loop.asked[ref], True

    def _head(self, place: Any, frame: Any) -> bool:
        """Return whether a `while` has another iteration."""
        loop = self._open[-1] if self._open and self._open[-1].place == place else None
        if loop is None:
            loop = Loop(line_of(frame), place, is_while=True)
            self._begin(loop)
        many = loop.shown + 2 if self._moving.iterations is None else self._moving.iterations
        if loop.turn + 1 < many:
            self._go_on(loop)
            return not ends_it(place)
        self.over(loop)
        return ends_it(place)

    def _frames(self) -> Iterator[tuple[str, FrameType]]:
        return ((str(depth), frame) for depth, frame in ENUMERATE(python_frames(sys._getframe(1))))

    def _names(self) -> Iterator[str]:
        return (f"{depth}.{name}" for depth, frame in self._frames() for name in frame.f_locals)

    def _state(self) -> dict[str, Ref]:
        """The tensors that variables hold."""
        found: dict[str, Ref] = {}
        held = [(f"{depth}.{name}", tensor) for depth, frame in self._frames() for name, tensor in tensors_held(frame.f_locals)]
        with torch._C.DisableTorchFunction():  # what is asked here of tensors is no call of the model's
            for name, tensor in held:
                ref = self._recorder.known_ref(tensor)
                if ref is not None and (key := self._key_of(ref)) is not None:
                    found[name] = Ref(ref.kind, key, ref.part)
        return found

    def _check_counters(self, loop: Loop) -> None:
        """Refuse numbers of Python's own that change from iteration to iteration: tests of them would not be seen."""
        frame = outside(sys._getframe(1))
        if frame is None or (self._environment is None and not loop.is_while) or not 2 - loop.is_while <= loop.turn <= loop.shown + CHECKED:
            return
        if loop.is_while and (steps := [name for name, value in frame.f_locals.items() if hasattr(value, "__next__")]):
            raise self.refusal(f"the iterator `{min(steps)}` may advance in each iteration of a while loop on a value,")
        now = dict(numbers_held(frame.f_locals))
        before = self._held.setdefault(loop, now)
        if changed := [name for name in now.keys() | before.keys() if now.get(name, ...) != before.get(name, ...)]:
            kind = " of a while loop" if loop.is_while else ""
            raise self.refusal(
                f"`{min(changed)}` is a Python number that changes in each iteration{kind}, and a Loop carries only tensors,"
            )

    def stamp(self) -> tuple[tuple[Loop, int], ...]:
        """Return the turns that are going on."""
        return tuple((loop, loop.turn) for loop in self._open)

    def take(self, row: Row) -> bool:
        """Note a call; return whether it is another than those of the turns before."""
        rows = self._recorder.rows
        row.made = [self._as_third(made) for made in row.made]
        row.turns = {loop.number: loop.turn for loop in self._open}
        self.position += 1
        if getattr(row.op, "_schema", None) is None or row.op._schema.is_mutable:
            for loop in self._open:
                loop.asked.clear()
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

    def _as_third(self, made: Any) -> Any:
        """What was made, in the memory that it would be in had the turn it is from been the third."""
        return made._replace(storage=self._memory.get(made.storage, made.storage)) if isinstance(made, Made) else made

    def told(self, args: tuple[Any, ...], kwargs: Any) -> tuple[list[Any], pytree.TreeSpec]:
        """Return arguments with a `Ref` for each tensor, and one for what every turn but the first has added to a list; flattened."""
        told = tuple(map(self._one, args)), {name: self._one(value) for name, value in kwargs.items()}
        return pytree.tree_flatten(told, is_leaf=lambda value: isinstance(value, Ref))

    def _one(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)) and value and all(isinstance(part, torch.Tensor) for part in value):
            return self._listed([self._recorder.ref(part) for part in value])
        return pytree.tree_map_only(torch.Tensor, lambda tensor: self.seen(self._recorder.ref(tensor)), value)

    def _listed(self, refs: Sequence[Ref]) -> list[Ref]:
        told, at = [], 0
        while at < LEN(refs):
            found, many = self._run(refs[at:])
            told += found or [self.seen(refs[at])]
            at += many
        return told

    def _run(self, refs: Sequence[Ref]) -> tuple[list[Ref], int]:
        """What stands for a value of every iteration of a loop but the first, where a list begins with those; how many those are."""
        lists = [(loop, added) for loop in reversed(self._over) if not loop.may_end_early for added in loop.grown if LEN(added) > 1]
        for has_first in (True, False):
            for loop, added in lists:
                for kind, values in (("every", added[not has_first :]), ("flipped", added[::-1][: LEN(added) - (not has_first)])):
                    if refs[: LEN(values)] == values:
                        return self._every(kind, loop, added, has_first), LEN(values)
        if not refs[0].turns or refs[0].turns[-1][0].turns is None or refs[0].turns[-1][0].may_end_early:
            return [], 1
        *around, (loop, _) = refs[0].turns
        for kind, order in (("every", RANGE(1, loop.turns)), ("flipped", RANGE(loop.turns - 1, 0, -1))):
            found = refs[: loop.turns - 1]
            if [ref.turns for ref in found] == [(*around, (loop, turn)) for turn in order] and self._is_made_alike(loop, found):
                return self._every(kind, loop, [found[0], *(found if kind == "every" else found[::-1])], False), LEN(found)
        return [], 1

    def _is_made_alike(self, loop: Loop, refs: Sequence[Ref]) -> bool:
        """Whether iterations of one shape have made these values in one place."""
        places: dict[Shape, tuple[int, int]] = {}
        for ref in refs:
            last = min(ref.turns[-1][1], loop.shown - 1)
            at = int(ref.key) - loop.starts[last], ref.part
            if places.setdefault(loop.schedule[last], at) != at:
                return False
        return True

    def _every(self, kind: str, loop: Loop, values: Sequence[Ref], has_first: bool) -> list[Ref]:
        """What stands for the values of all iterations, or all but the first; nothing where the last one is no call's."""
        first = loop.repeats or loop
        numbers = [*RANGE(1, loop.shown - 1), LEN(values) - 1]
        listed = {min(number, loop.shown - 1): self.seen(values[number]) for number in numbers}
        last = listed[loop.shown - 1]
        if last.kind != "row":
            return []
        if listed not in first.listed:
            first.listed.append(listed)
        every = Ref(kind, last.key, last.part, ((self.found.index(first), first.listed.index(listed)),))
        beside = [self.seen(values[0])] if has_first else []
        return [*beside, every] if kind == "every" else [every, *beside]

    def seen(self, ref: Ref) -> Ref:
        """Return a reference as the last iteration that is kept has it, or what comes after the loop."""
        key = self._key_of(ref)
        if key is None:
            loop, made = next(pair for pair in reversed(ref.turns) if self._keys(*pair, int(ref.key)) == [])
            if loop.turns is None:
                raise self.refusal(f"iteration {loop.turn + 1} reads a value of iteration {made + 1} instead of the previous one,")
            raise self._recorder.refuse(CannotRun(f"a value made only in iteration {made + 1} of the loop at {loop.line} is read after it"))
        return Ref(ref.kind, key, ref.part)

    def _key_of(self, ref: Ref) -> Any:
        """The number of a call, with those of further iterations as those that are kept; None where there is none."""
        keys: list[Any] = [ref.key]
        for loop, made in reversed(ref.turns):
            keys = [other for key in keys for other in self._keys(loop, made, int(key))]
        rows = self._recorder.rows
        known = {leaf for leaf in rows[self.position].leaves if isinstance(leaf, Ref)} if self.position < LEN(rows) else set()
        return next((key for key in keys if Ref(ref.kind, key, ref.part) in known), keys[0] if keys else None)

    def _keys(self, loop: Loop, made: int, key: int) -> list[int]:
        """What the number of a call of this iteration may be: as it is, or as far before the last one that is kept."""
        is_kept = made < loop.shown - 1
        if loop.turn < loop.shown or made == loop.turn or (is_kept and loop.turns is not None):
            return [key]
        target = loop.shown - 1 - (loop.turn - made)
        moved = [key - loop.starts[min(made, loop.shown - 1)] + loop.starts[target]] if target >= 0 else []
        return [*moved, key] if is_kept else moved


def _storage(made: Any) -> int:
    return made.storage if isinstance(made, Made) else 0


def _like(one: Row, other: Row, numbers_may_differ: bool) -> bool:
    if one.kind != other.kind or not all(map(_same_result, one.made, other.made)):
        return False
    return all(alike(a, b) for a, b in zip(one.leaves, other.leaves, strict=True) if not (numbers_may_differ and _is_number(a, b)))


def _is_number(a: Any, b: Any) -> bool:
    return type(a) in (int, float) and type(b) is type(a)


def _same_result(one: Any, other: Any) -> bool:
    if isinstance(one, Made) and isinstance(other, Made):
        return (one.shape, one.dtype) == (other.shape, other.dtype)
    return type(one) is type(other)
