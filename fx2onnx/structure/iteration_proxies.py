"""Proxies for a `range` or the rows of a tensor, which report the start of each iteration to the recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..trace.events import plain
from ..trace.source_location import CodeLocation
from .loop import Loop
from .loop_sites import LEN, RANGE, trip_count


class IterationProxy:
    """Replaces a `range` of dynamic length, or the rows or chunks of a tensor, and records the start of each iteration.

    Args:
        loops: the `LoopTracer` of the run.
        item: computes the loop variable from the index, if they differ.
        rest: computes one further value after the last iteration.
    """

    def __init__(
        self,
        loops: Any,
        place: CodeLocation,
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
        """The number of iterations, which may be symbolic."""
        return trip_count(self.start, self.stop, self.step)

    @property
    def length(self) -> Any:
        """The number of values, as `len` returns it."""
        return self.count + (self._rest is not None)

    def at(self, turn: Any) -> Any:
        """Return the loop variable of an iteration."""
        index = self.start + self.step * turn
        return index if self._item is None else self._item(index)

    def __iter__(self) -> Iterator[Any]:
        return self._each(self._loops.open_loop(self.place), lambda turn, value: value)

    def enumerate_from(self, start: int) -> Iterator[Any]:
        """Iterate as `enumerate` does."""
        return self._each(self._loops.open_loop(self.place), lambda turn, value: (start + turn, value))

    def _each(self, loop: Loop, shown: Callable[[Any, Any], Any]) -> Iterator[Any]:
        leads = loop.turn < 0  # the iterators of a `zip` are advanced one after the other
        try:
            for number in RANGE(self.plain):
                turn = self._loops.next_iteration(loop, self, number) if leads else self._loops.same_iteration(loop, number)
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
        return iter(IterationProxy(self._loops, self.place, last, self.start - (1 if plain(self.step) > 0 else -1), -self.step, self._item))

    def __getitem__(self, index: int) -> Any:
        if not isinstance(index, int) or (index < 0 and self._rest is not None):
            raise self._loops.refusal("the parts of a dynamic dimension are indexed by a slice or from the end,")
        return self.at(index if index >= 0 else self.count + index)

    def __len__(self) -> int:
        return self.plain + (self._rest is not None)
