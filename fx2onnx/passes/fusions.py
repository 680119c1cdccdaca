"""Fuses nodes that ONNX Runtime computes in one kernel: RMS norms, and from opset 23 on rotary embeddings and attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from ..ir.dtypes import FLOAT, FLOAT16
from .attention_heads import attention
from .graph_patterns import Nodes, consumer, number, other, producer_of, remove_nodes, replace_nodes, sizes, whole_numbers
from .rotary import rotary_embedding

ATTENTION = 23  # the first opset with Attention, RotaryEmbedding and RMSNormalization


def apply_fusions(model: ir.Model) -> None:
    """Replace each such chain by one node, if no other node reads an inner value."""
    opset = model.graph.opset_imports[""]
    graphs: list[Nodes] = [model.graph, *model.functions.values()]
    for graph in graphs:
        for first, op_type, fuse in FUSIONS:
            for node in [node for node in graph if node.op_type == op_type and node.domain == ""] if opset >= first else ():
                fuse(graph, node)


def divided_by_root(graph: Nodes, inverse: ir.Node) -> None:
    """Rewrite x·(1/√(mean(x²) + eps)) as x/√(mean(x²) + eps): ONNX Runtime fuses only the quotient."""
    root = producer_of(inverse.inputs[0], "Sqrt")
    squared = _mean_of_squares(root)
    if root is None or squared is None or squared.dtype != FLOAT:
        return
    for product, _ in list(inverse.outputs[0].uses()):
        if product.op_type == "Mul" and product.domain == "" and other(product, inverse.outputs[0]) is squared:
            replace_nodes(graph, product, "Div", [squared, root.outputs[0]])
    if inverse.graph is not None:
        remove_nodes(graph, inverse)


def _mean_of_squares(root: ir.Node | None) -> ir.Value | None:
    """Return x of √(mean(x²) + eps) along the last axis, with a constant eps."""
    added = producer_of(root.inputs[0], "Add") if root is not None else None
    mean = producer_of(added.inputs[0], "ReduceMean") if added is not None and number(added.inputs[1]) is not None else None
    squared = producer_of(mean.inputs[0], "Pow") if mean is not None and len(mean.inputs) == 2 else None
    if mean is None or squared is None or number(squared.inputs[1]) != 2 or mean.attributes.get_int("keepdims", 1) != 1:
        return None
    x = squared.inputs[0]
    last = [[-1]] if x is None or x.shape is None else [[-1], [len(x.shape) - 1]]
    return x if whole_numbers(mean.inputs[1]) in last else None


def rms_norm(graph: Nodes, quotient: ir.Node) -> None:
    """Rewrite x/√(mean(x²) + eps)·w as RMSNormalization, also for float16 between casts, because its kernel computes in float32."""
    root = producer_of(quotient.inputs[1], "Sqrt")
    x = _mean_of_squares(root)
    if root is None or x is None or x is not quotient.inputs[0]:
        return
    x, last = _strip_float32_casts(x, quotient)
    scaled = consumer(last, "Mul")
    scale = other(scaled, last.outputs[0]) if scaled is not None else None
    width = x.shape[-1] if x.shape is not None else None
    if scaled is None or scale is None or scale.dtype != x.dtype or not isinstance(width, int) or sizes(scale, 1) != (width,):
        return
    eps = number(_eps(root))
    assert eps is not None
    attributes = [ir.AttrInt64("axis", -1), ir.AttrFloat32("epsilon", eps), ir.AttrInt64("stash_type", int(FLOAT))]
    replace_nodes(graph, scaled, "RMSNormalization", [x, scale], attributes)


def _eps(root: ir.Node) -> ir.Value | None:
    added = producer_of(root.inputs[0], "Add")
    return added.inputs[1] if added is not None else None


def _strip_float32_casts(x: ir.Value, quotient: ir.Node) -> tuple[ir.Value, ir.Node]:
    """Return the input and the last node of the norm, without the casts of float16 to float32 and back."""
    before, after = producer_of(x, "Cast"), consumer(quotient, "Cast")
    if before is None or after is None or before.inputs[0] is None:
        return x, quotient
    return (before.inputs[0], after) if before.inputs[0].dtype == FLOAT16 == after.outputs[0].dtype else (x, quotient)


FUSIONS: Sequence[tuple[int, str, Callable[[Nodes, ir.Node], None]]] = (
    (0, "Reciprocal", divided_by_root),
    (ATTENTION, "Div", rms_norm),
    (ATTENTION, "Add", rotary_embedding),
    (ATTENTION, "Attention", attention),
)
