"""The result has the dtype int64 where PyTorch returns float32: `torch.angle` of integers

PyTorch promotes integers to float32 where a function answers with a fraction. ONNX promotes nothing, so each translation has to cast by
itself. That of `angle` for real numbers does not: 3.14 for a negative number becomes 3, in an integer.
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
    """Cast before the function: what PyTorch does by itself, written out."""
    return export("dynamo", OfFloats(), SAMPLES[0], dynamic_shapes=ROWS), Angle(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` casts wherever the captured graph says that the type changes."""
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
