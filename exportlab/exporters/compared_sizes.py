"""Find the dynamic axes of a model or program, and the numbers that it compares sizes with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx_ir as ir
import torch
from torch.export.graph_signature import InputKind

Axes = Mapping[tuple[int, int], str]  # dimension names by input position and axis
COMPARE = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")
OF_SIZES = ("Shape", "Size")
PASS_ON = ("Add", "Cast", "Concat", "Div", "Gather", "Mul", "Reshape", "Slice", "Squeeze", "Sub", "Unsqueeze", "ReduceProd", "Identity")
STEPS = 8  # maximum number of nodes between a size and a comparison
UNBOUNDED = 2**31  # larger upper bounds are ignored


def moving_axes(inputs: list[ir.Value]) -> Axes:
    """Return the dynamic axes of these model inputs."""
    dims = [(place, axis, dim) for place, value in enumerate(inputs) for axis, dim in enumerate(value.shape or ())]
    return {(place, axis): str(getattr(dim, "value", None) or f"{place}.{axis}") for place, axis, dim in dims if not isinstance(dim, int)}


def numbers_compared(model: ir.Model) -> set[int]:
    """Return the integers that a model compares sizes with."""
    return {number for node in _nodes(model) if node.op_type in COMPARE for number in _find_compared_numbers(node)}


def _nodes(model: ir.Model) -> Iterator[ir.Node]:
    yield from ir.traversal.RecursiveGraphIterator(model.graph)
    for function in model.functions.values():
        yield from ir.traversal.RecursiveGraphIterator(function)


def _find_compared_numbers(node: ir.Node) -> Iterator[int]:
    for value, other in (node.inputs, reversed(node.inputs)):
        number = _number(other)
        if number is not None and value is not None and _is_of_sizes(value, STEPS):
            yield number


def _number(value: ir.Value | None) -> int | None:
    found = ir.convenience.get_const_tensor(value) if value is not None else None
    if found is None or found.size != 1 or not found.dtype.is_integer():
        return None
    return int(found.numpy().item())


def _is_of_sizes(value: ir.Value, steps: int) -> bool:
    node = value.producer()
    if node is None or not steps:
        return False
    return node.op_type in OF_SIZES or (node.op_type in PASS_ON and any(_is_of_sizes(given, steps - 1) for given in node.inputs if given))


def axes_of_program(program: torch.export.ExportedProgram) -> Axes:
    """Return the axes of a program's arguments whose sizes are symbols, by position of the leaf."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    given = [values.get(getattr(spec.arg, "name", "")) for spec in specs]
    shapes = [(place, value.shape) for place, value in enumerate(given) if isinstance(value, torch.Tensor)]
    return {(place, axis): str(size) for place, shape in shapes for axis, size in enumerate(shape) if isinstance(size, torch.SymInt)}


def bounds_of_program(program: torch.export.ExportedProgram) -> set[int]:
    """Return the upper bounds of the sizes in a program's range constraints."""
    uppers = [found.upper for found in getattr(program, "range_constraints", {}).values()]
    return {int(upper) for upper in uppers if upper.is_Integer and int(upper) < UNBOUNDED}
