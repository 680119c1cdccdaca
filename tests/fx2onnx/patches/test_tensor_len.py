"""`len` of a tensor stays dynamic in a capture by torch.export, and is a plain number elsewhere."""

from __future__ import annotations

import builtins

import pytest
import torch
from torch import Tensor, nn

from fx2onnx import to_onnx


class Counted(nn.Module):
    """Makes a tensor as long as its input, beside one whose size values decide."""

    def forward(self, x: Tensor) -> Tensor:
        places = (x[:, 0] > 0).nonzero()[:, 0]
        return torch.zeros(len(x)).index_add(0, places, torch.ones(places.shape[0])) / len([1, 2])


@pytest.mark.parametrize("capture", ["auto", "torch.export"])
def test_len_of_a_tensor_stays_dynamic(capture: str) -> None:
    before = builtins.len
    program = to_onnx(Counted(), (torch.randn(4, 3),), dynamic_shapes=({0: "rows"},), capture=capture)
    assert builtins.len is before
    for rows in (4, 9, 2):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x)[0], Counted()(x))
