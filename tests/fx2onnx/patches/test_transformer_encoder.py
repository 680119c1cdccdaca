"""Encoders with padding: the file gives what torch gives without gradients, and the model is left as it was."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fx2onnx import to_onnx

SHAPES = ({0: "batch", 1: "seq"}, {0: "batch"})
HERE = "ignore::UserWarning"


class Padded(nn.Module):
    """An encoder that is told of its padding in one of several ways."""

    def __init__(self, told: str = "booleans", norm: bool = False, **options: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8) if norm else None, **options)
        if norm:
            nn.init.constant_(self.encoder.norm.bias, 0.5)
        self.told = told

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        padding = torch.arange(x.shape[1]) >= lengths[:, None]
        if self.told == "on the left":
            padding = padding.flip(1)
        if self.told == "floats":
            return self.encoder(x, None, torch.zeros(padding.shape).masked_fill(padding, -torch.inf))
        if self.told == "beside a mask":
            return self.encoder(x, torch.zeros(x.shape[1], x.shape[1], dtype=torch.bool), padding, is_causal=False)
        return self.encoder(x, src_key_padding_mask=padding)


@pytest.mark.filterwarnings(HERE)
@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize(
    "model",
    [
        Padded(),
        Padded(norm=True),
        Padded("floats"),
        Padded("on the left"),
        Padded("beside a mask"),
        Padded(enable_nested_tensor=False),
        Padded(mask_check=False),
    ],
    ids=["booleans", "a norm", "floats", "on the left", "beside a mask", "no nested tensors", "not checked"],
)
def test_padding_comes_out_as_without_gradients(model: Padded, capture: str) -> None:
    model.eval()
    program = to_onnx(model, (torch.rand(2, 5, 8), torch.tensor([5, 3])), dynamic_shapes=SHAPES, capture=capture)
    for lengths, steps in (([7, 1, 4], 7), ([2], 3), ([1], 1)):
        x, told = torch.rand(len(lengths), steps, 8), torch.tensor(lengths)
        with torch.no_grad():
            wanted = model(x, told)
        torch.testing.assert_close(program(x, told)[0], wanted, equal_nan=True)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
