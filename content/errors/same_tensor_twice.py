"""Two inputs act as one, because the example passed the same tensor for both

The capture tells inputs apart by their identity. One tensor given for two arguments is one input to it: the graph reads the last of
them wherever the model reads either. The file still declares both inputs, so nothing looks odd until they differ.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Weighted(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + 2 * y


X, Y = torch.ones(4, 3), torch.full((4, 3), 5.0)
LONGER = (torch.randn(7, 3), torch.randn(7, 3))
ROWS = ({0: "rows"}, {0: "rows"})


def breaks() -> Claim:
    return export("dynamo", Weighted(), (X, X), dynamic_shapes=ROWS), Weighted(), [(X, X)]


def separate() -> Claim:
    """Give every argument of the example a tensor of its own."""
    return export("dynamo", Weighted(), (X, Y), dynamic_shapes=ROWS), Weighted(), [(X, Y), LONGER]


def to_onnx() -> Claim:
    """`to_onnx` copies what is given twice before it captures."""
    return export("to_onnx", Weighted(), (X, X), dynamic_shapes=ROWS), Weighted(), [(X, X), LONGER]


ERROR = KnownError(
    stage="silent",
    message=r"separate tensors: output",
    check="separate tensors",
    breaks=breaks,
    fixes=(Fix("change the call", separate), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#139646",),
)
