"""Scaled dot product attention, alone and in layers: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException
from operators import Call, check_both, nodes_of
from torch import nn

from exportlab.cases import Sample
from exportlab.verification.verify import verify
from fx2onnx import to_onnx

OPSETS = (18, 26)
Q, K, V = normal(2, 4, 3, 8), normal(2, 4, 5, 8), normal(2, 4, 5, 6)
LOWEST = torch.finfo(torch.float32).min
SEEN = normal(2, 1, 3, 5) > 0
SEEN[0, 0, 1], SEEN[1, 0, 2] = False, True
ATTENTIONS: dict[str, tuple[tuple[torch.Tensor, ...], dict[str, Any]]] = {
    "plain": ((Q, K, V), {}),
    "causal, fewer queries": ((Q, K, V), {"is_causal": True}),
    "causal, fewer keys": ((K, Q, Q), {"is_causal": True}),
    "scale": ((Q, K, V), {"scale": 0.3}),
    "float mask": ((Q, K, V, normal(3, 5)), {}),
    "hidden row": ((Q, K, V, SEEN), {}),
    "hidden row of −inf": ((Q, K, V, torch.where(SEEN, 0.0, -torch.inf)), {}),
    "mask of rows": ((Q, K, V, torch.tensor([[True], [False], [True]])), {}),
    "without heads": ((Q[0], K[0], V[0], SEEN[0]), {}),
    "grouped queries": ((Q, K[:, :2], V[:, :2]), {"enable_gqa": True}),
    "one key head": ((Q, K[:, :1], V[:, :1], SEEN), {"enable_gqa": True}),
    "float64": ((Q.double(), K.double(), V.double(), SEEN), {}),
    "float16": ((Q.half(), K.half(), V.half()), {}),
    "empty batch": ((Q[:0], K[:0], V[:0]), {}),
    "causal, one query": ((Q[:, :, :1], K, V), {"is_causal": True}),
    "mask of keys": ((Q, K, V, SEEN[:, :, :1]), {}),
    "float mask of keys": ((Q, K, V, normal(4, 1, 5)), {}),
    "row of the lowest": ((Q, K, V, torch.where(SEEN, 0.0, LOWEST)), {}),
    "the lowest and −inf": ((Q, K, V, torch.tensor([[LOWEST, LOWEST, -torch.inf, -torch.inf, LOWEST]] * 3)), {}),
    "values of one batch": ((Q, K, V[:1]), {}),
    "bfloat16": ((Q.bfloat16(), K.bfloat16(), V.bfloat16(), SEEN), {}),
    "float16, large": ((20 * Q.half(), 20 * K.half(), V.half(), SEEN), {}),
}


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_gives_what_eager_gives_and_no_nan(name: str, opset: int) -> None:
    args, kwargs = ATTENTIONS[name]
    check_both(F.scaled_dot_product_attention, *args, options=OWN | {"opset_version": opset}, **kwargs)


SPELLED = ("without heads", "float64", "float16", "empty batch", "values of one batch", "bfloat16", "float16, large")


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_is_one_node_where_onnxruntime_computes_it_right(name: str) -> None:
    args, kwargs = ATTENTIONS[name]
    nodes = nodes_of(lambda *given: F.scaled_dot_product_attention(*given, **kwargs), *args, opset_version=23)
    assert nodes.count("Attention") == (name not in SPELLED)
    assert nodes.count("Softmax") == (name in SPELLED)
    assert "Attention" not in nodes_of(lambda *given: F.scaled_dot_product_attention(*given, **kwargs), *args, opset_version=22)


LAYERS = {
    "attention": (nn.MultiheadAttention(8, 2, batch_first=True).eval(), 3),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), 1),
    "transformer": (nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval(), 2),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("opset", OPSETS)
def test_transformer_layers_give_what_eager_gives(name: str, opset: int) -> None:
    module, inputs = LAYERS[name]
    args = (normal(2, 3, 8),) * inputs
    verify(to_onnx(module, args, opset_version=opset, **OWN), module, [Sample(args)]).check()


def test_onnxruntime_refuses_an_empty_batch_of_attention_alone() -> None:
    module = Call(F.scaled_dot_product_attention, (Q, K, V), {})
    nothing = (Q[:0], K[:0], V[:0])
    older, newer = (to_onnx(module, (Q, K, V), dynamic_shapes=(({0: "batch"},) * 3,), opset_version=opset) for opset in (22, 23))
    assert torch.as_tensor(older(*nothing)[0]).shape == (0, 4, 3, 6)
    with pytest.raises((Fail, RuntimeException), match="Batch size must be greater than 0"):
        newer(*nothing)
