"""inf where PyTorch returns 100: `torch.logaddexp` is exported as `log(exp(a) + exp(b))`

PyTorch subtracts the larger number before it computes an exponential, because `exp(89)` overflows float32. `torch.onnx.export` writes
`Log(Exp(a) + Exp(b))` without the subtraction. The result is infinity from 89 on, and minus infinity below -104.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class LogAddExp(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.logaddexp(a, b)


SAMPLES = [(torch.linspace(100, 50, rows), torch.linspace(50, 100, rows)) for rows in (6, 9, 1, 0)]
ROWS = ({0: "rows"}, {0: "rows"})


def breaks() -> Claim:
    return export("dynamo", LogAddExp(), SAMPLES[0], dynamic_shapes=ROWS), LogAddExp(), SAMPLES


class Written(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.maximum(a, b) + torch.log1p(torch.exp(-(a - b).abs()))


def written() -> Claim:
    """Subtract the larger number first. `torch.maximum(a, b) + torch.log1p(torch.exp(-(a - b).abs()))` is the stable form."""
    return export("dynamo", Written(), SAMPLES[0], dynamic_shapes=ROWS), LogAddExp(), SAMPLES


class Stacked(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.stack([a, b]).logsumexp(0)


def stacked() -> Claim:
    """Stack the tensors and use `logsumexp`. ONNX has an operator for it."""
    return export("dynamo", Stacked(), SAMPLES[0], dynamic_shapes=ROWS), LogAddExp(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It subtracts the larger number."""
    return export("to_onnx", LogAddExp(), SAMPLES[0], dynamic_shapes=ROWS), LogAddExp(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[[\d, ]+\]: inf where eager has \d\S* \(\d+ of \d+ elements differ\)\n?",
    check="export inputs",
    breaks=breaks,
    op="logaddexp",
    fixes=(Fix("change the model", written), Fix("change the model", stacked), Fix("another exporter", to_onnx)),
    threads=("k2-fsa/icefall#1158", "k2-fsa/icefall#1157"),
)
