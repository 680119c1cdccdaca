"""Align the captured nodes with the values of the exported model."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

import onnx_ir as ir
import torch
from torch.export.graph_signature import OutputKind

from ...exporters.to_onnx import RunProgram, returns_its_argument, writes

Node = torch.fx.Node


class Alignment:
    """The mapping from captured nodes to values of the exported model. Both exporters name values after captured nodes."""

    def __init__(self, captured: torch.export.ExportedProgram | RunProgram, model: ir.Model) -> None:
        self.nodes = {node.name: node for node in captured.graph.nodes}
        self.order = {node: position for position, node in enumerate(model.graph)}
        self.outputs = list(zip(_results(captured), model.graph.outputs, strict=False))  # outputs for new state may follow
        self.values = self._by_name(values_of(model.graph))
        if not writes(captured.graph_module):  # otherwise a node's result may have been changed in place before it becomes an output
            self._by_position()
        self._known = set(self.values.values())

    def _by_name(self, values: dict[str, ir.Value]) -> dict[str, ir.Value]:
        """Align by name. A renamed output may have the name of another captured node."""
        for name, output in self.outputs:
            if str(output.name) not in _names(self.nodes[name]):
                values.pop(str(output.name), None)
        pairs = ((node.name, next((n for n in _names(node) if n in values), None)) for node in self.nodes.values())
        return {name: values[found] for name, found in pairs if found is not None}

    def _by_position(self) -> None:
        for name, output in self.outputs:
            if output.producer() is not None:
                self.values.setdefault(name, output)

    def names(self) -> list[str]:
        """Return the names of all aligned values."""
        return [str(value.name) for value in self.values.values()]

    def onnx(self, value: ir.Value) -> tuple[ir.Node, ...]:
        """Return the nodes that compute a value from inputs, weights and other aligned values, in the model's order."""
        found: set[ir.Node] = set()
        waiting = [value]
        while waiting:
            node = waiting.pop().producer()
            if node is not None and node not in found:
                found.add(node)
                waiting += [v for v in node.inputs if v is not None and v not in self._known]
        return tuple(sorted(found, key=lambda node: self.order.get(node, -1)))

    def through(self, node: Node, same: Iterable[str]) -> tuple[str, ...]:
        """Return the captured nodes between aligned nodes and this one, without constants."""
        aligned, found, waiting = {*self.values, *same}, set(), [node]
        while waiting:
            inputs = [n for n in waiting.pop().all_input_nodes if n.op == "call_function" and n.name not in aligned and n.all_input_nodes]
            waiting += [n for n in inputs if n not in found]
            found.update(inputs)
        return tuple(name for name, n in self.nodes.items() if n in found and isinstance(n.meta.get("val"), torch.Tensor))


def _names(node: Node) -> Iterator[str]:
    """Yield the possible names of a node's value: its own, that of a write, or that of one result (`_split_` in onnxscript)."""
    yield node.name
    if returns_its_argument(node):
        yield from (f"{node.name}/write", f"{node.name}/write/2")
    source, index = node.args if node.target is operator.getitem else (None, None)
    if isinstance(source, Node):
        yield from (f"{source.name}/{index}", f"{source.name}__{index}", f"{source.name}_split_{index}")


def values_of(graph: ir.Graph) -> dict[str, ir.Value]:
    """Return all tensors that nodes of the main graph compute, by name."""
    values = (value for node in graph for value in node.outputs)
    return {value.name: value for value in values if value.name and not isinstance(value.type, (ir.SequenceType, ir.OptionalType))}


def _results(captured: torch.export.ExportedProgram | RunProgram) -> list[str]:
    """Return the captured nodes that are outputs of the exported model, in order."""
    specs = [spec for spec in captured.graph_signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    return [spec.arg.name for spec in specs if not hasattr(spec.arg, "value")]
