"""UncapturedHigherOrderOpError: Encountered input mutation during higher order op tracing: a branch of `torch.cond` writes in place

A branch changes one of its inputs or a buffer of the model, for example with `x.add_(1)`, `x[0] = 0` or `x += 1`. Exporters need a graph
without in-place writes. A write that depends on the condition can't be moved out of the branch. A branch may write to tensors that it
created.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Raised(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, self.raised, lambda x: x * 2, (x * 1,))

    def raised(self, x: torch.Tensor) -> torch.Tensor:
        x += 1
        return x * 3


SAMPLES = [(torch.ones(4, 3),), (-torch.ones(7, 3),), (torch.ones(1, 3),)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Raised(), SAMPLES[0], dynamic_shapes=ROWS), Raised(), SAMPLES


class RaisedInACopy(Raised):
    def raised(self, x: torch.Tensor) -> torch.Tensor:
        return super().raised(x.clone())


def copied() -> Claim:
    """Copy the input at the start of the branch. The branch then writes to its copy. The exported model doesn't contain the copy."""
    return export("dynamo", RaisedInACopy(), SAMPLES[0], dynamic_shapes=ROWS), Raised(), SAMPLES


class RaisedAnew(Raised):
    def raised(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1) * 3


def without_writing() -> Claim:
    """Replace in-place writes: `x = x + 1` instead of `x += 1`. To set single positions, use `where`, `cat` or `index_put`."""
    return export("dynamo", RaisedAnew(), SAMPLES[0], dynamic_shapes=ROWS), Raised(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Encountered input mutation during higher order op tracing\s+Higher Order Operator: torch\.cond",
    breaks=breaks,
    fixes=(Fix("change the model", without_writing), Fix("change the model", copied)),
    threads=("pytorch/pytorch#147210", "pytorch/pytorch#186462"),
)
