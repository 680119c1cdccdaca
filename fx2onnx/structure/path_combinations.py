"""Combinations of decisions that are tried: few, which have every choice of any three of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeAlias

ALL = 4  # decisions of which every combination is tried
OF_THREE = 24  # decisions up to which every choice of three is, and of two beyond
SEED = 20

OpEvent: TypeAlias = "tuple[bool, ...]"
Choice: TypeAlias = "tuple[tuple[int, ...], OpEvent]"  # of some decisions


def covering(needs: Sequence[Mapping[int, bool]], rounds: int = 0) -> Iterator[OpEvent]:
    """Yield combinations of decisions that cover each choice of any three of them, or of two.

    Args:
        needs: of each decision, how those around it have to be for it to be taken at all.
        rounds: the number of earlier calls: each call gives other combinations.
    """
    number = len(needs)
    if number <= ALL:
        yield from product((True, False), repeat=number)
        return
    drawn = random.Random(SEED + rounds)
    strength = 3 if number <= OF_THREE else 2
    left = {choice: wanted for choice in _choices(number, strength) if (wanted := _add_needs(choice, needs)) is not None}
    while left:
        row = _row(number, strength, left, drawn)
        left = {choice: wanted for choice, wanted in left.items() if any(row[place] != value for place, value in wanted.items())}
        yield row


def _choices(number: int, strength: int) -> Iterator[Choice]:
    """All choices of up to so many decisions: of fewer as well, since more may need what contradicts them."""
    for size in range(1, strength + 1):
        yield from product(combinations(range(number), size), product((True, False), repeat=size))


def _add_needs(choice: Choice, needs: Sequence[Mapping[int, bool]]) -> dict[int, bool] | None:
    """A choice with what it needs; None where the needs of its decisions contradict each other."""
    wanted = dict(zip(*choice, strict=True))
    for place in choice[0]:
        if any(wanted.setdefault(other, value) != value for other, value in needs[place].items()):
            return None
    return wanted


def _row(number: int, strength: int, left: Mapping[Choice, Mapping[int, bool]], drawn: random.Random) -> OpEvent:
    """A combination with as many of the choices that are left as deciding one after another finds."""
    row = dict(left[drawn.choice([*left])])
    others = [place for place in range(number) if place not in row]
    drawn.shuffle(others)
    for place in others:
        some = [*combinations(row, strength - 1)]
        gains = [sum(_choice((*rest, place), {**row, place: value}) in left for rest in some) for value in (True, False)]
        row[place] = drawn.choice((True, False)) if gains[0] == gains[1] else gains[0] > gains[1]
    return tuple(row[place] for place in range(number))


def _choice(places: Sequence[int], row: Mapping[int, bool]) -> Choice:
    ordered = tuple(sorted(places))
    return ordered, tuple(row[place] for place in ordered)
