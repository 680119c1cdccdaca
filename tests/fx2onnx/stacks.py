"""Stacks of equal blocks, and their export with one function for the blocks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from exportlab import to_onnx, verify
from fx2onnx.program import Program

X, ALLOW_GROWN_BUFFERS = torch.randn(3, 8), torch.randn(5, 8)


class Block(nn.Module):
    """Two layers, a factor, an offset that the class has, and an index that nobody reads."""

    offset = 0.0

    def __init__(self, width: int = 8, index: int = 0) -> None:
        super().__init__()
        self.first = nn.Linear(8, width)
        self.second = nn.Linear(width, 8)
        self.factor = 1.0
        self.index = index

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(x))) * self.factor + self.offset


class Stack(nn.Module):
    """A layer, then blocks."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x


def stack(count: int = 4) -> Stack:
    torch.manual_seed(0)
    return Stack([Block(index=index) for index in range(count)]).eval()


def exported(model: nn.Module, functions: Any = (Block,), **options: Any) -> Program:
    """The export, verified at a size it never saw."""
    program = to_onnx(model, (X,), dynamic_shapes=({0: "batch"},), functions=functions, **options)
    verify(program, model, [(X,), (ALLOW_GROWN_BUFFERS,), (torch.randn(1, 8),)]).check()
    return program
