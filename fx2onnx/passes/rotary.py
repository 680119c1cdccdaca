"""Fuses rotary embeddings, which models write as x·cos + (−x₂, x₁)·sin, into one node."""

from __future__ import annotations

import onnx_ir as ir

from ..ir.dtypes import FLOAT
from .graph_patterns import Nodes, insert_node, number, other, producer_of, replace_nodes, sizes, whole, whole_numbers


def rotary_embedding(graph: Nodes, total: ir.Node) -> None:
    """Rewrite x·cos + (−x₂, x₁)·sin, for x (batch, heads, length, width) and equal halves of cos and of sin, as RotaryEmbedding."""
    if total.outputs[0].dtype != FLOAT or len(total.inputs) != 2:
        return
    for straight, turned in (total.inputs, total.inputs[::-1]):
        x, sin = _match_rotate_half(producer_of(turned, "Mul"))
        product = producer_of(straight, "Mul")
        cos = other(product, x) if product is not None and x is not None else None
        tables = [_table(angles, x) for angles in (cos, sin)]
        if x is not None and all(tables):
            halves = [_half(graph, total, table, x) for table in tables if table is not None]
            replace_nodes(graph, total, "RotaryEmbedding", [x, *halves])
            return


def _match_rotate_half(product: ir.Node | None) -> tuple[ir.Value | None, ir.Value | None]:
    """Return x and the factor of (−x₂, x₁)·factor."""
    for moved, factor in (product.inputs, product.inputs[::-1]) if product is not None else ():
        joined = producer_of(moved, "Concat")
        if joined is None or len(joined.inputs) != 2 or joined.attributes.get_int("axis") not in (-1, 3):
            continue
        negated, first = producer_of(joined.inputs[0], "Neg"), producer_of(joined.inputs[1], "Slice")
        second = producer_of(negated.inputs[0], "Slice") if negated is not None else None
        if first is None or second is None or first.inputs[0] is not second.inputs[0]:
            continue
        said = sizes(first.inputs[0], 4)
        width = said[3] if said is not None else None
        if isinstance(width, int) and _cut(first, width) == (0, width / 2) and _cut(second, width) == (width / 2, width):
            return first.inputs[0], factor
    return None, None


def _cut(node: ir.Node, width: int) -> tuple[int, int] | None:
    """Return the start and end of a Slice of the last of four axes."""
    bounds = [whole_numbers(value) for value in node.inputs[1:]]
    if len(bounds) < 3 or not all(bound is not None and len(bound) == 1 for bound in bounds):
        return None
    start, end, axis, *step = (bound[0] for bound in bounds if bound is not None)
    return (start, min(end, width)) if axis in (-1, 3) and step in ([], [1]) else None


def _table(angles: ir.Value | None, x: ir.Value | None) -> ir.Value | None:
    """Return the cosines or sines (batch or 1, length, width) with equal halves, to which `angles` adds an axis for the heads."""
    raised, of_x = producer_of(angles, "Unsqueeze"), sizes(x, 4)
    flat = raised.inputs[0] if raised is not None and whole_numbers(raised.inputs[1]) == [1] else None
    said = sizes(flat, 3)
    if flat is None or said is None or of_x is None or said[1:] != of_x[2:] or said[0] not in (1, of_x[0]):
        return None
    return flat if _says_twice(flat) else None


def _says_twice(value: ir.Value | None) -> bool:
    """Return whether the halves of the last of three axes are equal, as elementwise functions of Concat(x, x) are."""
    while (node := value.producer() if value is not None else None) is not None and node.domain == "":
        if node.op_type == "Concat":
            return len(node.inputs) == 2 and node.inputs[0] is node.inputs[1] and node.attributes.get_int("axis") in (-1, 2)
        if node.op_type not in ("Cos", "Sin", "Cast") and (node.op_type != "Mul" or number(node.inputs[1]) is None):
            return False
        value = node.inputs[0]
    return False


def _half(graph: Nodes, before: ir.Node, table: ir.Value, x: ir.Value) -> ir.Value:
    """Return the first half of a table (batch, length, width/2): cut once, and expanded once to the batch."""
    half = _find_reusable_output(table, f"{table.name}/half") or _cut_in_half(graph, before, table)
    if table.shape is not None and x.shape is not None and table.shape[0] == x.shape[0]:
        return half
    name = f"{half.name}/batch"
    repeated = _find_reusable_output(half, name)
    if repeated is None:
        ones = whole(graph, before, f"{name}/ones", [1, 1])
        shape = insert_node(graph, before, f"{name}/shape", "Concat", [_batch(graph, before, x), ones], [ir.AttrInt64("axis", 0)])
        repeated = insert_node(graph, before, name, "Expand", [half, shape])
    return repeated


def _cut_in_half(graph: Nodes, before: ir.Node, table: ir.Value) -> ir.Value:
    *_, width = sizes(table, 3) or (0,)
    bounds = (("start", 0), ("end", int(width) // 2), ("axis", 2))
    return insert_node(
        graph, before, f"{table.name}/half", "Slice", [table, *(whole(graph, before, f"{table.name}/{at}", [n]) for at, n in bounds)]
    )


def _batch(graph: Nodes, before: ir.Node, x: ir.Value) -> ir.Value:
    """Return the first size of x, read from the value before its Reshape and Transpose, which may be removed later."""
    while (node := producer_of(x, "Transpose") or producer_of(x, "Reshape")) is not None and _begins_alike(node):
        x = node.inputs[0] or x
    found = _find_reusable_output(x, f"{x.name}/batch")
    if found is None:
        found = insert_node(graph, before, f"{x.name}/batch", "Shape", [x], [ir.AttrInt64("start", 0), ir.AttrInt64("end", 1)])
        found.type = ir.TensorType(ir.DataType.INT64)
    return found


def _begins_alike(node: ir.Node) -> bool:
    before, after = (value.shape if value is not None else None for value in (node.inputs[0], node.outputs[0]))
    if before is None or after is None or not len(before) or not len(after):
        return False
    return before[0] == after[0] and before[0] != ir.SymbolicDim(None)


def _find_reusable_output(value: ir.Value, name: str) -> ir.Value | None:
    """Return the existing output with this name among the readers of a value."""
    return next((node.outputs[0] for node, _ in value.uses() if node.outputs[0].name == name), None)
