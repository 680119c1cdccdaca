"""Could not guard on data-dependent expression Eq(u0, 0): your code asks whether a mask or `nonzero` kept any row

How many rows `x[mask]` keeps depends on the values, and the capture has none. The size is a symbol, `u0`, and `shape[0] == 0` a question
about it that only a run can answer. A Python loop over `nonzero(…)` asks the same for you, before its first turn.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class MeanOfKept(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[x[:, 0] > 0]
        if kept.shape[0] == 0:
            return torch.zeros(3)
        return kept.mean(0)


SAMPLES = [(torch.linspace(-1, 2, 12).reshape(4, 3),), (-torch.ones(7, 3),), (torch.ones(1, 3),)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", MeanOfKept(), SAMPLES[0], dynamic_shapes=ROWS), MeanOfKept(), SAMPLES


class MeanByWeights(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = (x[:, :1] > 0).to(x.dtype)
        return (x * weights).sum(0) / weights.sum().clamp(min=1)


def weights() -> Claim:
    """Weigh the rows instead of picking them: no size depends on a value, and every runtime can plan its memory. All rows are read."""
    return export("dynamo", MeanByWeights(), SAMPLES[0], dynamic_shapes=ROWS), MeanOfKept(), SAMPLES


class MeanOfAtLeastOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[x[:, 0] > 0]
        return kept.sum(0) / torch.sym_max(kept.shape[0], 1)


def harmless_when_empty() -> Claim:
    """Write it so that no rows do no harm. A size may be computed with, here by `torch.sym_max`; only a test of it is too much."""
    return export("dynamo", MeanOfAtLeastOne(), SAMPLES[0], dynamic_shapes=ROWS), MeanOfKept(), SAMPLES


class MeanByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[x[:, 0] > 0]
        return torch.cond(kept.shape[0] == 0, lambda kept: torch.zeros(3), lambda kept: kept.mean(0), (kept,))


def cond() -> Claim:
    """`torch.cond` accepts a test of a size, and asks it at run time."""
    return export("dynamo", MeanByCond(), SAMPLES[0], dynamic_shapes=ROWS), MeanOfKept(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Could not guard on data-dependent expression (?:Eq|Ne)\([^()]*u\d+[^()]*, 0\)",
    op=r"numel\(|\.shape|\.size\(|\blen\(|\bany\(|^for ",
    breaks=breaks,
    fixes=(Fix("change the model", weights), Fix("change the model", harmless_when_empty), Fix("change the model", cond)),
    kin=r"the size of what [\w.]+ returns depends on values",
    advice="keep all rows, and mark those that count in a mask: then no size depends on a value",
    threads=("pytorch/pytorch#135618", "pytorch/pytorch#128906", "huggingface/transformers#38518"),
)
