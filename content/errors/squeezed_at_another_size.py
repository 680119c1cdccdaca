"""Squeeze: Dimension of input 1 must be 1 instead of 5: `squeeze(1)` of an axis that moves

PyTorch's `squeeze(1)` takes the axis away where its size is 1, and does nothing where it is not. ONNX's `Squeeze` of an axis that is not
1 is an error. For an axis that moves the exporter writes `Squeeze` all the same, and the file fails at the very size of the example.
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
    """Leave `squeeze` out where the axis moves. Size 1 then keeps its axis, since the number of axes depends on no size in a file."""
    return export("dynamo", Kept(), SAMPLES[0], dynamic_shapes=COLUMNS), Squeezed(), SAMPLES


def static() -> Claim:
    """Or let the axis be static, of size 1, if that is what it is: then `Squeeze` is right. Other axes may move."""
    samples = [(torch.ones(rows, 1, 3),) for rows in (4, 7, 1, 0)]
    return export("dynamo", Squeezed(), samples[0], dynamic_shapes=({0: "rows"},)), Squeezed(), samples


ERROR = KnownError(
    stage="run",
    message=r"while running Squeeze node\.",
    breaks=breaks,
    fixes=(Fix("change the model", kept), Fix("change the call", static)),
    threads=("pytorch/pytorch#36796", "pytorch/pytorch#53922", "pytorch/pytorch#79117"),
)
