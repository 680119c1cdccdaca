"""The dynamic dimensions that `dynamic_shapes` declares."""

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
    """A dynamic axis: the id of its tensor, the axis, its name and its declared range."""

    tensor: int
    axis: int
    name: str
    least: int = 0
    most: int | None = None
    named: bool = True
    derived: bool = False  # from another one, as in `2 * batch`


def promises(dims: Sequence[DynamicDim]) -> tuple[str, ...]:
    """Return one line for each declared range, because the exported model does not check them."""
    return tuple(
        dict.fromkeys(f"{promise(dim)}; the exported model does not check this" for dim in dims if has_end(dim) and not dim.derived)
    )


def has_end(dim: DynamicDim) -> bool:
    """Return whether an axis has a declared minimum or maximum."""
    return dim.least > 0 or isinstance(dim.most, int)  # torch represents a missing bound by its own infinity


def promise(dim: DynamicDim) -> str:
    """Return the declared range of an axis as text."""
    if isinstance(dim.most, int):
        bounds = f"{dim.least} to {dim.most}" if dim.least > 0 else f"at most {dim.most}"
    else:
        bounds = f"at least {dim.least}"
    return f'dynamic_shapes declares that "{dim.name}" is {bounds}'


def format_with_names(expression: Any, names: Mapping[Any, str]) -> str:
    """Return a size or a test of sizes in Python syntax with the names of dimensions."""
    from ..compat.symbols import PythonPrinter

    symbols = {size: sympy.Symbol(name, integer=True, nonnegative=size.is_nonnegative) for size, name in names.items()}
    named = sympy.sympify(expression).subs(symbols)
    if isinstance(named, sympy.Expr) and named.is_polynomial():
        return str(named)  # torch's printer returns `(-1) + rows` for `rows - 1`
    text = PythonPrinter().doprint(named).replace("torch.sym_float", "float")
    return re.sub(r"\d+\.\d*", lambda number: f"{float(number[0]):.15g}", text)


def moves(dim: Any) -> bool:
    """Return whether this entry of `dynamic_shapes` declares a dynamic axis."""
    return isinstance(dim, (str, Dim)) or is_hint(dim, Dim.DYNAMIC)


def is_hint(dim: Any, kind: Any) -> bool:
    """Return whether this entry of `dynamic_shapes` is `Dim.DYNAMIC` or `Dim.AUTO`, with or without a range."""
    return isinstance(dim, type(kind)) and dim.type is kind.type


def check_accepted(accept_ranges: Sequence[str], dims: Sequence[DynamicDim]) -> None:
    """Refuse names in `accept_ranges` that no dimension has.

    Raises:
        UnsupportedArgument: If there are any.
    """
    if unknown := set(accept_ranges) - {dim.name for dim in dims}:
        raise UnsupportedArgument(f"accept_ranges names {', '.join(sorted(unknown))}, but dynamic_shapes has no dimension of that name")
