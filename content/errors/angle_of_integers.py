"""The output is int64 where PyTorch returns float32: `torch.angle` of integers

PyTorch promotes integers to float32 when a function returns fractions. ONNX doesn't promote types, so each translation has to insert a
cast. The translation of `angle` for real numbers doesn't: for a negative number the result is 3, an integer, instead of 3.14.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Angle(nn.Module):
    def forward(self, n: torch.Tensor) -> torch.Tensor:
        return torch.angle(n)


SAMPLES = [(torch.arange(rows) - 2,) for rows in (5, 8, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Angle(), SAMPLES[0], dynamic_shapes=ROWS), Angle(), SAMPLES


class OfFloats(nn.Module):
    def forward(self, n: torch.Tensor) -> torch.Tensor:
        return torch.angle(n.float())


def cast() -> Claim:
    """Cast to float before `torch.angle`. PyTorch does the same implicitly."""
    return export("dynamo", OfFloats(), SAMPLES[0], dynamic_shapes=ROWS), Angle(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It inserts a cast wherever the dtype changes in the captured graph."""
    return export("to_onnx", Angle(), SAMPLES[0], dynamic_shapes=ROWS), Angle(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*: dtype torch\.int\d+ where eager has torch\.float\d+",
    check="export inputs",
    breaks=breaks,
    op=r"aten\.angle",
    fixes=(Fix("change the model", cast), Fix("another exporter", to_onnx)),
    threads=(),
)
