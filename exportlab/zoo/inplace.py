"""Writing into tensors: a copy, a part of it, the module's own state. Not here: custom ops that write into their inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .case import Declaration, case
from .specs import integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def index_update() -> Declaration:
    """Does `x[..., index] = update` on a copy write the columns that the index names at run time?"""

    class IndexUpdate(nn.Module):
        def forward(self, x: Tensor, index: Tensor, update: Tensor) -> Tensor:
            copied = x.clone()
            copied[..., index] = update
            return copied

    return IndexUpdate(), (tensor("batch", 3, 8), integers(1, high=8), tensor("batch", 3, 1))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def masked_set() -> Declaration:
    """Does `x[mask] = value` find another mask for other values?"""

    class MaskedSet(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[copied < 0] = 0.5
            return copied

    return MaskedSet(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "silence"))
def counter() -> Declaration:
    """A buffer counts the calls: does an exported model remember the last one?"""

    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls.add_(1)
            return x + self.calls

    return Counter(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def slice_add() -> Declaration:
    """A slice is a view: does `add_` on it reach the tensor it was taken from?"""

    class SliceAdd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[1:, :2].add_(10)
            return copied

    return SliceAdd(), (tensor("batch", 3),)
