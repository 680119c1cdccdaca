"""Basic models with one idea each. Computed sizes, branches and loops have their own families."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("layers",))
def mlp() -> Declaration:
    """Does a stack of linear layers keep a dynamic batch?"""
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), (tensor("batch", 16),)


@case(dims={"batch": (2, 5, 1, 0)}, topics=("layers",))
def conv_relu() -> Declaration:
    """Does a convolution with an activation keep a dynamic batch?"""
    return nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU()), (tensor("batch", 1, 12, 12),)


@case(dims={"batch": (6, 11, 1, 0)}, topics=("layers",))
def linear_regression() -> Declaration:
    """How small can an exported model be?"""
    return nn.Linear(10, 1), (tensor("batch", 10),)


@case(dims={"batch": (4, 9, 1, 0)}, topics=("layers", "normalization"))
def batch_norm() -> Declaration:
    """Are the running statistics from training in the exported model?"""
    norm = nn.BatchNorm1d(8)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    return norm, (tensor("batch", 8, 5),)


@case(dims={"batch": (4, 9, 1, 0)}, topics=("layers", "normalization", "silence"), training=True)
def batch_norm_in_training() -> Declaration:
    """In training mode, batch norm uses the statistics of the batch: does the exported model too?"""
    return nn.BatchNorm1d(8), (tensor("batch", 8, 5),)


@case(dims={"batch": (3, 5, 1, 2, 0), "seq": (6, 8, 1, 0, 4)}, topics=("layers", "normalization"))
def layer_norm_softmax() -> Declaration:
    """Do reductions over a fixed axis work when both other axes are dynamic?"""

    class NormalizedScores(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(8)

        def forward(self, x: Tensor) -> Tensor:
            return torch.softmax(self.norm(x), dim=-1)

    return NormalizedScores(), (tensor("batch", "seq", 8),)
