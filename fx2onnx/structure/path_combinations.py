"""Choose combinations of decisions to run: few, but covering every choice of any three decisions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeAlias

ALL = 4  # decisions up to which all combinations are tried
OF_THREE = 24  # decisions up to which all choices of three are covered; with more, all choices of two
SEED = 20

Combination: TypeAlias = "tuple[bool, ...]"
Choice: TypeAlias = "tuple[tuple[int, ...], Combination]"  # of some decisions


def covering(needs: Sequence[Mapping[int, bool]], rounds: int = 0) -> Iterator[Combination]:
    """Yield combinations that cover each choice of any three decisions, or of two.

    Args:
        needs: for each decision, the outer decisions under which it occurs.
        rounds: the number of earlier calls; each call yields other combinations.
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
    """All choices of up to `strength` decisions, because larger ones may need contradictory decisions."""
    for size in range(1, strength + 1):
        yield from product(combinations(range(number), size), product((True, False), repeat=size))


def _add_needs(choice: Choice, needs: Sequence[Mapping[int, bool]]) -> dict[int, bool] | None:
    """A choice with the decisions that it needs; None if they contradict each other."""
    wanted = dict(zip(*choice, strict=True))
    for place in choice[0]:
        if any(wanted.setdefault(other, value) != value for other, value in needs[place].items()):
            return None
    return wanted


def _row(number: int, strength: int, left: Mapping[Choice, Mapping[int, bool]], drawn: random.Random) -> Combination:
    """A combination that covers many of the remaining choices, found greedily."""
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
