"""Where the data or its shape decides what is computed. Not here: loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .case import Declaration, case
from .specs import tensor


@case(dims={"batch": (6, 9, 3, 1, 0)}, topics=("branches", "silence"))
def branch_on_batch() -> Declaration:
    """Another formula above four rows: does the export keep the branch of its example?"""

    class BranchOnBatch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2 if x.shape[0] > 4 else x * 3

    return BranchOnBatch(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def branch_on_value() -> Declaration:
    """A Python `if` on a value that only exists at run time: who refuses, and who forgets the other branch?"""

    class BranchOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    return BranchOnValue(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "control flow"))
def cond_on_value() -> Declaration:
    """The same branch as `torch.cond`: are both sides in the file?"""

    class CondOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    return CondOnValue(), (tensor("batch", 3),)
