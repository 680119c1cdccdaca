"""Whether two ONNX graphs are one, up to the names of values and the order of nodes; and by which operators they differ."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir


@dataclass(frozen=True)
class Form:
    """What a graph is without its names.

    Attributes:
        nodes: each node as a digest of its operator, its attributes and all that it reads, back to inputs and constants.
        outputs: the same of what the graph returns, in order.
        ops: the operators, with those of inner graphs.
    """

    nodes: Counter[str] = field(default_factory=Counter)
    outputs: tuple[str, ...] = ()
    ops: Counter[str] = field(default_factory=Counter)


def form_of(model: ir.Model, *, values: bool = True) -> Form:
    """Return the form of a model's graph; without `values`, constants of one dtype are alike."""
    bodies = {str(key): _Walk(values, {}).form(function.graph) for key, function in model.functions.items()}
    form = _Walk(values, {name: _digest(body) for name, body in bodies.items()}).form(model.graph, _inputs(model.graph))
    for body in bodies.values():
        form.ops.update(body.ops)
    return form


def difference(one: ir.Model, other: ir.Model) -> str:
    """Return by what the first graph differs from the second: the operators that it has more or fewer of; empty where they are one."""
    first, second = form_of(one), form_of(other)
    if first == second:
        return ""
    if first.ops != second.ops:
        return " ".join([*_format_counts("+", first.ops - second.ops), *_format_counts("-", second.ops - first.ops)])
    return "constants" if form_of(one, values=False) == form_of(other, values=False) else "wiring or attributes"


def _format_counts(sign: str, ops: Mapping[str, int]) -> Iterable[str]:
    return (f"{sign}{op}" + (f"×{count}" if count > 1 else "") for op, count in sorted(ops.items()))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _inputs(graph: ir.Graph) -> tuple[str, ...]:
    """Each input by its place, dtype and shape; a moving size is known by where it stands first."""
    found: dict[str, int] = {}
    sizes = [[d if isinstance(d, int) else f"?{found.setdefault(str(d), len(found))}" for d in value.shape or ()] for value in graph.inputs]
    return tuple(_digest("input", i, str(value.dtype), size) for i, (value, size) in enumerate(zip(graph.inputs, sizes, strict=True)))


class _Walk:
    """Goes through a graph and the graphs inside of it, and knows the digest of each value."""

    def __init__(self, values: bool, functions: Mapping[str, str], known: Mapping[ir.Value, str] | None = None, depth: int = 0) -> None:
        self.values = values
        self.functions = functions
        self.known = dict(known or {})
        self.depth = depth

    def form(self, graph: ir.Graph, inputs: tuple[str, ...] = ()) -> Form:
        """Return the form of a graph; an inner one reads what the walk knows from outside."""
        named = inputs or tuple(_digest("inner", self.depth, i) for i in range(len(graph.inputs)))
        self.known.update(zip(graph.inputs, named, strict=True))
        self.known.update({value: self._constant(value.const_value) for value in graph.initializers.values()})
        form = Form()
        for node in graph:
            self._enter(node, form)
        return Form(form.nodes, tuple(self.known[value] for value in graph.outputs), form.ops)

    def _enter(self, node: ir.Node, form: Form) -> None:
        if node.op_type == "Constant" and node.domain == "" and "value" in node.attributes:
            self.known[node.outputs[0]] = self._constant(node.attributes["value"].as_tensor())
            return
        form.ops[node.op_type] += 1
        attributes = sorted((name, self._attribute(attribute, form)) for name, attribute in node.attributes.items())
        reads = ["" if value is None else self.known[value] for value in node.inputs]
        body = self.functions.get(str(node.op_identifier()), "")
        whole = _digest(node.domain, node.op_type, body, attributes, reads, len(node.outputs))
        form.nodes[whole] += 1
        self.known.update({value: _digest(whole, i) for i, value in enumerate(node.outputs)})

    def _attribute(self, attribute: ir.Attr, form: Form) -> str:
        if attribute.type == ir.AttributeType.GRAPH:
            inner = _Walk(self.values, self.functions, self.known, self.depth + 1).form(attribute.as_graph())
            form.ops.update(inner.ops)
            return _digest(sorted(inner.nodes.items()), inner.outputs)
        if attribute.type == ir.AttributeType.TENSOR:
            return self._constant(attribute.as_tensor())
        return repr(list(attribute.value) if isinstance(attribute.value, Sequence) else attribute.value)

    def _constant(self, tensor: ir.TensorProtocol | None) -> str:
        if tensor is None or not self.values:
            return _digest("constant", None if tensor is None else str(tensor.dtype))
        return _digest("constant", str(tensor.dtype), list(tensor.shape), hashlib.sha256(tensor.tobytes()).hexdigest())
