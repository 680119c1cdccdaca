"""UncapturedHigherOrderOpError: Encountered aliasing during higher order op tracing: a branch of `torch.cond` returns its input

"Else leave it as it is" is the most natural branch there is, and `torch.cond` refuses it: what a branch returns must not be the very
tensor that it was given, nor a view of it, nor may it return one tensor twice. In training, the two could be written to behind each
other's back. A file for inference has no such worry, but the capture runs in the mode of training.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Tripled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 3, lambda x: x, (x,))


SAMPLES = [(torch.ones(4, 3),), (-torch.ones(7, 3),), (torch.ones(1, 3),)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Tripled(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


class TripledOrCloned(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 3, lambda x: x.clone(), (x,))


def clone() -> Claim:
    """Return `x.clone()`. The copy does not outlive the export: in the file it is an `Identity`, or nothing."""
    return export("dynamo", TripledOrCloned(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


class TripledByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 3, x)


def where() -> Claim:
    """Where the other branch is cheap, too, `torch.where` is all it takes."""
    return export("dynamo", TripledByWhere(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


def to_onnx() -> Claim:
    """Under `torch.no_grad()` the capture lets it pass, and `to_onnx` translates it. `torch.onnx.export` then fails one step later."""
    with torch.no_grad():
        return export("to_onnx", Tripled(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Encountered aliasing during higher order op tracing\s+Higher Order Operator: torch\.cond",
    breaks=breaks,
    fixes=(Fix("change the model", clone), Fix("change the model", where), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#153832", "pytorch/pytorch#193810", "pytorch/pytorch#123972"),
)
