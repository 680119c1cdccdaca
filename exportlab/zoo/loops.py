"""Something done again and again: in Python, by `scan`, by `while_loop`. Not here: layers that repeat, which are in submodules."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .case import Declaration, case
from .specs import tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops",))
def row_loop() -> Declaration:
    """A Python loop over the batch: is it a loop after the export?"""

    class RowLoop(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x * 2
            for i in range(y.shape[0]):
                y[i] += torch.sin(y[i])
            return y

    return RowLoop(), (tensor("batch", 16),)


@case(dims={"batch": (4, 7, 1)}, topics=("loops", "control flow"))
def scan_sum() -> Declaration:
    """A running sum by `scan`: is its body captured once for any number of rows?"""

    def add(total: Tensor, row: Tensor) -> list[Tensor]:
        return [total + row, total + row]

    class RunningSum(nn.Module):
        def forward(self, x: Tensor) -> list[Tensor]:
            return torch.ops.higher_order.scan(add, [torch.zeros(3)], [x], [])

    return RunningSum(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("loops", "control flow"))
def halved_until_small() -> Declaration:
    """A `while_loop` whose end depends on the values: how often does the file turn?"""

    def too_large(x: Tensor) -> Tensor:
        return x.abs().sum() > 1

    class HalvedUntilSmall(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            (small,) = torch._higher_order_ops.while_loop(too_large, lambda x: (x / 2,), (x,))
            return small

    return HalvedUntilSmall(), (tensor("batch", 3),)
