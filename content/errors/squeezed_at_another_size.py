"""Squeeze: Dimension of input 1 must be 1 instead of 5: `squeeze(1)` of a dynamic dimension

PyTorch's `squeeze(1)` removes the dimension if its size is 1, and otherwise does nothing. ONNX's `Squeeze` raises an error if the size
isn't 1. `torch.onnx.export` writes `Squeeze` for a dynamic dimension, so the exported model fails even at the size of the example.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Squeezed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.squeeze(1) * 2


SAMPLES = [(torch.ones(4, columns, 3),) for columns in (5, 8, 2, 0)]
COLUMNS = ({1: "columns"},)


def breaks() -> Claim:
    return export("dynamo", Squeezed(), SAMPLES[0], dynamic_shapes=COLUMNS), Squeezed(), SAMPLES


class Kept(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def kept() -> Claim:
    """Remove `squeeze` if the dimension is dynamic. An input of size 1 then keeps its dimension, because the rank of an ONNX output doesn't
    depend on sizes.
    """
    return export("dynamo", Kept(), SAMPLES[0], dynamic_shapes=COLUMNS), Squeezed(), SAMPLES


def static() -> Claim:
    """Keep the dimension static if its size is 1. `Squeeze` is then right. Other dimensions can be dynamic."""
    samples = [(torch.ones(rows, 1, 3),) for rows in (4, 7, 1, 0)]
    return export("dynamo", Squeezed(), samples[0], dynamic_shapes=({0: "rows"},)), Squeezed(), samples


ERROR = KnownError(
    stage="run",
    message=r"while running Squeeze node\.",
    breaks=breaks,
    fixes=(Fix("change the model", kept), Fix("change the call", static)),
    threads=("pytorch/pytorch#36796", "pytorch/pytorch#53922", "pytorch/pytorch#79117"),
)
