"""Paths as one structured program: what they share stands once, and a fork has an arm for each answer to a test."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from ...dynamic_shapes import OpenTest
from ..lines import line_in
from ..refusal import CannotRun
from ..script import TEST
from .events import Event, PathEvents, Use, comparable, covers, gives, kind_of


@dataclass(eq=False)
class Call:
    """A call of the program, and the number that it has among the events of each path that makes it."""

    events: dict[int, int]
    chosen: int  # the path whose event is right for all of them
    is_closed: bool = False  # of a test: its other side only raises


@dataclass(eq=False)
class Fork:
    """A test, and what follows for each answer until both sides do the same again.

    Attributes:
        asks: the call that tests a value; None of a test of sizes.
        test: of sizes.
    """

    asks: Call | None
    test: OpenTest | None
    arms: dict[bool, list[Call | Fork]]
    phis: dict[tuple[object, object], int] = field(default_factory=dict)  # what is returned by either arm, and its number


Block = list[Call | Fork]


class Stop(NamedTuple):
    """A place in the program: before an item of a block; and the arm that leads on from there to a place further inside."""

    block: Block
    at: int
    arm: bool | None = None


class Aligned(NamedTuple):
    """A call of the program and an event of a path that are the same, behind the place where the path joins the program again."""

    call: Call
    event: int
    level: int  # of the block, from outside
    at: int  # the item of that block that the call is, or is in


class Tree:
    """The program of the paths that were inserted.

    Args:
        joins: whether paths that part may join again; if not, everything behind a test stands on both of its sides.
    """

    def __init__(self, joins: bool = True) -> None:
        self.root: Block = []
        self.lines: dict[int, PathEvents] = {}
        self._joins = joins

    def insert(self, path: int, line: PathEvents) -> bool:
        """Insert a path; return whether the program has a new arm for it.

        Raises:
            CannotRun: it does something else than other paths, and no test explains it.
        """
        self.lines[path] = line
        if len(self.lines) == 1:
            self.root += [Call({path: event}, path) for event in range(len(line.events))]
            return True
        for times in count():
            stops, number = Walk(self, path).stops()
            if not stops and number == len(line.events):
                return bool(times)
            self._graft(path, stops or [Stop(self.root, len(self.root))], number)
        raise AssertionError

    def where(self) -> dict[tuple[int, int], Call]:
        """Return the call that each event of each path is."""
        return {pair: call for call in self.calls() for pair in call.events.items()}

    def calls(self, block: Block | None = None) -> Iterator[Call]:
        """Yield all calls of a block, those inside forks among them."""
        for item in self.root if block is None else block:
            if isinstance(item, Call):
                yield item
            else:
                for arm in item.arms.values():
                    yield from self.calls(arm)

    def event(self, call: Call) -> Event:
        """Return the event that is written for a call."""
        return self.lines[call.chosen].events[call.events[call.chosen]]

    def is_test(self, call: Call) -> bool:
        """Return whether a call asks for a value."""
        return self.event(call).target is TEST

    def answer(self, fork: Fork, path: int) -> bool | None:
        """Return how a path answers a test; None where it does not."""
        if fork.test is not None:
            return self.lines[path].side_of(fork.test)
        assert fork.asks is not None
        number = fork.asks.events.get(path)
        return None if number is None else self.lines[path].events[number].answer

    def one_sided(self) -> Iterator[Call]:
        """Yield the tests of values of which one answer is known, in the order of the program."""
        for block in self.blocks():
            for at, item in enumerate(block):
                if isinstance(item, Call) and self.is_test(item) and not self.is_forked(block, at):
                    yield item

    def blocks(self, block: Block | None = None) -> Iterator[Block]:
        """Yield all blocks, each before those inside it."""
        block = self.root if block is None else block
        yield block
        for item in block:
            if isinstance(item, Fork):
                for arm in item.arms.values():
                    yield from self.blocks(arm)

    def width(self, block: Block | None = None) -> int:
        """Return the number of ways through the widest part of the program."""
        forks = (item for item in (self.root if block is None else block) if isinstance(item, Fork))
        return max((sum(map(self.width, fork.arms.values())) for fork in forks), default=1)

    def is_forked(self, block: Block, at: int) -> bool:
        """Return whether a fork follows the call at this place, which asks for it."""
        following = block[at + 1] if at + 1 < len(block) else None
        return isinstance(following, Fork) and following.asks is block[at]

    def fit(self, call: Call, path: int, number: int) -> int | None:
        """Return which path's event is right for a call and an event of a path, whatever tensors they take; None if neither is."""
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
        """Note that an event of a path is this call."""
        chosen = self.fit(call, path, number)
        assert chosen is not None
        call.events[path], call.chosen = number, chosen

    def _graft(self, path: int, stops: Sequence[Stop], number: int) -> None:
        """Give a path that leaves the program an arm of its own, up to where it joins again."""
        for call in self.calls():
            if call.events.get(path, -1) >= number:
                del call.events[path]
        aligned = self._joinable(path, number, self._aligned(path, stops, number)) if self._joins else []
        end = aligned[-1].event if aligned else len(self.lines[path].events)
        level, at = (aligned[-1].level, aligned[-1].at) if aligned else (0, len(stops[0].block))
        for found in aligned:
            self.note(found.call, path, found.event)
        for depth, (block, _, _) in enumerate(stops[:-1]):
            if depth >= level:
                self._widen(stops[: depth + 1], at if depth == level else len(block))
        block, begin, _ = stops[-1]
        until = at if level == len(stops) - 1 else len(block)
        self._fork(path, stops, (begin, until), (number, end))

    def _aligned(self, path: int, stops: Sequence[Stop], number: int) -> list[Aligned]:
        """The calls of the program and the events of a path that are the same from the end on, the last first."""
        found: list[Aligned] = []
        end = len(self.lines[path].events)
        for level, (block, at, _) in enumerate(stops):
            low = at if level == len(stops) - 1 else at + 1
            place = len(block)
            while place > low:
                begin = place - 1 if isinstance(block[place - 1], Call) or block[place - 1].asks is None else place - 2  # type: ignore[union-attr]
                pairs = self._backwards(path, block[begin:place], end, number) if begin >= low else None
                if pairs is None:
                    return found
                found += [Aligned(call, event, level, begin) for call, event in pairs]
                end -= len(pairs)
                place = begin
        return found

    def _backwards(self, path: int, block: Block, end: int, least: int) -> list[tuple[Call, int]] | None:
        """Return the calls of a whole block that the events of a path before one are, from the last on; None if they are not."""
        found: list[tuple[Call, int]] = []
        for place in reversed(range(len(block))):
            item = block[place]
            if isinstance(item, Call):
                if end - 1 < least or not self._may_be(item, path, end - 1, self.is_forked(block, place)):
                    return None
                end -= 1
                found.append((item, end))
                continue
            pairs = self._arm_backwards(item, path, end, least)
            if pairs is None:
                return None
            found += pairs
            end -= len(pairs)
        return found

    def _arm_backwards(self, fork: Fork, path: int, end: int, least: int) -> list[tuple[Call, int]] | None:
        """Return the calls of the arm of a fork that the path takes: of two that may be, as of `a and b`, the one with more calls."""
        events = self.lines[path].events
        found: list[list[tuple[Call, int]]] = []
        for answer, arm in fork.arms.items():
            if fork.test is not None and self.lines[path].side_of(fork.test) is not answer:
                continue
            pairs = self._backwards(path, arm, end, least)
            before = end - len(pairs or ()) - 1
            if pairs is not None and (fork.test is not None or (before >= least and events[before].answer is answer)):
                found.append(pairs)
        return max(found, key=len, default=None)

    def _may_be(self, call: Call, path: int, number: int, is_forked: bool) -> bool:
        """Whether an event may be a call of the program, whatever tensors it takes."""
        answer, other = self.event(call).answer, self.lines[path].events[number].answer
        return (is_forked or answer is other) and self.fit(call, path, number) is not None

    def _joinable(self, path: int, number: int, aligned: list[Aligned]) -> list[Aligned]:
        """As many of these, from the end on, as the path may join before: whole items."""
        while aligned and (bad := Join(self, path, number, aligned).first_bad()) is not None:
            item = aligned[bad].level, aligned[bad].at
            aligned = [found for found in aligned[:bad] if (found.level, found.at) != item]
        return aligned

    def widen(self, fork: Fork, call: Call | None) -> None:
        """Let the arms of a fork reach behind a call, or to the end of the program."""
        stops = self._stops(fork, self.root)
        assert stops is not None
        for level, (block, at, _) in enumerate(stops):
            place = next((place for place in range(at + 1, len(block)) if call in self.calls(block[place : place + 1])), None)
            if place is not None or call is None:
                until = len(block) if place is None else place + 1
                self._widen(stops[: level + 1], until)
                for inner in range(level + 1, len(stops)):
                    self._widen(stops[: inner + 1], len(stops[inner].block))
                return
        raise AssertionError

    def _stops(self, fork: Fork, block: Block) -> list[Stop] | None:
        """The place of a fork."""
        for at, item in enumerate(block):
            if item is fork:
                return [Stop(block, at)]
            if isinstance(item, Fork):
                for answer, arm in item.arms.items():
                    if (found := self._stops(fork, arm)) is not None:
                        return [Stop(block, at, answer), *found]
        return None

    def _widen(self, stops: Sequence[Stop], until: int) -> None:
        """Move the items behind a fork, up to one, into both of its arms."""
        block, at, _ = stops[-1]
        fork = block[at]
        assert isinstance(fork, Fork)
        tail = block[at + 1 : until]
        del block[at + 1 : until]
        passing = self._passing(stops)
        for answer, arm in fork.arms.items():
            arm += self._restricted(tail, {path for path in passing if self.answer(fork, path) is answer})

    def _passing(self, stops: Sequence[Stop]) -> set[int]:
        """The paths that come to a block."""
        found = set(self.lines)
        for block, at, arm in stops[:-1]:
            fork = block[at]
            assert isinstance(fork, Fork)
            found = {path for path in found if self.answer(fork, path) is arm}
        return found

    def _restricted(self, items: Block, paths: Collection[int]) -> Block:
        """Items as some paths alone make them."""
        found: Block = []
        for item in items:
            if isinstance(item, Call):
                events = {path: number for path, number in item.events.items() if path in paths}
                if events:
                    found.append(Call(events, item.chosen if item.chosen in events else self._most_general(events), item.is_closed))
                continue
            sides = {answer: {path for path in paths if self.answer(item, path) is answer} for answer in item.arms}
            arms = {answer: self._restricted(arm, sides[answer]) for answer, arm in item.arms.items()}
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

        return next(filter(is_general, events), next(iter(events)))

    def _fork(self, path: int, stops: Sequence[Stop], items: tuple[int, int], events: tuple[int, int]) -> None:
        """Put a fork in the place of some items of a block, with some events of a path on its other side."""
        block, (begin, until) = stops[-1].block, items
        new: Block = [Call({path: number}, path) for number in range(*events)]
        asks = block[begin - 1] if begin else None
        line = self.lines[path]
        passing = self._passing(stops) - {path}
        if isinstance(asks, Call) and path in asks.events and (answer := line.events[asks.events[path]].answer) is not None:
            following = block[begin] if begin < len(block) else None
            if not (isinstance(following, Fork) and following.asks is asks):
                block[begin:until] = [Fork(asks, None, {answer: new, not answer: block[begin:until]})]
                return
        test, others = self._separating(path, passing)
        if test is None:
            raise self._unexplained(path, stops, events[0])
        holds = line.side_of(test)
        assert holds is not None
        kept = passing - others
        old = block[begin:until]
        arms = {holds: new if not kept else self._restricted(old, kept), not holds: self._restricted(old, others) if kept else old}
        block[begin:until] = [Fork(None, test, arms)]

    def _separating(self, path: int, passing: Collection[int]) -> tuple[OpenTest | None, set[int]]:
        """A test of sizes that tells this path from others, the most of them that one does; and those."""
        found: list[tuple[OpenTest, set[int]]] = []
        for test, holds in self.lines[path].path.sizes:
            found.append((test, {other for other in passing if self.lines[other].side_of(test) is (not holds)}))
        test, others = max(found, key=lambda pair: len(pair[1]), default=(None, set()))
        return (test, others) if others else (None, set())

    def _unexplained(self, path: int, stops: Sequence[Stop], number: int) -> CannotRun:
        block, at, _ = stops[-1]
        nodes = [line.events[min(number, len(line.events) - 1)].node for line in (self.lines[path],) if line.events]
        nodes += [self.event(item).node for item in block[at : at + 1] if isinstance(item, Call)]
        where = {line_in(node.meta.get("stack_trace", "")) for node in nodes}
        return CannotRun(f"two runs call different operators at {' or '.join(sorted(where))}, and no condition on a value explains it")


class Walk:
    """The way of a path through the program."""

    def __init__(self, tree: Tree, path: int) -> None:
        self._tree, self._path, self._line = tree, path, tree.lines[path]
        self._where = tree.where()
        self._has_joined = False

    def stops(self) -> tuple[list[Stop], int]:
        """Return where the path leaves the program, and with which event; nowhere if its events are all there."""
        return self._through(self._tree.root, 0)

    def _through(self, block: Block, number: int) -> tuple[list[Stop], int]:
        for at, item in enumerate(block):
            if isinstance(item, Call):
                if not self._is_next(item, number):
                    return [Stop(block, at)], number
                self._tree.note(item, self._path, number)
                self._where[self._path, number] = item
                number += 1
                if not self._goes_on(block, at):
                    return [Stop(block, at + 1)], number
                continue
            answer = self._tree.answer(item, self._path)
            if answer is None:
                return [Stop(block, at)], number
            stops, number = self._through(item.arms[answer], number)
            if stops:
                return [Stop(block, at, answer), *stops], number
            self._has_joined = True
        return [], number

    def _is_next(self, call: Call, number: int) -> bool:
        """Whether an event is a call of the program; until the path has joined others again, of the same tensors."""
        if number >= len(self._line.events) or self._tree.fit(call, self._path, number) is None:
            return False
        return self._has_joined or all(self._takes(call, at, use) for at, use in self._line.events[number].uses)

    def _takes(self, call: Call, at: int, use: Use) -> bool:
        """Whether a call takes this tensor on some other path."""
        uses = [self._tree.lines[path].events[number].leaves[at] for path, number in call.events.items()]
        made = [self._made(path, other) for path, other in zip(call.events, uses, strict=True)]
        return self._made(self._path, use) in made

    def _made(self, path: int, use: Use) -> object:
        return (self._where[path, use.source] if isinstance(use.source, int) else use.source), use.part

    def _goes_on(self, block: Block, at: int) -> bool:
        """Whether what follows a call is there for the answer of the path, where it is a test."""
        call = block[at]
        if not isinstance(call, Call) or not self._tree.is_test(call) or self._tree.is_forked(block, at):
            return True
        return len({self._tree.lines[path].events[number].answer for path, number in call.events.items()}) == 1


class Join:
    """Whether a path may join the program before some calls.

    It may not where a call takes another tensor than on other paths that go the same way from there on, unless both were made before;
    where such two tensors have other dtypes or sizes; and where one is written later whose memory another one shows.
    """

    def __init__(self, tree: Tree, path: int, number: int, aligned: Sequence[Aligned]) -> None:
        self._tree, self._path, self._number, self._aligned = tree, path, number, aligned
        self._where = tree.where()
        self._calls = {id(found.call) for found in aligned}
        self._of_event = {found.event: found.call for found in aligned}
        self._same = set.intersection(*(set(found.call.events) for found in aligned)) - {path}

    def first_bad(self) -> int | None:
        """Return how many of the calls, from the end on, are behind the last one that it may not join before; None if it may before all."""
        if not self._same:
            return 0
        for place, found in enumerate(self._aligned):
            if not all(self._is_right(found, at, use) for at, use in self._event(self._path, found.event).uses):
                return place
        return self._first_aliased()

    def _event(self, path: int, number: int) -> Event:
        return self._tree.lines[path].events[number]

    def _is_right(self, found: Aligned, at: int, use: Use) -> bool:
        inside = self._of_event.get(use.source) if isinstance(use.source, int) else None
        for path in self._same:
            other = self._event(path, found.call.events[path]).leaves[at]
            call = self._where[path, other.source] if isinstance(other.source, int) else other.source
            if inside is not None or id(call) in self._calls:
                if call is not inside or other.part != use.part:
                    return False
                continue
            if not self._is_one_kind(path, other, use):
                return False
        return True

    def _is_one_kind(self, path: int, other: Use, use: Use) -> bool:
        """Whether one output can be either of two tensors."""
        line, own = self._tree.lines[path], self._tree.lines[self._path]
        one, two = kind_of(line.value(other)), kind_of(own.value(use))
        return one == two or gives_either(one, two, line, own)

    def _first_aliased(self) -> int | None:
        ends = {self._path: self._aligned[-1].event}
        for path in self._same:
            ends[path] = min(found.call.events[path] for found in self._aligned)
        crossing = self._crossing()
        for path, end in ends.items():
            line = self._tree.lines[path]
            begin = 1 + max((call.events[path] for call in self._tree.calls() if self._is_shared(call, path)), default=-1)
            before = frozenset().union(*(event.writes for event in line.events[begin:end]))
            for place, found in enumerate(self._aligned):
                number = found.call.events[path] if path != self._path else found.event
                for memory in line.events[number].writes:
                    shown = [key for key, uses in crossing.items() if path in uses and line.memory(uses[path]) == memory]
                    if len(shown) > 1 and (memory in before or any(self._is_phi(crossing[key]) for key in shown)):
                        return place
        return None

    def _is_shared(self, call: Call, path: int) -> bool:
        """Whether a call stands before the place where the paths part."""
        return path in call.events and call.events.get(self._path, self._number) < self._number

    def _crossing(self) -> dict[object, dict[int, Use]]:
        """The tensors that were made before and are taken behind: on each path."""
        found: dict[object, dict[int, Use]] = {}
        paths = [self._path, *self._same]

        def note(uses: dict[int, Use]) -> None:
            if not any(self._is_inside(path, use) for path, use in uses.items()):
                found[tuple(uses.items())] = uses

        for call, number, _, _ in self._aligned:
            for at, _ in self._event(self._path, number).uses:
                numbers = {path: number if path == self._path else call.events[path] for path in paths}
                note({path: self._event(path, numbers[path]).leaves[at] for path in paths})
        for results in zip(*(self._tree.lines[path].outputs for path in paths), strict=False):
            note({path: use for path, use in zip(paths, results, strict=True) if isinstance(use, Use)})
        return found

    def _is_inside(self, path: int, use: Use) -> bool:
        if not isinstance(use.source, int):
            return False
        return use.source in self._of_event if path == self._path else id(self._where[path, use.source]) in self._calls

    def _is_phi(self, uses: dict[int, Use]) -> bool:
        """Whether the paths take different tensors."""
        made = {
            (self._where.get((path, use.source)) if isinstance(use.source, int) else use.source, use.part) for path, use in uses.items()
        }
        return len(made) > 1


def gives_either(one: object, other: object, line: PathEvents, own: PathEvents) -> bool:
    """Return whether one description of a tensor is right on both of two paths."""
    return gives(one, other, own.axes) or gives(other, one, line.axes)
