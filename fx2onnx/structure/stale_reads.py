"""Reads of what was written elsewhere: a tensor that a fork returns is a copy, which is not written with what it was a view of."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from .path_events import Use
from .path_tree import Block, Call, Fork, Tree
from .phi import Phi, Phis, Value

AliasConsistency: TypeAlias = "int | Phi"  # in the program: that of a path, unless a fork returns a copy


def first_stale(tree: Tree, phis: Phis) -> tuple[Fork, Call | None] | None:
    """Return a fork and a call behind it that reads, or writes, an old state of a tensor, because the fork makes copies; None if none does.

    Returns:
        None in the place of the call where it is a result of the model.
    """
    for path in tree.lines:
        try:
            Replayed(tree, phis, path).replay()
        except Stale as found:
            return found.fork, found.call
    return None


class Stale(Exception):
    """A tensor that shows an old state, since this fork."""

    def __init__(self, fork: Fork, call: Call | None) -> None:
        super().__init__()
        self.fork, self.call = fork, call


class Replayed:
    """The writes of one path, in its own memory and in that of the program."""

    def __init__(self, tree: Tree, phis: Phis, path: int) -> None:
        self._tree, self._phis, self._path, self._line = tree, phis, path, tree.lines[path]
        self._eager: Counter[int] = Counter()  # how often each memory was written
        self._known: dict[tuple[AliasConsistency, int], int] = {}  # how many of those the program's memory shows
        self._writers: dict[int | None, Call] = {}  # the last of each memory
        self._forks: dict[AliasConsistency, Fork] = {}  # the last that wrote into a memory, or made it

    def replay(self) -> None:
        """Go through the path.

        Raises:
            Stale: it reads or writes what the program has in an old state.
        """
        self._through(self._tree.root)
        for value in self._phis.results.values():
            self._check(value, None)

    def _through(self, block: Block) -> None:
        for item in block:
            if isinstance(item, Call):
                self._call(item)
                continue
            answer = self._tree.answer(item, self._path)
            assert answer is not None
            before = dict(self._known)
            self._through(item.arms[answer])
            for pair in item.phis:
                end = pair[0 if answer else 1]
                self._check(end, self._writers.get(self._eager_memory(end)))
            self._leave(item, before)

    def _leave(self, fork: Fork, before: dict[tuple[AliasConsistency, int], int]) -> None:
        """What a fork returns is as its arm left it; all else is as it was before the fork."""
        copies: dict[tuple[AliasConsistency, int], int] = {}
        for number in range(len(fork.phis)):
            phi = Phi(fork, number)
            eager = self._eager_memory(phi)
            if eager is not None:
                copies[phi, eager] = self._eager[eager]
                self._forks[phi] = fork
        for key, times in self._known.items():
            if key in before and before[key] != times:
                self._forks[key[0]] = fork
        self._known = {**self._known, **before, **copies}

    def _call(self, call: Call) -> None:
        event = self._tree.lines[self._path].events[call.events[self._path]]
        values = self._phis.leaves.get(call, {})
        for value in values.values():
            self._check(value, call)
        for memory in event.writes:
            shown = {self._memory(value) for value in values.values() if self._eager_memory(value) == memory}
            self._eager[memory] += 1
            self._writers[memory] = call
            self._known.update({(own, memory): self._eager[memory] for own in shown})

    def _check(self, value: Value, call: Call | None) -> None:
        eager = self._eager_memory(value)
        if eager is None:
            return
        own = self._memory(value)
        if self._known.get((own, eager), 0) == self._eager[eager]:
            return
        forks = [self._forks[memory] for memory, other in self._known if other == eager and memory in self._forks]
        raise Stale(self._forks[own] if own in self._forks else forks[-1], call)

    def _eager_memory(self, value: Value) -> int | None:
        made = self._phis.on(value, self._path)
        if made is None:
            return None
        source = made.by.events.get(self._path) if isinstance(made.by, Call) else made.by
        return None if source is None else self._line.memory(Use(source, made.part))

    def _memory(self, value: Value) -> AliasConsistency:
        """The memory of a tensor in the program: of what it is a view of, or a copy."""
        if isinstance(value, Phi):
            return value
        eager = self._eager_memory(value)
        assert eager is not None
        if isinstance(value.by, Call):
            for taken in self._phis.leaves.get(value.by, {}).values():
                if self._eager_memory(taken) == eager:
                    return self._memory(taken)
        return eager
