"""Modules made of modules. Complete architectures are in vision, encoders and the following files."""

from __future__ import annotations

from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


class Block(nn.Module):
    """A linear layer with activation and a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(x).relu()


@case(dims={"batch": (4, 7, 1, 0)}, topics=("hierarchy", "shared weights"))
def called_twice() -> Declaration:
    """One block is called twice: are its weights stored once?"""

    class CalledTwice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.outer = nn.Sequential(Block(16), nn.LayerNorm(16))

        def forward(self, x: Tensor) -> Tensor:
            return self.outer(self.outer(x))

    return CalledTwice(), (tensor("batch", 16),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("hierarchy",))
def block_stack() -> Declaration:
    """Equal blocks in a `ModuleList`: can they be told apart in the exported model?"""

    class BlockStack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(Block(16) for _ in range(4))

        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = block(x)
            return x

    return BlockStack(), (tensor("batch", 16),)
