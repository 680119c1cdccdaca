"""Combinations of decisions that are tried: few, which have every choice of any three of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product

ALL = 4  # decisions of which every combination is tried
OF_THREE = 24  # decisions up to which every choice of three is, and of two beyond
SEED = 20


def covering(decisions: int, rounds: int = 0) -> Iterator[tuple[bool, ...]]:
    """Yield combinations of so many decisions, among which each choice of any three of them, or two, stands.

    Args:
        rounds: how often this was asked before: others each time.
    """
    if decisions <= ALL:
        yield from product((True, False), repeat=decisions)
        return
    drawn = random.Random(SEED + rounds)
    strength = 3 if decisions <= OF_THREE else 2
    left = {(places, values) for places in combinations(range(decisions), strength) for values in product((True, False), repeat=strength)}
    while left:
        row = _row(decisions, strength, left, drawn)
        left -= {(places, tuple(row[place] for place in places)) for places in combinations(range(decisions), strength)}
        yield row


def _row(decisions: int, strength: int, left: set[tuple[tuple[int, ...], tuple[bool, ...]]], drawn: random.Random) -> tuple[bool, ...]:
    """A combination with as many of the choices that are left as choosing one decision after another finds."""
    places, values = drawn.choice(sorted(left))
    row = dict(zip(places, values, strict=True))
    others = [place for place in range(decisions) if place not in row]
    drawn.shuffle(others)
    for place in others:
        chosen = [*combinations(row, strength - 1)]
        gains = {value: sum(_choice([*some, place], {**row, place: value}) in left for some in chosen) for value in (True, False)}
        row[place] = drawn.choice((True, False)) if gains[True] == gains[False] else gains[True] > gains[False]
    return tuple(row[place] for place in range(decisions))


def _choice(places: Sequence[int], row: dict[int, bool]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    ordered = tuple(sorted(places))
    return ordered, tuple(row[place] for place in ordered)
