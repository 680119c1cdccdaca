"""Insert paths into a program: find where a path leaves it, and from which call on both are the same again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..guards.dynamic_shapes import OpenGuard
from ..trace.refusal import TraceUnsupported
from ..trace.source_location import line_in
from .path_events import Event, PathEvents, Use, gives, kind_of
from .path_tree import Block, Call, Fork, Stop, Tree

MOST_ARMS = 64  # that one path may add


class Aligned(NamedTuple):
    """A call of the program and an equal event of a path, after the path joins the program again."""

    call: Call
    event: int
    level: int  # the nesting depth of the block
    at: int  # the index of the item of that block that contains the call


class Insertion:
    """Inserts paths into a program."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def insert(self, path: int, line: PathEvents) -> bool:
        """Insert a path, and return whether the program has a new arm for it.

        Raises:
            TraceUnsupported: If it differs from other paths, and no test explains it.
        """
        self._tree.lines[path] = line
        if len(self._tree.lines) == 1:
            self._tree.root += [Call({path: event}, path) for event in range(len(line.events))]
            return True
        for times in range(MOST_ARMS):
            stops, number = Walk(self._tree, path).stops()
            if not stops and number == len(line.events):
                return bool(times)
            self._graft(path, stops or [Stop(self._tree.root, len(self._tree.root))], number)
        raise TraceUnsupported(f"a path of the model does not join the others after {MOST_ARMS} branches")

    def follows(self, path: int, line: PathEvents) -> bool:
        """Return whether all events of a path are in the program, without inserting it."""
        self._tree.lines[path] = line
        stops, number = Walk(self._tree, path).stops()
        for call in self._tree.calls():
            call.events.pop(path, None)
        del self._tree.lines[path]
        return not stops and number == len(line.events)

    def _graft(self, path: int, stops: Sequence[Stop], number: int) -> None:
        """Add an arm for a path, from where it leaves the program up to the join."""
        for call in self._tree.calls():
            if call.events.get(path, -1) >= number:
                del call.events[path]
        aligned = self._joinable(path, number, self._aligned_calls(path, stops, number)) if self._tree.joins else []
        end = aligned[-1].event if aligned else len(self._tree.lines[path].events)
        level, at = (aligned[-1].level, aligned[-1].at) if aligned else (0, len(stops[0].block))
        for found in aligned:
            self._tree.note(found.call, path, found.event)
        for depth, (block, _, _) in enumerate(stops[:-1]):
            if depth >= level:
                self._tree.widen_at(stops[: depth + 1], at if depth == level else len(block))
        block, begin, _ = stops[-1]
        until = at if level == len(stops) - 1 else len(block)
        self._fork(path, stops, (begin, until), (number, end))

    def _aligned_calls(self, path: int, stops: Sequence[Stop], number: int) -> list[Aligned]:
        """The equal calls of the program and events of a path at their ends, last first."""
        found: list[Aligned] = []
        end = len(self._tree.lines[path].events)
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
        """Return the calls of a block paired with the preceding events of a path, last first; None if they do not match."""
        found: list[tuple[Call, int]] = []
        for place in reversed(range(len(block))):
            item = block[place]
            if isinstance(item, Call):
                if end - 1 < least or not self._may_be(item, path, end - 1, self._tree.is_forked(block, place)):
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
        """Return the matching calls of the arm that the path takes; if both may match, as for `a and b`, those of the longer one."""
        events = self._tree.lines[path].events
        found: list[list[tuple[Call, int]]] = []
        for answer, arm in fork.arms.items():
            if fork.test is not None and self._tree.lines[path].side_of(fork.test) is not answer:
                continue
            pairs = self._backwards(path, arm, end, least)
            before = end - len(pairs or ()) - 1
            if pairs is not None and (fork.test is not None or (before >= least and events[before].answer is answer)):
                found.append(pairs)
        return max(found, key=len, default=None)

    def _may_be(self, call: Call, path: int, number: int, is_forked: bool) -> bool:
        """Whether an event may be a call of the program, regardless of its tensors."""
        answer, other = self._tree.event(call).answer, self._tree.lines[path].events[number].answer
        return (is_forked or answer is other) and self._tree.fit(call, path, number) is not None

    def _joinable(self, path: int, number: int, aligned: list[Aligned]) -> list[Aligned]:
        """The longest end of these before which the path may join, in whole items."""
        while aligned and (bad := Join(self._tree, path, number, aligned).first_bad()) is not None:
            item = aligned[bad].level, aligned[bad].at
            aligned = [found for found in aligned[:bad] if (found.level, found.at) != item]
        return aligned

    def _fork(self, path: int, stops: Sequence[Stop], items: tuple[int, int], events: tuple[int, int]) -> None:
        """Replace some items of a block by a fork, with some events of a path in its other arm."""
        block, (begin, until) = stops[-1].block, items
        new: Block = [Call({path: number}, path) for number in range(*events)]
        asks = block[begin - 1] if begin else None
        line = self._tree.lines[path]
        passing = self._tree.passing(stops) - {path}
        if isinstance(asks, Call) and path in asks.events and (answer := line.events[asks.events[path]].answer) is not None:
            following = block[begin] if begin < len(block) else None
            if not (isinstance(following, Fork) and following.asks is asks):
                block[begin:until] = [Fork(asks, None, {answer: new, not answer: block[begin:until]})]
                return
        fork = self._fork_by_size(path, passing, block[begin:until], new)
        if fork is None:
            raise self._build_unexplained_error(path, stops, events[0])
        block[begin:until] = [fork]

    def _fork_by_size(self, path: int, passing: Collection[int], old: Block, new: Block) -> Fork | None:
        """Return a fork by a test of sizes with the items in one arm and those of a path in the other; None if no test separates them.

        If the test does not separate all other paths, the remaining ones share the arm of the path, which forks again.
        """
        test, others = self._separating(path, passing)
        if test is None:
            return None
        holds = self._tree.lines[path].side_of(test)
        assert holds is not None
        remaining = {*passing} - others
        if not remaining:
            return Fork(None, test, {holds: new, not holds: old})
        inner: Block = self._tree.restrict(old, remaining)
        if not old:  # there is no item at which the path could leave
            fork = self._fork_by_size(path, remaining, inner, new)
            if fork is None:
                return None
            inner = [fork]
        return Fork(None, test, {holds: inner, not holds: self._tree.restrict(old, others)})

    def _separating(self, path: int, passing: Collection[int]) -> tuple[OpenGuard | None, set[int]]:
        """The test of sizes that separates this path from the largest number of others, and those."""
        lines = self._tree.lines
        sizes = lines[path].path.sizes
        found = [(test, {other for other in passing if lines[other].side_of(test) is (not holds)}) for test, holds in sizes]
        best = max(found, key=lambda pair: len(pair[1]), default=None)
        return best if best is not None and best[1] else (None, set())

    def _build_unexplained_error(self, path: int, stops: Sequence[Stop], number: int) -> TraceUnsupported:
        block, at, _ = stops[-1]
        nodes = [line.events[min(number, len(line.events) - 1)].node for line in (self._tree.lines[path],) if line.events]
        nodes += [self._tree.event(item).node for item in block[at : at + 1] if isinstance(item, Call)]
        where = {line_in(node.meta.get("stack_trace", "")) for node in nodes}
        return TraceUnsupported(
            f"two runs call different operators at {' or '.join(sorted(where))}, and no condition on a value explains it"
        )


class Walk:
    """Follows a path through the program."""

    def __init__(self, tree: Tree, path: int) -> None:
        self._tree, self._path, self._line = tree, path, tree.lines[path]
        self._where = tree.where()
        self._has_joined = False

    def stops(self) -> tuple[list[Stop], int]:
        """Return where the path leaves the program, and at which event; empty if all its events are there."""
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
        """Whether an event is a call of the program; before the path has joined again, also with the same tensors."""
        if number >= len(self._line.events) or self._tree.fit(call, self._path, number) is None:
            return False
        return self._has_joined or all(self._takes(call, at, use) for at, use in self._line.events[number].uses)

    def _takes(self, call: Call, at: int, use: Use) -> bool:
        """Whether this tensor is the argument on some other path."""
        uses = [self._tree.lines[path].events[number].leaves[at] for path, number in call.events.items()]
        definitions = [self._find_definition(path, other) for path, other in zip(call.events, uses, strict=True)]
        return self._find_definition(self._path, use) in definitions

    def _find_definition(self, path: int, use: Use) -> object:
        return (self._where[path, use.source] if isinstance(use.source, int) else use.source), use.part

    def _goes_on(self, block: Block, at: int) -> bool:
        """Whether the program continues after a call with the outcome of this path, if the call is a test."""
        call = block[at]
        if not isinstance(call, Call) or not self._tree.is_branch(call) or self._tree.is_forked(block, at):
            return True
        return len({self._tree.lines[path].events[number].answer for path, number in call.events.items()}) == 1


class Join:
    """Decides whether a path may join the program before some calls.

    It may not in these cases:
    - An argument of a call differs from that on other paths with the same later decisions, and not both tensors exist before the join.
    - Two such tensors differ in dtype or size.
    - One of them is written later, and another one shares its memory.
    """

    def __init__(self, tree: Tree, path: int, number: int, aligned: Sequence[Aligned]) -> None:
        self._tree, self._path, self._number, self._aligned_calls = tree, path, number, aligned
        self._where = tree.where()
        self._calls = {id(found.call) for found in aligned}
        self._of_event = {found.event: found.call for found in aligned}
        self._same = set.intersection(*(set(found.call.events) for found in aligned)) - {path}

    def first_bad(self) -> int | None:
        """Return the index of the first call, from the end, before which it may not join; None if it may join before all."""
        if not self._same:
            return 0
        for place, found in enumerate(self._aligned_calls):
            if not all(self._is_right(found, at, use) for at, use in self._event(self._path, found.event).uses):
                return place
        return self._first_aliased()

    def _event(self, path: int, number: int) -> Event:
        return self._tree.lines[path].events[number]

    def _is_right(self, found: Aligned, at: int, use: Use) -> bool:
        inside = self._of_event.get(use.source) if isinstance(use.source, int) else None
        before = {self._path: use}
        for path in self._same:
            other = self._event(path, found.call.events[path]).leaves[at]
            call = self._where[path, other.source] if isinstance(other.source, int) else other.source
            if inside is None and id(call) not in self._calls:
                before[path] = other
            elif call is not inside or other.part != use.part:
                return False
        return self._are_one_kind(before)

    def _are_one_kind(self, uses: Mapping[int, Use]) -> bool:
        """Whether one output can represent each of these tensors on its path, because one dtype and size is right for all."""
        lines = self._tree.lines
        kinds = {path: kind_of(lines[path].value(use)) for path, use in uses.items()}
        return any(
            all(kind == other or gives(kind, other, lines[path].axes) for path, other in kinds.items()) for kind in set(kinds.values())
        )

    def _first_aliased(self) -> int | None:
        ends = {self._path: self._aligned_calls[-1].event}
        for path in self._same:
            ends[path] = min(found.call.events[path] for found in self._aligned_calls)
        crossing = self._crossing()
        for path, end in ends.items():
            line = self._tree.lines[path]
            begin = 1 + max((call.events[path] for call in self._tree.calls() if self._is_shared(call, path)), default=-1)
            before = frozenset().union(*(event.writes for event in line.events[begin:end]))
            for place, found in enumerate(self._aligned_calls):
                number = found.call.events[path] if path != self._path else found.event
                for memory in line.events[number].writes:
                    shown = [key for key, uses in crossing.items() if path in uses and line.memory(uses[path]) == memory]
                    if len(shown) > 1 and (memory in before or any(self._is_phi(crossing[key]) for key in shown)):
                        return place
        return None

    def _is_shared(self, call: Call, path: int) -> bool:
        """Whether a call precedes the fork of the paths."""
        return path in call.events and call.events.get(self._path, self._number) < self._number

    def _crossing(self) -> dict[object, dict[int, Use]]:
        """The tensors created before the join and used after it, on each path."""
        found: dict[object, dict[int, Use]] = {}
        paths = [self._path, *self._same]

        def note(uses: dict[int, Use]) -> None:
            if not any(self._is_inside(path, use) for path, use in uses.items()):
                found[tuple(uses.items())] = uses

        for call, number, _, _ in self._aligned_calls:
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
        """Whether the paths use different tensors."""
        definitions = {
            (self._where.get((path, use.source)) if isinstance(use.source, int) else use.source, use.part) for path, use in uses.items()
        }
        return len(definitions) > 1
