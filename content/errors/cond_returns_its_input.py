"""UncapturedHigherOrderOpError: Encountered aliasing during higher order op tracing: a branch of `torch.cond` returns its input

`torch.cond` doesn't allow a branch to return one of its inputs, a view of an input, or the same tensor twice. A typical case is a branch
that leaves its input unchanged. Such aliases can cause wrong results in training, if one of the two tensors is modified. A model for
inference doesn't have this problem, but the capture applies the rule unless gradients are disabled.
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
    """Return `x.clone()`. In the exported model the copy is an `Identity` or disappears."""
    return export("dynamo", TripledOrCloned(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


class TripledByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 3, x)


def where() -> Claim:
    """Use `torch.where` if the other branch is cheap too."""
    return export("dynamo", TripledByWhere(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


def to_onnx() -> Claim:
    """Capture under `torch.no_grad()` and use `to_onnx`. The capture then accepts the branch. `torch.onnx.export` fails in a later step."""
    with torch.no_grad():
        return export("to_onnx", Tripled(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Encountered aliasing during higher order op tracing\s+Higher Order Operator: torch\.cond",
    breaks=breaks,
    fixes=(Fix("change the model", clone), Fix("change the model", where), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#153832", "pytorch/pytorch#193810", "pytorch/pytorch#123972"),
)
