"""Two inputs act as one because the example passes the same tensor for both

The capture identifies inputs by tensor identity. If you pass one tensor for two arguments, they become one input: wherever the model reads
either argument, the graph reads the last one. The exported model still declares both inputs, so you don't notice until their values differ.
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
    """Pass a separate tensor for each argument of the example."""
    return export("dynamo", Weighted(), (X, Y), dynamic_shapes=ROWS), Weighted(), [(X, Y), LONGER]


def to_onnx() -> Claim:
    """Use `to_onnx`. It copies repeated tensors before the capture."""
    return export("to_onnx", Weighted(), (X, X), dynamic_shapes=ROWS), Weighted(), [(X, X), LONGER]


ERROR = KnownError(
    stage="silent",
    message=r"separate tensors: output",
    check="separate tensors",
    breaks=breaks,
    fixes=(Fix("change the call", separate), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#139646",),
)
