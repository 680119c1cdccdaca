"""A random program: a list of steps that prints itself as a plain PyTorch module, and can be built from what it prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..samples import Sample
from .steps import STEPS

EXPORTED, UNSEEN = 4, (7, 1, 2)  # rows: at export, and those that the export never saw
SHAPES = {"x": {0: "rows"}, "y": {0: "rows"}}


@dataclass(frozen=True)
class Step:
    """One line of a program: the name of a step, and its number, from 1 on."""

    name: str
    number: int

    @property
    def source(self) -> str:
        """The expression, of `x` and `y`."""
        return STEPS[self.name].format(k=self.number)


@dataclass(frozen=True)
class Program:
    """Steps, one after the other: `x` and `y`, float32 of shape (rows, 4), become a tensor of shape (any rows, 4)."""

    steps: tuple[Step, ...]

    @property
    def names(self) -> frozenset[str]:
        """Those of its steps."""
        return frozenset(step.name for step in self.steps)

    @property
    def source(self) -> str:
        """The class `Program`, as a person would write it."""
        body = [f"        x = {step.source}" for step in self.steps]
        return "\n".join(["class Program(nn.Module):", "    def forward(self, x, y):", *body, "        return x", ""])

    def module(self) -> nn.Module:
        """Return the module, which inspection does not find the source of."""
        space: dict[str, Any] = {"torch": torch, "nn": nn, "F": F}
        exec(self.source, space)
        made = space["Program"]()
        assert isinstance(made, nn.Module)
        return made

    def samples(self) -> list[Sample]:
        """Return the inputs at the size of the export, and at those that it never sees."""
        return [Sample(inputs(rows)) for rows in (EXPORTED, *UNSEEN)]


def inputs(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `x` and `y`, float32 of shape (rows, 4), the same at each call."""
    random = torch.Generator().manual_seed(rows)
    return torch.randn(rows, 4, generator=random), torch.randn(rows, 4, generator=random)
