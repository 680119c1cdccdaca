"""Paths as one structured program: shared calls occur once, and a fork has an arm for each decision."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..guards.dynamic_shapes import OpenGuard
from ..trace.path_decisions import BRANCH
from .path_events import Event, PathEvents, comparable, covers


@dataclass(eq=False)
class Call:
    """A call of the program, with its number among the events of each path that makes it."""

    events: dict[int, int]
    chosen: int  # the path whose event is right for all paths
    is_closed: bool = False  # whether it is a test whose other branch only raises


@dataclass(eq=False)
class Fork:
    """A test, and what follows each outcome until both branches are the same again.

    Attributes:
        asks: the call that tests a value; None for a test of sizes.
        test: the test of sizes.
    """

    asks: Call | None
    test: OpenGuard | None
    arms: dict[bool, list[Call | Fork]]
    phis: dict[tuple[Any, Any], int] = field(default_factory=dict)  # the outputs, as the values of both arms, with their numbers


Block = list[Call | Fork]


class Stop(NamedTuple):
    """A position in the program before an item of a block, and the arm that leads to a nested position."""

    block: Block
    at: int
    arm: bool | None = None


class Tree:
    """The program of the inserted paths.

    Args:
        joins: whether paths may join again after a fork; if not, both arms contain everything after the test.
    """

    def __init__(self, joins: bool = True) -> None:
        self.root: Block = []
        self.lines: dict[int, PathEvents] = {}
        self.joins = joins

    def where(self) -> dict[tuple[int, int], Call]:
        """Return the call of each event of each path."""
        return {pair: call for call in self.calls() for pair in call.events.items()}

    def calls(self, block: Block | None = None) -> Iterator[Call]:
        """Yield all calls of a block, including those inside forks."""
        for item in self.root if block is None else block:
            if isinstance(item, Call):
                yield item
            else:
                for arm in item.arms.values():
                    yield from self.calls(arm)

    def event(self, call: Call) -> Event:
        """Return the event that is written for a call."""
        return self.lines[call.chosen].events[call.events[call.chosen]]

    def is_branch(self, call: Call) -> bool:
        """Return whether a call tests a value."""
        return self.event(call).target is BRANCH

    def answer(self, fork: Fork, path: int) -> bool | None:
        """Return the outcome of a test on a path; None if the path does not reach it."""
        if fork.test is not None:
            return self.lines[path].side_of(fork.test)
        assert fork.asks is not None
        number = fork.asks.events.get(path)
        return None if number is None else self.lines[path].events[number].answer

    def one_sided(self) -> Iterator[Call]:
        """Yield the value tests with one known outcome, in the order of the program."""
        for block in self.blocks():
            for at, item in enumerate(block):
                if isinstance(item, Call) and self.is_branch(item) and not self.is_forked(block, at):
                    yield item

    def blocks(self, block: Block | None = None) -> Iterator[Block]:
        """Yield all blocks, outer ones first."""
        block = self.root if block is None else block
        yield block
        for item in block:
            if isinstance(item, Fork):
                for arm in item.arms.values():
                    yield from self.blocks(arm)

    def width(self, block: Block | None = None) -> int:
        """Return the number of paths through the widest part of the program."""
        forks = (item for item in (self.root if block is None else block) if isinstance(item, Fork))
        return max((sum(map(self.width, fork.arms.values())) for fork in forks), default=1)

    def is_forked(self, block: Block, at: int) -> bool:
        """Return whether the call at this index is the test of a fork."""
        following = block[at + 1] if at + 1 < len(block) else None
        return isinstance(following, Fork) and following.asks is block[at]

    def fit(self, call: Call, path: int, number: int) -> int | None:
        """Return the path whose event is right for both a call and an event of a path, regardless of tensors; None if neither is."""
        if path in call.events:
            return call.chosen if call.events[path] == number else None
        one, other = self.event(call), self.lines[path].events[number]
        if not comparable(one, other):
            return None
        if covers(one, other, self.lines[path].axes):
            return call.chosen
        paths = call.events.items()
        return path if all(covers(other, self.lines[found].events[at], self.lines[found].axes) for found, at in paths) else None

    def note(self, call: Call, path: int, number: int) -> None:
        """Record that an event of a path is this call."""
        chosen = self.fit(call, path, number)
        assert chosen is not None
        call.events[path], call.chosen = number, chosen

    def widen(self, fork: Fork, call: Call | None) -> None:
        """Extend the arms of a fork to include a call, or to the end of the program."""
        stops = self._stops(fork, self.root)
        assert stops is not None
        for level, (block, at, _) in enumerate(stops):
            place = next((place for place in range(at + 1, len(block)) if call in [*self.calls(block[place : place + 1])]), None)
            if place is not None or call is None:
                until = len(block) if place is None else place + 1
                self.widen_at(stops[: level + 1], until)
                for inner in range(level + 1, len(stops)):
                    self.widen_at(stops[: inner + 1], len(stops[inner].block))
                return
        raise AssertionError

    def _stops(self, fork: Fork, block: Block) -> list[Stop] | None:
        """The position of a fork."""
        for at, item in enumerate(block):
            if item is fork:
                return [Stop(block, at)]
            if isinstance(item, Fork):
                for answer, arm in item.arms.items():
                    if (found := self._stops(fork, arm)) is not None:
                        return [Stop(block, at, answer), *found]
        return None

    def widen_at(self, stops: Sequence[Stop], until: int) -> None:
        """Move the items after a fork, up to `until`, into both of its arms."""
        block, at, _ = stops[-1]
        fork = block[at]
        assert isinstance(fork, Fork)
        tail = block[at + 1 : until]
        del block[at + 1 : until]
        passing = self.passing(stops)
        for answer, arm in fork.arms.items():
            arm += self.restrict(tail, {path for path in passing if self.answer(fork, path) is answer})

    def passing(self, stops: Sequence[Stop]) -> set[int]:
        """Return the paths that reach a block."""
        found = set(self.lines)
        for block, at, arm in stops[:-1]:
            fork = block[at]
            assert isinstance(fork, Fork)
            found = {path for path in found if self.answer(fork, path) is arm}
        return found

    def restrict(self, items: Block, paths: Collection[int]) -> Block:
        """Return the items as only these paths make them."""
        found: Block = []
        for item in items:
            if isinstance(item, Call):
                events = {path: number for path, number in item.events.items() if path in paths}
                if events:
                    found.append(Call(events, item.chosen if item.chosen in events else self._most_general(events), item.is_closed))
                continue
            sides = {answer: {path for path in paths if self.answer(item, path) is answer} for answer in item.arms}
            arms = {answer: self.restrict(arm, sides[answer]) for answer, arm in item.arms.items()}
            if all(sides.values()):
                asks = found[-1] if item.asks is not None else None
                found.append(Fork(asks, item.test, arms))  # type: ignore[arg-type]
            else:
                found += next((arm for answer, arm in arms.items() if sides[answer]), [])
        return found

    def _most_general(self, events: dict[int, int]) -> int:
        def is_general(path: int) -> bool:
            one = self.lines[path].events[events[path]]
            return all(covers(one, self.lines[other].events[number], self.lines[other].axes) for other, number in events.items())

        whole = sorted(events, key=lambda path: self.lines[path].path.is_probe)
        return next(filter(is_general, whole), whole[0])

    def find_probed_paths(self) -> set[int]:
        """Return the probes that are the only source of some call, which prevents writing it."""
        return {call.chosen for call in self.calls() if self.lines[call.chosen].path.is_probe}
