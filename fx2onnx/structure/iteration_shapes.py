"""The shapes of iterations, by the outcomes of their value tests, and the order in which they are run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Shape(NamedTuple):
    """The outcomes of the value tests of an iteration, and whether it leaves the loop."""

    answers: tuple[bool, ...] = ()
    leaves: bool = False


ALIKE = (Shape(),) * 3  # the first, which may differ; the second, which reads its values; and one that represents all further ones


def schedule(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return the shapes of the iterations to keep, in which each follows each; further ones equal the last, and leaving comes last."""
    stay = [shape for shape in shapes if not shape.leaves]
    leave = [shape for shape in shapes if shape.leaves]
    if len(stay) < 2:
        return (*(stay * 3 or ALIKE), *leave)
    pairs = [shape for i, one in enumerate(stay) for shape in (one, *(each for two in stay[i + 1 :] for each in (one, two)))]
    return (stay[0], *pairs, stay[0], stay[0], stay[0], *leave)
