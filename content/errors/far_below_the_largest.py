"""-inf where PyTorch returns a number: `torch.logcumsumexp` of a small number before a large one

PyTorch adds one element at a time and subtracts the larger of two numbers. `torch.onnx.export` subtracts the maximum of the whole row, and
writes `Log(CumSum(Exp(x - max))) + max`. If an element is 104 below the maximum, its exponential is 0 in float32, and the logarithm of 0 is
minus infinity. If the whole row is minus infinity, the result is NaN.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Running(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.logcumsumexp(0)


SAMPLES = [(torch.linspace(50, 350, rows),) for rows in (6, 9, 2)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Running(), SAMPLES[0], dynamic_shapes=ROWS), Running(), SAMPLES


class EachOfItsOwn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(x.shape[0])
        return torch.where(place <= place[:, None], x, -torch.inf).logsumexp(-1)


def each() -> Claim:
    """Use `logsumexp` with a triangular mask. The memory grows with the square of the length."""
    return export("dynamo", EachOfItsOwn(), SAMPLES[0], dynamic_shapes=ROWS), Running(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It adds one element at a time in an ONNX `Scan`, without quadratic memory."""
    return export("to_onnx", Running(), SAMPLES[0], dynamic_shapes=ROWS), Running(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[[\d, ]+\]: -inf where eager has \d\S* \(\d+ of \d+ elements differ\)\n?",
    check="export inputs",
    breaks=breaks,
    op="logcumsumexp",
    fixes=(Fix("change the model", each), Fix("another exporter", to_onnx)),
    threads=("microsoft/onnxscript#904",),
)
