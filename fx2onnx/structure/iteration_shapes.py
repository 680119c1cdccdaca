"""How the iterations of a loop may differ: by their answers to tests of values. In which order they are run, so that each follows each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Shape(NamedTuple):
    """What an iteration answers to the tests of values that it makes, and whether it leaves the loop."""

    answers: tuple[bool, ...] = ()
    leaves: bool = False


ALIKE = (Shape(),) * 3  # the first, which may be another; the second, which reads it; and one like all further ones


def schedule(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return the shapes of the iterations that are kept: each follows each, all further ones are as the last, and leaving comes last."""
    stay = [shape for shape in shapes if not shape.leaves]
    leave = [shape for shape in shapes if shape.leaves]
    if len(stay) < 2:
        return (*(stay * 3 or ALIKE), *leave)
    pairs = [shape for i, one in enumerate(stay) for shape in (one, *(each for two in stay[i + 1 :] for each in (one, two)))]
    return (stay[0], *pairs, stay[0], stay[0], stay[0], *leave)
