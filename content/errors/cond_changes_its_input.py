"""UncapturedHigherOrderOpError: Encountered input mutation during higher order op tracing: a branch of `torch.cond` writes in place

`x.add_(1)`, `x[0] = 0`, `x += 1` on what the branch was given, or on a buffer of the model: a write that happens in one branch only cannot
be lifted out of it, and a graph without writes is what all exporters want. A tensor made inside of the branch may be written to.
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
    """Copy it first, inside of the branch: the write then is to a tensor of its own, and no copy is left in the file."""
    return export("dynamo", RaisedInACopy(), SAMPLES[0], dynamic_shapes=ROWS), Raised(), SAMPLES


class RaisedAnew(Raised):
    def raised(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1) * 3


def without_writing() -> Claim:
    """Say it without a write: `x = x + 1` for `x += 1`, and `where`, `cat`, `index_put` for what is set at a place."""
    return export("dynamo", RaisedAnew(), SAMPLES[0], dynamic_shapes=ROWS), Raised(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Encountered input mutation during higher order op tracing\s+Higher Order Operator: torch\.cond",
    breaks=breaks,
    fixes=(Fix("change the model", without_writing), Fix("change the model", copied)),
    threads=("pytorch/pytorch#147210", "pytorch/pytorch#186462"),
)
