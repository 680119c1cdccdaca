"""Shapes that move, and computations with their sizes. Not here: branches and loops that sizes decide."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .case import Declaration, case
from .specs import tensor


@case(dims={"batch": (2, 3, 1, 4, 0), "seq": (5, 7, 1, 0, 3)}, topics=("dynamic shapes",))
def two_dims() -> Declaration:
    """Can two axes of one input move without each other?"""

    class Scores(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x @ x.transpose(1, 2)

    return Scores(), (tensor("batch", "seq", 8),)


@case(dims={"batch": (4, 7, 1, 3), "width": (5, 6, 1, 0)}, topics=("dynamic shapes", "reshape"))
def flatten_by_size() -> Declaration:
    """Does `view` with a size read from the input follow that size?"""

    class Flattened(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(x.shape[0], -1) * 2

    return Flattened(), (tensor("batch", 3, "width"),)


@case(dims={"rows": (4, 7, 5, 1, 0), "others": (4, 7, 1, 6, 1)}, topics=("dynamic shapes", "broadcasting"))
def broadcast_later() -> Declaration:
    """Two lengths agree at export: may one of them be 1, and broadcast, later?"""

    class Sum(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

    return Sum(), (tensor("rows", 3), tensor("others", 3))


@case(dims={"batch": (6, 9, 1, 0)}, topics=("dynamic shapes", "silence"))
def half_of_the_rows() -> Declaration:
    """A size passes through a float and back: is the slice still as long as it should be?"""

    class FirstHalf(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[: int(x.shape[0] * 0.5)] * 2

    return FirstHalf(), (tensor("batch", 3),)


@case(dims={"batch": (2, 3, 1, 4, 0), "seq": (5, 8, 1, 0, 3)}, topics=("dynamic shapes",))
def positions() -> Declaration:
    """Is `arange` of a size made anew at every size?"""

    class AddPositions(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.arange(x.shape[1], dtype=x.dtype)

    return AddPositions(), (tensor("batch", "seq"),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dynamic shapes", "silence"))
def any_of_none() -> Declaration:
    """No row is positive when there is no row: does the file agree?"""

    class AnyPositive(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x > 0).any()

    return AnyPositive(), (tensor("batch", 3),)
