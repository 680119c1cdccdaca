"""Arithmetic of sizes: integers where they are known, sympy expressions otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, TypeAlias

import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Min

Size: TypeAlias = int | sympy.Expr
SLICE_END = 2**31  # what torch takes for the end of an axis


class Shape(tuple[Size, ...]):
    """The sizes of a tensor among the arguments of an operator, or of a result."""

    __slots__ = ()


class DataDependentGuard(Exception):
    """A shape function does not tell: the sizes decide which of several rules applies, or none is known."""


def is_one(size: Size) -> bool:
    """Return whether a size is the number 1."""
    return type(size) is int and size == 1


def plain(size: Any) -> Size:
    """Return a number as Python's own, an expression as it is."""
    return int(size) if isinstance(size, sympy.Integer) else size


def at(axis: int, rank: int) -> int:
    """Return an axis counted from the first; a tensor without any has one, 0."""
    return axis + max(rank, 1) if axis < 0 else axis


def broadcast(*shapes: Sequence[Size]) -> Shape:
    """Return the shape that shapes broadcast to. Raises Undecided where two sizes differ and neither is the number 1."""
    if len(shapes) == 1 or all(shape == shapes[0] for shape in shapes[1:]):
        return Shape(shapes[0])
    return Shape([_common(sizes) for sizes in zip_longest(*map(reversed, shapes), fillvalue=1)][::-1])


def _common(sizes: Iterable[Size]) -> Size:
    found = {size for size in sizes if not is_one(size)}
    if len(found) > 1:
        raise DataDependentGuard
    return found.pop() if found else 1


def product(sizes: Iterable[Size]) -> Size:
    """Return how many elements a tensor of these sizes has."""
    return plain(prod(sizes))


def quotient(whole: Size, part: Size) -> Size:
    """Return how many parts of this size make up the whole. Raises Undecided where that is not seen to be an integer."""
    if part == 0:
        raise DataDependentGuard
    if isinstance(whole, int) and isinstance(part, int):
        return whole // part
    found = sympy.sympify(whole) / part
    if not found.is_integer:
        raise DataDependentGuard
    return plain(found)


def floor_divide(size: Any, step: Any) -> Any:
    """Return how many whole steps a size has."""
    if step == 1:
        return size
    return size // step if isinstance(size, int) and isinstance(step, int) else plain(FloorDiv(size, step))


def positive(size: Any) -> Any:
    """Return a size, or 0 where it is less."""
    if isinstance(size, int) or size.is_number:
        return max(int(size), 0)
    return size if size.is_nonnegative else Max(0, size)


def within(position: Any, size: Any) -> Any:
    """Return where a position lies on an axis: counted from its end if it is negative, and never outside."""
    if isinstance(position, int) and position >= SLICE_END:
        return size
    if isinstance(position, int) and isinstance(size, int):
        return min(max(position + size if position < 0 else position, 0), size)
    if position == 0 or position == size:
        return position
    from_end = position < 0 if isinstance(position, int) else position.is_negative
    return positive(size + position) if from_end else Min(position, size)


def replace_size(shape: Sequence[Size], axis: int, size: Any) -> Shape:
    """Return a shape with another size of one axis."""
    axis = at(axis, len(shape))
    return Shape((*shape[:axis], plain(size), *shape[axis + 1 :]))


def windows(sizes: Sequence[Size], *given: Any) -> list[Size]:
    """Return how often a window fits along each axis.

    Args:
        given: kernel, stride, padding, dilation; each one number for all axes, or one for each.

    Raises:
        Undecided: one of them is symbolic.
    """
    asked = [repeat_for_axes(value, len(sizes)) for value in given]
    if not all(isinstance(number, int) for value in asked for number in value):
        raise DataDependentGuard
    return [plain(floor_divide(size + 2 * p - d * (k - 1) - 1, s) + 1) for size, k, s, p, d in zip(sizes, *asked, strict=True)]


def repeat_for_axes(asked: Any, axes: int) -> list[Any]:
    """Return one value per axis; a single value applies to all axes."""
    asked = list(asked) if isinstance(asked, (list, tuple)) else [asked]
    return asked * axes if len(asked) == 1 else asked
