"""GuardOnDataDependentSymNode: an `if` on the values of a tensor

An `if` that depends on a tensor's values is *data-dependent control flow*. `torch.export` runs your model with tensors that have shapes but
no values, so it can't evaluate the condition and choose a branch. Replace the `if` with `torch.where` or `torch.cond`, or use an exporter
that records both branches.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class ByValue(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x * 3


SAMPLES = [(torch.ones(4, 3),), (-torch.ones(7, 3),), (torch.ones(1, 3),)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", ByValue(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


class ByWhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 2, x * 3)


def where() -> Claim:
    """Use `torch.where`. It computes both branches and selects one. Prefer it if both branches are cheap and safe for all
    inputs: the branch that isn't selected is computed too, even if it divides by zero or has an index out of range."""
    return export("dynamo", ByWhere(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


class ByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))


def cond() -> Claim:
    """Use `torch.cond`. It exports both branches as an ONNX `If`, and the model runs one of them. Prefer it if a branch is
    expensive, or if it fails for inputs of the other branch. Both branches have to return the same shapes and dtypes."""
    return export("dynamo", ByCond(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. This exporter, which we maintain, runs the model several times, with both results of the condition. It writes the
    `if` as an ONNX `If`. Use it only if you can't change the model, and your runtime supports `If`."""
    return export("to_onnx", ByValue(), SAMPLES[0], dynamic_shapes=ROWS), ByValue(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Could not guard on data-dependent expression Eq\(u\d+, 1\)",
    breaks=breaks,
    fixes=(Fix("change the model", where), Fix("change the model", cond), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#101255", "pytorch/pytorch#93579", "pytorch/pytorch#153955"),
    kin=r"Could not guard on data-dependent|Could not extract specialized integer",
    advice="the branch is on a value: use torch.where or torch.cond",
)
