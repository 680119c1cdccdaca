"""Build a random program: a list of steps that prints as a plain PyTorch module, from which it can be built again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..cases import registered_case
from ..samples import Sample
from .steps import form

WIDE = "rows and columns"
MOVING = {  # axes of `x` and `y` that are dynamic together
    "rows": ({0: "rows"}, {0: "rows"}),
    "rows of each": ({0: "rows"}, {0: "others"}),
    WIDE: ({0: "rows", 1: "columns"}, {0: "rows", 1: "columns"}),
}
SIZES = {"rows": (4, 7, 1, 2), "others": (5, 3, 6, 1), "columns": (6, 5, 2, 1)}  # sizes: the export uses only the first
COLUMNS = 4  # number of columns if they are static
OWN = {"torch": torch, "nn": nn, "F": F, "registered_case": registered_case}


@dataclass(frozen=True)
class Step:
    """One line of a program: the name of a step, and its number, from 1."""

    name: str
    number: int

    def source(self, columns: str, layer: str) -> str:
        """Return the expression of `x` and `y`."""
        return form(self.name).source.format(k=self.number, n=columns, layer=layer)

    @property
    def made(self) -> str:
        """The expression that creates its module, or ""."""
        return form(self.name).made.format(k=self.number)


@dataclass(frozen=True)
class Program:
    """A sequence of steps. `x` and `y` are float32 with two axes. The result has any number of rows and the same number of columns."""

    steps: tuple[Step, ...]
    moving: str = "rows"

    @property
    def names(self) -> frozenset[str]:
        """The names of its steps."""
        return frozenset(step.name for step in self.steps)

    @property
    def source(self) -> str:
        """The class `Program` as source code."""
        columns = "y.shape[1]" if "columns" in self._axes else str(COLUMNS)
        body = [f"        x = {step.source(columns, f'self.layer{i}')}" for i, step in enumerate(self.steps, 1)]
        return "\n".join(["class Program(nn.Module):", *self._layers(), "    def forward(self, x, y):", *body, "        return x", ""])

    @property
    def shapes(self) -> tuple[dict[int, str], dict[int, str]]:
        """The names of the dynamic axes of `x` and `y`."""
        return MOVING[self.moving]

    def sizes(self) -> list[tuple[int, int, int]]:
        """Return rows of `x`, rows of `y` and columns: first for the export, then for verification."""
        others = SIZES["others" if "others" in self._axes else "rows"]
        still = [COLUMNS] * len(others)
        return list(zip(SIZES["rows"], others, SIZES["columns"] if "columns" in self._axes else still, strict=True))

    def module(self) -> nn.Module:
        """Return the module in evaluation mode. `inspect` can't find its source."""
        space: dict[str, Any] = dict(OWN)
        exec(self.source, space)
        made = space["Program"]()
        assert isinstance(made, nn.Module)
        return made.eval()

    def samples(self) -> list[Sample]:
        """Return the inputs for the export, and for the other sizes."""
        return [Sample(inputs(*sizes)) for sizes in self.sizes()]

    @property
    def _axes(self) -> set[str]:
        return {name for axes in self.shapes for name in axes.values()}

    def _layers(self) -> Iterator[str]:
        made = [f"        self.layer{i} = {step.made}" for i, step in enumerate(self.steps, 1) if step.made]
        if made:
            yield from ("    def __init__(self):", "        super().__init__()", "        torch.manual_seed(0)", *made, "")


def inputs(rows: int, others: int, columns: int = COLUMNS) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `x` and `y` as float32 with the given sizes. The values are reproducible."""
    random = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, generator=random), torch.randn(others, columns, generator=random)
