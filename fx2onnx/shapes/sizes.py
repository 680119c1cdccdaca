"""Arithmetic of sizes: integers if they are known, otherwise sympy expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, TypeAlias

import sympy

from ..compat.symbols import FloorDiv, Max, Min

Size: TypeAlias = int | sympy.Expr
SLICE_END = 2**31  # torch's value for the end of an axis


class Shape(tuple[Size, ...]):
    """The sizes of a tensor argument or result of an operator."""

    __slots__ = ()


class DataDependentGuard(Exception):
    """A shape function is inconclusive: the sizes decide between several rules, or no rule is known."""


def is_one(size: Size) -> bool:
    """Return whether a size is the number 1."""
    return type(size) is int and size == 1


def plain(size: Any) -> Size:
    """Return a number as a Python number, and an expression unchanged."""
    return int(size) if isinstance(size, sympy.Integer) else size


def at(axis: int, rank: int) -> int:
    """Return a non-negative axis; a scalar tensor counts as having one axis."""
    return axis + max(rank, 1) if axis < 0 else axis


def broadcast(*shapes: Sequence[Size]) -> Shape:
    """Return the broadcast shape. Raises DataDependentGuard if two sizes differ and neither is 1."""
    if len(shapes) == 1 or all(shape == shapes[0] for shape in shapes[1:]):
        return Shape(shapes[0])
    return Shape([_common(sizes) for sizes in zip_longest(*map(reversed, shapes), fillvalue=1)][::-1])


def _common(sizes: Iterable[Size]) -> Size:
    found = {size for size in sizes if not is_one(size)}
    if len(found) > 1:
        raise DataDependentGuard
    return found.pop() if found else 1


def product(sizes: Iterable[Size]) -> Size:
    """Return the number of elements of a tensor with these sizes."""
    return plain(prod(sizes))


def quotient(whole: Size, part: Size) -> Size:
    """Return `whole / part`. Raises DataDependentGuard if that is not certainly an integer."""
    if part == 0:
        raise DataDependentGuard
    if isinstance(whole, int) and isinstance(part, int):
        return whole // part
    found = sympy.sympify(whole) / part
    if not found.is_integer:
        raise DataDependentGuard
    return plain(found)


def floor_divide(size: Any, step: Any) -> Any:
    """Return the number of whole steps in a size."""
    if step == 1:
        return size
    return size // step if isinstance(size, int) and isinstance(step, int) else plain(FloorDiv(size, step))


def positive(size: Any) -> Any:
    """Return a size, or 0 if it is negative."""
    if isinstance(size, int) or size.is_number:
        return max(int(size), 0)
    return size if size.is_nonnegative else Max(0, size)


def within(position: Any, size: Any) -> Any:
    """Return a slice position clamped to the axis, counted from its end if it is negative."""
    if isinstance(position, int) and position >= SLICE_END:
        return size
    if isinstance(position, int) and isinstance(size, int):
        return min(max(position + size if position < 0 else position, 0), size)
    if position == 0 or position == size:
        return position
    from_end = position < 0 if isinstance(position, int) else position.is_negative
    return positive(size + position) if from_end else Min(position, size)


def replace_size(shape: Sequence[Size], axis: int, size: Any) -> Shape:
    """Return a shape with one size replaced."""
    axis = at(axis, len(shape))
    return Shape((*shape[:axis], plain(size), *shape[axis + 1 :]))


def windows(sizes: Sequence[Size], *given: Any) -> list[Size]:
    """Return the number of window positions along each axis.

    Args:
        given: kernel, stride, padding, dilation; each one number for all axes, or one per axis.

    Raises:
        DataDependentGuard: If one of them is symbolic.
    """
    per_axis = [repeat_for_axes(value, len(sizes)) for value in given]
    if not all(isinstance(number, int) for value in per_axis for number in value):
        raise DataDependentGuard
    return [plain(floor_divide(size + 2 * p - d * (k - 1) - 1, s) + 1) for size, k, s, p, d in zip(sizes, *per_axis, strict=True)]


def repeat_for_axes(value: Any, axes: int) -> list[Any]:
    """Return one value per axis; a single value applies to all axes."""
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * axes if len(value) == 1 else value
