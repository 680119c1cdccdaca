"""Passes on the finished model: fold batch norms into convolutions, store weights once, remove unread nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass
from onnx_ir.tensor_adapters import TorchTensor

from ..ir.graph import TRANSPOSED
from .fusions import apply_fusions


def apply_passes(model: ir.Model) -> ir.Model:
    """Return the same model, with batch norms folded, no weight stored twice, and no unread nodes."""
    for node in list(model.graph):
        if node.op_type == "BatchNormalization" and node.domain == "":
            _fold_batch_norm(model.graph, node)
    apply_fusions(model)
    _store_once(model.graph)
    RemoveUnusedNodesPass()(model)
    return model


def _fold_batch_norm(graph: ir.Graph, norm: ir.Node) -> None:
    """Fold a batch norm into the convolution or linear layer before it; the new weights are computed when the model is written."""
    layer = _before(norm)
    if layer is None:
        return
    conv, weights, statistics = layer, _weights(graph, layer), _weights(graph, norm)
    if weights is None or statistics is None:
        return
    if len(conv.outputs[0].uses()) > 1 or conv.outputs[0].is_graph_output() or "training_mode" in norm.attributes:
        return
    epsilon = norm.attributes.get_float("epsilon", 1e-5)
    weight, bias = weights[0], weights[1] if len(weights) > 1 else None
    folded = _lazy(graph, f"{weight.name}/folded", weight, lambda: _scale_weight(weight, statistics, epsilon))
    shifted = _lazy(graph, f"{statistics[1].name}/folded", statistics[1], lambda: _shift_bias(bias, statistics, epsilon))
    conv.replace_input_with(1, folded)
    if bias is None:
        conv.resize_inputs(3)
    conv.replace_input_with(2, shifted)
    output, name = norm.outputs[0], norm.outputs[0].name
    shape, outputs = output.shape, list(graph.outputs)
    output.replace_all_uses_with(conv.outputs[0], replace_graph_outputs=output in outputs)
    graph.remove(norm, safe=True)
    conv.outputs[0].name, conv.outputs[0].shape = name, shape


def _folds(node: ir.Node) -> bool:
    """Return whether the rows of the node's weight are its outputs: a convolution, or a linear layer."""
    return node.op_type == "Conv" or (node.op_type == "Gemm" and {*node.attributes} == {"transB"})


def _before(norm: ir.Node) -> ir.Node | None:
    """Return the convolution or linear layer whose output a batch norm reads, else None."""
    conv = norm.inputs[0].producer() if norm.inputs[0] is not None else None
    return conv if conv is not None and _folds(conv) else None


def _weights(graph: ir.Graph, node: ir.Node) -> list[ir.Value] | None:
    """Return the inputs after the first; None if not all of them are weights of the graph."""
    found = [value for value in node.inputs[1:] if value is not None and value.name in graph.initializers and value not in graph.inputs]
    return found if len(found) == len(node.inputs) - 1 else None


def _lazy(graph: ir.Graph, name: str, like: ir.Value, made: Callable[[], torch.Tensor]) -> ir.Value:
    stored = _read_const_value(like)
    data = ir.LazyTensor(lambda: TorchTensor(made(), name), dtype=stored.dtype, shape=stored.shape, name=name)
    value = ir.Value(name=name, type=like.type, shape=like.shape, const_value=data)
    graph.initializers[name] = value
    return value


def _read_const_value(value: ir.Value) -> Any:
    """Return the data of a weight in onnx_ir."""
    assert value.const_value is not None
    return value.const_value


def _raw(value: ir.Value) -> torch.Tensor:
    raw: torch.Tensor = _read_const_value(value).raw
    return raw


def _scale_weight(weight: ir.Value, statistics: list[ir.Value], epsilon: float) -> torch.Tensor:
    factor = _factor(statistics, epsilon)
    return (_raw(weight) * factor.reshape(-1, *[1] * (_raw(weight).dim() - 1))).to(_raw(weight).dtype)


def _shift_bias(bias: ir.Value | None, statistics: list[ir.Value], epsilon: float) -> torch.Tensor:
    _, offset, mean, _ = map(_raw, statistics)
    return (((_raw(bias) if bias is not None else 0) - mean) * _factor(statistics, epsilon) + offset).to(offset.dtype)


def _factor(statistics: list[ir.Value], epsilon: float) -> torch.Tensor:
    scale, _, _, variance = map(_raw, statistics)
    return scale / torch.sqrt(variance + epsilon)


def _store_once(graph: ir.Graph) -> None:
    """Store a weight that is read both directly and transposed only once, and transpose it by a node."""
    for name, flipped in list(graph.initializers.items()):
        weight = graph.initializers.get(name.removesuffix(TRANSPOSED)) if name.endswith(TRANSPOSED) else None
        if weight is None or not weight.uses():
            continue
        node = ir.Node("", "Transpose", [weight], [ir.AttrInt64s("perm", [1, 0])], num_outputs=1, name=f"{name}/Transpose")
        node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = f"{name}/flipped", flipped.type, flipped.shape
        flipped.replace_all_uses_with(node.outputs[0])
        graph.insert_before(graph[0], node)
        del graph.initializers[name]
