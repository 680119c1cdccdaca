"""What an entry of `dynamic_shapes` asks of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import Dim

from ..errors import UnsupportedArgument


@dataclass(frozen=True)
class DynamicDim:
    """One axis that was asked to be dynamic: the identity of its tensor, the axis, its name, and the range asked for."""

    tensor: int
    axis: int
    name: str
    least: int = 0
    most: int | None = None
    named: bool = True
    derived: bool = False  # from another, `2 * batch`


def moves(dim: Any) -> bool:
    """Return whether this entry of `dynamic_shapes` asks for a dynamic axis."""
    return isinstance(dim, (str, Dim)) or is_hint(dim, Dim.DYNAMIC)


def is_hint(dim: Any, kind: Any) -> bool:
    """Return whether this entry of `dynamic_shapes` is `Dim.DYNAMIC` or `Dim.AUTO`, with ends or without."""
    return isinstance(dim, type(kind)) and dim.type is kind.type


def check_accepted(accept_ranges: Sequence[str], asked: Sequence[DynamicDim]) -> None:
    """Refuse names in `accept_ranges` of which no axis is called.

    Raises:
        UnsupportedArgument: there are some.
    """
    if unknown := set(accept_ranges) - {dim.name for dim in asked}:
        raise UnsupportedArgument(f"accept_ranges names {', '.join(sorted(unknown))}, but dynamic_shapes has no such axis")
