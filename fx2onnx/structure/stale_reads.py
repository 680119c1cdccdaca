"""Find stale reads: a fork returns copies, which are not updated by later writes into the original memory."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from .path_events import Use
from .path_tree import Block, Call, Fork, Tree
from .phi import Phi, Phis, Value

Memory: TypeAlias = "int | Phi"  # in the program: that of a path, unless a fork returns a copy


def first_stale(tree: Tree, phis: Phis) -> tuple[Fork, Call | None] | None:
    """Return a fork, and a later call that uses a stale tensor because the fork makes copies; None if there is none.

    Returns:
        The call is None if the tensor is a result of the model.
    """
    for path in tree.lines:
        try:
            Replayed(tree, phis, path).replay()
        except Stale as found:
            return found.fork, found.call
    return None


class Stale(Exception):
    """A tensor is stale because of this fork."""

    def __init__(self, fork: Fork, call: Call | None) -> None:
        super().__init__()
        self.fork, self.call = fork, call


class Replayed:
    """The writes of one path, in eager's memory and in that of the program."""

    def __init__(self, tree: Tree, phis: Phis, path: int) -> None:
        self._tree, self._phis, self._path, self._line = tree, phis, path, tree.lines[path]
        self._eager: Counter[int] = Counter()  # the number of writes into each memory
        self._known: dict[tuple[Memory, int], int] = {}  # how many of those the program's memory contains
        self._writers: dict[int | None, Call] = {}  # the last writer of each memory
        self._forks: dict[Memory, Fork] = {}  # the last fork that wrote into a memory, or created it

    def replay(self) -> None:
        """Replay the path.

        Raises:
            Stale: If it uses a tensor that is stale in the program.
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

    def _leave(self, fork: Fork, before: dict[tuple[Memory, int], int]) -> None:
        """Set the outputs of a fork to the state at the end of its arm, and all other memory to the state before the fork."""
        copies: dict[tuple[Memory, int], int] = {}
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
        definition = self._phis.on(value, self._path)
        if definition is None:
            return None
        source = definition.by.events.get(self._path) if isinstance(definition.by, Call) else definition.by
        return None if source is None else self._line.memory(Use(source, definition.part))

    def _memory(self, value: Value) -> Memory:
        """The memory of a tensor in the program: that of the tensor of which it is a view, or of a copy."""
        if isinstance(value, Phi):
            return value
        eager = self._eager_memory(value)
        assert eager is not None
        if isinstance(value.by, Call):
            for taken in self._phis.leaves.get(value.by, {}).values():
                if self._eager_memory(taken) == eager:
                    return self._memory(taken)
        return eager
