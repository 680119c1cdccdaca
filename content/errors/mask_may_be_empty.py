"""Could not guard on data-dependent expression Eq(u0, 0): an `if` on the number of rows that a mask or `nonzero` keeps

The number of rows in `x[mask]` depends on values, which torch.export doesn't have. The size becomes a symbol, `u0`, so torch.export can't
evaluate `shape[0] == 0`. A Python loop over `nonzero(…)` tests the same condition before its first iteration.
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
    """Multiply by a mask of 0 and 1 instead of selecting rows. Then shapes don't depend on values, and a runtime can plan its memory. The
    model computes with all rows.
    """
    return export("dynamo", MeanByWeights(), SAMPLES[0], dynamic_shapes=ROWS), MeanOfKept(), SAMPLES


class MeanOfAtLeastOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[x[:, 0] > 0]
        return kept.sum(0) / torch.sym_max(kept.shape[0], 1)


def harmless_when_empty() -> Claim:
    """Write a formula that also works for zero rows. You can compute with the symbolic size, here with `torch.sym_max`, but you can't
    branch on it.
    """
    return export("dynamo", MeanOfAtLeastOne(), SAMPLES[0], dynamic_shapes=ROWS), MeanOfKept(), SAMPLES


class MeanByCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x[x[:, 0] > 0]
        return torch.cond(kept.shape[0] == 0, lambda kept: torch.zeros(3), lambda kept: kept.mean(0), (kept,))


def cond() -> Claim:
    """Use `torch.cond`. It accepts a condition on a size, and evaluates it at run time."""
    return export("dynamo", MeanByCond(), SAMPLES[0], dynamic_shapes=ROWS), MeanOfKept(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Could not guard on data-dependent expression (?:Eq|Ne)\([^()]*u\d+[^()]*, 0\)",
    op=r"numel\(|\.shape|\.size\(|\blen\(|\bany\(|^for ",
    breaks=breaks,
    fixes=(Fix("change the model", weights), Fix("change the model", harmless_when_empty), Fix("change the model", cond)),
    kin=r"the size of (?:what|the result of) [\w.]+ (?:returns )?depends on values",
    advice="keep all rows, and select with a mask, so that shapes don't depend on values",
    threads=("pytorch/pytorch#135618", "pytorch/pytorch#128906", "huggingface/transformers#38518"),
)
