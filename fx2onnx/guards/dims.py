"""What an entry of `dynamic_shapes` asks of an axis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
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
    return tuple(
        dict.fromkeys(f"{promise(dim)}; the exported model does not check this" for dim in asked if has_end(dim) and not dim.derived)
    )


def has_end(dim: DynamicDim) -> bool:
    """Return whether an axis was given a least or a largest size."""
    return dim.least > 0 or isinstance(dim.most, int)  # torch has an infinity of its own for no end


def promise(dim: DynamicDim) -> str:
    """Return what `dynamic_shapes` says of an axis that has an end."""
    if isinstance(dim.most, int):
        told = f"{dim.least} to {dim.most}" if dim.least > 0 else f"at most {dim.most}"
    else:
        told = f"at least {dim.least}"
    return f'dynamic_shapes declares that "{dim.name}" is {told}'


def format_with_names(told: Any, names: Mapping[Any, str]) -> str:
    """Return a size, or a test of sizes, as Python writes it, by the names of axes."""
    from torch.utils._sympy.printers import PythonPrinter

    symbols = {size: sympy.Symbol(name, integer=True, nonnegative=size.is_nonnegative) for size, name in names.items()}
    named = sympy.sympify(told).subs(symbols)
    if isinstance(named, sympy.Expr) and named.is_polynomial():
        return str(named)  # `rows - 1`, where torch's printer has `(-1) + rows`
    text = PythonPrinter().doprint(named).replace("torch.sym_float", "float")
    return re.sub(r"\d+\.\d*", lambda number: f"{float(number[0]):.15g}", text)


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
        raise UnsupportedArgument(f"accept_ranges names {', '.join(sorted(unknown))}, but dynamic_shapes has no dimension of that name")
