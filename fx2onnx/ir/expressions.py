"""Values of Python and torch in a graph: sizes, constants, attributes, and their equality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir
import sympy
import torch

Size: TypeAlias = int | sympy.Expr
Number: TypeAlias = int | float | bool | sympy.Basic  # symbolic if it depends on sizes or values
UNKNOWN_SIZE = sympy.Dummy("unknown")  # for merged axes: not equal to any other size
IMMUTABLE = {int, float, str, bool, tuple, ir.DataType}
SYMBOLIC = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
COMPARED = 1 << 20  # elements: the bytes of larger constants are not compared


def runs(sizes: Sequence[Size]) -> Iterator[Any]:
    """Yield each run of neighbouring integers as a list, and each expression separately."""
    run: list[int] = []
    for size in sizes:
        if isinstance(size, (int, sympy.Integer)):
            run.append(int(size))
            continue
        if run:
            yield run
        run = []
        yield size
    if run:
        yield run


def exact_dtype(data: Any) -> torch.dtype | None:
    """Return float64 for Python floats, so that they are not rounded before their dtype is known; None if torch's choice is exact."""
    first = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return torch.float64 if isinstance(first, float) else None


def python_number(value: Any) -> Any:
    """Return a sympy number or boolean as a Python one."""
    if isinstance(value, sympy.logic.boolalg.BooleanAtom):
        return bool(value)
    if isinstance(value, sympy.Basic):
        return int(value) if value.is_integer else float(value)
    return value


def evaluate_at(told: sympy.Basic, sizes: Mapping[sympy.Symbol, int]) -> sympy.Basic:
    """Return the value of an expression or condition at these sizes; `sympy.nan` if it divides by zero."""
    try:
        return told.subs(sizes)
    except ZeroDivisionError:
        return sympy.nan


def bytes_of(tensor: torch.Tensor) -> Any:
    """Return a value that equal constants have in common; large constants are not compared, so they equal nothing."""
    if tensor.numel() > COMPARED:
        return object()
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def hashable(value: Any) -> Any:
    """Return a hashable value for an attribute, for the key of a node."""
    if type(value) in IMMUTABLE:
        return value
    if isinstance(value, list):
        return tuple(value)
    return id(value) if isinstance(value, (ir.Graph, ir.TensorProtocol)) else value


def attribute(name: str, value: Any) -> ir.Attr:
    """Return a Python value as an ONNX attribute.

    Raises:
        TypeError: ONNX has no attribute of this kind.
    """
    if isinstance(value, (int, ir.DataType)):
        return ir.AttrInt64(name, int(value))
    if type(value) in (float, str):
        return ir.AttrFloat32(name, value) if isinstance(value, float) else ir.AttrString(name, value)
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        return ir.AttrInt64s(name, value)
    return ir.convenience.convert_attribute(name, value)


def sizes_of(fake: torch.Tensor) -> tuple[Size, ...]:
    """Return the captured sizes of a tensor, as integers and sympy expressions."""
    return tuple(size if isinstance(size, int) else expression(size) for size in fake.shape)


def expression(symbolic: Any) -> Any:
    """Return a `SymInt`, `SymFloat` or `SymBool` as a sympy expression, and a number unchanged."""
    if isinstance(symbolic, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        found = symbolic.node.expr
        return int(found) if isinstance(found, sympy.Integer) else found
    return symbolic


def storage(tensor: torch.Tensor) -> int:
    """Return an identifier of the memory of a tensor."""
    return tensor.untyped_storage()._cdata
