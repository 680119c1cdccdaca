"""Anti-unification of two call sequences: what they have in common, and the holes where they differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import torch

from .compat import trees as pytree

NAN = object()


@dataclass(frozen=True, slots=True)
class Value:
    """A leaf that refers to a value: the result of an event, or a free value."""

    name: Hashable


@dataclass(frozen=True, slots=True)
class Variable:
    """A leaf of a pattern that represents a hole, by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class Event:
    """One call.

    Attributes:
        signature: what two calls must share to be equal: the operator, and how its arguments are nested.
        leaves: the leaves of its arguments, each a constant or a `Value`.
        results: the names of the values that it computes.
    """

    signature: Any
    leaves: tuple[Any, ...] = ()
    results: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class Gap:
    """A section in which each sequence makes calls that the other does not make; one of them may be empty."""

    one: tuple[Event, ...]
    other: tuple[Event, ...]


@dataclass(frozen=True)
class Hole:
    """Two different leaves, and where they occur: the indices of an item of the pattern and of a leaf."""

    one: Any
    other: Any
    places: list[tuple[int, int]] = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class Match:
    """The least general pattern of two sequences.

    Attributes:
        pattern: their common calls, with the names of the first sequence and a `Variable` for each hole, and the gaps between them.
        holes: by the number of their variable. The same two leaves are one hole, wherever they occur.
        renaming: names of the first sequence, and the corresponding names of the second.
    """

    pattern: list[Event | Gap]
    holes: list[Hole]
    renaming: dict[Hashable, Hashable]

    @property
    def gaps(self) -> list[Gap]:
        """The gaps of the pattern."""
        return [item for item in self.pattern if isinstance(item, Gap)]

    @property
    def is_exact(self) -> bool:
        """Whether the sequences differ only in names."""
        return not self.holes and not self.gaps

    def first(self) -> list[Event]:
        """Return the first sequence, by filling the holes and gaps of the pattern."""
        return list(self._fill_holes(lambda gap: gap.one, lambda hole: hole.one, {}))

    def second(self) -> list[Event]:
        """Return the second sequence, by filling the holes and gaps, and renaming the rest."""
        return list(self._fill_holes(lambda gap: gap.other, lambda hole: hole.other, self.renaming))

    def _fill_holes(
        self, of_gap: Callable[[Gap], Sequence[Event]], of_hole: Callable[[Hole], Any], names: Mapping[Hashable, Hashable]
    ) -> Iterator[Event]:
        def filled(leaf: Any) -> Any:
            if isinstance(leaf, Variable):
                return of_hole(self.holes[leaf.number])
            return Value(names.get(leaf.name, leaf.name)) if isinstance(leaf, Value) else leaf

        for item in self.pattern:
            if isinstance(item, Gap):
                yield from of_gap(item)
            else:
                results = tuple(names.get(name, name) for name in item.results)
                yield Event(item.signature, tuple(map(filled, item.leaves)), results)


def match(one: Sequence[Event], other: Sequence[Event], renaming: Mapping[Hashable, Hashable] | None = None) -> Match:
    """Return the least general pattern of two sequences, in which each value has only one name.

    Args:
        renaming: free values of the first sequence, and the corresponding ones of the second; all others keep their names.
    """
    pairing = _Pairing(one, other, dict(renaming or {}))
    for place, other_place in align([_shape(event) for event in one], [_shape(event) for event in other]):
        pairing.skip_to(place, other_place)
        pairing.pair(one[place], other[other_place])
    pairing.skip_to(len(one), len(other))
    return pairing.found


def _shape(event: Event) -> tuple[Any, ...]:
    return event.signature, len(event.leaves), len(event.results)


class _Pairing:
    """A match under construction."""

    def __init__(self, one: Sequence[Event], other: Sequence[Event], renaming: dict[Hashable, Hashable]) -> None:
        self._one, self._other = one, other
        self._begun = (0, 0)  # how many items of each sequence are in the pattern
        self._made = tuple({name for event in events for name in event.results} for events in (one, other))
        self._taken = set(renaming.values())
        self._numbers: dict[Any, int] = {}
        self.found = Match([], [], renaming)

    def skip_to(self, place: int, other_place: int) -> None:
        """Add the calls before the next common one as a gap."""
        begun, other_begun = self._begun
        if begun < place or other_begun < other_place:
            self.found.pattern.append(Gap(tuple(self._one[begun:place]), tuple(self._other[other_begun:other_place])))
        self._begun = place + 1, other_place + 1

    def pair(self, one: Event, other: Event) -> None:
        """Add a common call."""
        leaves = tuple(self._leaf(number, *pair) for number, pair in enumerate(zip(one.leaves, other.leaves, strict=True)))
        self.found.pattern.append(replace(one, leaves=leaves))
        for name, its in zip(one.results, other.results, strict=True):
            self.found.renaming[name] = its

    def _leaf(self, number: int, one: Any, other: Any) -> Any:
        if self._agree(one, other):
            return one
        key = _key(one), _key(other)
        if key not in self._numbers:
            self._numbers[key] = len(self.found.holes)
            self.found.holes.append(Hole(one, other))
        self.found.holes[self._numbers[key]].places.append((len(self.found.pattern), number))
        return Variable(self._numbers[key])

    def _agree(self, one: Any, other: Any) -> bool:
        if not isinstance(one, Value) or not isinstance(other, Value):
            return same_constant(one, other)
        if one.name in self.found.renaming:
            return self.found.renaming[one.name] == other.name
        is_free = one.name not in self._made[0] and other.name not in self._made[1] and other.name not in self._taken
        return is_free and one == other


def align(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the positions of equal items in two sequences, in order: those at both ends, and unique ones in between.

    Unique items in a different order are left out, because choosing one of them would be a guess.
    """
    start = common_prefix(one, other)
    end = common_prefix(one[start:][::-1], other[start:][::-1])
    middle = _align_between(one[start : len(one) - end], other[start : len(other) - end])
    at_start = [(place, place) for place in range(start)]
    at_end = [(len(one) - place, len(other) - place) for place in range(end, 0, -1)]
    return [*at_start, *((start + i, start + j) for i, j in middle), *at_end]


def _align_between(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the positions of equal items in two sequences whose first and last items differ."""
    found: list[tuple[int, int]] = []
    begun, other_begun = 0, 0
    if anchors := _anchors(one, other):
        for i, j in [*anchors, (len(one), len(other))]:
            found += ((begun + a, other_begun + b) for a, b in align(one[begun:i], other[other_begun:j]))
            found += [(i, j)] if i < len(one) else []
            begun, other_begun = i + 1, j + 1
    return found


def common_prefix(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many items two sequences share before the first difference."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _anchors(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the positions of items that are unique in both sequences, without pairs that cross another pair."""
    places = _once(other)
    pairs = [(i, places[key]) for key, i in _once(one).items() if key in places]
    highest = list(accumulate((j for _, j in pairs), max))
    lowest = list(accumulate((j for _, j in reversed(pairs)), min))[::-1]
    return [pair for pair, high, low in zip(pairs, highest, lowest, strict=True) if high == low]


def _once(items: Sequence[Any]) -> dict[Any, int]:
    keys = list(map(_key, items))
    counts = Counter(keys)
    return {key: place for place, key in enumerate(keys) if counts[key] == 1}


def same_constant(one: Any, other: Any) -> bool:
    """Return whether two constants are identical: 1 is not 1.0, 0.0 is not -0.0, and NaN is NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return type(one) is type(other) and (one is other or bool(one == other))


def _key(leaf: Any) -> Hashable:
    """Return a key that two leaves share if they are the same; for an unhashable leaf, its identity."""
    if isinstance(leaf, float):
        return float, NAN if math.isnan(leaf) else (leaf, math.copysign(1, leaf))
    try:
        hash(leaf)
    except TypeError:
        return type(leaf), id(leaf)
    return type(leaf), leaf


def number_by_first_use(keys: Iterable[Hashable]) -> tuple[int, ...]:
    """Return for each key the index of its first occurrence. Two sequences repeat their keys alike if these numbers are equal."""
    first: dict[Hashable, int] = {}
    return tuple(first.setdefault(key, place) for place, key in enumerate(keys))


def canonical(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the sequence with values numbered in order of occurrence, so that sequences that differ only in names are equal."""
    numbers: dict[Hashable, int] = {}

    def number(name: Hashable) -> int:
        return numbers.setdefault(name, len(numbers))

    def renamed(event: Event) -> Event:
        leaves = tuple(Value(number(leaf.name)) if isinstance(leaf, Value) else leaf for leaf in event.leaves)
        return Event(event.signature, leaves, tuple(map(number, event.results)))

    return tuple(map(renamed, events))


def events_of_nodes(nodes: Iterable[torch.fx.Node]) -> list[Event]:
    """Return the nodes of an fx graph as events. Each node is also the name of its value."""
    found = []
    for node in nodes:
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs), is_leaf=lambda part: isinstance(part, torch.fx.Node))
        values = tuple(Value(leaf) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves)
        found.append(Event((node.op, node.target, spec), values, (node,)))
    return found
