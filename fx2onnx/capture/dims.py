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


def promises(asked: Sequence[DynamicDim]) -> tuple[str, ...]:
    """Return the ends that were given for axes, one line each: a file has no place for them, and takes other sizes as well."""
    ends = {dim.name: _ends(dim) for dim in asked if not dim.derived}
    return tuple(f'dynamic_shapes says that "{name}" is {told}; the file does not look' for name, told in ends.items() if told)


def _ends(dim: DynamicDim) -> str:
    if isinstance(dim.most, int):  # torch has an infinity of its own for no end
        return f"{dim.least} to {dim.most}" if dim.least > 0 else f"at most {dim.most}"
    return f"at least {dim.least}" if dim.least > 0 else ""


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
