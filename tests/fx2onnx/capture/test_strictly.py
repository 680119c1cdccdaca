"""`int()` of a value is a size where TorchDynamo reads the code: the last way of "auto", held against the model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exportlab import to_onnx
from fx2onnx.errors import CaptureError


class Padding(nn.Module):
    """Says which places of each row are padding, of as many as the longest has."""

    def forward(self, lengths: Tensor) -> Tensor:
        return torch.arange(int(lengths.max()))[None] >= lengths[:, None]


class Doubled(nn.Module):
    """Makes another number of the value, which is no size of anything."""

    def forward(self, lengths: Tensor) -> Tensor:
        return lengths * hash(int(lengths.max()))


def test_int_of_a_value_is_a_size() -> None:
    program = to_onnx(Padding(), (torch.tensor([5, 3]),), dynamic_shapes=({0: "batch"},))
    for lengths in ([7, 3, 1], [1], [4, 9], [2, 2, 2, 2]):
        x = torch.tensor(lengths)
        torch.testing.assert_close(program(x)[0], Padding()(x))


def test_what_is_refused_so_as_well_says_what_it_said() -> None:
    with pytest.raises(CaptureError, match="data-dependent"):
        to_onnx(Doubled(), (torch.tensor([5, 3]),), dynamic_shapes=({0: "batch"},))
