"""Resolve where a tensor comes from at a position of the program: from one call, or from the arm taken at a fork."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from .path_events import Use
from .path_tree import Block, Call, Fork, Stop, Tree


@dataclass(frozen=True)
class Made:
    """The result of a call, or an input; or a part of it."""

    by: Call | str
    part: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Phi:
    """An output of a fork, by number: the tensor of whichever arm was taken."""

    fork: Fork
    number: int


Value: TypeAlias = "Made | Phi"
Stops: TypeAlias = tuple[Stop, ...]


class Phis:
    """The tensors that each call of a program uses, and the results. It also sets the outputs of forks.

    Attributes:
        leaves: of each call, by position.
        results: the returned tensors, by number.
        missing: positions whose tensor the paths do not determine.
        wanted: forks to flip to determine them, with the path to repeat with the flipped decision.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree, self._where = tree, tree.where()
        self._position: dict[Call, tuple[int, int]] = {}
        self._fork_positions: dict[int, list[int]] = {}
        self._index(tree.root)
        self.wanted: set[tuple[Fork, int]] = set()
        self._writes: dict[tuple[int, int], frozenset[int]] = {}
        self.leaves: dict[Call, dict[int, Value]] = {}
        self.results: dict[int, Value] = {}
        self.missing: list[Call | int] = []
        for fork in self._forks(tree.root):
            fork.phis.clear()
        places = [*self._places(tree.root, ())]
        for is_last in (False, True):  # the second pass uses the outputs that other uses of a fork determine
            self._guesses, self.wanted = is_last, set()
            self.missing = [place for place, uses, stops in places if not self._resolve_place(place, uses, stops)]
            if not self.missing and not self.wanted:
                break

    def _index(self, block: Block) -> None:
        """Note the position of each call, and the positions of the forks in each block."""
        self._position.update({item: (id(block), at) for at, item in enumerate(block) if isinstance(item, Call)})
        forks = {at: item for at, item in enumerate(block) if isinstance(item, Fork)}
        self._fork_positions[id(block)] = [*forks]
        for fork in forks.values():
            for arm in fork.arms.values():
                self._index(arm)

    @cached_property
    def _returning(self) -> dict[int, list[Any]]:
        return {path: line.outputs for path, line in self._tree.lines.items()}

    def _forks(self, block: Block) -> Iterator[Fork]:
        return (item for found in self._tree.blocks(block) for item in found if isinstance(item, Fork))

    def _places(self, block: Block, stops: Stops) -> Iterator[tuple[Any, dict[int, Use], Stops]]:
        """Yield each use of a tensor: an argument of a call, or a result; the tensor on each path; and the position."""
        for at, item in enumerate(block):
            if isinstance(item, Fork):
                for answer, arm in item.arms.items():
                    yield from self._places(arm, (*stops, Stop(block, at, answer)))
                continue
            events = {path: self._tree.lines[path].events[number] for path, number in item.events.items()}
            for place, _ in self._tree.event(item).uses:
                yield (item, place), {path: event.leaves[place] for path, event in events.items()}, (*stops, Stop(block, at))
        if not stops:
            for number, results in enumerate(zip(*self._returning.values(), strict=False)):
                uses = dict(zip(self._returning, results, strict=True))
                if all(isinstance(use, Use) for use in results):
                    yield number, uses, (Stop(block, len(block)),)

    def _resolve_place(self, place: Any, uses: Mapping[int, Use], stops: Stops) -> bool:
        found = self._resolve(uses, stops)
        if found is None:
            return False
        if isinstance(place, int):
            self.results[place] = found
        else:
            self.leaves.setdefault(place[0], {})[place[1]] = found
        return True

    def definition(self, path: int, use: Use) -> Made:
        """Return the definition that a path uses."""
        return Made(self._where[path, use.source] if isinstance(use.source, int) else use.source, use.part)

    def on(self, value: Value, path: int) -> Made | None:
        """Return the definition of a tensor on one path; None if the path does not reach the fork."""
        while isinstance(value, Phi):
            answer = self._tree.answer(value.fork, path)
            if answer is None:
                return None
            value = [*value.fork.phis][value.number][0 if answer else 1]
        return value

    def _resolve(self, uses: Mapping[int, Use], stops: Stops) -> Value | None:
        """The value at a position that equals each of these tensors on its path; None if no tests distinguish them."""
        *around, (block, at, _) = stops
        definition = {path: self.definition(path, use) for path, use in uses.items()}
        for place in self._positions_before(block, at, {found.by for found in definition.values()}):
            item = block[place]
            if isinstance(item, Call):
                return self._only(definition)
            here = (*around, Stop(block, place))
            is_off_trace = self._is_made_or_written(item, definition)
            if not is_off_trace and (found := self._resolve(uses, here)) is not None:
                return found
            return self._emit_cond(item, uses, here, is_off_trace)
        return self._resolve(uses, (*around[:-1], around[-1]._replace(arm=None))) if around else self._only(definition)

    def _positions_before(self, block: Block, at: int, makers: Set[Call | str]) -> list[int]:
        """The positions of a block's forks and of these calls before a position, last first."""
        found = [self._position[call] for call in makers if isinstance(call, Call)]
        here = [place for owner, place in found if owner == id(block)]
        return sorted((place for place in (*self._fork_positions[id(block)], *here) if place < at), reverse=True)

    @staticmethod
    def _only(definition: Mapping[int, Made]) -> Made | None:
        one, *others = dict.fromkeys(definition.values())
        return None if others else one

    def _emit_cond(self, fork: Fork, uses: Mapping[int, Use], here: Stops, is_off_trace: bool) -> Value | None:
        *around, (block, at, _) = here
        ends: dict[bool, Value | None] = {}
        for answer, arm in fork.arms.items():
            taken = {path: use for path, use in uses.items() if self._tree.answer(fork, path) is answer}
            ends[answer] = self._resolve(taken, (*around, Stop(block, at, answer), Stop(arm, len(arm)))) if taken else None
            if taken and ends[answer] is None:
                return None
        if None in ends.values():
            self.wanted.add((fork, next(iter(uses))))
            return self._guess(fork, ends)
        if ends[True] == ends[False] and not is_off_trace:
            return ends[True]
        return Phi(fork, fork.phis.setdefault((ends[True], ends[False]), len(fork.phis)))

    def _guess(self, fork: Fork, ends: Mapping[bool, Value | None]) -> Value | None:
        """The only output of a fork with this value in one arm, if no path determines the other."""
        pair = ends[True], ends[False]
        found = [number for known, number in fork.phis.items() if any(a == b for a, b in zip(pair, known, strict=True))]
        return Phi(fork, found[0]) if self._guesses and len(found) == 1 else None

    def _is_made_or_written(self, fork: Fork, definition: Mapping[int, Made]) -> bool:
        """Whether a tensor is created inside a fork, or written there on any path."""
        found = set(definition.values())
        inside = {call for arm in fork.arms.values() for call in self._tree.calls(arm)}
        pairs = ((one, path) for one in found for path in self._tree.lines)
        return not inside.isdisjoint(one.by for one in found) or any(self._is_written(fork, *pair) for pair in pairs)

    def _is_written(self, fork: Fork, definition: Made, path: int) -> bool:
        """Whether a path writes inside a fork into the memory of a tensor that it has."""
        line, written = self._tree.lines[path], self._find_written_memory(fork, path)
        source = definition.by.events.get(path) if isinstance(definition.by, Call) else definition.by
        if not written or source is None or (isinstance(source, str) and source not in line.inputs):
            return False
        return line.memory(Use(source, definition.part)) in written

    def _find_written_memory(self, fork: Fork, path: int) -> frozenset[int]:
        """The memory that a path writes into inside a fork."""
        if (id(fork), path) not in self._writes:
            events = self._tree.lines[path].events
            calls = (call for arm in fork.arms.values() for call in self._tree.calls(arm) if path in call.events)
            self._writes[id(fork), path] = frozenset().union(*(events[call.events[path]].writes for call in calls))
        return self._writes[id(fork), path]
