"""Helpers to match and rewrite a finished graph: producers, readers, constants, and the replacement of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor

Nodes: TypeAlias = ir.Graph | ir.Function


def producer_of(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the ONNX node of this type that computes a value, else None."""
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == op_type and node.domain == "" else None


def consumer(node: ir.Node | None, op_type: str) -> ir.Node | None:
    """Return the only reader of the only output of a node, if it has this type; None if a graph output would be hidden."""
    if node is None or len(node.outputs) != 1 or node.outputs[0].is_graph_output():
        return None
    uses = list(node.outputs[0].uses())
    found = uses[0].node if len(uses) == 1 else None
    return found if found is not None and found.op_type == op_type and found.domain == "" else None


def other(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """Return the other of two inputs; None if neither is this value."""
    first, second = node.inputs
    return second if first is value else first if second is value else None


def constant(value: ir.Value | None) -> torch.Tensor | None:
    """Return the data of a constant of at most eight elements: an initialiser that no call can change, or a Constant node."""
    if value is None or value.is_graph_input():
        return None
    node = producer_of(value, "Constant")
    data = node.attributes["value"].as_tensor() if node is not None and "value" in node.attributes else value.const_value
    return torch.from_numpy(data.numpy().copy()) if data is not None and data.size <= 8 and data.dtype in NUMBERS else None


NUMBERS = {ir.DataType.FLOAT, ir.DataType.INT64}


def number(value: ir.Value | None) -> float | None:
    """Return the only element of a constant."""
    data = constant(value)
    return data.item() if data is not None and data.numel() == 1 else None


def whole_numbers(value: ir.Value | None) -> list[int] | None:
    """Return the elements of a constant of int64 with one axis."""
    data = constant(value)
    return data.tolist() if data is not None and data.dim() == 1 and data.dtype == torch.int64 else None


def sizes(value: ir.Value | None, rank: int) -> tuple[int | str, ...] | None:
    """Return the sizes of a value with so many axes, as numbers and names of axes; None if one is unknown."""
    if value is None or value.shape is None or len(value.shape) != rank:
        return None
    said = [size if isinstance(size, int) else size.value for size in value.shape]
    known = tuple(size for size in said if size is not None)
    return known if len(known) == rank else None


def replace_nodes(
    graph: Nodes, old: ir.Node, op_type: str, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr] = ()
) -> ir.Node:
    """Replace a node by another, whose output keeps the name; remove the nodes that only the old one read."""
    new = ir.Node("", op_type, inputs, attributes, num_outputs=1, name=old.name, metadata_props=dict(old.metadata_props))
    graph.insert_before(old, new)
    replace_value(old.outputs[0], new.outputs[0])
    remove_nodes(graph, old)
    return new


def replace_value(old: ir.Value, new: ir.Value) -> None:
    """Replace a value by another, which gets its name."""
    new.name, new.type, new.shape = old.name, old.type, old.shape
    old.name = f"{old.name}/before"
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def remove_nodes(graph: Nodes, node: ir.Node) -> None:
    """Remove a node that has no readers, and then the nodes that only it read."""
    if any(value.uses() or value.is_graph_output() for value in node.outputs):
        return
    before = [value.producer() for value in node.inputs if value is not None]
    graph.remove(node, safe=True)
    for producer in before:
        if producer is not None and producer.graph is not None and producer.graph is graph_of(graph):
            remove_nodes(graph, producer)


def graph_of(nodes: Nodes) -> ir.Graph:
    """Return the graph, also for a function."""
    return nodes.graph if isinstance(nodes, ir.Function) else nodes


def insert_node(
    graph: Nodes, before: ir.Node, name: str, op_type: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr] = ()
) -> Any:
    """Return the output of a new node before another, with the dtype of its first input."""
    made = ir.Node("", op_type, inputs, attributes, num_outputs=1, name=name, metadata_props=dict(before.metadata_props))
    made.outputs[0].name, made.outputs[0].type = name, inputs[0].type
    graph.insert_before(before, made)
    return made.outputs[0]


def whole(graph: Nodes, before: ir.Node, name: str, data: list[int]) -> ir.Value:
    """Return an int64 constant: an initialiser in a graph, a node in a function."""
    held = TorchTensor(torch.tensor(data), name)
    if isinstance(graph, ir.Graph):
        if name not in graph.initializers:
            shape, kind = ir.Shape([len(data)]), ir.TensorType(ir.DataType.INT64)
            graph.initializers[name] = ir.Value(name=name, type=kind, shape=shape, const_value=held)
        return graph.initializers[name]
    node = ir.Node("", "Constant", [], [ir.AttrTensor("value", held)], num_outputs=1, name=name)
    node.outputs[0].name, node.outputs[0].type = name, ir.TensorType(ir.DataType.INT64)
    graph.insert_before(before, node)
    return node.outputs[0]
