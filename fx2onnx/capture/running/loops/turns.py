"""One run in which the turns of loops are told apart: their calls are numbered as if each loop had three turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ....patches.registry import patched, register_patch
from ..counters import numbers_held
from ..lines import Place, is_within_torch, line_of, outside
from ..notes import Made, Ref, Row, alike, plain
from ..recorder import Recorder
from ..refusal import CannotRun
from ..sample import new_symbol
from .places import ENUMERATE, LEN, RANGE, Moving, at_least, bounds, counted, number_of_turns, ranges_by

EVERY = ("every", "flipped")
CHECKED = 6  # turns after which Python's own numbers are no longer compared
SHOWN = 3  # turns that are kept: the first, which may be another; the second, which reads it; and one like all further ones


@dataclass(eq=False)
class Loop:
    """One loop of a run: where the calls of its first three turns begin, and of what follows; how many turns it has."""

    line: str
    starts: list[int] = field(default_factory=list)
    turn: int = -1
    end: int = -1
    turns: int | None = None  # once it is over
    size: Any = None  # the same, a symbol in the run that has symbols
    symbol: Any = None  # of the number of the turn
    number: int = -1  # among the loops of the run
    repeats: Loop | None = None  # the same loop in an earlier turn of the one around it


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
        start: Any,
        stop: Any,
        step: Any = 1,
        item: Callable[[Any], Any] | None = None,
        rest: Callable[[], Any] | None = None,
    ) -> None:
        self._loops, self.start, self.stop, self.step, self._item, self._rest = loops, start, stop, step, item, rest
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
        return self._each(self._loops.opened(), lambda turn, value: value)

    def numbered(self, start: int) -> Iterator[Any]:
        """Iterate as `enumerate` does."""
        return self._each(self._loops.opened(), lambda turn, value: (start + turn, value))

    def _each(self, loop: Loop, shown: Callable[[Any, Any], Any]) -> Iterator[Any]:
        leads = loop.turn < 0  # those of a `zip` are advanced one after the other
        try:
            for number in RANGE(self.plain):
                turn = self._loops.next_turn(loop, self, number) if leads else self._loops.same_turn(loop, number)
                yield shown(turn, self.at(turn))
            if leads:
                self._loops.over(loop)
        finally:
            self._loops.left(loop)
        if self._rest is not None:
            yield shown(self.count, self._rest())

    def __reversed__(self) -> Iterator[Any]:
        if self._rest is not None:
            raise self._loops.refusal("a loop over parts of a dynamic dimension runs backwards")
        last = self.start + self.step * (self.count - 1)
        return iter(Turns(self._loops, last, self.start - (1 if plain(self.step) > 0 else -1), -self.step, self._item))

    def __getitem__(self, index: int) -> Any:
        if not isinstance(index, int) or (index < 0 and self._rest is not None):
            raise self._loops.refusal("the parts of a dynamic dimension are indexed by a slice or from the end,")
        return self.at(index if index >= 0 else self.count + index)

    def __len__(self) -> int:
        return self.plain + (self._rest is not None)


class Loops:
    """Notes, while a run lasts, the loops at some places, and numbers the calls of every turn from the fourth on as those of the third.

    Tensors that such a turn makes are told from those of the turn before by the turns in their `Ref`.

    Args:
        moving: where loops have more turns the larger the sizes are. The last part of an axis comes after the loop.
        environment: in which the number of a turn is a symbol, but for the first; without it, it is a number.
    """

    def __init__(self, moving: Moving, environment: Any = None) -> None:
        self._places, self._parted, self._environment = moving.places, moving.in_parts, environment
        self._thread = get_ident()
        self.found: list[Loop] = []
        self.position = 0  # of the next call
        self._open: list[Loop] = []
        self._waiting: list[Loop] = []  # made, but not begun
        self._held: dict[Loop, dict[str, Any]] = {}
        self._memory: dict[int, int] = {}  # of turns from the fourth on, as the third one's

    @contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Note them while it lasts."""
        self._recorder, recorder.loops = recorder, self
        with ExitStack() as stack:
            stack.enter_context(ranges_by(self._range, (Turns,)))
            stack.enter_context(patched("as_written"))
            stack.enter_context(patched("taken_apart", rows=self._unbind, parts=self._split))
            if self._environment is not None:
                stack.enter_context(patched("turns", length=self._length, enumerated=self._enumerated))
            yield

    def refusal(self, why: str) -> Exception:
        """Return the error for a loop that cannot be rolled up, with the line."""
        return self._recorder.refuse(CannotRun(f"{why} at {line_of(sys._getframe(1))}"))

    def _range(self, place: Place, *args: Any) -> Any:
        if place not in self._places:
            return RANGE(*args)
        turns = Turns(self, *bounds(*args))
        if place not in self._parted:
            return turns
        if not at_least(turns.count, 2):
            return counted(place, *args)
        last = turns.count - 1
        return Turns(self, 0, last, item=turns.at, rest=partial(turns.at, last))

    def _unbind(self, place: Place, tensor: torch.Tensor, dim: int = 0) -> Any:
        if place not in self._places:
            return None
        return Turns(self, 0, tensor.shape[dim], item=lambda index: tensor.select(dim, index))

    def _split(self, place: Place, tensor: torch.Tensor, size: int, dim: int = 0) -> Any:
        """Parts of this size, and behind them one that is shorter, where a test of sizes says that there is one."""
        if place not in self._places:
            return None
        length = tensor.shape[dim]
        whole, has_rest = length // size, bool(length % size != 0)
        rest = partial(tensor.narrow, dim, whole * size, 1 if size == 2 else length - whole * size) if has_rest else None
        return Turns(self, 0, whole, item=lambda index: tensor.narrow(dim, size * index, size), rest=rest)

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
        return sum(self.around(ref).size - 1 if ref.kind in EVERY else 1 for ref in self._listed(parts))

    def around(self, ref: Ref) -> Loop:
        """Return the loop in which a value is made."""
        return next(loop for loop in self.found if loop.starts[-1] <= int(ref.key) < loop.end)

    def opened(self) -> Loop:
        """Return the loop of an iterator: `zip` makes several before the first begins."""
        if not self._waiting:
            self._waiting.append(Loop(line_of(sys._getframe(1))))
        return self._waiting[0]

    def next_turn(self, loop: Loop, turns: Turns, turn: int) -> Any:
        """Begin a turn; return its number."""
        if turn == 0:
            loop.size = turns.count
            self._begin(loop)
        if not self._open or self._open[-1] is not loop:
            raise self.refusal("an outer loop continues before its inner loop has ended")
        loop.turn = turn
        if turn < SHOWN:
            self._placed(loop.starts, turn)
        else:
            self._close_turn(loop)
            self.position = loop.starts[-1]
        if self._environment is None or turn == 0:
            return turn
        self._check_counters(loop, turn)
        return self._environment.create_symintnode(loop.symbol, hint=turn)

    def same_turn(self, loop: Loop, turn: int) -> Any:
        """Return the number of a turn that another iterator of the same `zip` has begun."""
        if not self._open or self._open[-1] is not loop or loop.turn != turn:
            raise self.refusal("iterators over dynamic dimensions do not advance together")
        return turn if self._environment is None or turn == 0 else self._environment.create_symintnode(loop.symbol, hint=turn)

    def _begin(self, loop: Loop) -> None:
        self._waiting.clear()
        again = next((other for other in self.found if other.starts[0] == self.position and other not in self._open), None)
        if self.position < LEN(self._recorder.rows) and again is not None:
            loop.starts, loop.end, loop.symbol, loop.number = again.starts, again.end, again.symbol, again.number
            loop.repeats = again
        else:
            loop.number = LEN(self.found)
            self.found.append(loop)
            if self._environment is not None:
                loop.symbol = new_symbol(self._environment, f"turn_{loop.number}", 1)
        self._open.append(loop)

    def _placed(self, starts: list[int], turn: int) -> None:
        if LEN(starts) == turn:
            starts.append(self.position)
        elif starts[turn] != self.position:
            raise self.refusal("an iteration runs different operators than the previous one")

    def _close_turn(self, loop: Loop) -> None:
        """Hold where a turn from the third on ends against the others."""
        if loop.end < 0:
            loop.end = self.position
        if self.position != loop.end or loop.end - loop.starts[2] != loop.starts[2] - loop.starts[1]:
            raise self.refusal("an iteration runs different operators than the previous one")

    def over(self, loop: Loop) -> None:
        """End a loop after its last turn."""
        if loop.turn + 1 < SHOWN:
            raise self.refusal(f"a loop has too few iterations ({loop.turn + 1}) to find what they have in common,")
        self._close_turn(loop)
        loop.turns = loop.turn + 1
        if loop.repeats is not None and loop.repeats.turns != loop.turns:
            raise self.refusal("the number of iterations of an inner loop changes with the outer loop")
        self._open.pop()

    def left(self, loop: Loop) -> None:
        """Refuse a loop that is left before its end."""
        if loop.turns is None:
            self._recorder.refuse(CannotRun(f"the loop at {loop.line} is left before its last iteration, for example by break or return"))

    def _check_counters(self, loop: Loop, turn: int) -> None:
        """Refuse numbers of Python's own that change from turn to turn: tests of them would not be seen."""
        frame = outside(sys._getframe(1))
        if frame is None or not SHOWN - 1 <= turn <= CHECKED:
            return
        now = dict(numbers_held(frame.f_locals))
        before = self._held.setdefault(loop, now)
        if changed := [name for name in now.keys() | before.keys() if now.get(name, ...) != before.get(name, ...)]:
            raise self.refusal(f"`{min(changed)}` is a Python number that changes in each iteration, and a Loop carries only tensors,")

    def stamp(self) -> tuple[tuple[Loop, int], ...]:
        """Return the turns that are going on."""
        return tuple((loop, loop.turn) for loop in self._open)

    def take(self, row: Row) -> bool:
        """Note a call; return whether it is another than those of the turns before."""
        rows = self._recorder.rows
        row.made = [self._as_third(made) for made in row.made]
        row.turns = {loop.number: loop.turn for loop in self._open}
        self.position += 1
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
            kind, many = self._run(refs[at:])
            last = refs[at + many - 1] if kind == "every" else refs[at]
            told.append(Ref(kind, last.key, last.part) if kind else self.seen(refs[at]))
            at += many
        return told

    def _run(self, refs: Sequence[Ref]) -> tuple[str, int]:
        """Whether a list begins with a value of every turn of a loop but the first, forwards or backwards, and how many those are."""
        if LEN(refs[0].turns) != 1 or refs[0].turns[0][0].turns is None:
            return "", 1
        loop, many = refs[0].turns[0][0], refs[0].turns[0][0].turns - 1
        found = refs[:many]
        for kind, order in (("every", RANGE(1, many + 1)), ("flipped", RANGE(many, 0, -1))):
            if [ref.turns for ref in found] == [((loop, turn),) for turn in order] and LEN({self._third(ref) for ref in found}) == 1:
                return kind, many
        return "", 1

    def _third(self, ref: Ref) -> tuple[Any, ...]:
        """What this would be in the third turn."""
        loop, turn = ref.turns[0]
        return ref.kind, int(ref.key) + (loop.starts[2] - loop.starts[1] if turn == 1 else 0), ref.part

    def seen(self, ref: Ref) -> Ref:
        """Return a reference as the third turn has it, or what comes after the loop, where that is the last turn."""
        key = ref.key
        for loop, made in reversed(ref.turns):
            if loop.turns is not None:
                if made not in (0, loop.turns - 1):
                    raise self._recorder.refuse(
                        CannotRun(f"a value made only in iteration {made + 1} of the loop at {loop.line} is read after it")
                    )
            elif loop.turn >= SHOWN and made not in (0, loop.turn):
                if made != loop.turn - 1:
                    raise self.refusal(f"iteration {loop.turn + 1} reads a value of iteration {made + 1} instead of the previous one,")
                key = int(key) - (loop.starts[2] - loop.starts[1])
        return Ref(ref.kind, key, ref.part)


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
