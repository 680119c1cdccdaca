"""Caches of transformers, made by the model of tensors that come in: right at every length of the past, beside the window and within it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from content.zoo.tiny import GROUPED, model
from fx2onnx import to_onnx

WINDOWED = {"sliding_window": 4, "head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]}
PAIR = ({0: "batch", 2: "past"},) * 2
SHAPES = {"ids": {0: "batch", 1: "seq"}, "mask": {0: "batch", 1: "past+seq"}, "past": [PAIR, PAIR]}


class Step(nn.Module):
    """A decode step of a model, one of whose layers keeps a window alone; the cache is made inside."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, ids: Tensor, mask: Tensor, past: list[Any]) -> Any:
        from transformers import DynamicCache

        cache = DynamicCache(config=self.decoder.config)
        for layer, (keys, values) in enumerate(past):
            cache.update(keys, values, layer)
        found = self.decoder(ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return found.last_hidden_state, [(layer.keys, layer.values) for layer in found.past_key_values.layers]


def arguments(batch: int, past: int, seq: int) -> tuple[Any, ...]:
    """Tokens, a mask, and the keys and values of two layers."""
    torch.manual_seed(past)
    pairs = [(torch.rand(batch, 2, past, 8), torch.rand(batch, 2, past, 8)) for _ in range(2)]
    return torch.randint(64, (batch, seq)), torch.ones(batch, past + seq, dtype=torch.long), pairs


def test_a_step_with_a_window_is_right_at_every_length_of_the_past() -> None:
    step = Step(model("Gemma3TextModel", **GROUPED, **WINDOWED)).eval()
    program = to_onnx(step, arguments(2, 5, 3), dynamic_shapes=SHAPES, capture="run")
    for sizes in ((2, 5, 3), (3, 9, 1), (1, 4, 1), (1, 3, 2), (1, 2, 1), (1, 1, 4), (1, 0, 6), (2, 20, 2)):
        given = arguments(*sizes)
        with torch.no_grad():
            wanted = pytree.tree_leaves(step(*given))
        torch.testing.assert_close(list(program(*given)), wanted, atol=1e-4, rtol=1e-4)
